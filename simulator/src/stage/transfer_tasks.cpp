// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <tuple>

#include "graph_builder.hpp"

namespace refit {
namespace {

/// Messages of one tensor that the classes of ranks cannot tell apart.
struct TransferFlow {
    std::uint32_t source = 0;  ///< Class of ranks.
    std::uint32_t destination = 0;
    double bytes = 0.0;     ///< Of one message.
    double sends = 0.0;     ///< Of them, each source rank sends.
    double receives = 0.0;  ///< Each destination rank receives.
    bool is_network = false;
    std::uint32_t way = 0;
};

/// Copies of a tensor into place, on all ranks that hold a part of it.
struct Unpacking {
    double bytes = 0.0;  ///< Of the rank with the most.
    std::uint32_t way = 0;
};

class TransferTasks {
public:
    TransferTasks(GraphBuilder& builder, const TaskIds& after)
        : builder_{builder},
          after_{after},
          is_gathered_{builder.plan().stages.front().kind == StageKind::kGather},
          last_posted_{after} {}

    TaskIds run(std::span<const std::uint32_t> stages) {
        const auto streams = std::min<std::size_t>(builder_.scenario().engine.options.streams, stages.size());
        std::vector<TaskIds> ends;
        for (std::size_t i = 0; i < stages.size(); ++i) {
            // The receivers' host posts a stage when the one `streams` before is over.
            ends.push_back(add_stage(stages[i], i < streams ? after_ : ends[i - streams]));
        }
        TaskIds last;
        for (auto i = stages.size() - streams; i < stages.size(); ++i) {
            last.insert(last.end(), ends[i].begin(), ends[i].end());
        }
        return last;
    }

private:
    TaskIds add_stage(std::uint32_t index, const TaskIds& posted) {
        const auto& stage = builder_.plan().stages[index];
        const auto name = "stage " + std::to_string(stage.train_stage);
        transfer_lane_ = builder_.lane(name + ", transfers");
        replica_lane_ = builder_.lane(name + ", replicas");
        last_.assign(builder_.classes().count(), {});
        first_ = add_grouping(index, stage);
        done_ = posted;
        const auto opened =
            builder_.add_barrier({Activity::kTransfer, transfer_lane_, 0, index, 0.0}, posted);
        if (!builder_.options().has_software) {
            last_posted_.clear();  // hosts cost nothing: a stage waits for its stream alone
        }
        last_posted_.push_back(opened);
        std::uint32_t item = 0;
        for (const auto& [tensor, use] : operations_of(stage)) {
            if (builder_.is_cancelled()) {
                break;
            }
            add_post(index, item);
            add_tensor(index, stage, use, item++);
        }
        return done_;
    }

    /// The receivers' host posts tensor after tensor, stage after stage, and does not wait for what it
    /// posted.
    void add_post(std::uint32_t index, std::uint32_t item) {
        if (builder_.options().has_software && !is_gathered_) {
            last_posted_ = {builder_.add_delay(
                {Activity::kPosting, builder_.lane("generators, posting"), item, index, 0.0},
                builder_.constants().call_cost.value,
                last_posted_)};
        }
    }

    /// Trainers stack their stage's experts before they send the first; all stages at once, from the start.
    TaskIds add_grouping(std::uint32_t index, const PlanStage& stage) {
        const auto seconds = builder_.bulk_cost() * static_cast<double>(stage.expert_parameters);
        if (!builder_.options().has_software || seconds == 0.0 || is_gathered_) {
            return after_;
        }
        return {builder_.add_delay({Activity::kGrouping, transfer_lane_, 0, index, 0.0}, seconds, after_)};
    }

    /// Tensors of the stage in the order in which layers follow each other: (number in its class, which use).
    static std::vector<std::pair<std::uint64_t, std::uint32_t>> operations_of(const PlanStage& stage) {
        std::vector<std::pair<std::uint64_t, std::uint32_t>> operations;
        for (std::uint32_t use = 0; use < stage.transfers.size(); ++use) {
            for (std::uint64_t tensor = 0; tensor < stage.transfers[use].tensors; ++tensor) {
                operations.emplace_back(tensor, use);
            }
        }
        std::ranges::stable_sort(operations, {}, [](const auto& operation) { return operation.first; });
        return operations;
    }

