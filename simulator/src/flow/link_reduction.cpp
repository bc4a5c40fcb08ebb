// SPDX-License-Identifier: Apache-2.0
#include "refit/link_reduction.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace refit {
namespace {

/// Work that comparing links pairwise may take, in steps; beyond it only equal ones are found.
constexpr std::size_t kMostComparisons = 20'000'000;

/// A way through the network that some flows share, and what they take of a link's rate.
struct WayShare {
    std::uint32_t way = 0;
    double share = 0.0;
    bool operator==(const WayShare&) const = default;
};
using LinkWays = std::vector<WayShare>;

std::string_view bytes_of(std::span<const LinkUse> uses, std::string& buffer) {
    buffer.clear();
    for (const auto& use : uses) {
        buffer.append(reinterpret_cast<const char*>(&use.link), sizeof use.link);
        buffer.append(reinterpret_cast<const char*>(&use.per_byte), sizeof use.per_byte);
    }
    return buffer;
}

/// By link: the ways over it, ascending.
std::vector<LinkWays> ways_by_link(const FlowNetwork& network) {
    std::vector<LinkWays> ways(network.links());
    std::unordered_map<std::string, std::uint32_t> known;
    std::string buffer;
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        const auto uses = network.uses(flow);
        if (uses.empty()) {
            continue;
        }
        const auto way = static_cast<std::uint32_t>(known.size());
        if (known.try_emplace(std::string{bytes_of(uses, buffer)}, way).second) {
            for (const auto& use : uses) {
                ways[use.link].push_back({way, use.per_byte / network.rate(use.link)});
            }
        }
    }
    return ways;
}

/// Whether each way takes no more of `idle` than of `other`.
bool is_covered(const LinkWays& idle, const LinkWays& other) {
    if (idle.size() > other.size()) {
        return false;
    }
    auto at = other.begin();
    for (const auto& [way, share] : idle) {
        while (at != other.end() && at->way < way) {
            ++at;
        }
        if (at == other.end() || at->way != way || at->share < share) {
            return false;
        }
    }
    return true;
}

class Reduction {
public:
    explicit Reduction(const FlowNetwork& network)
        : network_{network}, ways_{ways_by_link(network)}, is_kept_(network.links(), true) {
        for (const auto& change : network.changes()) {
            changes_.push_back(change.link);
        }
    }

    ReducedNetwork run() {
        drop_equal();
        drop_covered();
        return rebuilt();
    }

private:
    [[nodiscard]] bool may_go(std::uint32_t link) const {
        return std::ranges::find(changes_, link) == changes_.end();
    }

    void drop_equal() {
        const auto by_ways = [&](std::uint32_t a, std::uint32_t b) {
            return std::ranges::lexicographical_compare(
                ways_[a],
                ways_[b],
                {},
                [](const WayShare& entry) {
                    return std::pair{entry.way, entry.share};
                },
                [](const WayShare& entry) {
                    return std::pair{entry.way, entry.share};
                });
        };
        std::map<std::uint32_t, std::uint32_t, decltype(by_ways)> first{by_ways};
        for (std::uint32_t link = 0; link < network_.links(); ++link) {
            if (may_go(link)) {
                is_kept_[link] = !ways_[link].empty() && first.try_emplace(link, link).second;
            }
        }
    }

    void drop_covered() {
        std::vector<std::uint32_t> left;
        std::size_t entries = 0;
        for (std::uint32_t link = 0; link < network_.links(); ++link) {
            if (is_kept_[link]) {
                left.push_back(link);
                entries += ways_[link].size();
            }
        }
        if (left.size() * entries > kMostComparisons) {
            return;
        }
        for (const auto link : left) {
            is_kept_[link] = !may_go(link) || std::ranges::none_of(left, [&](std::uint32_t other) {
                return other != link && is_kept_[other] && may_go(other) &&
                       is_covered(ways_[link], ways_[other]);
            });
        }
    }

    [[nodiscard]] ReducedNetwork rebuilt() const {
        ReducedNetwork reduced;
        std::vector<std::uint32_t> number(network_.links(), 0);
        for (std::uint32_t link = 0; link < network_.links(); ++link) {
            if (is_kept_[link]) {
                number[link] = reduced.network.add_link(network_.rate(link));
                reduced.kept.push_back(link);
            }
        }
        std::vector<LinkUse> uses;
        for (std::uint32_t flow = 0; flow < network_.flows(); ++flow) {
            uses.clear();
            for (const auto& use : network_.uses(flow)) {
                if (is_kept_[use.link]) {
                    uses.push_back({number[use.link], use.per_byte});
                }
            }
            reduced.network.add_flow(network_.flow(flow), uses, network_.after(flow));
        }
        for (auto change : network_.changes()) {
            change.link = number[change.link];
            reduced.network.add_change(change);
        }
        return reduced;
    }

    const FlowNetwork& network_;
    std::vector<LinkWays> ways_;
    std::vector<bool> is_kept_;
    std::vector<std::uint32_t> changes_;
};

}  // namespace

ReducedNetwork without_idle_links(const FlowNetwork& network) {
    return Reduction{network}.run();
}

}  // namespace refit
