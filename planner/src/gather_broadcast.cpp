// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "plan_builder.hpp"
#include "refit/megatron.hpp"

namespace refit {
namespace {

bool is_task(const ParameterClass& parameter) { return parameter.task != ExportTask::kFusedMember; }

bool is_sharded(const ParameterClass& parameter) { return parameter.sharding != Sharding::kReplicated; }

/// Experts of one layer that a trainer holds; 1 for a dense parameter.
std::uint64_t local_experts(const ParameterClass& parameter, const TrainLayout& train) {
    return parameter.is_expert() ? parameter.experts / train.ep : 1;
}

/// Groups of `size` consecutive positions `stride` apart, tiling every stage.
RankGroups groups_in_stages(const TrainLayout& train, std::uint32_t size, std::uint32_t stride) {
    RankGroups groups;
    for (std::uint32_t base = 0; base < train.gpus; base += size * stride) {
        for (std::uint32_t offset = 0; offset < stride; ++offset) {
            std::vector<RankId> group;
            for (std::uint32_t i = 0; i < size; ++i) {
                group.emplace_back(base + offset + i * stride);
            }
            groups.push_back(std::move(group));
        }
    }
    return groups;
}

/// The ranks with the same place in every stage, beginning with `root_stage`, in ring order.
RankGroups pipeline_groups(const TrainLayout& train, std::uint32_t root_stage) {
    RankGroups groups;
    for (std::uint32_t slot = 0; slot < train.ranks_per_stage(); ++slot) {
        std::vector<RankId> group;
        for (std::uint32_t i = 0; i < train.pp; ++i) {
            group.emplace_back((root_stage + i) % train.pp * train.ranks_per_stage() + slot);
        }
        groups.push_back(std::move(group));
    }
    return groups;
}

class GatherBuilder {
public:
    GatherBuilder(Plan& plan, const Scenario& scenario, const Workload& workload, const ClassIndices& classes)
        : plan_{plan}, scenario_{scenario}, train_{scenario.train} {
        for (const auto index : classes) {
            classes_.push_back({index, &workload.classes()[index]});
        }
    }

    void build() {
        for (const auto& [index, entry] : classes_) {
            gather_.payload += entry->parameter.bytes();
            gather_.loaded_tensors += entry->parameter.tensors();
        }
        add_pipeline_broadcasts();
        const auto dense_bytes = add_tensor_all_gathers();
        const auto expert_bytes = add_expert_all_gathers();
        // The export concatenates what it gathered over TP twice (list, then cat), unpacks what it gathered over
        // EP once, and packs every byte once.
        gather_.copied = expert_bytes + dense_bytes * 2 + gather_.payload;
        add_broadcast();
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
            std::vector<std::uint64_t> bytes(train_.ranks_per_stage(), 0);
            std::uint64_t calls = 0;
            ClassIndices parameters;
            for (const auto& [index, entry] : classes_) {
                const auto layers = layers_from(*entry, stage);
                if (layers > 0) {
                    parameters.push_back(index);
                    calls += is_task(entry->parameter) ? layers * local_experts(entry->parameter, train_) : 0;
                    add_shards(*entry, layers, bytes);
                }
            }
            add(gather_, CollectiveRole::kPipelineBroadcast, pipeline_groups(train_, stage), std::move(bytes), calls, std::move(parameters));
        }
    }

    static std::uint64_t layers_from(const WorkloadClass& entry, std::uint32_t stage) {
        std::uint64_t layers = 0;
        for (const auto& slice : entry.slices) {
            layers += slice.train_stage == stage && !slice.is_copy ? slice.layers : 0;
        }
        return layers;
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

    /// All-gathers over TP, and over expert TP; returns the dense bytes that a trainer so gathers.
    Bytes add_tensor_all_gathers() {
        Bytes dense;
        Bytes expert;
        std::uint64_t dense_calls = 0;
        std::uint64_t expert_calls = 0;
        ClassIndices dense_classes;
        ClassIndices expert_classes;
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
            const auto tensors = entry->logical_tensors() * local_experts(parameter, train_);
            (parameter.is_expert() ? expert : dense) += Bytes{elements} * entry->element_bytes() * tensors;
            (parameter.is_expert() ? expert_calls : dense_calls) += is_task(parameter) ? tensors : 0;
            (parameter.is_expert() ? expert_classes : dense_classes).push_back(index);
        }
        add_all_gather(CollectiveRole::kTensorAllGather, groups_in_stages(train_, train_.tp, 1), dense, dense_calls, std::move(dense_classes));
        add_all_gather(CollectiveRole::kTensorAllGather, groups_in_stages(train_, train_.etp, 1), expert, expert_calls, std::move(expert_classes));
        return dense + expert;
    }

