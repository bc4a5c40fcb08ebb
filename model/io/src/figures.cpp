// SPDX-License-Identifier: Apache-2.0
#include "figures.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "refit/constant_table.hpp"
#include "refit/suggest.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

std::string shortest(double value) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    return {buffer.data(), end};
}

/// A text in the object, or none where it is missing or of another kind.
std::string text_part(const Json& object, const char* part) {
    const auto found = object.find(part);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

}  // namespace

bool FigureReader::ask(const char* key) {
    asked_.emplace_back(key);
    return has(key);
}

void FigureReader::refuse_unknown(std::vector<std::string> others) {
    others.insert(others.end(), asked_.begin(), asked_.end());
    if (!object_.is_object()) {
        return;
    }
    for (const auto& [key, value] : object_.items()) {
        if (!key.starts_with('_') && std::ranges::find(others, key) == others.end()) {
            refuse(key.c_str(), "unknown-key", "unknown key '" + key + "'; did you mean '" + nearest_name(key, others) + "'?");
        }
    }
}

const Json* FigureReader::entry(const char* key) {
    if (!ask(key)) {
        refuse(key, "missing-field", std::string{"'"} + key + "' is missing");
        return nullptr;
    }
    const auto& value = object_.at(key);
    if (value.is_number()) {
        refuse(key,
               "unit-missing",
               std::string{"'"} + key + "' is the bare number " + value.dump() +
                   R"(; write {"value": 400, "unit": "Gbit/s", "low": 350, "high": 400, "source": "..."})");
        return nullptr;
    }
    if (!value.is_object()) {
        refuse(key, "field-type", std::string{"'"} + key + "' must be an object with value, unit, low, high and source");
        return nullptr;
    }
    static const std::vector<std::string> kParts{"value", "unit", "low", "high", "source", "kind", "identified_by", "prior", "bounds"};
    for (const auto& [part, content] : value.items()) {
        if (!part.starts_with('_') && std::ranges::find(kParts, part) == kParts.end()) {
            const auto whole = std::string{key} + "/" + part;
            refuse(whole.c_str(), "unknown-key", "unknown key '" + part + "'; did you mean '" + nearest_name(part, kParts) + "'?");
        }
    }
    return &value;
}

std::optional<double> FigureReader::number(const Json& entry, const char* key, const char* part) {
    const auto found = entry.find(part);
    if (found == entry.end() || !found->is_number() || !std::isfinite(found->get<double>())) {
        refuse(key, "field-type", std::string{"'"} + key + "." + part + "' must be a finite number");
        return std::nullopt;
    }
    return found->get<double>();
}

std::optional<std::string> FigureReader::unit(const Json& entry, const char* key) {
    const auto found = entry.find("unit");
    const auto source = entry.find("source");
    if (source == entry.end() || !source->is_string() || source->get_ref<const std::string&>().empty()) {
        refuse(key, "source-missing", std::string{"'"} + key + "' names no source");
    }
    if (found == entry.end() || !found->is_string()) {
        refuse(key, "unit-missing", std::string{"'"} + key + "' has no unit");
        return std::nullopt;
    }
    return found->get<std::string>();
}

template <class T, class Parse>
Figure<T> FigureReader::figure(const char* key, Parse parse, T fallback) {
    Figure<T> result{fallback, fallback, fallback, {}, "assumed"};
    const auto* object = entry(key);
    const auto unit_text = object == nullptr ? std::nullopt : unit(*object, key);
    if (!unit_text) {
        return result;
    }
    const auto read = [&](const char* part, T& target) {
        const auto value = number(*object, key, part);
        if (!value) {
            return;
        }
        auto parsed = parse(shortest(*value) + *unit_text);
        if (parsed) {
            target = *parsed;
            return;
        }
        for (auto& fault : parsed.error()) {
            refuse(key, fault.rule.c_str(), std::string{"'"} + key + "." + part + "': " + fault.message);
        }
    };
    read("value", result.value);
    read("low", result.low);
    read("high", result.high);
    if (result.low > result.value || result.value > result.high) {
        refuse(key, "field-range", std::string{"'"} + key + "' must have low <= value <= high");
    }
    result.source = text_part(*object, "source");
    const std::vector<std::string> kinds{"measured", "vendor", "inferred", "assumed"};
    const auto kind = object->contains("kind") ? text_part(*object, "kind") : result.kind;
    if (std::ranges::find(kinds, kind) == kinds.end()) {
        refuse(key, "unknown-kind", std::string{"'"} + key + ".kind' must be one of " + join_names(kinds));
    }
    result.kind = kind;
    return result;
}

template Figure<Bandwidth> FigureReader::figure(const char*, Result<Bandwidth> (*)(std::string_view), Bandwidth);
template Figure<Bytes> FigureReader::figure(const char*, Result<Bytes> (*)(std::string_view), Bytes);

