// SPDX-License-Identifier: Apache-2.0
#include "machines_reader.hpp"

#include <algorithm>
#include <string>

#include "refit/quantity.hpp"
#include "refit/suggest.hpp"

namespace refit::io {
namespace {

constexpr const char* kExampleSystem = "h100-nvl8";

/// The field that names the system of a side, or nothing and a fault. A flag for both sides outranks a file's
/// word on one.
std::optional<std::string> system_field(DraftReader& reader,
                                        const std::string& side,
                                        const std::string& other_side) {
    const auto* own = reader.draft().find(side);
    const auto* both = reader.draft().find("system");
    if (own != nullptr && (both == nullptr || own->precedence >= both->precedence)) {
        return side;
    }
    if (both != nullptr) {
        return "system";
    }
    const bool has_other = reader.draft().find(other_side) != nullptr;
    if (has_other || side == "system.train") {
        const std::string name = has_other ? side : "system";
        reader.refuse(
            ErrorCode::kInvalidInput,
            "missing-field",
            "'" + name + "' is missing: which machines? Known: " + join_names(reader.library().systems()),
            name,
            Suggestion{name, kExampleSystem, "for example"});
    }
    return std::nullopt;
}

/// The system that a field names, or the nearest and a fault; an example where no field does.
std::optional<System> read_system(DraftReader& reader, const std::optional<std::string>& field) {
    Faults ignored;
    if (!field) {
        return take(reader.library().system(kExampleSystem, ""), ignored);
    }
    auto system = reader.take(reader.library().system(reader.text_of(*field, ""), *field), *field);
    if (!system && reader.faults().back().nearest) {
        system = take(reader.library().system(reader.faults().back().nearest->value, ""), ignored);
    }
    return system;
}

std::optional<Figure<Bandwidth>> read_rate(DraftReader& reader, const std::string& name) {
    const auto* field = reader.draft().find(name);
    const auto rate = field == nullptr ? std::nullopt : reader.take(parse_bandwidth(field->text), name);
    return rate ? std::optional{Figure<Bandwidth>{*rate, *rate, *rate, field->origin, "assumed"}}
                : std::nullopt;
}

}  // namespace

std::optional<std::pair<System, System>> read_systems(DraftReader& reader) {
    const auto train_field = system_field(reader, "system.train", "system.generate");
    const auto generate_field = system_field(reader, "system.generate", "system.train");
    const auto train = read_system(reader, train_field);
    const auto generate = generate_field == train_field ? train : read_system(reader, generate_field);
    const auto nic = read_rate(reader, "system.nic");
    const auto nvlink = read_rate(reader, "system.nvlink");
    if (!train || !generate) {
        return std::nullopt;
    }
    auto systems = std::pair{*train, *generate};
    for (auto* system : {&systems.first, &systems.second}) {
        system->nic = nic.value_or(system->nic);
        system->nvlink = nvlink.value_or(system->nvlink);
    }
    return systems;
}

Placement read_placement(DraftReader& reader, const System& train, const System& generate) {
    Placement placement{usual_gpus_per_domain(train), usual_gpus_per_domain(generate), true};
    const std::string name = "placement.gpus_used_per_domain";
    if (reader.draft().find(name) != nullptr) {
        const auto most = std::min(train.gpus_per_domain, generate.gpus_per_domain);
        const auto used = reader.whole_number(name, reader.text_of(name, ""), most, most);
        placement.train_gpus_per_domain = used;
        placement.generate_gpus_per_domain = used;
    }
    placement.generation_starts_new_domain =
        reader.one_of(
            "placement.generation_starts_new_domain", "true", {"true", "false"}, ErrorCode::kInvalidInput) ==
        "true";
    return placement;
}

}  // namespace refit::io
