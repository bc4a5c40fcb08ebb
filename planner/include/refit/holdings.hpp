// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "refit/box.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit {

/// What one rank holds of a parameter class.
struct Holding {
    std::string name;            ///< Of the class.
    std::vector<Box> boxes;      ///< Of one logical tensor; experts of a layer are stacked along the first axis.
    std::uint64_t layers = 0;    ///< Logical tensors of which it holds this.
    std::uint64_t replicas = 0;  ///< Ranks of the side that hold the same, itself included.
    Bytes bytes;                 ///< Over all layers.
    Bytes padding;               ///< Rows of a padded vocabulary beside it, over all layers.
};

/// What one rank holds of the model, before or after the refit.
struct RankHoldings {
    RankId rank;
    bool is_trainer = true;
    std::uint32_t stage = 0;  ///< Pipeline stage on its side.
    std::vector<Holding> holdings;

    [[nodiscard]] Bytes bytes() const;
    [[nodiscard]] Bytes padding() const;
};

/// Pre: the rank exists.
[[nodiscard]] RankHoldings holdings_of(const Scenario& scenario, const Workload& workload, RankId rank);

/// One side of a layout in sums.
struct SideSummary {
    Bytes least;       ///< Held by any rank.
    Bytes most;
    Bytes all;         ///< Over all ranks.
    Bytes replicated;  ///< Of these, copies beyond the first of each element.
    Bytes padding;     ///< Beside these.
};

/// Who holds how much, and what nobody receives.
struct LayoutSummary {
    SideSummary train;
    SideSummary generate;
    std::vector<std::string> key_value_replicated;  ///< Classes whose KV heads several generator ranks of one engine share.
    std::vector<std::string> delivered_to_nobody;   ///< Classes of the model that no generator receives: MTP layers.
};

[[nodiscard]] LayoutSummary summarise_layout(const Scenario& scenario, const Workload& workload);

}  // namespace refit
