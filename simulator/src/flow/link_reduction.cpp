// SPDX-License-Identifier: Apache-2.0
#include "refit/link_reduction.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "way_order.hpp"

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

/// Numbers of the distinct ways that flows take: by way of the network, and of each the first that is like
/// it.
struct WayNumbers {
    std::vector<std::uint32_t> of;
    std::vector<std::uint32_t> first;
};

WayNumbers numbered_ways(const FlowNetwork& network) {
    std::vector<bool> is_taken(network.ways(), network.has_own_ways());
    for (std::uint32_t flow = 0; flow < network.flows() && !network.has_own_ways(); ++flow) {
        is_taken[network.way_of(flow)] = true;
    }
    WayNumbers numbers;
    numbers.of.resize(network.ways(), 0);
    std::unordered_map<std::string, std::uint32_t> known;
    std::string buffer;
    for (std::uint32_t way = 0; way < network.ways(); ++way) {
        if (!is_taken[way]) {
            continue;
        }
        const auto next = static_cast<std::uint32_t>(numbers.first.size());
        const auto [found, is_new] = known.try_emplace(std::string{bytes_of(network.way(way), buffer)}, next);
        numbers.of[way] = found->second;
        if (is_new) {
            numbers.first.push_back(way);
        }
    }
    return numbers;
}

/// Whether each way that `counts` takes no more of `idle` than of `other`. Adds the steps that it took.
template <class Counts>
bool is_covered(const LinkWays& idle, const LinkWays& other, std::size_t& steps, Counts&& counts) {
    auto at = other.begin();
    for (const auto& [way, share] : idle) {
        ++steps;
        if (!counts(way)) {
            continue;
        }
        while (at != other.end() && at->way < way) {
            ++at;
            ++steps;
        }
        if (at == other.end() || at->way != way || at->share < share) {
            return false;
        }
    }
    return true;
}

class Reduction {
public:
    Reduction(const FlowNetwork& network, std::span<const std::uint32_t> lanes)
        : network_{network},
          numbers_{numbered_ways(network)},
          order_{network, lanes, numbers_.of, static_cast<std::uint32_t>(numbers_.first.size())},
          ways_(network.links()),
          may_go_(network.links(), true),
          is_kept_(network.links(), true),
          stands_for_(network.links()) {
        std::iota(stands_for_.begin(), stands_for_.end(), 0U);
        for (std::uint32_t way = 0; way < numbers_.first.size(); ++way) {
            for (const auto& use : network.way(numbers_.first[way])) {
                ways_[use.link].push_back({way, use.per_byte / network.rate(use.link)});
            }
        }
        for (const auto& change : network.changes()) {
            may_go_[change.link] = false;
        }
    }

