// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refit/facts.hpp"
#include "refit/parameter.hpp"
#include "refit/result.hpp"

namespace refit {

/// Sums over the tensors of one part of a model.
struct PartTotals {
    std::uint64_t parameters = 0;
    std::uint64_t tensors = 0;
    Bytes bytes;
    Bytes native_bytes;  ///< As the model's own checkpoint stores it.
    bool operator==(const PartTotals&) const = default;
};

/// Every parameter of a model, by classes.
///
/// Invariant: classes of one name lie in different layers (Kimi-K3 has an o_proj of two kinds, and MTP layers repeat
/// the names of others); the layers of the text lie below layers().
class Inventory {
public:
    /// Reads the facts with the family that their `model_type` names.
    /// Errors: kInvalidInput for an unknown family (the nearest is named) or for missing or impossible fields, all at once.
    [[nodiscard]] static Result<Inventory> make(std::string id, const Facts& facts);

    [[nodiscard]] const std::string& id() const noexcept { return id_; }
    /// Name for people: "DeepSeek-V3".
    [[nodiscard]] const std::string& title() const noexcept { return title_; }
    [[nodiscard]] std::uint32_t layers() const noexcept { return layers_; }
    /// Routed experts in one MoE layer; 0 for a dense model.
    [[nodiscard]] std::uint32_t experts() const noexcept;
    /// Groups that the router chooses experts from; 1 where it knows none.
    [[nodiscard]] std::uint32_t expert_groups() const noexcept { return expert_groups_; }
    /// Layers that have routed experts.
    [[nodiscard]] std::uint32_t moe_layers() const noexcept;
    /// All classes, MTP included.
    [[nodiscard]] std::span<const ParameterClass> classes() const noexcept { return classes_; }
    /// The classes that a refit moves: text and vision.
    [[nodiscard]] std::vector<ParameterClass> payload() const;
    [[nodiscard]] PartTotals totals(ModelPart part) const;
    /// Text and vision together.
    [[nodiscard]] PartTotals payload_totals() const;

private:
    Inventory(std::string id, std::string title, std::uint32_t layers, std::vector<ParameterClass> classes);

    std::string id_;
    std::string title_;
    std::uint32_t layers_;
    std::uint32_t expert_groups_ = 1;
    std::vector<ParameterClass> classes_;
};

}  // namespace refit
