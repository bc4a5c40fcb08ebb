// SPDX-License-Identifier: Apache-2.0
#include "fabric_text.hpp"

#include <cstddef>
#include <vector>

#include "cells.hpp"
#include "plan_text.hpp"
#include "refit/quantity.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kShownNics = 3;

std::string listed(const std::string& name, const std::vector<std::string>& nics) {
    if (nics.empty()) {
        return {};
    }
    std::string text = "; " + name;
    for (std::size_t i = 0; i < nics.size() && i < kShownNics; ++i) {
        text += (i == 0 ? ": " : ", ") + nics[i];
    }
    return nics.size() <= kShownNics ? text
                                     : text + " and " + std::to_string(nics.size() - kShownNics) + " more";
}

std::string ranks_named(const std::vector<std::uint32_t>& ranks) {
    constexpr std::size_t kMost = 40;
    const auto text = ranks_text(ranks);
    return (ranks.size() == 1 ? "rank " : "ranks ") +
           (text.size() <= kMost ? text : text.substr(0, text.rfind(',', kMost)) + " and more, " + std::to_string(ranks.size()));
}

}  // namespace

std::string fabric_text(const Cluster& cluster) {
    const auto& fabric = cluster.fabric();
    std::string text;
    if (fabric.has_spine()) {
        text += "; pods of " + std::to_string(fabric.domains_per_pod) + " NVLink domain" +
                (fabric.domains_per_pod == 1 ? "" : "s") + ", " +
                number_text("%.4g:1", fabric.oversubscription) + " oversubscribed";
    }
    text += fabric.is_rail_only ? "; rail-only" : "";
    std::vector<std::string> down;
    std::vector<std::string> slow;
    for (const auto& [rank, rate] : fabric.nics) {
        const auto name = rank_text(cluster, RankId{rank});
        if (rate) {
            slow.push_back(name + " at " + format_bandwidth(*rate));
        } else {
            down.push_back(name);
        }
    }
    text += listed(down.size() == 1 ? "NIC down" : "NICs down", down) +
            listed(slow.size() == 1 ? "NIC slow" : "NICs slow", slow);
    const auto& losses = cluster.losses();
    text += losses.empty() ? "" : "; without " + ranks_named(losses.lost);
    text += losses.idle.empty() ? "" : ", and " + ranks_named(losses.idle) + " of replicas that lost one";
    return text.empty() ? text : text.substr(2);
}

}  // namespace refit::cli
