// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "refit/m2n_tensor.hpp"
#include "refit/units.hpp"

namespace refit {

std::uint64_t M2nMesh::ranks() const {
    Bytes product{1U};  // for its checked arithmetic
    for (const auto axis : axes) {
        product *= axis;
    }
    return product.count();
}

std::uint64_t M2nCall::ranks() const {
    const auto end_of = [](const M2nMesh& mesh) { return mesh.first_rank.index() + mesh.ranks(); };
    return communicator_ranks > 0 ? communicator_ranks
                                  : std::max(end_of(source.mesh), end_of(destination.mesh));
}

M2nSide normalised(const M2nTensor& tensor) {
    // A strided shard whose stride is all of it is a shard; others have been refused.
    const auto cut = std::ranges::find_if(tensor.placements, [](const DtensorPlacement& placement) {
        return placement.kind != DtensorPlacement::Kind::kReplicate;
    });
    M2nSide side;
    side.first_rank = tensor.mesh.first_rank;
    side.replicas = static_cast<std::uint32_t>(tensor.mesh.ranks());
    if (cut == tensor.placements.end()) {
        return side;  // as M2N does it: one shard of axis 0
    }
    const auto mesh_axis = static_cast<std::size_t>(cut - tensor.placements.begin());
    side.axis = cut->dim;
    side.shards = tensor.mesh.axes[mesh_axis];
    side.replicas /= side.shards;
    // A mesh of one axis is one of two, the second of size 1: its shards lie on the outer axis.
    side.has_shards_inner = mesh_axis == 1;
    return side;
}

}  // namespace refit
