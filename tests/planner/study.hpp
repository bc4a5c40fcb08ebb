// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "refit/fabric.hpp"
#include "refit/workload.hpp"

namespace refit::study {

/// One grouped expert tensor, or one projection, from trainers to engines: the regular cases of docs/optimal.md.
/// Trainers of a stage: tp fastest for a dense tensor, else one rank an expert shard. Engines: tp fastest.
struct Layout {
    std::vector<std::uint64_t> shape;  ///< BF16. The first axis is cut over the trainers, `cut` over the engine.
    std::uint32_t shards = 1;          ///< Trainers that each hold a part.
    std::uint32_t replicas = 1;        ///< Trainers that hold the same part.
    std::uint32_t stages = 1;          ///< In the job.
    std::uint32_t moving = 1;          ///< Of these, the stages that have such a tensor.
    std::uint32_t tp = 1;
    std::uint32_t dp = 1;

    [[nodiscard]] std::uint32_t stage_ranks() const { return shards * replicas; }
    [[nodiscard]] std::uint32_t trainers() const { return stage_ranks() * stages; }
    [[nodiscard]] std::uint32_t generators() const { return tp * dp; }
};

/// Cuts `axis` of the tensor in `parts`; part i is held by ranks i, i + parts, … `copies` times.
inline Distribution cut(const std::vector<std::uint64_t>& shape, std::size_t axis, std::uint32_t parts,
                        std::uint32_t copies) {
    std::vector<Shard> shards;
    const auto step = shape[axis] / parts;
    for (std::uint32_t part = 0; part < parts; ++part) {
        auto& shard = shards.emplace_back();
        shard.boxes = {Box::whole(shape).with(axis, {part * step, (part + 1) * step})};
        for (std::uint32_t copy = 0; copy < copies; ++copy) {
            shard.members.push_back(copy * parts + part);
        }
    }
    return {shape, std::move(shards)};
}

inline Workload workload_of(const Layout& layout) {
    ParameterClass parameter;
    parameter.name = "tensor";
    parameter.shape = layout.shape;
    parameter.dtype = Dtype::kBf16;
    parameter.layers.resize(layout.moving);
    std::iota(parameter.layers.begin(), parameter.layers.end(), 0U);
    const std::size_t axis = layout.shape.size() == 3 ? 1 : 0;
    WorkloadClass entry{parameter,
                        cut(layout.shape, 0, layout.shards, layout.replicas),
                        {cut(layout.shape, axis, layout.tp, layout.dp)},
                        {}};
    for (std::uint32_t stage = 0; stage < layout.moving; ++stage) {
        entry.slices.push_back({stage, 0, 1});
    }
    return Workload::of({std::move(entry)}, layout.stages, layout.stage_ranks(), layout.generators());
}

[[maybe_unused]] inline constexpr double kNic = 50e9;
inline constexpr double kH100 = 450e9;
inline constexpr double kGb200 = 900e9;

/// Ranks in these domains, one NIC each and all ports alike.
inline Fabric alike(std::vector<std::uint32_t> domains, double nvlink) {
    std::vector<GpuPorts> ports(domains.size(), {kNic, kNic, nvlink, nvlink});
    return {std::move(domains), std::move(ports)};
}

/// Trainers and generators in domains of their own of `size` GPUs each.
inline Fabric apart(const Layout& layout, std::uint32_t size, double nvlink) {
    std::vector<std::uint32_t> domains;
    const auto first = (layout.trainers() + size - 1) / size;
    for (std::uint32_t rank = 0; rank < layout.trainers(); ++rank) {
        domains.push_back(rank / size);
    }
    for (std::uint32_t rank = 0; rank < layout.generators(); ++rank) {
        domains.push_back(first + rank / size);
    }
    return alike(std::move(domains), nvlink);
}

/// One rank after the other in racks of `size`.
inline Fabric contiguous(const Layout& layout, std::uint32_t size, double nvlink) {
    std::vector<std::uint32_t> domains;
    for (std::uint32_t rank = 0; rank < layout.trainers() + layout.generators(); ++rank) {
        domains.push_back(rank / size);
    }
    return alike(std::move(domains), nvlink);
}

/// Racks that each hold half a rack of trainers and half a rack of generators.
inline Fabric half_and_half(const Layout& layout, std::uint32_t half, double nvlink) {
    std::vector<std::uint32_t> domains;
    for (std::uint32_t rank = 0; rank < layout.trainers(); ++rank) {
        domains.push_back(rank / half);
    }
    for (std::uint32_t rank = 0; rank < layout.generators(); ++rank) {
        domains.push_back(rank / half);
    }
    return alike(std::move(domains), nvlink);
}

/// What a fabric without a spine is made of.
inline std::pair<std::vector<std::uint32_t>, std::vector<GpuPorts>> parts_of(const Fabric& fabric) {
    std::pair<std::vector<std::uint32_t>, std::vector<GpuPorts>> parts;
    for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
        parts.first.push_back(fabric.domain_of(rank));
        parts.second.push_back(fabric.ports(rank));
    }
    return parts;
}

/// The same fabric with other ports for some ranks.
inline Fabric with_ports(const Fabric& fabric, const std::vector<std::pair<std::uint32_t, GpuPorts>>& changes) {
    auto [domains, ports] = parts_of(fabric);
    for (const auto& [rank, changed] : changes) {
        ports[rank] = changed;
    }
    return {std::move(domains), std::move(ports)};
}

