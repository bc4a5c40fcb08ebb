// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "refit/broadcast_roots.hpp"
#include "plan_builder.hpp"
#include "refit/fsdp.hpp"
#include "refit/megatron.hpp"
#include "refit/memory.hpp"

namespace refit {
namespace {

bool is_task(const ParameterClass& parameter) { return parameter.task != ExportTask::kFusedMember; }

bool is_sharded(const ParameterClass& parameter) { return parameter.sharding != Sharding::kReplicated; }

/// Experts of one layer that a trainer holds; 1 for a dense parameter.
std::uint64_t local_experts(const ParameterClass& parameter, const TrainLayout& train) {
    return parameter.is_expert() ? parameter.experts / train.ep : 1;
}

/// Groups of `size` consecutive positions `stride` apart, tiling every stage, of those that gather.
RankGroups groups_in_stages(const TrainLayout& train, const Gatherers& gatherers, std::uint32_t size, std::uint32_t stride) {
    RankGroups groups;
    for (std::uint32_t base = 0; base < train.gpus; base += size * stride) {
        const auto& places = gatherers.places[base / train.ranks_per_stage()];
        for (std::uint32_t offset = 0; offset < stride; ++offset) {
            // Whoever gathers, its whole group does.
            if (!std::ranges::binary_search(places, (base + offset) % train.ranks_per_stage())) {
                continue;
            }
            std::vector<RankId> group;
            for (std::uint32_t i = 0; i < size; ++i) {
                group.emplace_back(base + offset + i * stride);
            }
            groups.push_back(std::move(group));
        }
    }
    return groups;
}

/// The ranks with the same place in every stage, of those who gather, in ring order from `root_stage` on: first who
/// has what that place of it holds, or a place `ways` further. Who serves two places leads one group of both.
RankGroups pipeline_groups(const Scenario& scenario, const Gatherers& gatherers, std::uint32_t root_stage, std::uint32_t ways) {
    const auto& train = scenario.train;
    const auto per_stage = train.ranks_per_stage();
    const auto first = root_stage * per_stage;
    RankGroups groups;
    for (std::uint32_t place = 0; place < per_stage; ++place) {
        std::vector<RankId> takers;
        for (std::uint32_t i = 1; i < train.pp; ++i) {
            const auto stage = (root_stage + i) % train.pp;
            if (std::ranges::binary_search(gatherers.places[stage], place)) {
                takers.emplace_back(stage * per_stage + place);
            }
        }
        auto step = std::uint32_t{0};
        while (step < per_stage && scenario.cluster.losses().is_absent(first + (place + step) % per_stage)) {
            step += ways;
        }
        const RankId root{first + (place + step) % per_stage};
        const auto own = std::ranges::find(groups, root, [](const auto& group) { return group.front(); });
        if (own != groups.end()) {
            own->insert(own->end(), takers.begin(), takers.end());
        } else if (!takers.empty()) {
            takers.insert(takers.begin(), root);
            groups.push_back(std::move(takers));
        }
    }
    return groups;
}

std::vector<RankId> active_generators(const Cluster& cluster) {
    std::vector<RankId> ranks;
    for (std::uint32_t i = 0; i < cluster.generate_gpus(); ++i) {
        if (!cluster.losses().is_absent(cluster.generator(i).index())) {
            ranks.push_back(cluster.generator(i));
        }
    }
    return ranks;
}

/// Sums over what the trainers of one stage gather alike: of all parameters, or of their own stage's.
struct Gathered {
    std::vector<Bytes> bytes;  ///< One for all stages, or one a stage.
    std::vector<std::uint64_t> calls;
    ClassIndices classes;

    explicit Gathered(std::uint32_t spheres) : bytes(spheres), calls(spheres, 0) {}
};

class GatherBuilder {
public:
    GatherBuilder(Plan& plan, const Scenario& scenario, const Workload& workload, const ClassIndices& classes)
        : plan_{plan},
          scenario_{scenario},
          train_{scenario.train},
          workload_{workload},
          indices_{classes},
          gatherers_{gatherers_of(scenario)},
          spheres_{scenario.engine.options.broadcast_root == BroadcastRoot::kEachStage ? scenario.train.pp : 1} {
        for (const auto index : classes) {
            classes_.push_back({index, &workload.classes()[index]});
        }
    }

