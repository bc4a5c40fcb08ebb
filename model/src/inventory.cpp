// SPDX-License-Identifier: Apache-2.0
#include "refit/inventory.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "families/family.hpp"
#include "refit/suggest.hpp"

namespace refit {

Inventory::Inventory(std::string id, std::string title, std::uint32_t layers, std::vector<ParameterClass> classes)
    : id_{std::move(id)}, title_{std::move(title)}, layers_{layers}, classes_{std::move(classes)} {}

Result<Inventory> Inventory::make(std::string id, const Facts& facts) {
    Faults faults;
    const auto model_type = facts.text_or("model_type", "", faults);
    const auto families = families::registry();
    const auto family = std::ranges::find(families, model_type, &families::Family::model_type);
    if (family == families.end()) {
        std::vector<std::string> known;
        for (const auto& entry : families) {
            known.emplace_back(entry.model_type);
        }
        return fail(ErrorCode::kInvalidInput,
                    "unknown-family",
                    "model_type '" + model_type + "' is not one that Refit knows; the nearest is '" +
                        nearest_name(model_type, known) + "' (known: " + join_names(known) + ")",
                    facts.origin());
    }
    auto parameters = family->parameters(facts, faults);
    const auto title = facts.text_or("_title", id, faults);
    const auto expert_groups = facts.natural_or("n_group", 1, faults);
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    try {
        Bytes sum;
        for (const auto& entry : parameters.classes) {
            sum += entry.bytes();
        }
    } catch (const std::overflow_error&) {
        return fail(ErrorCode::kInvalidInput, "overflow", "the sizes multiply out to 2^64 bytes or more", facts.origin());
    }
    Inventory inventory{std::move(id), title, parameters.layers, std::move(parameters.classes)};
    inventory.expert_groups_ = static_cast<std::uint32_t>(std::max<std::uint64_t>(expert_groups, 1));
    return inventory;
}

std::uint32_t Inventory::experts() const noexcept {
    std::uint32_t experts = 0;
    for (const auto& entry : classes_) {
        experts = std::max(experts, entry.part == ModelPart::kMtp ? 0 : entry.experts);
    }
    return experts;
}

std::uint32_t Inventory::moe_layers() const noexcept {
    std::size_t layers = 0;
    for (const auto& entry : classes_) {
        if (entry.is_expert() && entry.part != ModelPart::kMtp) {
            layers = std::max(layers, entry.layers.size());
        }
    }
    return static_cast<std::uint32_t>(layers);
}

std::vector<ParameterClass> Inventory::payload() const {
    std::vector<ParameterClass> payload;
    std::ranges::copy_if(classes_, std::back_inserter(payload), [](const auto& entry) {
        return entry.part != ModelPart::kMtp;
    });
    return payload;
}

PartTotals Inventory::totals(ModelPart part) const {
    PartTotals totals;
    for (const auto& entry : classes_) {
        if (entry.part == part) {
            totals.parameters += entry.parameters() * entry.tensors();
            totals.tensors += entry.tensors();
            totals.bytes += entry.bytes();
            totals.native_bytes += entry.native_bytes();
        }
    }
    return totals;
}

PartTotals Inventory::payload_totals() const {
    auto totals = this->totals(ModelPart::kText);
    const auto vision = this->totals(ModelPart::kVision);
    totals.parameters += vision.parameters;
    totals.tensors += vision.tensors;
    totals.bytes += vision.bytes;
    totals.native_bytes += vision.native_bytes;
    return totals;
}

}  // namespace refit
