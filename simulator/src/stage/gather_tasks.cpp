// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>

#include "graph_builder.hpp"
#include "refit/broadcast_roots.hpp"
#include "refit/memory.hpp"

namespace refit {
namespace {

constexpr std::array kGatherRoles = {
    CollectiveRole::kPipelineBroadcast, CollectiveRole::kTensorAllGather, CollectiveRole::kExpertAllGather};

Activity activity_of(CollectiveRole role) {
    return role == CollectiveRole::kPipelineBroadcast ? Activity::kPipelineBroadcast
           : role == CollectiveRole::kTensorAllGather ? Activity::kTensorAllGather
                                                      : Activity::kExpertAllGather;
}

/// A gather collective, and how a pack's share of its bytes and calls is told from the tensors in the pack.
struct Gather {
    const Collective* collective = nullptr;
    std::vector<RingFlow> rings;
    std::vector<bool> has_class;    ///< By class of parameters.
    std::uint32_t train_stage = 0;  ///< That holds what a pipeline broadcast sends.
    double bytes = 0.0;             ///< Of all packs of the chain, in full tensors.
    double calls = 0.0;             ///< The same, in calls as `calls_in` counts them.
    std::uint32_t calls_way = 0;    ///< What its calls hold meanwhile.
};

/// What a chain's copies take.
struct CopyWay {
    std::uint32_t way = 0;
    double weight = 1.0;
};

/// Trainers that gather, copy and send pack after pack together: all of them, or those of one stage.
struct Chain {
    std::uint32_t number = 0;
    std::vector<SentPacks> senders;
    std::vector<Gather> gathers;
    double payload = 0.0;  ///< Bytes of all its packs.
    std::uint32_t lane = 0;
    CopyWay copies;
    CopyWay crossing_copies;  ///< Where the pack was gathered over NICs.
};

class GatherTasks {
public:
    GatherTasks(GraphBuilder& builder, std::uint32_t stage, const TaskIds& after)
        : builder_{builder},
          stage_{stage},
          gather_{builder.plan().stages[stage]},
          broadcasts_{broadcasts_of(builder.plan(), stage)},
          after_{after},
          by_stage_{gathers_by_stage(builder_.scenario())},
          is_serial_{options().pack_overlap == PackOverlap::kSerial} {
        for (const auto& collective : broadcasts_) {
            classes_.insert(classes_.end(), collective.parameters.begin(), collective.parameters.end());
        }
        for (std::uint32_t index = 0; broadcasts_.empty() && index < builder.workload().classes().size(); ++index) {
            classes_.push_back(index);
        }
        std::ranges::sort(classes_);
        const auto repeated = std::unique(classes_.begin(), classes_.end());
        classes_.erase(repeated, classes_.end());
    }

    GatheredTasks run() {
        make_chains();
        std::size_t most = 0;
        for (const auto& chain : chains_) {
            most = std::max(most, packs_of(chain));
        }
        for (std::size_t pack = 0; pack < most && !builder_.is_cancelled(); ++pack) {
            for (auto& chain : chains_) {
                const auto sender = pack % chain.senders.size();
                const auto own = pack / chain.senders.size();
                if (own < chain.senders[sender].packs.size()) {
                    add_pack(chain, chain.senders[sender], chain.senders[sender].packs[own]);
                }
            }
            if (pack == 0) {
                first_ = gathered();
            }
        }
        auto last = broadcasts_.empty() ? gathered() : TaskIds{};
        for (const auto& [root, sent] : sent_) {
            if (sent.empty()) {
                continue;
            }
            const auto lane = builder_.lane("broadcast from trainer " + std::to_string(root.index()));
            last.push_back(
                builder_.add_delay({Activity::kWeightBroadcast, lane, next_item_ - 1, stage_ + 1, 0.0},
                                   lag(ranks_of_root_.at(root)),
                                   TaskIds{sent.back()}));
        }
        if (loaded_ != kNone) {
            last.push_back(loaded_);
        }
        return {first_.empty() ? after_ : first_, last.empty() ? after_ : last};
    }

private:
    static constexpr std::uint32_t kNone = 0xffffffff;

    [[nodiscard]] const EngineOptions& options() const noexcept { return builder_.scenario().engine.options; }

