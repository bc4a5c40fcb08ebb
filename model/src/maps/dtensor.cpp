// SPDX-License-Identifier: Apache-2.0
#include "refit/dtensor.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <optional>
#include <string>

#include "../cuts.hpp"

namespace refit {
namespace {

LocalTensor placed(const LocalTensor& tensor, const DtensorPlacement& placement, std::uint64_t ways, std::uint64_t index) {
    switch (placement.kind) {
        case DtensorPlacement::Kind::kShard:
            return tensor.slice(placement.dim, chunk_part(tensor.shape()[placement.dim], ways, index));
        case DtensorPlacement::Kind::kStridedShard: {
            std::vector<LocalTensor> parts;
            for (std::uint64_t i = 0; i < placement.split_factor; ++i) {
                const auto outer = tensor.slice(placement.dim, chunk_part(tensor.shape()[placement.dim], placement.split_factor, i));
                parts.push_back(outer.slice(placement.dim, chunk_part(outer.shape()[placement.dim], ways, index)));
            }
            return LocalTensor::concat(parts, placement.dim);
        }
        case DtensorPlacement::Kind::kReplicate:
            break;
    }
    return tensor;
}

std::optional<std::uint64_t> number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

Failure bad_placement(std::string_view text) {
    return fail(ErrorCode::kInvalidInput,
                "placement-syntax",
                "'" + std::string{text} + "' is no placement; write replicate, shard(0) or strided_shard(0,split_factor=2)");
}

}  // namespace

Result<DtensorPlacement> parse_placement(std::string_view text) {
    if (text == "replicate") {
        return DtensorPlacement{};
    }
    const bool is_strided = text.starts_with("strided_shard(");
    if ((!is_strided && !text.starts_with("shard(")) || !text.ends_with(")")) {
        return bad_placement(text);
    }
    auto inside = text.substr(text.find('(') + 1);
    inside.remove_suffix(1);
    DtensorPlacement placement{DtensorPlacement::Kind::kShard, 0, 1};
    if (is_strided) {
        constexpr std::string_view kFactor = ",split_factor=";
        const auto at = inside.find(kFactor);
        const auto factor = at == std::string_view::npos ? std::nullopt : number(inside.substr(at + kFactor.size()));
        if (!factor || *factor == 0) {
            return bad_placement(text);
        }
        placement.kind = DtensorPlacement::Kind::kStridedShard;
        placement.split_factor = *factor;
        inside = inside.substr(0, at);
    }
    const auto dim = number(inside);
    if (!dim) {
        return bad_placement(text);
    }
    placement.dim = static_cast<std::size_t>(*dim);
    return placement;
}

Result<std::vector<LocalTensor>> dtensor_map(std::span<const std::uint64_t> shape, std::span<const std::uint64_t> mesh,
                                             std::span<const DtensorPlacement> placements) {
    if (shape.empty() || shape.size() > Box::kMostAxes) {
        return fail(ErrorCode::kInvalidInput, "tensor-rank", "a tensor must have 1 to 5 dims");
    }
    if (mesh.size() != placements.size() || std::ranges::any_of(mesh, [](auto size) { return size == 0; })) {
        return fail(ErrorCode::kInvalidInput, "mesh-shape", "a mesh must have one placement for each axis, and no axis of size 0");
    }
    for (const auto& placement : placements) {
        if (placement.kind != DtensorPlacement::Kind::kReplicate && placement.dim >= shape.size()) {
            return fail(ErrorCode::kInvalidInput,
                        "placement-dim",
                        "dim " + std::to_string(placement.dim) + " does not exist: the tensor has " + std::to_string(shape.size()));
        }
    }
    const auto ranks = std::accumulate(mesh.begin(), mesh.end(), std::uint64_t{1}, std::multiplies<>{});
    std::vector<LocalTensor> tensors;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        auto tensor = LocalTensor::whole(0, shape);
        auto stride = ranks;
        for (std::size_t axis = 0; axis < mesh.size(); ++axis) {
            stride /= mesh[axis];
            tensor = placed(tensor, placements[axis], mesh[axis], rank / stride % mesh[axis]);
        }
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

}  // namespace refit
