// SPDX-License-Identifier: Apache-2.0
#include "random_refit.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "refit/dtensor.hpp"

namespace refit::testing_support {
namespace {

std::vector<std::uint32_t> shuffled(Dice& dice, std::uint32_t count) {
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    for (std::uint32_t i = count; i > 1; --i) {
        std::swap(order[i - 1], order[dice.index(i)]);
    }
    return order;
}

std::vector<std::uint64_t> random_shape(Dice& dice, std::uint64_t most_elements, std::uint64_t scale) {
    std::vector<std::uint64_t> shape(dice.between(1, 4));
    std::uint64_t left = most_elements;
    for (auto& extent : shape) {
        extent = dice.between(1, std::min<std::uint64_t>(left, shape.size() == 1 ? 64 : 14));
        left /= extent;
    }
    shape[dice.index(shape.size())] *= scale;
    return shape;
}

DtensorPlacement random_placement(Dice& dice, std::size_t dims) {
    DtensorPlacement placement;
    if (dice.once_in(3)) {
        return placement;
    }
    placement.kind = dice.once_in(4) ? DtensorPlacement::Kind::kStridedShard : DtensorPlacement::Kind::kShard;
    placement.dim = dice.index(dims);
    placement.split_factor = placement.kind == DtensorPlacement::Kind::kStridedShard ? dice.between(2, 3) : 1;
    return placement;
}

/// What the ranks of a random mesh hold, as boxes.
std::vector<std::vector<Box>> mesh_boxes(Dice& dice,
                                         const std::vector<std::uint64_t>& shape,
                                         std::uint32_t ranks) {
    std::vector<std::uint64_t> mesh(dice.between(1, 3));
    std::vector<DtensorPlacement> placements;
    std::uint64_t left = ranks;
    for (auto& size : mesh) {
        size = dice.between(1, std::min<std::uint64_t>(left, 4));
        left /= size;
        placements.push_back(random_placement(dice, shape.size()));
    }
    std::vector<std::vector<Box>> boxes;
    const auto locals = dtensor_map(shape, mesh, placements).value();
    for (const auto& local : locals) {
        auto& held = boxes.emplace_back();
        for (const auto& piece : local.pieces()) {
            if (piece.box.volume() > 0) {
                held.push_back(piece.box);
            }
        }
    }
    return boxes;
}

/// Two or three segments of the first axis, such as gate and up, each cut evenly but for the last part.
std::vector<std::vector<Box>> fused_boxes(Dice& dice,
                                          const std::vector<std::uint64_t>& shape,
                                          std::uint32_t ranks) {
    const auto segments = std::min<std::uint64_t>(dice.between(2, 3), shape[0]);
    const auto ways = dice.between(1, std::min<std::uint64_t>(ranks, 4));
    const auto replicas = dice.between(1, ranks / ways);
    std::vector<std::vector<Box>> boxes(ways * replicas);
    for (std::uint64_t segment = 0; segment < segments; ++segment) {
        const auto first = shape[0] * segment / segments;
        const auto rows = shape[0] * (segment + 1) / segments - first;
        const auto step = (rows + ways - 1) / ways;
        for (std::uint64_t i = 0; i < boxes.size(); ++i) {
            const auto begin = std::min(rows, i % ways * step);
            const auto end = std::min(rows, begin + step);
            if (begin < end) {
                boxes[i].push_back(Box::whole(shape).with(0, {first + begin, first + end}));
            }
        }
    }
    return boxes;
}

/// Ranks with the same boxes are replicas. Ranks that hold nothing are in no shard, or in one without
/// elements.
Distribution random_distribution(Dice& dice, const std::vector<std::uint64_t>& shape, std::uint32_t ranks) {
    auto boxes = dice.once_in(5) ? fused_boxes(dice, shape, ranks) : mesh_boxes(dice, shape, ranks);
    const auto order = dice.once_in(2) ? shuffled(dice, ranks) : [&] {
        std::vector<std::uint32_t> same(ranks);
        std::iota(same.begin(), same.end(), 0U);
        return same;
    }();
    std::vector<Shard> shards;
    const bool has_empty_shard = dice.once_in(3);
    const bool has_empty_box = dice.once_in(2);
    for (std::uint32_t i = 0; i < boxes.size(); ++i) {
        if (boxes[i].empty() && has_empty_shard) {
            shards.push_back({{}, {order[i]}});
            if (has_empty_box) {
                shards.back().boxes.push_back(Box::whole(shape).with(0, {0, 0}));
            }
            continue;
        }
        const auto found =
            std::ranges::find_if(shards, [&](const Shard& shard) { return shard.boxes == boxes[i]; });
        if (boxes[i].empty()) {
            continue;
        }
        (found == shards.end() ? shards.emplace_back(Shard{boxes[i], {}}) : *found)
            .members.push_back(order[i]);
    }
    for (auto& shard : shards) {
        std::ranges::sort(shard.members);
    }
    return {shape, std::move(shards)};
}

/// The same with some shards that nobody wants: a generator stage need not take all of a tensor, or any.
Distribution without_some(Dice& dice, const Distribution& whole) {
    std::vector<Shard> shards;
    const bool wants_nothing = dice.once_in(3);
    for (const auto& shard : whole.shards()) {
        if (!wants_nothing && (shards.empty() || !dice.once_in(3))) {
            shards.push_back(shard);
        }
    }
    return {{whole.shape().begin(), whole.shape().end()}, std::move(shards)};
}

WorkloadClass random_class(Dice& dice,
                           std::vector<std::uint64_t> shape,
                           std::uint32_t train_stages,
                           std::uint32_t trainers_per_stage,
                           std::uint32_t generate_stages,
                           std::uint32_t generators) {
    std::vector<Distribution> destinations;
    for (std::uint32_t stage = 0; stage < generate_stages; ++stage) {
        destinations.push_back(random_distribution(dice, shape, generators));
        if (dice.once_in(8)) {
            destinations.back() = without_some(dice, destinations.back());
        }
    }
    ParameterClass parameter;
    parameter.name = "layers.{layer}.weight";
    parameter.shape = shape;
    parameter.dtype = dice.once_in(3) ? Dtype::kFp32 : Dtype::kBf16;
    std::vector<WorkloadSlice> slices;
    std::uint32_t layers = 0;
    for (std::uint32_t train = 0; train < train_stages; ++train) {
        for (std::uint32_t generate = 0; generate < generate_stages; ++generate) {
            if (slices.empty() || !dice.once_in(4)) {
                slices.push_back({train, generate, static_cast<std::uint32_t>(dice.between(1, 4))});
                layers += slices.back().layers;
            }
        }
    }
    parameter.layers.resize(layers);
    std::iota(parameter.layers.begin(), parameter.layers.end(), 0U);
    auto source = random_distribution(dice, shape, trainers_per_stage);
    return {std::move(parameter), std::move(source), std::move(destinations), std::move(slices)};
}

}  // namespace

std::size_t RandomRefit::pairs() const {
    std::size_t pairs = 0;
    for (const auto& entry : workload.classes()) {
        pairs += entry.destinations.size();
    }
    return pairs;
}

RandomRefit random_refit(Dice& dice, const System& system, std::uint64_t most_elements, std::uint64_t scale) {
    const auto train_stages = static_cast<std::uint32_t>(dice.between(1, 3));
    const auto trainers_per_stage = static_cast<std::uint32_t>(dice.between(1, 8));
    const auto generate_stages = static_cast<std::uint32_t>(dice.between(1, 2));
    const auto generators = static_cast<std::uint32_t>(dice.between(1, 16));
    std::vector<WorkloadClass> classes;
    for (auto left = dice.between(1, 3); left > 0; --left) {
        auto shape = random_shape(dice, most_elements, scale);
        classes.push_back(random_class(
            dice, std::move(shape), train_stages, trainers_per_stage, generate_stages, generators));
    }
    Placement placement;
    placement.train_gpus_per_domain = static_cast<std::uint32_t>(dice.between(1, 8));
    placement.generate_gpus_per_domain =
        dice.once_in(2) ? placement.train_gpus_per_domain : static_cast<std::uint32_t>(dice.between(1, 8));
    placement.generation_starts_new_domain = dice.once_in(2);
    const Cluster cluster{system, system, train_stages * trainers_per_stage, generators, placement};
    const auto rates = port_rates(cluster, 1.0, 1.0);
    return {cluster, rates, Workload::of(std::move(classes), train_stages, trainers_per_stage, generators)};
}

}  // namespace refit::testing_support