    /// The broadcasts that follow the gather; none where receivers are sent what they want of it.
    static std::span<const Collective> broadcasts_of(const Plan& plan, std::uint32_t stage) {
        const bool has_them = stage + 1 < plan.stages.size() && plan.stages[stage + 1].kind == StageKind::kBroadcast;
        return has_them ? std::span<const Collective>{plan.stages[stage + 1].collectives} : std::span<const Collective>{};
    }

    /// What every chain has gathered last.
    [[nodiscard]] TaskIds gathered() const {
        TaskIds tasks;
        for (const auto& [chain, ready] : ready_) {
            tasks.insert(tasks.end(), ready.begin(), ready.end());
        }
        return tasks;
    }

    /// By how much the last of these ranks of a ring has a pack later than the root is done with it. Ranks
    /// behind it lag as far behind with the next pack too, so between packs only those count for which others
    /// wait. Source: NCCL's ring is a pipeline over chunks; T = (ranks - 2) x hop + bytes / rate.
    [[nodiscard]] double lag(std::size_t ranks) const {
        return ranks > 2 ? static_cast<double>(ranks - 2) * builder_.constants().ring_hop_cost.value : 0.0;
    }

    static std::size_t packs_of(const Chain& chain) {
        std::size_t packs = 0;
        for (const auto& sender : chain.senders) {
            packs += sender.packs.size();
        }
        return packs;
    }

    [[nodiscard]] const ParameterClass& parameter(const ExportRun& run) const {
        return builder_.workload().classes()[run.parameter].parameter;
    }
    [[nodiscard]] std::uint32_t train_stage(const ExportRun& run) const {
        return builder_.workload().classes()[run.parameter].slices[run.slice].train_stage;
    }

    void make_chains() {
        const auto& scenario = builder_.scenario();
        std::map<std::uint32_t, Chain> chains;
        for (auto& sent :
             dealt_packs(scenario,
                         builder_.workload(),
                         classes_,
                         pack_target(scenario.engine, scenario.cluster.train_system().gpu_memory.value))) {
            const auto number = by_stage_ ? sent.root.index() / scenario.train.ranks_per_stage() : 0;
            chains[number].senders.push_back(std::move(sent));
        }
        for (auto& [number, chain] : chains) {
            chain.number = number;
            chain.lane = builder_.lane(by_stage_ ? "stage " + std::to_string(number) + ", export"
                                                 : "trainers, export");
            for (const auto& sender : chain.senders) {
                for (const auto& pack : sender.packs) {
                    chain.payload += static_cast<double>(pack.bytes);
                }
            }
            add_gathers(chain);
            chain.copies = copy_way(chain, false);
            chain.crossing_copies = copy_way(chain, true);
            chains_.push_back(std::move(chain));
        }
        for (const auto& collective : broadcasts_) {
            const auto& groups = builder_.plan().groups[collective.groups];
            rings_of_root_[groups.front().front()] = builder_.ring_flows(collective);
            const auto& group = groups.front();
            ranks_of_root_[group.front()] = group.size();
            trainers_of_root_[group.front()] = static_cast<std::size_t>(std::ranges::count_if(
                group, [&](RankId rank) { return builder_.cluster().is_trainer(rank); }));
        }
    }

    void add_gathers(Chain& chain) {
        const auto per_stage = builder_.scenario().train.ranks_per_stage();
        for (const auto& collective : gather_.collectives) {
            Gather gather;
            gather.collective = &collective;
            gather.rings = builder_.ring_flows(collective);
            const auto& groups = builder_.plan().groups[collective.groups];
            const auto stage_of = [&](const RingFlow& ring) {
                return groups[ring.first_group].front().index() / per_stage;
            };
            if (by_stage_) {
                std::erase_if(gather.rings,
                              [&](const RingFlow& ring) { return stage_of(ring) != chain.number; });
            }
            if (gather.rings.empty()) {
                continue;
            }
            gather.train_stage = stage_of(gather.rings.front());
            gather.has_class.resize(builder_.workload().classes().size());
            for (const auto index : collective.parameters) {
                gather.has_class[index] = true;
            }
            for (const auto& sender : chain.senders) {
                for (const auto& pack : sender.packs) {
                    gather.bytes += bytes_in(gather, sender, pack);
                    gather.calls += calls_in(gather, sender, pack);
                }
            }
            gather.calls_way = calls_way(gather.rings);
            chain.gathers.push_back(std::move(gather));
        }
    }