    /// `has_broadcast`: the gathered parameters are broadcast; else they stay on the trainers.
    void build(bool has_broadcast) {
        std::vector<Bytes> exported(spheres_);
        for (const auto& [index, entry] : classes_) {
            gather_.payload += entry->parameter.bytes();
            gather_.loaded_tensors += entry->parameter.tensors();
            for (std::uint32_t sphere = 0; sphere < spheres_; ++sphere) {
                exported[sphere] += entry->parameter.tensor_bytes() * entry->parameter.tensors_per_layer() * layers_in(*entry, sphere);
            }
        }
        if (spheres_ == 1) {
            add_pipeline_broadcasts();
        }
        const auto dense_bytes = train_.is_fsdp() ? add_fsdp_all_gathers() : add_tensor_all_gathers();
        const auto expert_bytes = add_expert_all_gathers();
        // The export concatenates what it gathered over TP twice (list, then cat), unpacks what it gathered over
        // EP once, and packs every byte once. FSDP gathers rows in their place, and concatenates stacked experts, which
        // it cuts along their second axis, once.
        const std::uint64_t copies = train_.is_fsdp() ? 1 : 2;
        for (std::uint32_t sphere = 0; sphere < spheres_; ++sphere) {
            gather_.copied = std::max(gather_.copied, expert_bytes[sphere] + dense_bytes[sphere] * copies + exported[sphere]);
        }
        if (has_broadcast) {
            add_broadcast();
        } else {
            plan_.stages.push_back(std::move(gather_));
        }
    }

private:
    void add(PlanStage& stage, CollectiveRole role, RankGroups groups, std::vector<std::uint64_t> bytes,
             std::uint64_t calls, ClassIndices parameters) {
        plan_.groups.push_back(std::move(groups));
        stage.collectives.push_back({role,
                                     static_cast<std::uint32_t>(plan_.groups.size() - 1),
                                     std::move(bytes),
                                     calls,
                                     std::move(parameters)});
    }

    void add_pipeline_broadcasts() {
        if (train_.pp == 1) {
            return;
        }
        for (std::uint32_t stage = 0; stage < train_.pp; ++stage) {
            if (!needs_other_holders(stage)) {
                add_pipeline_broadcast(stage, train_.ranks_per_stage(), [](const WorkloadClass&) { return true; });
                continue;
            }
            // Who holds in a lost rank's place what that held, of either kind.
            add_pipeline_broadcast(stage, train_.tp, [](const WorkloadClass& entry) { return !entry.parameter.is_expert(); });
            add_pipeline_broadcast(stage, train_.etp * train_.ep, [](const WorkloadClass& entry) { return entry.parameter.is_expert(); });
        }
    }

    /// Whether a rank of the stage is lost whose place gathers elsewhere.
    [[nodiscard]] bool needs_other_holders(std::uint32_t stage) const {
        return std::ranges::any_of(scenario_.cluster.losses().lost, [&](std::uint32_t rank) {
            const auto place = rank % train_.ranks_per_stage();
            return rank / train_.ranks_per_stage() == stage && std::ranges::any_of(gatherers_.places, [&](const auto& places) {
                       return std::ranges::binary_search(places, place);
                   });
        });
    }

    template <class Takes>
    void add_pipeline_broadcast(std::uint32_t stage, std::uint32_t ways, Takes&& takes) {
        std::vector<std::uint64_t> bytes(train_.ranks_per_stage(), 0);
        std::uint64_t calls = 0;
        ClassIndices parameters;
        for (const auto& [index, entry] : classes_) {
            const auto layers = takes(*entry) ? layers_from(*entry, stage) : 0;
            if (layers > 0) {
                parameters.push_back(index);
                calls += is_task(entry->parameter) ? layers * local_experts(entry->parameter, train_) : 0;
                add_shards(*entry, layers, bytes);
            }
        }
        if (parameters.empty()) {
            return;
        }
        auto groups = pipeline_groups(scenario_, gatherers_, stage, ways);
        std::vector<std::uint64_t> kept;
        std::ranges::transform(groups, std::back_inserter(kept), [&](const auto& group) { return bytes[group.front().index() % bytes.size()]; });
        if (!groups.empty()) {
            add(gather_, CollectiveRole::kPipelineBroadcast, std::move(groups), std::move(kept), calls, std::move(parameters));
        }
    }

    static std::uint64_t layers_from(const WorkloadClass& entry, std::uint32_t stage) {
        std::uint64_t layers = 0;
        for (const auto& slice : entry.slices) {
            layers += slice.train_stage == stage && !slice.is_copy ? slice.layers : 0;
        }
        return layers;
    }