/// The same fabric under a spine.
inline Fabric under(const Fabric& fabric, Spine spine) {
    auto [domains, ports] = parts_of(fabric);
    return {std::move(domains), std::move(ports), std::move(spine)};
}

/// Pods of `gpus` GPUs in nodes of 8, whose uplinks carry half of what their NICs can.
inline Spine two_to_one(const Fabric& fabric, std::uint32_t gpus) {
    Spine spine;
    for (std::uint32_t domain = 0; domain < fabric.domains(); ++domain) {
        spine.pod_of.push_back(domain * 8 / gpus);
    }
    spine.up.assign(spine.pod_of.back() + 1, gpus * kNic / 2.0);
    spine.down = spine.up;
    return spine;
}

/// A row of the study: bounds in milliseconds, 0 where it prints none.
struct Case {
    std::string name;
    Layout layout;
    Fabric fabric;
    double bound, b1, b2, b3, own_b3, b4;
};

inline std::vector<Case> cases() {
    const auto deepseek = [](std::uint32_t moving) { return Layout{{256, 2048, 7168}, 16, 1, 16, moving, 32, 8}; };
    const auto qwen = [](std::uint32_t moving) { return Layout{{128, 1536, 4096}, 16, 1, 8, moving, 8, 16}; };
    const auto ultra = [](std::uint32_t moving) { return Layout{{512, 5120, 2048}, 32, 1, 2, moving, 8, 8}; };
    const auto wide = [](std::uint32_t moving) { return Layout{{128, 768, 2048}, 8, 1, 2, moving, 8, 2}; };
    const auto narrow = [](std::uint32_t moving) { return Layout{{128, 768, 2048}, 8, 1, 2, moving, 2, 8}; };
    const auto kimi = [](std::uint32_t moving) { return Layout{{896, 2048, 7168}, 64, 1, 8, moving, 16, 16}; };
    const auto dense = [](std::uint32_t moving) { return Layout{{28672, 8192}, 8, 4, 4, moving, 4, 16}; };
    const auto nodes = [](const Layout& layout) { return apart(layout, 8, kH100); };
    const auto racks = [](const Layout& layout) { return apart(layout, 64, kGb200); };
    return {
        {"DeepSeekOneStageNodes", deepseek(1), nodes(deepseek(1)), 9.395, 4.698, 0.470, 9.395, 9.395, 4.421},
        {"DeepSeekOneStageRacks", deepseek(1), racks(deepseek(1)), 2.349, 2.349, 0.247, 2.349, 9.395, 1.879},
        {"DeepSeekAllStagesNodes", deepseek(16), nodes(deepseek(16)), 75.162, 75.162, 7.516, 9.395, 9.395, 37.581},
        {"DeepSeekAllStagesRacks", deepseek(16), racks(deepseek(16)), 37.581, 37.581, 3.956, 9.395, 9.395, 18.790},
        {"QwenOneStageNodes", qwen(1), nodes(qwen(1)), 4.027, 4.027, 0.403, 2.013, 2.013, 3.579},
        {"QwenAllStagesNodes", qwen(8), nodes(qwen(8)), 32.212, 32.212, 3.221, 2.013, 2.013, 16.106},
        {"UltraOneStageRacks", ultra(1), racks(ultra(1)), 3.355, 3.355, 1.413, 3.355, 6.711, 1.678},
        {"UltraTwoStagesRacks", ultra(2), racks(ultra(2)), 6.711, 6.711, 2.826, 6.711, 6.711, 3.355},
        {"UltraSharedRacks", ultra(2), half_and_half(ultra(2), 32, kGb200), 3.355, 3.355, 2.826, 3.355, 6.711, 3.355},
        {"UltraContiguousRacks", ultra(2), contiguous(ultra(2), 72, kGb200), 7.670, 7.670, 2.826, 5.965, 6.711, 3.355},
        {"WideOneStageNodes", wide(1), nodes(wide(1)), 1.007, 1.007, 0.101, 1.007, 1.007, 0.671},
        {"WideTwoStagesNodes", wide(2), nodes(wide(2)), 2.013, 2.013, 0.201, 1.007, 1.007, 1.007},
        {"NarrowOneStageNodes", narrow(1), nodes(narrow(1)), 1.007, 1.007, 0.403, 1.007, 1.007, 0.671},
        {"NarrowTwoStagesNodes", narrow(2), nodes(narrow(2)), 2.013, 2.013, 0.805, 1.007, 1.007, 1.007},
        {"KimiOneStageNodes", kimi(1), nodes(kimi(1)), 32.883, 32.883, 3.288, 8.221, 8.221, 26.307},
        {"KimiAllStagesNodes", kimi(8), nodes(kimi(8)), 263.067, 263.067, 26.307, 8.221, 8.221, 87.689},
        {"KimiOneStageRacks", kimi(1), racks(kimi(1)), 8.221, 8.221, 1.731, 8.221, 8.221, 6.577},
        {"KimiAllStagesRacks", kimi(8), racks(kimi(8)), 65.767, 65.767, 13.846, 8.221, 8.221, 21.922},
        {"DenseOneStageNodes", dense(1), nodes(dense(1)), 1.174, 1.174, 0.235, 0.294, 0.294, 0.783},
        {"DenseAllStagesNodes", dense(4), nodes(dense(4)), 4.698, 4.698, 0.940, 0.294, 0.294, 1.566},
    };
}

}  // namespace refit::study