    [[nodiscard]] bool takes(const Gather& gather, const ExportRun& run) const {
        const bool is_its_stage = gather.collective->role != CollectiveRole::kPipelineBroadcast ||
                                  train_stage(run) == gather.train_stage;
        return gather.has_class[run.parameter] && is_its_stage;
    }

    [[nodiscard]] double bytes_in(const Gather& gather, const SentPacks& sender, const Pack& pack) const {
        double bytes = 0.0;
        for (const auto& piece : pack.pieces) {
            const auto& run = sender.runs[piece.run];
            bytes += takes(gather, run) ? static_cast<double>(piece.tensors * run.bytes) : 0.0;
        }
        return bytes;
    }

    /// Export tasks, an EP all-gather's tensors; those of experts weigh the EP-th part, since a call moves
    /// that many.
    [[nodiscard]] double calls_in(const Gather& gather, const SentPacks& sender, const Pack& pack) const {
        double calls = 0.0;
        for (const auto& piece : pack.pieces) {
            const auto& run = sender.runs[piece.run];
            const auto& entry = parameter(run);
            const bool is_call = gather.collective->role == CollectiveRole::kExpertAllGather ||
                                 entry.task != ExportTask::kFusedMember;
            const auto weight = entry.is_expert() ? 1.0 / builder_.scenario().train.ep : 1.0;
            calls += takes(gather, run) && is_call ? weight * static_cast<double>(piece.tensors) : 0.0;
        }
        return calls;
    }

    /// Gathers of the role that a pack needs, with their shares of it.
    struct Part {
        const Gather* gather;
        double bytes;  ///< Of the gather's bytes. Range: 0 to 1.
        double calls;  ///< Number.
    };
    [[nodiscard]] std::vector<Part> parts_of(const Chain& chain,
                                             CollectiveRole role,
                                             const SentPacks& sender,
                                             const Pack& pack) const {
        std::vector<Part> parts;
        for (const auto& gather : chain.gathers) {
            const auto bytes = gather.collective->role == role ? bytes_in(gather, sender, pack) : 0.0;
            if (bytes > 0.0) {
                const auto calls = gather.calls > 0.0 ? calls_in(gather, sender, pack) / gather.calls *
                                                            static_cast<double>(gather.collective->calls)
                                                      : 0.0;
                parts.push_back({&gather, bytes / gather.bytes, calls});
            }
        }
        return parts;
    }

    void add_pack(Chain& chain, const SentPacks& sender, const Pack& pack) {
        auto& sent = sent_[sender.root];
        auto& freed = freed_[sender.root];
        const auto item = next_item_++;
        auto ready = ready_[chain.number].empty() ? after_ : ready_[chain.number];
        // The host waits for the buffer that it is about to fill.
        const auto buffers = options().buffers;
        if (freed.size() >= buffers) {
            ready.push_back(freed[freed.size() - buffers]);
        }
        if (is_serial_ && loaded_of_.contains(chain.number)) {
            ready.push_back(loaded_of_.at(chain.number));
        }
        bool crosses = false;
        for (const auto role : kGatherRoles) {
            for (const auto& part : parts_of(chain, role, sender, pack)) {
                const bool is_all_gather = role != CollectiveRole::kPipelineBroadcast;
                crosses = crosses || (is_all_gather && part.gather->rings.front().crosses_domains);
                ready = add_gather(chain, part, item, ready);
            }
        }
        ready = add_copies(chain, static_cast<double>(pack.bytes), crosses, item, ready);
        if (broadcasts_.empty()) {
            ready_[chain.number] = add_staging(chain, sender, pack, item, ready);
            add_loading(pack, item, ready);
            return;
        }
        ready_[chain.number] = ready;
        add_broadcast(sender, pack, item, ready, sent, freed);
        if (loaded_ != kNone) {
            loaded_of_[chain.number] = loaded_;
        }
    }

    /// Gathered tensors go through a copy on the sender's host.
    TaskIds add_staging(const Chain& chain, const SentPacks& sender, const Pack& pack, std::uint32_t item, TaskIds after) {
        double tensors = 0.0;
        double bytes = 0.0;
        for (const auto& piece : pack.pieces) {
            tensors += static_cast<double>(piece.tensors);
            bytes += static_cast<double>(piece.tensors * sender.runs[piece.run].bytes);
        }
        const auto& constants = builder_.constants();
        const auto seconds =
            tensors * constants.staging_tensor_cost.value + bytes * constants.staging_cost_per_byte.value;
        if (!builder_.options().has_software || seconds == 0.0) {
            return after;
        }
        return {builder_.add_delay({Activity::kStaging, chain.lane, item, stage_, 0.0}, seconds, after)};
    }

