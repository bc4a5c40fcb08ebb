// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace refit {

/// Index that only compares with, and converts to, its own kind.
/// `Tag` is a type that exists for no other purpose; kinds never inherit from one another.
template <class Tag>
class StrongId {
public:
    constexpr StrongId() noexcept = default;
    constexpr explicit StrongId(std::uint32_t index) noexcept : index_{index} {}
    [[nodiscard]] constexpr std::uint32_t index() const noexcept { return index_; }
    constexpr auto operator<=>(const StrongId&) const = default;

private:
    std::uint32_t index_{0};
};

/// A process of the job: trainers come first, in Megatron's rank order, then the generators.
using RankId = StrongId<struct RankTag>;
/// An NVLink domain of the cluster.
using DomainId = StrongId<struct DomainTag>;

}  // namespace refit

template <class Tag>
struct std::hash<refit::StrongId<Tag>> {
    [[nodiscard]] std::size_t operator()(refit::StrongId<Tag> id) const noexcept {
        return std::hash<std::uint32_t>{}(id.index());
    }
};
