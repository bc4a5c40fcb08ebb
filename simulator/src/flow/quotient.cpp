// SPDX-License-Identifier: Apache-2.0
#include "quotient.hpp"

#include <algorithm>
#include <utility>

#include "colours.hpp"

namespace refit::flow {
namespace {

/// With more classes than this part of the flows, finding them costs more than it saves.
constexpr double kWorthwhile = 0.5;

/// By class of flows: the uses of its one flow. A link of the small network has to carry all flows of a class
/// that one link of the large network carries, so the use of the one flow is the sum over those.
std::vector<std::vector<LinkUse>> class_uses(const FlowNetwork& network, const AlikeClasses& alike) {
    std::vector<std::vector<LinkUse>> uses(alike.flows.first.size());
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        for (const auto& use : network.uses(flow)) {
            const auto link = alike.links.of[use.link];
            if (alike.links.first[link] != use.link) {
                continue;
            }
            auto& mine = uses[alike.flows.of[flow]];
            const auto same =
                std::find_if(mine.begin(), mine.end(), [&](const auto& other) { return other.link == link; });
            if (same == mine.end()) {
                mine.push_back({link, use.per_byte});
            } else {
                same->per_byte += use.per_byte;
            }
        }
    }
    return uses;
}

FlowNetwork small_network(const FlowNetwork& network, const AlikeClasses& alike) {
    FlowNetwork small;
    for (const auto link : alike.links.first) {
        small.add_link(network.rate(link));
    }
    for (auto change : network.changes()) {
        const auto link = alike.links.of[change.link];
        if (alike.links.first[link] == change.link) {
            change.link = link;
            small.add_change(change);
        }
    }
    const auto uses = class_uses(network, alike);
    std::vector<std::uint32_t> after;
    for (std::uint32_t number = 0; number < alike.flows.first.size(); ++number) {
        const auto flow = alike.flows.first[number];
        after.clear();
        for (const auto before : network.after(flow)) {
            after.push_back(alike.flows.of[before]);
        }
        std::sort(after.begin(), after.end());
        after.erase(std::unique(after.begin(), after.end()), after.end());
        small.add_flow(network.flow(flow), uses[number], after);
    }
    return small;
}

}  // namespace

std::optional<Quotient> find_quotient(const FlowNetwork& network, const std::function<bool()>& is_cancelled) {
    const auto most = static_cast<std::size_t>(kWorthwhile * network.flows());
    auto alike = find_alike(network, most, is_cancelled);
    if (!alike) {
        return std::nullopt;
    }
    auto small = small_network(network, *alike);
    return Quotient{std::move(small), std::move(alike->flows.of), std::move(alike->links.of)};
}

namespace {

std::vector<RateSegment> expand_segments(const FlowNetwork& network,
                                         const Quotient& quotient,
                                         const std::vector<RateSegment>& segments) {
    std::vector<std::size_t> first(quotient.network.flows() + std::size_t{1}, 0);
    for (const auto& segment : segments) {
        ++first[segment.flow + 1];
    }
    for (std::size_t i = 1; i < first.size(); ++i) {
        first[i] += first[i - 1];
    }
    std::vector<RateSegment> all;
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        const auto of_class = quotient.flow_class[flow];
        for (auto i = first[of_class]; i < first[of_class + 1]; ++i) {
            auto segment = segments[i];
            segment.flow = flow;
            if (segment.limit != RateSegment::kOwnCap) {
                const auto uses = network.uses(flow);
                segment.limit = std::find_if(uses.begin(), uses.end(), [&](const auto& use) {
                                    return quotient.link_class[use.link] == segment.limit;
                                })->link;
            }
            all.push_back(segment);
        }
    }
    return all;
}

}  // namespace

FlowRun expand(const FlowNetwork& network, const Quotient& quotient, const FlowRun& run) {
    FlowRun all;
    all.makespan = run.makespan;
    all.events = run.events;
    all.start.resize(network.flows());
    all.end.resize(network.flows());
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        all.start[flow] = run.start[quotient.flow_class[flow]];
        all.end[flow] = run.end[quotient.flow_class[flow]];
    }
    all.segments = expand_segments(network, quotient, run.segments);
    return all;
}

}  // namespace refit::flow
