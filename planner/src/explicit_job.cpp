// SPDX-License-Identifier: Apache-2.0
#include "refit/explicit_job.hpp"

#include <map>
#include <utility>
#include <vector>

namespace refit {
namespace {

std::vector<std::uint64_t> numbers_of(const std::vector<Box>& boxes) {
    std::vector<std::uint64_t> numbers;
    for (const auto& box : boxes) {
        for (const auto& axis : box.axes()) {
            numbers.push_back(axis.begin);
            numbers.push_back(axis.end);
        }
    }
    return numbers;
}

/// Ranks that hold the same boxes are replicas of one shard; ranks that hold nothing are in none.
Result<Distribution> distribution_of(const M2nTensor& tensor) {
    const std::vector<std::uint64_t> mesh{tensor.mesh.axes.begin(), tensor.mesh.axes.end()};
    const auto locals = dtensor_map(tensor.shape, mesh, tensor.placements);
    if (!locals) {
        return fail(Faults{locals.error()});
    }
    std::vector<Shard> shards;
    std::map<std::vector<std::uint64_t>, std::size_t> known;
    for (std::uint32_t rank = 0; rank < locals->size(); ++rank) {
        std::vector<Box> boxes;
        for (const auto& piece : (*locals)[rank].pieces()) {
            if (piece.box.volume() > 0) {
                boxes.push_back(piece.box);
            }
        }
        if (boxes.empty()) {
            continue;
        }
        const auto [found, is_new] = known.try_emplace(numbers_of(boxes), shards.size());
        if (is_new) {
            shards.push_back({std::move(boxes), {}});
        }
        shards[found->second].members.push_back(rank);
    }
    return Distribution{tensor.shape, std::move(shards)};
}

}  // namespace

Result<ExplicitJob> explicit_job(const std::string& name, const M2nCall& call, std::uint32_t domain_size,
                                 const System& system) {
    const auto trainers = call.source.mesh.ranks();
    const auto generators = call.destination.mesh.ranks();
    if (call.source.mesh.first_rank.index() != 0 || call.destination.mesh.first_rank.index() != trainers ||
        call.ranks() != trainers + generators) {
        return fail(ErrorCode::kUnsupported,
                    "ranks-apart",
                    "this method takes source ranks from 0 on and destination ranks right after them, " +
                        std::to_string(trainers) + " and " + std::to_string(generators) + ", and no others",
                    "/destination/start_rank");
    }
    auto source = distribution_of(call.source);
    auto destination = distribution_of(call.destination);
    if (!source || !destination) {
        return fail(Faults{source ? destination.error() : source.error()});
    }
    ParameterClass parameter;
    parameter.name = name.empty() ? "tensor" : name;
    parameter.shape = call.source.shape;
    // Only its size counts; M2N's tensors have no dtype.
    parameter.dtype = call.source.element_bytes == 1   ? Dtype::kFp8
                      : call.source.element_bytes == 2 ? Dtype::kBf16
                                                       : Dtype::kFp32;
    if (size_of(parameter.dtype) != call.source.element_bytes) {
        return fail(ErrorCode::kUnsupported, "element-bytes", "this method takes elements of 1, 2 or 4 bytes", "/element_bytes");
    }
    WorkloadClass entry{std::move(parameter), std::move(*source), {std::move(*destination)}, {{0, 0, 1}}};
    const auto train_gpus = static_cast<std::uint32_t>(trainers);
    const auto generate_gpus = static_cast<std::uint32_t>(generators);
    return ExplicitJob{Workload::of({std::move(entry)}, 1, train_gpus, generate_gpus),
                       Cluster{system, system, train_gpus, generate_gpus, Placement{domain_size, domain_size, false}}};
}

}  // namespace refit
