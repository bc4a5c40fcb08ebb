// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "refit/cluster.hpp"

namespace refit {

/// By whose NICs a message leaves one NVLink domain and enters another.
struct NicRoute {
    RankId exit;     ///< In the source's domain.
    RankId landing;  ///< In the destination's.
    bool operator==(const NicRoute&) const = default;
};

/// How messages get from domain to domain where NICs are down, or reach only their own rail. In this order:
/// by the NICs of both ends; from the nearest GPU of the source's domain by whose NIC the destination's is
/// reached; to the nearest GPU of the destination's domain that the source's NIC reaches; by the first pair
/// of NICs that reach each other. The nearest is the next of the domain by number, from the last on to the
/// first. NVLink joins the parts. Source: NCCL PXN sends from the GPU on the receiver's rail, and takes
/// another GPU's NIC where a GPU has none (docs/cost_model.md).
class NicRoutes {
public:
    explicit NicRoutes(const Cluster& cluster);

    /// Whether every hop goes by the NICs of its ends.
    [[nodiscard]] bool is_plain() const noexcept { return ranks_.empty(); }
    /// Nothing where no NIC of the one domain reaches one of the other. Pre: the ranks are in different
    /// domains.
    [[nodiscard]] std::optional<NicRoute> between(RankId source, RankId destination) const;
    [[nodiscard]] bool is_up(RankId rank) const { return is_plain() || ranks_[rank.index()].is_up; }
    /// 0 for all ranks where any NIC reaches any.
    [[nodiscard]] std::uint32_t rail_of(RankId rank) const {
        return is_plain() ? 0 : ranks_[rank.index()].rail;
    }

private:
    struct Rank {
        std::uint32_t first;  ///< Of its domain.
        std::uint32_t count;  ///< GPUs of its domain.
        std::uint32_t rail;
        bool is_up;
    };
    [[nodiscard]] bool is_joined(std::uint32_t a, std::uint32_t b) const {
        return ranks_[a].is_up && ranks_[b].is_up && ranks_[a].rail == ranks_[b].rail;
    }
    /// The `steps`th GPU after `rank` in its domain.
    [[nodiscard]] std::uint32_t after(std::uint32_t rank, std::uint32_t steps) const {
        const auto& entry = ranks_[rank];
        return entry.first + (rank - entry.first + steps) % entry.count;
    }

    std::vector<Rank> ranks_;  ///< Empty where every hop goes by the NICs of its ends.
};

}  // namespace refit