    /// Every stage gathers every expert of the model, since the pipeline broadcast has given it its share of all.
    Bytes add_expert_all_gathers() {
        Bytes bytes;
        std::uint64_t calls = 0;
        ClassIndices parameters;
        for (const auto& [index, entry] : classes_) {
            if (entry->parameter.is_expert() && train_.ep > 1) {
                parameters.push_back(index);
                bytes += entry->parameter.bytes();
                calls += entry->logical_tensors() * local_experts(entry->parameter, train_);
            }
        }
        add_all_gather(CollectiveRole::kExpertAllGather, groups_in_stages(train_, train_.ep, train_.etp), bytes, calls, std::move(parameters));
        return bytes;
    }

    void add_all_gather(CollectiveRole role, RankGroups groups, Bytes bytes, std::uint64_t calls,
                        ClassIndices parameters) {
        if (bytes.count() > 0) {
            std::vector<std::uint64_t> per_group(groups.size(), bytes.count());
            add(gather_, role, std::move(groups), std::move(per_group), calls, std::move(parameters));
        }
    }

    void add_broadcast() {
        PlanStage broadcast;
        broadcast.kind = StageKind::kBroadcast;
        broadcast.payload = gather_.payload;
        std::vector<RankId> everyone;
        for (std::uint32_t rank = 0; rank < scenario_.cluster.gpus(); ++rank) {
            everyone.emplace_back(rank);
        }
        add(broadcast, CollectiveRole::kWeightBroadcast, {std::move(everyone)}, {broadcast.payload.count()}, 1, indices());
        plan_.stages.push_back(std::move(gather_));
        plan_.stages.push_back(std::move(broadcast));
    }

    [[nodiscard]] ClassIndices indices() const {
        ClassIndices all;
        for (const auto& [index, entry] : classes_) {
            all.push_back(index);
        }
        return all;
    }

    Plan& plan_;
    const Scenario& scenario_;
    const TrainLayout& train_;
    PlanStage gather_;
    std::vector<std::pair<std::uint32_t, const WorkloadClass*>> classes_;
};

/// Trainer 0 and, of each stage that has tensors of the class, the first holder of each shard.
std::vector<RankId> first_holders(const WorkloadClass& entry, std::uint32_t trainers_per_stage) {
    std::set<std::uint32_t> stages;
    for (const auto& slice : entry.slices) {
        stages.insert(slice.train_stage);
    }
    std::vector<RankId> group{RankId{0}};
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

}  // namespace

void add_gather_broadcast(Plan& plan, const Scenario& scenario, const Workload& workload, const ClassIndices& classes) {
    if (!classes.empty()) {
        GatherBuilder{plan, scenario, workload, classes}.build();
    }
}

void add_plain_gather_broadcast(Plan& plan, const Cluster& cluster, const Workload& workload,
                                const ClassIndices& classes) {
    PlanStage gather;
    PlanStage broadcast;
    broadcast.kind = StageKind::kBroadcast;
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
        auto group = first_holders(entry, workload.trainers_per_stage());
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
    std::vector<RankId> everyone;
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        everyone.emplace_back(rank);
    }
    add(broadcast, CollectiveRole::kWeightBroadcast, std::move(everyone), gather.payload.count(), 1, classes);
    plan.stages.push_back(std::move(gather));
    plan.stages.push_back(std::move(broadcast));
}

}  // namespace refit