    void add_tensor(std::uint32_t index, const PlanStage& stage, std::uint32_t number, std::uint32_t item) {
        const auto& use = stage.transfers[number];
        const auto& flows = flows_of(use);
        std::map<std::uint32_t, TaskIds> next;
        TaskIds all;
        for (const auto& flow : flows) {
            auto ready = last_posted_;
            for (const auto rank_class : {flow.source, flow.destination}) {
                const auto& before = last_[rank_class].empty() ? first_ : last_[rank_class];
                ready.insert(ready.end(), before.begin(), before.end());
            }
            std::ranges::sort(ready);
            const auto repeated = std::unique(ready.begin(), ready.end());
            ready.erase(repeated, ready.end());
            const auto task = add_flow(index, flow, item, ready);
            next[flow.source].push_back(task);
            next[flow.destination].push_back(task);
            all.push_back(task);
        }
        for (auto& [rank_class, tasks] : next) {
            // Many messages of a rank end in one task, so that what follows need not name them all.
            if (tasks.size() > 2) {
                tasks = {
                    builder_.add_barrier({Activity::kTransfer, transfer_lane_, item, index, 0.0}, tasks)};
            }
            last_[rank_class] = std::move(tasks);
        }
        all = add_replicas(index, stage, use, item, all);
        all = add_unpacking(index, use, flows, item, all);
        done_ = all.empty() ? done_ : all;
    }

    /// Halves of what the receivers store fused come into a buffer, and are copied into place on the same
    /// stream. Source: NeMo RL vllm_backend.py.
    TaskIds add_unpacking(std::uint32_t index,
                          const TransferUse& use,
                          const std::vector<TransferFlow>& flows,
                          std::uint32_t item,
                          const TaskIds& after) {
        const auto parameter = builder_.plan().blocks[use.block].parameter;
        const bool is_fused = builder_.workload().classes()[parameter].parameter.task != ExportTask::kOwn;
        if (!builder_.options().has_software || !is_fused || flows.empty()) {
            return after;
        }
        const auto& unpacking = unpacking_of(parameter);
        Flow flow;
        flow.bytes = unpacking.bytes;
        const auto task = builder_.add(
            {Activity::kUnpacking, replica_lane_, item, index, flow.bytes}, flow, unpacking.way, after);
        for (const auto& copied : builder_.way(unpacking.way)) {
            last_[builder_.owner(copied.link).rank_class] = {task};
        }
        return {task};
    }

    const Unpacking& unpacking_of(std::uint32_t parameter) {
        const auto [found, is_new] = unpackings_.try_emplace(parameter);
        if (is_new) {
            const auto regions = regions_of(parameter);
            const auto most = std::ranges::max(regions);
            std::vector<LinkUse> uses;
            for (std::uint32_t rank_class = 0; rank_class < regions.size(); ++rank_class) {
                if (regions[rank_class] > 0.0) {
                    uses.push_back({builder_.link(Port::kCopy, rank_class), regions[rank_class] / most});
                }
            }
            found->second = {most, builder_.add_way(uses)};
        }
        return found->second;
    }

    /// By class of ranks: bytes of a tensor that each of its ranks holds after the refit.
    [[nodiscard]] std::vector<double> regions_of(std::uint32_t parameter) const {
        const auto& entry = builder_.workload().classes()[parameter];
        std::vector<double> regions(builder_.classes().count(), 0.0);
        for (const auto& destination : entry.destinations) {
            for (const auto& shard : destination.shards()) {
                for (const auto member : shard.members) {
                    auto& region = regions[builder_.classes().class_of(builder_.cluster().generator(member))];
                    region = std::max(region, static_cast<double>(shard.elements() * entry.element_bytes()));
                }
            }
        }
        return regions;
    }

    [[nodiscard]] std::vector<LinkUse> uses_of(const TransferFlow& message) const {
        if (!builder_.goes_by_ends()) {
            auto uses = builder_.hop_uses(builder_.classes().members(message.source).front(),
                                          builder_.classes().members(message.destination).front());
            for (auto& use : uses) {
                use.per_byte *= message.sends;
            }
            return uses;
        }
        const auto out = message.is_network ? Port::kNicOut : Port::kNvlinkOut;
        const auto in = message.is_network ? Port::kNicIn : Port::kNvlinkIn;
        return {{builder_.link(out, message.source), message.sends},
                {builder_.link(in, message.destination), message.receives}};
    }