    /// Logical tensors that a trainer gathers: every stage all of them, since the pipeline broadcast has given it its
    /// share of all, or each stage its own.
    [[nodiscard]] std::uint64_t layers_in(const WorkloadClass& entry, std::uint32_t sphere) const {
        return spheres_ == 1 ? entry.logical_tensors() : layers_from(entry, sphere);
    }

    /// What each rank of a stage stores of `layers` layers of the class.
    void add_shards(const WorkloadClass& entry, std::uint64_t layers, std::vector<std::uint64_t>& bytes) const {
        const auto tp = entry.parameter.is_expert() ? train_.etp : train_.tp;
        for (std::uint32_t coordinate = 0; coordinate < tp; ++coordinate) {
            const auto shard = Bytes{megatron::stored_elements(entry.parameter, train_, coordinate)} *
                               entry.element_bytes() * local_experts(entry.parameter, train_) * layers;
            for (auto slot = coordinate; slot < bytes.size(); slot += tp) {
                bytes[slot] += shard.count();
            }
        }
    }

    /// All-gathers over TP, and over expert TP; returns the bytes that a trainer so gathers.
    std::vector<Bytes> add_tensor_all_gathers() {
        Gathered dense{spheres_};
        Gathered expert{spheres_};
        for (const auto& [index, entry] : classes_) {
            const auto& parameter = entry->parameter;
            const auto tp = parameter.is_expert() ? train_.etp : train_.tp;
            if (tp == 1 || !is_sharded(parameter)) {
                continue;
            }
            std::uint64_t elements = 0;
            for (std::uint32_t coordinate = 0; coordinate < tp; ++coordinate) {
                elements += megatron::stored_elements(parameter, train_, coordinate);
            }
            auto& gathered = parameter.is_expert() ? expert : dense;
            gathered.classes.push_back(index);
            for (std::uint32_t sphere = 0; sphere < spheres_; ++sphere) {
                const auto tensors = layers_in(*entry, sphere) * local_experts(parameter, train_);
                gathered.bytes[sphere] += Bytes{elements} * entry->element_bytes() * tensors;
                gathered.calls[sphere] += is_task(parameter) ? tensors : 0;
            }
        }
        add_all_gather(CollectiveRole::kTensorAllGather, groups_in_stages(train_, gatherers_, train_.tp, 1), dense);
        add_all_gather(CollectiveRole::kTensorAllGather, groups_in_stages(train_, gatherers_, train_.etp, 1), expert);
        std::ranges::transform(dense.bytes, expert.bytes, dense.bytes.begin(), std::plus{});
        return dense.bytes;
    }

    /// FSDP restores each tensor by an all-gather of its own: over all ranks of a replica, stacked experts over those
    /// with the same place in EP. Returns the bytes of the latter.
    /// Source: PyTorch DTensor.full_tensor, as verl calls it for each parameter.
    std::vector<Bytes> add_fsdp_all_gathers() {
        Gathered whole{spheres_};
        Gathered stacked{spheres_};
        for (const auto& [index, entry] : classes_) {
            const auto& parameter = entry->parameter;
            const bool is_stacked = parameter.is_expert() && train_.ep > 1;
            const auto ways = is_stacked ? train_.fsdp : train_.ranks_per_replica();
            if (ways == 1) {
                continue;
            }
            auto& gathered = is_stacked ? stacked : whole;
            const auto experts = local_experts(parameter, train_);
            gathered.classes.push_back(index);
            gathered.bytes.front() += Bytes{fsdp::gathered_elements(parameter, train_)} * ways * entry->element_bytes() * experts *
                                      entry->logical_tensors();
            gathered.calls.front() += entry->logical_tensors() * (is_stacked ? 1 : experts);
        }
        add_all_gather(CollectiveRole::kTensorAllGather, groups_in_stages(train_, gatherers_, train_.ranks_per_replica(), 1), whole);
        add_all_gather(CollectiveRole::kTensorAllGather, groups_in_stages(train_, gatherers_, train_.fsdp, train_.ep), stacked);
        return stacked.bytes;
    }

    std::vector<Bytes> add_expert_all_gathers() {
        Gathered gathered{spheres_};
        for (const auto& [index, entry] : classes_) {
            if (!entry->parameter.is_expert() || train_.ep == 1) {
                continue;
            }
            gathered.classes.push_back(index);
            const auto& parameter = entry->parameter;
            for (std::uint32_t sphere = 0; sphere < spheres_; ++sphere) {
                const auto layers = layers_in(*entry, sphere);
                gathered.bytes[sphere] += parameter.tensor_bytes() * parameter.tensors_per_layer() * layers;
                gathered.calls[sphere] += layers * (train_.is_fsdp() ? 1 : local_experts(parameter, train_));
            }
        }
        add_all_gather(CollectiveRole::kExpertAllGather, groups_in_stages(train_, gatherers_, train_.ep, train_.etp), gathered);
        return gathered.bytes;
    }

