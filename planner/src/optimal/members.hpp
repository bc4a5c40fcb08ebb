// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "refit/fabric.hpp"

namespace refit {

/// Ranks of a set that share a domain.
struct Members {
    std::uint32_t domain = 0;
    std::vector<std::uint32_t> ranks;
};

/// The set by domain, domains ascending.
[[nodiscard]] inline std::vector<Members> by_domain(const std::vector<std::uint32_t>& ranks, const Fabric& fabric) {
    std::vector<Members> all;
    for (const auto rank : ranks) {
        const auto domain = fabric.domain_of(rank);
        if (all.empty() || all.back().domain != domain) {
            all.push_back({domain, {}});
        }
        all.back().ranks.push_back(rank);
    }
    std::ranges::stable_sort(all, {}, &Members::domain);
    std::vector<Members> merged;
    for (auto& entry : all) {
        if (!merged.empty() && merged.back().domain == entry.domain) {
            merged.back().ranks.insert(merged.back().ranks.end(), entry.ranks.begin(), entry.ranks.end());
        } else {
            merged.push_back(std::move(entry));
        }
    }
    return merged;
}

}  // namespace refit