    ReducedNetwork run() {
        drop_equal();
        drop_uses();
        drop_equal();
        drop_covered();
        merge_links();
        return rebuilt();
    }

private:
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
            if (may_go_[link] && is_kept_[link]) {
                is_kept_[link] = !ways_[link].empty() && first.try_emplace(link, link).second;
            }
        }
    }

    /// One use after another, each from a network that is as good as the whole one. The ways that meet the
    /// fewest others first: what they leave lets go of more.
    void drop_uses() {
        const auto count = static_cast<std::uint32_t>(numbers_.first.size());
        std::vector<std::pair<std::size_t, std::uint32_t>> ways;
        for (std::uint32_t way = 0; way < count; ++way) {
            const auto uses = network_.way(numbers_.first[way]).size();
            if (uses > 1) {
                ways.emplace_back(order_.meetings(way), way);
            }
        }
        std::ranges::sort(ways);
        for (const auto& [meetings, way] : ways) {
            drop_uses_of(way);
        }
    }

    void drop_uses_of(std::uint32_t way) {
        std::vector<std::uint32_t> links;
        for (const auto& use : network_.way(numbers_.first[way])) {
            if (is_kept_[use.link] && may_go_[use.link]) {
                links.push_back(use.link);
            }
        }
        const auto meets = [&](std::uint32_t other) { return order_.may_meet(way, other); };
        // Of links that are alike the first stays.
        for (auto i = links.size(); i-- > 0 && comparisons_ <= kMostComparisons;) {
            const auto is_loose = [&](std::uint32_t other) {
                return other != links[i] && is_covered(ways_[links[i]], ways_[other], comparisons_, meets);
            };
            if (std::ranges::any_of(links, is_loose)) {
                std::erase_if(ways_[links[i]], [&](const WayShare& entry) { return entry.way == way; });
                links.erase(links.begin() + static_cast<std::ptrdiff_t>(i));
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
        const auto all = [](std::uint32_t) { return true; };
        for (const auto link : left) {
            is_kept_[link] = !may_go_[link] || std::ranges::none_of(left, [&](std::uint32_t other) {
                return other != link && is_kept_[other] && may_go_[other] &&
                       is_covered(ways_[link], ways_[other], comparisons_, all);
            });
        }
    }

    /// Whether no way over one link alone meets one over the other alone, and both take as much of the common
    /// ones: then at any time one of them has only common ways, and the other, with the ways of both, limits
    /// as they do.
    [[nodiscard]] bool may_merge(const LinkWays& a, const LinkWays& b) {
        own_.clear();
        auto at = b.begin();
        for (const auto& entry : a) {
            at = std::lower_bound(at, b.end(), entry.way, [](const WayShare& other, std::uint32_t way) {
                return other.way < way;
            });
            if (at == b.end() || at->way != entry.way) {
                own_.push_back(entry.way);
            } else if (at->share != entry.share) {
                return false;
            }
        }
        for (const auto& entry : b) {
            comparisons_ += own_.size();
            const bool is_common = std::ranges::binary_search(a, entry.way, {}, &WayShare::way);
            const auto meets = [&](std::uint32_t way) { return order_.may_meet(way, entry.way); };
            if (!is_common && std::ranges::any_of(own_, meets)) {
                return false;
            }
        }
        return true;
    }

    void merge_links() {
        std::vector<std::pair<std::uint32_t, LinkWays>> merged;
        for (std::uint32_t link = 0; link < network_.links() && order_.has_rows(); ++link) {
            if (!is_kept_[link] || !may_go_[link]) {
                continue;
            }
            const auto into = std::ranges::find_if(merged, [&](const auto& other) {
                return network_.rate(other.first) == network_.rate(link) &&
                       comparisons_ <= kMostComparisons && may_merge(other.second, ways_[link]);
            });
            if (into == merged.end()) {
                merged.emplace_back(link, ways_[link]);
                continue;
            }
            stands_for_[link] = into->first;
            LinkWays both;
            std::ranges::set_union(
                into->second, ways_[link], std::back_inserter(both), {}, &WayShare::way, &WayShare::way);
            into->second = std::move(both);
        }
    }

    [[nodiscard]] ReducedNetwork rebuilt() const {
        ReducedNetwork reduced;
        std::vector<std::uint32_t> number(network_.links(), 0);
        for (std::uint32_t link = 0; link < network_.links(); ++link) {
            if (is_kept_[link] && stands_for_[link] == link) {
                number[link] = reduced.network.add_link(network_.rate(link));
                reduced.kept.push_back(link);
            }
        }
        std::vector<LinkUse> uses;
        for (std::uint32_t way = 0; way < numbers_.first.size(); ++way) {
            uses.clear();
            for (const auto& use : network_.way(numbers_.first[way])) {
                const auto link = number[stands_for_[use.link]];
                if (is_kept_[use.link] &&
                    std::ranges::binary_search(ways_[use.link], way, {}, &WayShare::way) &&
                    std::ranges::find(uses, link, &LinkUse::link) == uses.end()) {
                    uses.push_back({link, use.per_byte});
                    reduced.used.push_back(use.link);
                }
            }
            reduced.network.add_way(uses);
        }
        for (std::uint32_t flow = 0; flow < network_.flows(); ++flow) {
            const auto way = numbers_.of[network_.way_of(flow)];
            reduced.network.add_flow_on(way, network_.flow(flow), network_.after(flow));
        }
        for (auto change : network_.changes()) {
            change.link = number[change.link];
            reduced.network.add_change(change);
        }
        return reduced;
    }

    const FlowNetwork& network_;
    WayNumbers numbers_;
    flow::WayOrder order_;
    std::vector<LinkWays> ways_;  ///< By link: the ways over it, ascending.
    std::vector<bool> may_go_;    ///< By link: its rate never changes.
    std::vector<bool> is_kept_;
    std::vector<std::uint32_t> stands_for_;  ///< By link: itself, or one that has its ways too.
    std::vector<std::uint32_t> own_;         ///< Scratch: ways over the first link alone.
    std::size_t comparisons_ = 0;            ///< Steps so far.
};

}  // namespace

std::uint32_t ReducedNetwork::link_in_whole(std::uint32_t flow, std::uint32_t link) const {
    const auto uses = network.uses(flow);
    const auto use = std::ranges::find(uses, link, &LinkUse::link) - uses.begin();
    return used[network.first_use(network.way_of(flow)) + static_cast<std::size_t>(use)];
}

ReducedNetwork without_idle_links(const FlowNetwork& network, std::span<const std::uint32_t> lanes) {
    return Reduction{network, lanes}.run();
}

}  // namespace refit
