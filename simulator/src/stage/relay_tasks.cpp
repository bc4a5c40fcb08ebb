// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "graph_builder.hpp"

namespace refit {
namespace {

class RelayTasks {
public:
    RelayTasks(GraphBuilder& builder, std::uint32_t index)
        : builder_{builder},
          index_{index},
          stage_{builder.plan().stages[index]},
          lane_{builder.lane("relays")} {}

    TaskIds run(const TaskIds& after) {
        const auto ready = add_grouping(after);
        const bool is_chunked =
            stage_.relays.depth() > 1 && stage_.relays.size() <= builder_.options().most_chunked_hops;
        auto last = builder_.options().staged_chunks > 0 ? add_staged(ready)
                    : is_chunked                         ? add_chunked(ready)
                                                         : add_coupled(ready);
        return last.empty() ? ready : last;
    }

private:
    TaskIds add_grouping(const TaskIds& after) {
        const auto seconds = (builder_.bulk_cost() * static_cast<double>(stage_.expert_parameters) +
                              builder_.constants().call_cost.value * static_cast<double>(stage_.other_parameters)) /
                             builder_.setting().train_stages;
        if (!builder_.options().has_software || seconds == 0.0) {
            return after;
        }
        return {builder_.add_delay({Activity::kGrouping, lane_, 0, index_, 0.0}, seconds, after)};
    }

    [[nodiscard]] std::vector<LinkUse> uses_of(std::size_t hop) const {
        return builder_.hop_uses(RankId{stage_.relays.source[hop]}, RankId{stage_.relays.destination[hop]});
    }

    [[nodiscard]] std::uint32_t way_of(std::size_t hop) { return builder_.add_way(uses_of(hop)); }

    std::uint32_t add_hop(std::size_t hop, std::uint32_t way, double bytes, const TaskIds& after) {
        const auto message = stage_.relays.message[hop];
        Flow flow;
        flow.bytes = bytes;
        flow.weight = static_cast<double>(stage_.relays.messages[message].bytes);
        return builder_.add({Activity::kRelay, lane_, message, index_, bytes}, flow, way, after);
    }

    /// A rank passes the first chunk on when it has it, and the last when it has that; in between both hops
    /// run. Three flows a hop give the same end as one a chunk. Rates in proportion to bytes, as the plan
    /// paces them.
    TaskIds add_chunked(const TaskIds& after) {
        const auto& relays = stage_.relays;
        struct Hop {
            std::uint32_t first;
            std::uint32_t middle;
        };
        std::vector<Hop> hops(relays.size());
        TaskIds last;
        for (std::size_t hop = 0; hop < relays.size(); ++hop) {
            const auto bytes = static_cast<double>(relays.messages[relays.message[hop]].bytes);
            const auto follows = relays.follows[hop];
            const bool is_relayed = follows != RelayTable::kNone;
            const auto chunk = bytes / relays.chunks;
            const auto way = way_of(hop);
            if (relays.chunks == 1) {
                last.push_back(add_hop(hop, way, bytes, is_relayed ? TaskIds{last[follows]} : after));
                continue;
            }
            hops[hop].first = add_hop(hop, way, chunk, is_relayed ? TaskIds{hops[follows].first} : after);
            hops[hop].middle = add_hop(hop, way, bytes - 2.0 * chunk, {hops[hop].first});
            auto ready = TaskIds{hops[hop].middle};
            if (is_relayed) {
                ready.push_back(last[follows]);
            }
            last.push_back(add_hop(hop, way, chunk, ready));
        }
        return last;
    }

    /// Every chunk a flow. A hop sends a chunk when the one before has gone, its source has it, and every hop
    /// that passes the message on has sent the chunk that lies where this one is to go.
    TaskIds add_staged(const TaskIds& after) {
        const auto& relays = stage_.relays;
        const auto chunks = std::max(1U, relays.chunks);
        const auto room = builder_.options().staged_chunks;
        std::vector<TaskIds> onward(relays.size());
        for (std::uint32_t hop = 0; hop < relays.size(); ++hop) {
            if (relays.follows[hop] != RelayTable::kNone) {
                onward[relays.follows[hop]].push_back(hop);
            }
        }
        const auto first = builder_.tasks();
        TaskIds last;
        for (std::uint32_t hop = 0; hop < relays.size(); ++hop) {
            const auto bytes = static_cast<double>(relays.messages[relays.message[hop]].bytes) / chunks;
            const auto way = way_of(hop);
            for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
                const auto task_of = [&](std::uint32_t other, std::uint32_t part) {
                    return first + other * chunks + part;
                };
                const bool is_relayed = relays.follows[hop] != RelayTable::kNone;
                auto ready = is_relayed ? TaskIds{task_of(relays.follows[hop], chunk)} : after;
                if (chunk > 0) {
                    ready.push_back(task_of(hop, chunk - 1));
                }
                for (const auto next : onward[hop]) {
                    if (chunk >= room) {
                        ready.push_back(task_of(next, chunk - room));
                    }
                }
                last.push_back(add_hop(hop, way, bytes, ready));
            }
        }
        return last;
    }

    /// All hops of a message at one rate; the chunks that fill and drain its longest way follow at that of
    /// the first hop.
    TaskIds add_coupled(const TaskIds& after) {
        const auto& relays = stage_.relays;
        std::vector<std::map<std::uint32_t, double>> uses(relays.messages.size());
        std::vector<std::uint32_t> depth(relays.size(), 1);
        std::vector<std::uint32_t> longest(relays.messages.size(), 0);
        for (std::size_t hop = 0; hop < relays.size(); ++hop) {
            const auto message = relays.message[hop];
            for (const auto& use : uses_of(hop)) {
                uses[message][use.link] += use.per_byte;
            }
            depth[hop] = relays.follows[hop] == RelayTable::kNone ? 1 : depth[relays.follows[hop]] + 1;
            longest[message] = std::max(longest[message], depth[hop]);
        }
        TaskIds last;
        for (std::uint32_t message = 0; message < uses.size(); ++message) {
            if (uses[message].empty()) {
                continue;
            }
            std::vector<LinkUse> links;
            for (const auto& [link, times] : uses[message]) {
                links.push_back({link, times});
            }
            const auto way = builder_.add_way(links);
            Flow flow;
            flow.bytes = static_cast<double>(relays.messages[message].bytes);
            flow.weight = flow.bytes;
            last.push_back(
                builder_.add({Activity::kRelay, lane_, message, index_, flow.bytes}, flow, way, after));
            if (longest[message] > 1) {
                auto drain = flow;
                drain.bytes *= (longest[message] - 1.0) / relays.chunks;
                last.back() = builder_.add(
                    {Activity::kRelay, lane_, message, index_, 0.0}, drain, way, TaskIds{last.back()});
            }
        }
        return last;
    }

    GraphBuilder& builder_;
    std::uint32_t index_;
    const PlanStage& stage_;
    std::uint32_t lane_;
};

}  // namespace

TaskIds add_relay_tasks(GraphBuilder& builder, std::uint32_t stage, const TaskIds& after) {
    return RelayTasks{builder, stage}.run(after);
}

}  // namespace refit