    void add_all_gather(CollectiveRole role, RankGroups groups, const Gathered& gathered) {
        if (gathered.classes.empty()) {
            return;
        }
        std::vector<std::uint64_t> bytes;
        for (const auto& group : groups) {
            const auto stage = group.front().index() / train_.ranks_per_stage();
            bytes.push_back(gathered.bytes[spheres_ == 1 ? 0 : stage].count());
        }
        add(gather_, role, std::move(groups), std::move(bytes), std::ranges::max(gathered.calls), gathered.classes);
    }

    void add_broadcast() {
        PlanStage broadcast;
        broadcast.kind = StageKind::kBroadcast;
        broadcast.payload = gather_.payload;
        if (scenario_.engine.options.broadcast_group == BroadcastGroup::kPairs) {
            add_pairs(std::move(broadcast));
            return;
        }
        const bool has_one_root = spheres_ == 1 && scenario_.engine.options.broadcast_senders == 1;
        if (has_one_root) {
            add(broadcast, CollectiveRole::kWeightBroadcast, {broadcast_group(gatherers_.roots.front().front(), 0)}, {broadcast.payload.count()}, 1, indices_);
        } else {
            const auto target = pack_target(scenario_.engine, scenario_.cluster.train_system().gpu_memory.value);
            std::uint32_t turn = 0;
            for (const auto& sent : dealt_packs(scenario_, workload_, indices_, target)) {
                add_root(broadcast, sent, turn++);
            }
        }
        plan_.stages.push_back(std::move(gather_));
        plan_.stages.push_back(std::move(broadcast));
    }

    /// Pre: no more generators than trainers that gather.
    void add_pairs(PlanStage broadcast) {
        RankGroups pairs;
        for (const auto generator : active_generators(scenario_.cluster)) {
            pairs.push_back({gatherers_.roots.front()[pairs.size()], generator});
        }
        std::vector<std::uint64_t> bytes(pairs.size(), broadcast.payload.count());
        add(broadcast, CollectiveRole::kWeightBroadcast, std::move(pairs), std::move(bytes), 1, indices_);
        plan_.stages.push_back(std::move(gather_));
        plan_.stages.push_back(std::move(broadcast));
    }

    void add_root(PlanStage& broadcast, const SentPacks& sent, std::uint32_t turn) {
        std::uint64_t bytes = 0;
        std::set<std::uint32_t> parameters;
        std::vector<MessagePart> parts;
        for (const auto& pack : sent.packs) {
            bytes += pack.bytes;
            for (const auto& piece : pack.pieces) {
                parameters.insert(sent.runs[piece.run].parameter);
                add_parts(parts, sent.runs[piece.run], piece);
            }
        }
        add(broadcast, CollectiveRole::kWeightBroadcast, {broadcast_group(sent.root, turn)}, {bytes}, 1, {parameters.begin(), parameters.end()});
        broadcast.collectives.back().parts = std::move(parts);
    }

    /// A piece of a pack, for the slice that it is of and for the copies of that slice's tensors.
    void add_parts(std::vector<MessagePart>& parts, const ExportRun& run, const PackPiece& piece) const {
        const auto& entry = workload_.classes()[run.parameter];
        auto box = Box::whole(entry.source.shape());
        if (entry.parameter.is_expert()) {
            box = box.with(0, {piece.first, piece.first + piece.tensors});
        }
        for (std::uint32_t slice = 0; slice < entry.slices.size(); ++slice) {
            if (slice == run.slice || entry.slices[slice].is_copy) {
                parts.push_back({run.parameter, slice, run.tensor, 1, box});
            }
        }
    }