    std::uint32_t add_flow(std::uint32_t index,
                           const TransferFlow& message,
                           std::uint32_t item,
                           const TaskIds& ready) {
        Flow flow;
        flow.bytes = message.bytes;
        if (message.is_network) {
            flow.rate_cap = builder_.options().pair_rate;
        }
        return builder_.add({Activity::kTransfer, transfer_lane_, item, index, message.bytes * message.sends},
                            flow,
                            message.way,
                            ready);
    }

    /// What replicas of the tensor share among themselves, once they have received it.
    TaskIds add_replicas(std::uint32_t index,
                         const PlanStage& stage,
                         const TransferUse& use,
                         std::uint32_t item,
                         const TaskIds& after) {
        const auto parameter = builder_.plan().blocks[use.block].parameter;
        TaskIds all;
        for (const auto& collective : stage.collectives) {
            if (collective.parameters.front() != parameter) {
                continue;
            }
            const auto per_tensor = 1.0 / static_cast<double>(std::max<std::uint64_t>(1, collective.calls));
            for (const auto& ring : rings_of(collective)) {
                Flow flow;
                flow.bytes = ring.wire_bytes * per_tensor;
                flow.weight = ring.weight;
                if (builder_.reading().finalize == FinalizeReading::kSlowAllGather &&
                    !ring.crosses_domains) {
                    flow.rate_cap = builder_.constants().finalize_slow_allgather_factor.value *
                                    builder_.rate(ring.uses.front().link);
                }
                const auto task = builder_.add(
                    {Activity::kReplicas, replica_lane_, item, index, flow.bytes}, flow, ring.way, after);
                for (const auto& member : ring.uses) {
                    last_[builder_.owner(member.link).rank_class] = {task};
                }
                all.push_back(task);
            }
        }
        return all.empty() ? after : all;
    }

    const std::vector<RingFlow>& rings_of(const Collective& collective) {
        const auto [found, is_new] = rings_.try_emplace(&collective);
        if (is_new) {
            found->second = builder_.ring_flows(collective);
        }
        return found->second;
    }

    /// The messages of one tensor of a use, by what the classes tell apart. What a rank has already does not
    /// travel.
    const std::vector<TransferFlow>& flows_of(const TransferUse& use) {
        const auto [found, is_new] = flows_.try_emplace({use.block, use.first_source.index()});
        if (!is_new) {
            return found->second;
        }
        const auto& block = builder_.plan().blocks[use.block];
        const auto& classes = builder_.classes();
        const auto& cluster = builder_.cluster();
        std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, bool>, std::uint64_t> counts;
        for (std::size_t i = 0; i < block.size(); ++i) {
            const RankId from{use.first_source.index() + block.source[i]};
            const auto to = cluster.generator(block.destination[i]);
            const auto bytes = block.boxes[block.box[i]].volume() * block.element_bytes;
            if (from != to && bytes > 0) {
                ++counts[{classes.class_of(from),
                          classes.class_of(to),
                          bytes,
                          cluster.domain_of(from) != cluster.domain_of(to)}];
            }
        }
        for (const auto& [key, count] : counts) {
            const auto& [source, destination, bytes, is_network] = key;
            const auto messages = static_cast<double>(count);
            found->second.push_back({source,
                                     destination,
                                     static_cast<double>(bytes),
                                     messages / static_cast<double>(classes.members(source).size()),
                                     messages / static_cast<double>(classes.members(destination).size()),
                                     is_network});
            found->second.back().way = builder_.add_way(uses_of(found->second.back()));
        }
        return found->second;
    }

    GraphBuilder& builder_;
    TaskIds after_;
    bool is_gathered_;  ///< Trainers send from what they gathered: nothing is stacked or posted tensor by tensor.
    TaskIds first_;        ///< What the first tensor of the stage follows.
    TaskIds done_;         ///< The last tensor's tasks.
    TaskIds last_posted_;  ///< The host's last post, and what it waits for before the next.
    std::uint32_t transfer_lane_ = 0;
    std::uint32_t replica_lane_ = 0;
    std::vector<TaskIds> last_;  ///< By class of ranks: its tasks of the last tensor, in this stage.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<TransferFlow>> flows_;
    std::map<const Collective*, std::vector<RingFlow>> rings_;
    std::map<std::uint32_t, Unpacking> unpackings_;  ///< By class of parameters.
};

}  // namespace

TaskIds add_transfer_tasks(GraphBuilder& builder,
                           std::span<const std::uint32_t> stages,
                           const TaskIds& after) {
    return TransferTasks{builder, after}.run(stages);
}

}  // namespace refit