    TaskIds add_gather(const Chain& chain, const Part& part, std::uint32_t item, const TaskIds& after) {
        auto ready = after;
        const auto seconds = part.calls * builder_.constants().call_cost.value;
        if (builder_.options().has_software && seconds > 0.0) {
            ready = {builder_.add_delay(
                {Activity::kCalls, chain.lane, item, stage_, 0.0}, seconds, ready, part.gather->calls_way)};
        }
        TaskIds done;
        for (const auto& ring : part.gather->rings) {
            Flow flow;
            flow.bytes = ring.wire_bytes * part.bytes;
            flow.weight = ring.weight;
            done.push_back(builder_.add(
                {activity_of(part.gather->collective->role), chain.lane, item, stage_, flow.bytes},
                flow,
                ring.way,
                ready));
        }
        return done;
    }

    std::uint32_t calls_way(const std::vector<RingFlow>& rings) {
        std::vector<LinkUse> holds;
        for (const auto& ring : rings) {
            add_holds(holds, ring, 1.0);
        }
        if (!holds.empty()) {
            holds.push_back(
                {builder_.link(Port::kHost, builder_.owner(holds.front().link).rank_class), 1.0});
        }
        return builder_.add_way(holds);
    }

    /// NICs of a ring that its calls and copies keep from others: in part, as the engine's `nic_sharing`
    /// says. `scale`: units of the task in a second.
    void add_holds(std::vector<LinkUse>& holds, const RingFlow& ring, double scale) const {
        const auto sharing = builder_.constants().nic_sharing.value;
        for (const auto& use : ring.uses) {
            const auto port = builder_.owner(use.link).port;
            const bool is_new =
                std::ranges::none_of(holds, [&](const LinkUse& known) { return known.link == use.link; });
            if (sharing > 0.0 && is_new && (port == Port::kNicOut || port == Port::kNicIn)) {
                holds.push_back({use.link, builder_.rate(use.link) * sharing / scale});
            }
        }
    }

    TaskIds add_copies(
        const Chain& chain, double pack_bytes, bool crosses, std::uint32_t item, const TaskIds& after) {
        const auto bytes = gather_.copied.as_double() * pack_bytes / chain.payload;
        if (!builder_.options().has_software || bytes == 0.0) {
            return after;
        }
        const auto& copies = crosses ? chain.crossing_copies : chain.copies;
        Flow flow;
        flow.bytes = bytes;
        flow.weight = copies.weight;
        return {builder_.add({Activity::kCopies, chain.lane, item, stage_, bytes}, flow, copies.way, after)};
    }

    CopyWay copy_way(const Chain& chain, bool crosses) {
        std::vector<LinkUse> uses;
        for (std::uint32_t index = 0; index < builder_.classes().count(); ++index) {
            const auto rank = builder_.classes().members(index).front();
            const bool is_its =
                !by_stage_ || rank.index() / builder_.scenario().train.ranks_per_stage() == chain.number;
            if (builder_.cluster().is_trainer(rank) && is_its) {
                uses.push_back({builder_.link(Port::kCopy, index), 1.0});
            }
        }
        if (crosses) {
            const auto copy = builder_.rate(uses.front().link);
            for (const auto& gather : chain.gathers) {
                for (const auto& ring : gather.rings) {
                    if (gather.collective->role != CollectiveRole::kPipelineBroadcast) {
                        add_holds(uses, ring, copy);
                    }
                }
            }
        }
        double most = 1.0;
        for (const auto& use : uses) {
            most = std::max(most, builder_.owner(use.link).port == Port::kCopy ? 0.0 : use.per_byte);
        }
        return {builder_.add_way(uses), 1.0 / most};
    }

