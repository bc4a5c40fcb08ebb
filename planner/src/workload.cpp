// SPDX-License-Identifier: Apache-2.0
#include "refit/workload.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "refit/fsdp.hpp"
#include "refit/megatron.hpp"
#include "refit/vllm.hpp"

namespace refit {
namespace {

std::vector<WorkloadSlice> slices_of(const ParameterClass& parameter, const Scenario& scenario,
                                     const std::vector<std::uint32_t>& train_stages) {
    const auto last_train = scenario.train.pp - 1;
    const auto last_generate = scenario.generate.pp - 1;
    if (parameter.layers.empty()) {
        std::vector<WorkloadSlice> slices{{parameter.on_last_stage ? last_train : 0, parameter.on_last_stage ? last_generate : 0, 1}};
        if (parameter.is_tied && last_generate > 0) {
            slices.push_back({0, last_generate, 1, true});
        }
        return slices;
    }
    // Vision layers are numbered apart from the text's; the tower lies beside the embedding.
    if (parameter.part == ModelPart::kVision) {
        return {{0, 0, static_cast<std::uint32_t>(parameter.layers.size())}};
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> numbers;
    for (std::uint32_t number = 0; number < parameter.layers.size(); ++number) {
        const auto layer = parameter.layers[number];
        numbers[{train_stages.at(layer), vllm::stage_of_layer(layer, scenario.model.layers(), scenario.generate)}].push_back(
            number);
    }
    std::vector<WorkloadSlice> slices;
    std::vector<std::uint32_t> in_order;
    for (auto& [stages, own] : numbers) {
        in_order.insert(in_order.end(), own.begin(), own.end());
        slices.push_back({stages.first, stages.second, static_cast<std::uint32_t>(own.size()), false, std::move(own)});
    }
    if (std::ranges::is_sorted(in_order)) {
        std::ranges::for_each(slices, [](WorkloadSlice& slice) { slice.numbers.clear(); });
    }
    return slices;
}

/// What is left of classes where ranks take no part.
class Survivors {
public:
    Survivors(const Scenario& scenario, const std::vector<std::uint32_t>& train_stages)
        : losses_{scenario.cluster.losses()}, train_{scenario.train}, train_stages_{train_stages} {}

    [[nodiscard]] std::vector<WorkloadClass> of(std::vector<WorkloadClass> classes) const {
        std::vector<WorkloadClass> left;
        for (auto& entry : classes) {
            for (auto& destination : entry.destinations) {
                destination = without(destination, train_.gpus);
            }
            add_by_holders(std::move(entry), left);
        }
        return left;
    }

private:
    /// `first`: rank of member 0.
    [[nodiscard]] Distribution without(const Distribution& whole, std::uint32_t first) const {
        std::vector<Shard> shards{whole.shards().begin(), whole.shards().end()};
        for (auto& shard : shards) {
            std::erase_if(shard.members, [&](std::uint32_t member) { return losses_.is_absent(first + member); });
        }
        std::erase_if(shards, [](const Shard& shard) { return shard.members.empty(); });
        return {{whole.shape().begin(), whole.shape().end()}, std::move(shards)};
    }

    /// Members of a trainer stage that are lost: stages that have lost the same hold the same.
    [[nodiscard]] std::vector<std::uint32_t> lost_of(std::uint32_t stage) const {
        std::vector<std::uint32_t> members;
        for (const auto rank : losses_.lost) {
            if (rank < train_.gpus && rank / train_.ranks_per_stage() == stage) {
                members.push_back(rank % train_.ranks_per_stage());
            }
        }
        return members;
    }

    void add_by_holders(WorkloadClass entry, std::vector<WorkloadClass>& left) const {
        std::map<std::vector<std::uint32_t>, std::vector<WorkloadSlice>> slices;
        for (const auto& slice : entry.slices) {
            slices[lost_of(slice.train_stage)].push_back(slice);
        }
        for (auto& [lost, some] : slices) {
            auto part = entry;
            const auto stage = some.front().train_stage;
            part.source = without(entry.source, stage * train_.ranks_per_stage());
            if (slices.size() > 1) {
                std::erase_if(part.parameter.layers, [&, &key = lost](std::uint32_t layer) {
                    return lost_of(train_stages_.at(layer)) != key;
                });
            }
            part.slices = std::move(some);
            left.push_back(std::move(part));
        }
    }

    const Losses& losses_;
    const TrainLayout& train_;
    const std::vector<std::uint32_t>& train_stages_;
};

}  // namespace

std::uint64_t WorkloadClass::logical_tensors() const noexcept {
    return parameter.layers.empty() ? 1 : parameter.layers.size();
}

std::uint64_t WorkloadClass::logical_number(std::uint32_t slice, std::uint32_t tensor) const {
    const auto& own = slices.at(slice);
    if (!own.numbers.empty()) {
        return own.numbers.at(tensor);
    }
    std::uint64_t number = tensor;
    for (std::uint32_t i = 0; i < slice && !own.is_copy; ++i) {
        number += slices[i].is_copy ? 0 : slices[i].layers;
    }
    return number;
}

Workload::Workload(std::vector<WorkloadClass> classes, std::uint32_t train_stages, std::uint32_t trainers_per_stage,
                   std::vector<std::uint64_t> generator_bytes, Losses losses)
    : classes_{std::move(classes)},
      train_stages_{train_stages},
      trainers_per_stage_{trainers_per_stage},
      generator_bytes_{std::move(generator_bytes)},
      losses_{std::move(losses)} {}

Workload Workload::make(const Scenario& scenario) {
    const auto train_stages = stage_of_layers(scenario.train);
    std::vector<WorkloadClass> classes;
    for (auto& parameter : scenario.payload()) {
        std::vector<Distribution> destinations;
        for (std::uint32_t stage = 0; stage < scenario.generate.pp; ++stage) {
            destinations.push_back(vllm::distribution(parameter, scenario.generate, stage));
        }
        auto slices = slices_of(parameter, scenario, train_stages);
        auto source = scenario.train.is_fsdp() ? fsdp::distribution(parameter, scenario.train)
                                               : megatron::distribution(parameter, scenario.train);
        classes.push_back({std::move(parameter), std::move(source), std::move(destinations), std::move(slices)});
    }
    const auto& losses = scenario.cluster.losses();
    if (!losses.empty()) {
        classes = Survivors{scenario, train_stages}.of(std::move(classes));
    }
    return of(std::move(classes), scenario.train.pp, scenario.train.ranks_per_stage(), scenario.generate.gpus, losses);
}

Workload Workload::of(std::vector<WorkloadClass> classes, std::uint32_t train_stages, std::uint32_t trainers_per_stage,
                      std::uint32_t generators, Losses losses) {
    std::vector<std::uint64_t> generator_bytes(generators, 0);
    for (const auto& entry : classes) {
        for (const auto& slice : entry.slices) {
            for (const auto& shard : entry.destinations[slice.generate_stage].shards()) {
                const auto bytes = shard.elements() * entry.element_bytes() * slice.layers;
                for (const auto member : shard.members) {
                    generator_bytes.at(member) += bytes;
                }
            }
        }
    }
    return {std::move(classes), train_stages, trainers_per_stage, std::move(generator_bytes), std::move(losses)};
}

Bytes Workload::delivered_bytes() const {
    Bytes sum;
    for (const auto bytes : generator_bytes_) {
        sum += Bytes{bytes};
    }
    return sum;
}

Bytes Workload::payload_bytes() const {
    Bytes sum;
    for (const auto& entry : classes_) {
        sum += entry.parameter.bytes();
    }
    return sum;
}

}  // namespace refit