    /// The root, other trainers where they take part, and all generators. Each root enters the generators' domains at
    /// members of its own.
    [[nodiscard]] std::vector<RankId> broadcast_group(RankId root, std::uint32_t turn) const {
        const auto& cluster = scenario_.cluster;
        std::vector<RankId> group{root};
        const auto others = scenario_.engine.options.broadcast_group;
        for (std::uint32_t i = 0; i < cluster.train_gpus() && others != BroadcastGroup::kGenerators; ++i) {
            if (cluster.losses().is_absent(i)) {
                continue;
            }
            const bool is_near = cluster.domain_of(cluster.trainer(i)) == cluster.domain_of(root);
            if (cluster.trainer(i) != root && (is_near || others == BroadcastGroup::kAll)) {
                group.push_back(cluster.trainer(i));
            }
        }
        const auto generators = active_generators(cluster);
        for (std::size_t first = 0; first < generators.size();) {
            std::vector<RankId> domain;
            while (first < generators.size() &&
                   (domain.empty() || cluster.domain_of(domain.front()) == cluster.domain_of(generators[first]))) {
                domain.push_back(generators[first++]);
            }
            std::rotate(domain.begin(), domain.begin() + static_cast<std::ptrdiff_t>(turn % domain.size()), domain.end());
            group.insert(group.end(), domain.begin(), domain.end());
        }
        return group;
    }

    Plan& plan_;
    const Scenario& scenario_;
    const TrainLayout& train_;
    const Workload& workload_;
    const ClassIndices& indices_;
    Gatherers gatherers_;
    std::uint32_t spheres_;  ///< Sets of trainers that gather the same: one, or one a stage.
    PlanStage gather_;
    std::vector<std::pair<std::uint32_t, const WorkloadClass*>> classes_;
};

/// The root and, of each stage that has tensors of the class, the first holder of each shard.
std::vector<RankId> first_holders(const WorkloadClass& entry, std::uint32_t trainers_per_stage, RankId root) {
    std::set<std::uint32_t> stages;
    for (const auto& slice : entry.slices) {
        stages.insert(slice.train_stage);
    }
    std::vector<RankId> group{root};
    for (const auto stage : stages) {
        for (const auto& shard : entry.source.shards()) {
            const RankId holder{stage * trainers_per_stage + shard.members.front()};
            if (holder != group.front()) {
                group.push_back(holder);
            }
        }
    }
    return group;
}

std::vector<RankId> members_of(const Cluster& cluster) {
    std::vector<RankId> members;
    for (const auto rank : survivors(cluster.losses(), cluster.gpus())) {
        members.emplace_back(rank);
    }
    return members;
}

void add_gather(Plan& plan, const Scenario& scenario, const Workload& workload, const ClassIndices& classes, bool has_broadcast) {
    if (gatherers_of(scenario).is_plain) {
        add_plain_gather_broadcast(plan, scenario.cluster, workload, classes, has_broadcast);
    } else {
        GatherBuilder{plan, scenario, workload, classes}.build(has_broadcast);
    }
}

}  // namespace

void add_gather_broadcast(Plan& plan, const Scenario& scenario, const Workload& workload, const ClassIndices& classes) {
    if (!classes.empty()) {
        add_gather(plan, scenario, workload, classes, true);
    }
}

void add_gather(Plan& plan, const Scenario& scenario, const Workload& workload, const ClassIndices& classes) {
    add_gather(plan, scenario, workload, classes, false);
}

void add_plain_gather_broadcast(Plan& plan, const Cluster& cluster, const Workload& workload,
                                const ClassIndices& classes, bool has_broadcast) {
    PlanStage gather;
    PlanStage broadcast;
    broadcast.kind = StageKind::kBroadcast;
    const auto everyone = members_of(cluster);
    const auto add = [&](PlanStage& stage, CollectiveRole role, std::vector<RankId> group, std::uint64_t bytes,
                         std::uint64_t calls, ClassIndices parameters) {
        plan.groups.push_back({std::move(group)});
        stage.collectives.push_back(
            {role, static_cast<std::uint32_t>(plan.groups.size() - 1), {bytes}, calls, std::move(parameters)});
    };
    for (const auto index : classes) {
        const auto& entry = workload.classes()[index];
        gather.payload += entry.parameter.bytes();
        gather.loaded_tensors += entry.parameter.tensors();
        auto group = first_holders(entry, workload.trainers_per_stage(), everyone.front());
        if (group.size() > 1) {
            add(gather,
                CollectiveRole::kTensorAllGather,
                std::move(group),
                entry.parameter.bytes().count(),
                entry.logical_tensors(),
                {index});
        }
    }
    gather.copied = gather.payload * 2;
    broadcast.payload = gather.payload;
    add(broadcast, CollectiveRole::kWeightBroadcast, everyone, gather.payload.count(), 1, classes);
    plan.stages.push_back(std::move(gather));
    if (has_broadcast) {
        plan.stages.push_back(std::move(broadcast));
    }
}

}  // namespace refit
