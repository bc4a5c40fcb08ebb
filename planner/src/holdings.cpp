// SPDX-License-Identifier: Apache-2.0
#include "refit/holdings.hpp"

#include <algorithm>
#include <utility>

#include "refit/vocabulary.hpp"

namespace refit {
namespace {

const Shard* shard_of(const Distribution& distribution, std::uint32_t member) {
    for (const auto& shard : distribution.shards()) {
        if (std::ranges::binary_search(shard.members, member)) {
            return &shard;
        }
    }
    return nullptr;
}

/// Rows that a rank stores of a vocabulary, padding included; 0 for other parameters.
std::uint64_t stored_rows(const ParameterClass& parameter, const Scenario& scenario, bool is_trainer) {
    if (parameter.sharding != Sharding::kVocabulary || (is_trainer && scenario.train.is_fsdp())) {
        return 0;
    }
    const auto rows = parameter.shape[0];
    const auto tp = is_trainer ? scenario.train.tp : scenario.generate.tp;
    return padded_rows(rows, is_trainer ? trainer_vocabulary_multiple(rows, tp) : kGeneratorVocabularyMultiple) / tp;
}

Bytes padding_of(const WorkloadClass& entry, const Scenario& scenario, bool is_trainer, std::uint64_t held) {
    const auto rows = stored_rows(entry.parameter, scenario, is_trainer);
    const auto row_elements = entry.parameter.elements() / std::max<std::uint64_t>(entry.parameter.shape[0], 1);
    return rows == 0 ? Bytes{} : Bytes{(rows * row_elements - held) * entry.element_bytes()};
}

Holding holding_from(const WorkloadClass& entry, const Shard* shard, std::uint64_t layers, const Scenario& scenario, bool is_trainer) {
    Holding holding;
    holding.name = entry.parameter.name;
    holding.layers = layers;
    const auto elements = shard == nullptr ? 0 : shard->elements();
    if (shard != nullptr) {
        holding.boxes = shard->boxes;
        holding.replicas = shard->members.size();
    }
    holding.bytes = Bytes{elements} * entry.element_bytes() * layers;
    holding.padding = padding_of(entry, scenario, is_trainer, elements) * layers;
    return holding;
}

std::uint64_t layers_of(const WorkloadClass& entry, bool is_trainer, std::uint32_t stage) {
    std::uint64_t layers = 0;
    for (const auto& slice : entry.slices) {
        const bool is_here = is_trainer ? slice.train_stage == stage && !slice.is_copy : slice.generate_stage == stage;
        layers += is_here ? slice.layers : 0;
    }
    return layers;
}

SideSummary summarise(const Scenario& scenario, const Workload& workload, bool is_trainer) {
    const auto first = is_trainer ? 0 : scenario.cluster.train_gpus();
    const auto count = is_trainer ? scenario.train.gpus : scenario.generate.gpus;
    SideSummary summary;
    bool has_any = false;
    for (std::uint32_t rank = first; rank < first + count; ++rank) {
        if (workload.losses().is_absent(rank)) {
            continue;
        }
        const auto holdings = holdings_of(scenario, workload, RankId{rank});
        const auto bytes = holdings.bytes();
        summary.least = has_any ? std::min(summary.least, bytes) : bytes;
        has_any = true;
        summary.most = std::max(summary.most, bytes);
        summary.all += bytes;
        summary.padding += holdings.padding();
    }
    summary.replicated = summary.all - std::min(summary.all, workload.payload_bytes());
    return summary;
}

}  // namespace

Bytes RankHoldings::bytes() const {
    Bytes sum;
    for (const auto& holding : holdings) {
        sum += holding.bytes;
    }
    return sum;
}

Bytes RankHoldings::padding() const {
    Bytes sum;
    for (const auto& holding : holdings) {
        sum += holding.padding;
    }
    return sum;
}

RankHoldings holdings_of(const Scenario& scenario, const Workload& workload, RankId rank) {
    RankHoldings result;
    result.rank = rank;
    result.is_trainer = scenario.cluster.is_trainer(rank);
    const auto per_stage = scenario.train.ranks_per_stage();
    const auto index = rank.index() - (result.is_trainer ? 0 : scenario.cluster.train_gpus());
    result.stage = result.is_trainer ? index / per_stage : index / scenario.generate.tp % scenario.generate.pp;
    if (workload.losses().is_absent(rank.index())) {
        return result;
    }
    for (const auto& entry : workload.classes()) {
        const auto layers = layers_of(entry, result.is_trainer, result.stage);
        if (layers == 0) {
            continue;
        }
        const auto& distribution = result.is_trainer ? entry.source : entry.destinations[result.stage];
        const auto* shard = shard_of(distribution, result.is_trainer ? index % per_stage : index);
        auto holding = holding_from(entry, shard, layers, scenario, result.is_trainer);
        if (holding.bytes.count() > 0 || holding.padding.count() > 0) {
            result.holdings.push_back(std::move(holding));
        }
    }
    return result;
}

LayoutSummary summarise_layout(const Scenario& scenario, const Workload& workload) {
    LayoutSummary summary{summarise(scenario, workload, true), summarise(scenario, workload, false), {}, {}};
    for (const auto& entry : workload.classes()) {
        const auto& parameter = entry.parameter;
        const bool is_key_value = parameter.sharding == Sharding::kKey || parameter.sharding == Sharding::kValue;
        if (is_key_value && parameter.heads.key_value < scenario.generate.tp) {
            summary.key_value_replicated.push_back(parameter.name);
        }
    }
    for (const auto& parameter : scenario.model.classes()) {
        if (parameter.part == ModelPart::kMtp) {
            summary.delivered_to_nobody.push_back(parameter.name);
        }
    }
    return summary;
}

}  // namespace refit