    void add_broadcast(const SentPacks& sender,
                       const Pack& pack,
                       std::uint32_t item,
                       TaskIds ready,
                       TaskIds& sent,
                       TaskIds& freed) {
        const auto lane = builder_.lane("broadcast from trainer " + std::to_string(sender.root.index()));
        const auto& rings = rings_of_root_.at(sender.root);
        if (!sent.empty()) {
            ready.push_back(sent.back());  // one communicator
        }
        if (options().broadcast_in_turns && last_sent_ != kNone) {
            ready.push_back(last_sent_);
        }
        if (loaded_ != kNone) {
            ready.push_back(loaded_);  // receivers post it when they have loaded what came before
        }
        auto posted = after_;
        if (loaded_ != kNone) {
            posted = {loaded_};
        }
        const auto buffers = options().buffers;
        if (sent.size() >= buffers) {
            posted.push_back(sent[sent.size() - buffers]);
        }
        if (!rings.empty()) {
            TaskIds sends;
            for (const auto& ring : rings) {
                Flow flow;
                flow.bytes = static_cast<double>(pack.bytes);
                flow.weight = ring.weight;
                sends.push_back(builder_.add(
                    {Activity::kWeightBroadcast, lane, item, stage_ + 1, flow.bytes}, flow, ring.way, ready));
            }
            sent.push_back(sends.size() == 1
                               ? sends.front()
                               : builder_.add_barrier({Activity::kWeightBroadcast, lane, item, stage_ + 1, 0.0}, sends));
            last_sent_ = sent.back();
            if (is_serial_) {
                posted.push_back(last_sent_);
            }
            freed.push_back(builder_.add_delay({Activity::kWeightBroadcast, lane, item, stage_ + 1, 0.0},
                                               lag(trainers_of_root_.at(sender.root)),
                                               TaskIds{sent.back()}));
        }
        add_loading(pack, item, posted);
    }

    /// What receivers do with a pack, tensor by tensor. After a broadcast with all of it; else with what the engine says.
    void add_loading(const Pack& pack, std::uint32_t item, const TaskIds& posted) {
        double tensors = 0.0;
        for (const auto& piece : pack.pieces) {
            tensors += static_cast<double>(piece.tensors);
        }
        auto bytes = static_cast<double>(pack.bytes);
        if (broadcasts_.empty()) {
            const auto& setting = builder_.setting();
            tensors *= setting.direct_tensors / static_cast<double>(gather_.loaded_tensors);
            bytes *= setting.local_bytes / gather_.payload.as_double();
        }
        const auto seconds = loading_seconds(builder_.setting(), tensors, bytes);
        if (!builder_.options().has_software || seconds == 0.0) {
            return;
        }
        auto after = posted;
        if (broadcasts_.empty() && loaded_ != kNone) {
            after.push_back(loaded_);
        }
        loaded_ = builder_.add_delay(
            {Activity::kLoading, builder_.lane("generators, loading"), item, stage_ + (broadcasts_.empty() ? 0 : 1), 0.0},
            seconds,
            after);
    }

    GraphBuilder& builder_;
    std::uint32_t stage_;
    const PlanStage& gather_;
    std::span<const Collective> broadcasts_;
    TaskIds after_;
    bool by_stage_;  ///< Each stage's trainers gather and send what their stage holds.
    bool is_serial_;  ///< A pack is loaded before its chain gathers the next.
    std::vector<std::uint32_t> classes_;
    std::vector<Chain> chains_;
    std::map<RankId, std::vector<RingFlow>> rings_of_root_;
    std::map<RankId, std::size_t> ranks_of_root_;     ///< Of its broadcast group.
    std::map<RankId, std::size_t> trainers_of_root_;  ///< Of these, trainers, which come first.
    std::map<std::uint32_t, TaskIds> ready_;          ///< By chain: what its next pack follows.
    std::map<RankId, TaskIds> sent_;                  ///< By root: its broadcasts so far.
    std::map<RankId, TaskIds> freed_;  ///< The same, until the last trainer can fill the buffer again.
    std::map<std::uint32_t, std::uint32_t> loaded_of_;  ///< By chain: the same of its last pack.
    TaskIds first_;                    ///< With which every chain has its first pack.
    std::uint32_t last_sent_ = kNone;  ///< The last broadcast of any root.
    std::uint32_t loaded_ = kNone;     ///< The last pack's loading.
    std::uint32_t next_item_ = 0;
};

}  // namespace

GatheredTasks add_gather_tasks(GraphBuilder& builder, std::uint32_t gather_stage, const TaskIds& after) {
    return GatherTasks{builder, gather_stage, after}.run();
}

}  // namespace refit
