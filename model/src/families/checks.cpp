// SPDX-License-Identifier: Apache-2.0
#include "checks.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "refit/suggest.hpp"

namespace refit::families {
namespace {

constexpr std::uint64_t kMostLayers = 4096;

std::string quoted(std::string_view key) {
    return "'" + std::string{key} + "'";
}

std::uint64_t limited(const Facts& facts, std::string_view key, std::uint64_t layers, Faults& faults) {
    if (layers > kMostLayers) {
        refuse(facts,
               quoted(key) + " is " + std::to_string(layers) + ", but at most " +
                   std::to_string(kMostLayers) + " layers are accepted",
               faults);
        return 1;
    }
    return layers;
}

}  // namespace

std::uint64_t layer_count(const Facts& facts, std::string_view key, Faults& faults) {
    return limited(facts, key, facts.positive(key, faults), faults);
}

std::uint64_t layer_count_or_none(const Facts& facts, std::string_view key, Faults& faults) {
    return limited(facts, key, facts.natural_or(key, 0, faults), faults);
}

void refuse(const Facts& facts, std::string message, Faults& faults) {
    faults.push_back({ErrorCode::kInvalidInput, "config-field", std::move(message), facts.origin()});
}

void expect_flag(const Facts& facts, std::string_view key, bool modelled, Faults& faults) {
    if (facts.flag_or(key, modelled, faults) != modelled) {
        faults.push_back({ErrorCode::kUnsupported,
                          "config-field",
                          quoted(key) + " is " + (modelled ? "false" : "true") +
                              ", and the tensors of such a model are not known to Refit",
                          facts.origin()});
    }
}

void expect_multiple(const Facts& facts,
                     std::string_view key,
                     std::uint64_t value,
                     std::string_view unit_key,
                     std::uint64_t unit,
                     Faults& faults) {
    if (value % unit != 0) {
        refuse(facts,
               quoted(key) + " is " + std::to_string(value) + ", but must be a multiple of " +
                   quoted(unit_key) + ", " + std::to_string(unit),
               faults);
    }
}

void expect_at_most(const Facts& facts,
                    std::string_view key,
                    std::uint64_t value,
                    std::string_view limit_key,
                    std::uint64_t limit,
                    Faults& faults) {
    if (value > limit) {
        refuse(facts,
               quoted(key) + " is " + std::to_string(value) + ", but " + quoted(limit_key) + " is only " +
                   std::to_string(limit),
               faults);
    }
}

void expect_kinds(const Facts& facts,
                  std::string_view key,
                  const std::vector<std::string>& kinds,
                  std::initializer_list<std::string> known,
                  Faults& faults) {
    const std::vector<std::string> names{known};
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (std::ranges::find(names, kinds[i]) == names.end()) {
            refuse(facts,
                   quoted(key) + " has '" + kinds[i] + "' for layer " + std::to_string(i) + "; known are " +
                       join_names(names),
                   faults);
            return;
        }
    }
}

void expect_length(
    const Facts& facts, std::string_view key, std::size_t length, std::uint64_t layers, Faults& faults) {
    if (length != layers) {
        refuse(facts,
               quoted(key) + " lists " + std::to_string(length) + " layers, but there are " +
                   std::to_string(layers),
               faults);
    }
}

Layers layers_of(const std::vector<std::string>& kinds, std::string_view kind) {
    Layers layers;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (kinds[i] == kind) {
            layers.push_back(static_cast<std::uint32_t>(i));
        }
    }
    return layers;
}

void mark_projections(std::vector<ParameterClass>& classes) {
    constexpr std::array<std::string_view, 3> kOthers{"mlp.gate.weight", "eh_proj.weight", "indexer.weights_proj.weight"};
    for (auto& entry : classes) {
        entry.is_projection =
            entry.shape.size() == 2 && entry.sharding != Sharding::kVocabulary && entry.part != ModelPart::kVision &&
            std::ranges::none_of(kOthers, [&](std::string_view other) { return entry.name.ends_with(other); });
    }
}

bool is_fp8_in_blocks(const Facts& facts, const std::string& prefix, Faults& faults) {
    return facts.text_or(prefix + "quantization_config.quant_method", "", faults) == "fp8";
}

}  // namespace refit::families