Constant FigureReader::constant(const char* key) {
    Constant result;
    const auto* object = entry(key);
    const auto unit_text = object == nullptr ? std::nullopt : unit(*object, key);
    if (!unit_text) {
        return result;
    }
    std::vector<std::string> names;
    for (const auto& known : constant_units()) {
        names.emplace_back(known.name);
    }
    if (std::ranges::find(names, *unit_text) == names.end()) {
        refuse(key, "unit-unknown", "unit '" + *unit_text + "' is none of " + join_names(names));
        return result;
    }
    const auto factor = unit_factor(*unit_text);
    result.unit = *unit_text;
    result.value = number(*object, key, "value").value_or(0.0) * factor;
    result.low = number(*object, key, "low").value_or(0.0) * factor;
    result.high = number(*object, key, "high").value_or(0.0) * factor;
    if (result.low < 0.0 || result.low > result.value || result.value > result.high) {
        refuse(key, "field-range", std::string{"'"} + key + "' must have 0 <= low <= value <= high");
    }
    result.source = text_part(*object, "source");
    result.kind = text_part(*object, "kind");
    const auto ids = object->find("identified_by");
    if (ids != object->end() && ids->is_array() && std::ranges::all_of(*ids, [](const Json& id) { return id.is_string(); })) {
        result.identified_by = ids->get<std::vector<std::string>>();
    } else {
        refuse(key, "identified-by-missing", std::string{"'"} + key + "' does not say which records identify it");
    }
    if (result.kind == "fitted" && ids != object->end() && result.identified_by.empty()) {
        refuse(key, "identified-by-missing", std::string{"'"} + key + "' is fitted, but names no record that identifies it");
    }
    read_prior(*object, key, factor, result);
    return result;
}

void FigureReader::read_prior(const Json& entry, const char* key, double factor, Constant& result) {
    if (const auto prior = entry.find("prior"); prior != entry.end()) {
        const std::string name{key};
        if (!prior->is_object()) {
            refuse(key, "field-type", "'" + name + ".prior' must be an object with value, spread and source");
            return;
        }
        const auto inner = name + ".prior";
        const auto value = number(*prior, inner.c_str(), "value").value_or(0.0) * factor;
        result.prior = {value, number(*prior, inner.c_str(), "spread").value_or(0.0), text_part(*prior, "source")};
        if (!(result.prior->value > 0.0) || !(result.prior->spread > 1.0)) {
            refuse(key, "field-range", "'" + inner + "' must have value > 0 and spread > 1");
        }
        if (result.prior->source.empty()) {
            refuse(key, "source-missing", "'" + inner + "' names no source");
        }
    }
    if (const auto bounds = entry.find("bounds"); bounds != entry.end()) {
        const bool is_pair = bounds->is_array() && bounds->size() == 2 && bounds->at(0).is_number() && bounds->at(1).is_number();
        result.bounds = is_pair ? ConstantBounds{bounds->at(0).get<double>() * factor, bounds->at(1).get<double>() * factor}
                                : ConstantBounds{};
        if (!(result.bounds->low > 0.0) || result.bounds->low > result.value || result.value > result.bounds->high) {
            refuse(key, "field-range", std::string{"'"} + key + ".bounds' must be [low, high] with 0 < low <= value <= high");
        }
    }
}

Constant FigureReader::efficiency(const char* key) {
    const auto known = faults_.size();
    auto result = constant(key);
    if (faults_.size() == known && (!(result.low > 0.0) || result.high > 1.0)) {
        refuse(key, "field-range", std::string{"'"} + key + "' must have 0 < low <= value <= high <= 1");
    }
    return result;
}

double FigureReader::option(const char* key, double least, double most) {
    const auto* object = ask(key) ? &object_.at(key) : nullptr;
    const auto value = object != nullptr && object->is_object() ? number(*object, key, "value") : std::nullopt;
    if (object == nullptr || !object->is_object()) {
        refuse(key, "missing-field", std::string{"'"} + key + "' must have a numeric value");
    } else if (value && !(*value >= least && *value <= most)) {
        refuse(key, "field-range", std::string{"'"} + key + ".value' must lie from " + shortest(least) + " to " + shortest(most));
    }
    return value ? std::clamp(*value, least, most) : least;
}

std::string FigureReader::text(const char* key) {
    if (!ask(key) || !object_.at(key).is_string()) {
        refuse(key, "missing-field", std::string{"'"} + key + "' must be a text");
        return {};
    }
    return object_.at(key).get<std::string>();
}

std::uint32_t FigureReader::count(const char* key) {
    constexpr std::int64_t kMost = 1 << 20;
    if (!ask(key) || !object_.at(key).is_number_integer() || object_.at(key).get<std::int64_t>() < 1 ||
        object_.at(key).get<std::int64_t>() > kMost) {
        refuse(key, "field-range", std::string{"'"} + key + "' must be a whole number from 1 to 2^20");
        return 1;
    }
    return object_.at(key).get<std::uint32_t>();
}

}  // namespace refit::io
