// SPDX-License-Identifier: Apache-2.0
#include "refit/held_weights.hpp"

#include <algorithm>
#include <vector>

#include "refit/fsdp.hpp"
#include "refit/megatron.hpp"
#include "refit/vllm.hpp"

namespace refit {
namespace {

/// Bytes that a rank of each stage holds; `bytes_of` says how many of one layer of a class, in units of 1 /
/// `ways`.
template <class BytesOf>
std::vector<std::uint64_t> bytes_by_stage(std::span<const ParameterClass> payload,
                                          const std::vector<std::uint32_t>& stage_of,
                                          std::uint32_t stages,
                                          std::uint64_t ways,
                                          const BytesOf& bytes_of) {
    std::vector<Bytes> bytes(stages);
    for (const auto& entry : payload) {
        const auto one = bytes_of(entry);
        if (entry.layers.empty()) {
            bytes[entry.on_last_stage ? stages - 1 : 0] += one;
            bytes[stages - 1] += entry.is_tied && stages > 1 ? one : Bytes{};
        } else if (entry.part == ModelPart::kVision) {
            bytes[0] += one * entry.layers.size();
        } else {
            for (const auto layer : entry.layers) {
                bytes[stage_of.at(layer)] += one;
            }
        }
    }
    std::vector<std::uint64_t> whole;
    whole.reserve(bytes.size());
    for (const auto sum : bytes) {
        whole.push_back(sum.count() / ways);
    }
    return whole;
}

FullestRank fullest(const std::vector<std::uint64_t>& bytes, std::uint32_t ranks_between_stages) {
    const auto stage = static_cast<std::uint32_t>(std::ranges::max_element(bytes) - bytes.begin());
    return {stage * ranks_between_stages, stage, Bytes{bytes[stage]}};
}

}  // namespace

FullestRank fullest_rank(const TrainLayout& layout, std::span<const ParameterClass> payload) {
    if (layout.is_fsdp()) {
        // The first rank has the first chunk of every tensor.
        Bytes sum;
        for (const auto& entry : payload) {
            const auto experts = entry.is_expert() ? entry.experts / layout.ep : 1U;
            const auto tensors = std::uint64_t{experts} * (entry.layers.empty() ? 1 : entry.layers.size());
            sum += Bytes{fsdp::gathered_elements(entry, layout)} * size_of(entry.dtype) * tensors;
        }
        return {0, 0, sum};
    }
    // Thirds of q, k and v may be broken; their sum is not. So all bytes are counted in parts of the whole
    // division.
    const std::uint64_t ways = std::uint64_t{layout.tp} * layout.etp;
    const auto bytes_of = [&](const ParameterClass& entry) {
        if (entry.is_expert()) {
            const auto cut = entry.sharding == Sharding::kReplicated ? ways : layout.tp;
            return entry.tensor_bytes() * (entry.experts / layout.ep) * cut;
        }
        if (entry.sharding == Sharding::kVocabulary) {
            return Bytes{megatron::stored_elements(entry, layout, 0)} * size_of(entry.dtype) * ways;
        }
        return entry.tensor_bytes() * (entry.sharding == Sharding::kReplicated ? ways : layout.etp);
    };
    return fullest(bytes_by_stage(payload, stage_of_layers(layout), layout.pp, ways, bytes_of),
                   layout.ranks_per_stage());
}

FullestRank fullest_rank(const GenerateLayout& layout,
                         std::span<const ParameterClass> payload,
                         std::uint32_t layers) {
    std::vector<std::uint32_t> stages;
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
        stages.push_back(vllm::stage_of_layer(layer, layers, layout));
    }
    const auto bytes_of = [&](const ParameterClass& entry) {
        return Bytes{vllm::most_stored_elements(entry, layout)} * size_of(entry.dtype);
    };
    return fullest(bytes_by_stage(payload, stages, layout.pp, 1, bytes_of), layout.tp);
}

GpuMemory memory_of(const System& system, Dtype dtype) {
    return {system.gpu_memory.value, system.gpu, dtype};
}

}  // namespace refit
