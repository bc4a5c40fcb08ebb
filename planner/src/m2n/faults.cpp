// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>
#include <string>

#include "refit/m2n_limits.hpp"
#include "refit/units.hpp"

namespace refit {
namespace {

/// Our own: what a plan for every rank still fits in memory for; ten times the largest clusters.
constexpr std::uint64_t kMostRanks = 1U << 20U;

std::string shape_text(const std::vector<std::uint64_t>& shape) {
    std::string text;
    for (const auto extent : shape) {
        text += (text.empty() ? "" : "x") + std::to_string(extent);
    }
    return text;
}

/// "ranks 8 to 15".
std::string ranks_text(const M2nMesh& mesh) {
    return "ranks " + std::to_string(mesh.first_rank.index()) + " to " +
           std::to_string(mesh.first_rank.index() + mesh.ranks() - 1);
}

std::string axis_text(std::size_t found, std::size_t last_axis) {
    const auto last = std::to_string(last_axis);
    return "shard(" + std::to_string(found) + ") of a tensor with axes 0 to " + last +
           "; the nearest is shard(" + last + ")";
}

/// Collects what is wrong with a call.
class Finder {
public:
    void check_tensor(const M2nTensor& tensor, M2nEnd end) {
        const auto place = "/" + std::string{name_of(end)};
        check_shape(tensor, place);
        for (std::size_t i = 0; i < tensor.mesh.axes.size(); ++i) {
            if (tensor.mesh.axes[i] == 0) {
                add("empty-mesh",
                    "a mesh axis of 0 ranks; the nearest that works is 1",
                    place + "/mesh/" + std::to_string(i));
            }
        }
        if (tensor.mesh.axes.empty()) {
            add("empty-mesh", "a mesh without axes; write [1] for one rank", place + "/mesh");
        }
        check_placements(tensor, place);
        check_rank_count(tensor.mesh, place);
    }

    void check_pair(const M2nCall& call) {
        const auto& [source, destination, communicator] = call;
        if (source.shape != destination.shape) {
            add("shapes-differ",
                "the source is " + shape_text(source.shape) + ", the destination " +
                    shape_text(destination.shape) + "; M2N would compute plans that disagree and hang",
                "/destination/tensor_shape");
        }
        if (source.element_bytes != destination.element_bytes) {
            add("dtypes-differ",
                "an element has " + std::to_string(source.element_bytes) + " bytes at the source and " +
                    std::to_string(destination.element_bytes) + " at the destination; M2N does not convert",
                "/destination/element_bytes");
        }
        if (has_sound_meshes_) {
            check_ranks(source.mesh, destination.mesh, communicator);
        }
    }

    void add(std::string rule, std::string message, std::string where) {
        faults_.push_back({ErrorCode::kInvalidInput, std::move(rule), std::move(message), std::move(where)});
    }

    [[nodiscard]] Faults take() { return std::move(faults_); }

private:
    void check_shape(const M2nTensor& tensor, const std::string& place) {
        if (tensor.shape.empty()) {
            add("empty-tensor", "a tensor without axes; write [1] for one element", place + "/tensor_shape");
        }
        for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
            if (tensor.shape[i] == 0) {
                add("empty-tensor",
                    "axis " + std::to_string(i) +
                        " of the tensor has no elements; the nearest that works is 1",
                    place + "/tensor_shape/" + std::to_string(i));
            }
        }
        if (tensor.element_bytes == 0) {
            add("empty-tensor", "elements of 0 bytes; the nearest that works is 1", place + "/element_bytes");
        }
        try {
            Bytes size{tensor.element_bytes};
            for (const auto extent : tensor.shape) {
                size *= extent;
            }
        } catch (const std::overflow_error&) {
            add("endless-tensor",
                "the tensor " + shape_text(tensor.shape) + " has 2^64 bytes or more",
                place + "/tensor_shape");
        }
    }

    void check_placements(const M2nTensor& tensor, const std::string& place) {
        if (tensor.placements.size() != tensor.mesh.axes.size()) {
            add("placement-count",
                std::to_string(tensor.placements.size()) + " placements for a mesh of " +
                    std::to_string(tensor.mesh.axes.size()) + " axes; each axis takes one",
                place + "/placements");
        }
        for (std::size_t i = 0; i < tensor.placements.size(); ++i) {
            const auto& placement = tensor.placements[i];
            if (placement.kind != DtensorPlacement::Kind::kReplicate &&
                placement.dim >= tensor.shape.size() && !tensor.shape.empty()) {
                add("placement-axis",
                    axis_text(placement.dim, tensor.shape.size() - 1),
                    place + "/placements/" + std::to_string(i));
            }
        }
    }

    void check_rank_count(const M2nMesh& mesh, const std::string& place) {
        const bool is_empty = mesh.axes.empty() || std::ranges::count(mesh.axes, 0U) > 0;
        bool is_endless = false;
        try {
            is_endless = mesh.ranks() > kMostRanks || mesh.first_rank.index() > kMostRanks - mesh.ranks();
        } catch (const std::overflow_error&) {
            is_endless = true;
        }
        if (is_endless) {
            add("endless-mesh",
                "the mesh reaches beyond rank " + std::to_string(kMostRanks - 1) +
                    ", the last that is planned for",
                place + "/mesh");
        }
        has_sound_meshes_ = has_sound_meshes_ && !is_empty && !is_endless;
    }

    void check_ranks(const M2nMesh& source, const M2nMesh& destination, std::uint64_t communicator) {
        const auto end_of = [](const M2nMesh& mesh) { return mesh.first_rank.index() + mesh.ranks(); };
        if (source.first_rank.index() < end_of(destination) &&
            destination.first_rank.index() < end_of(source)) {
            add("ranks-overlap",
                "the source's " + ranks_text(source) + " and the destination's " + ranks_text(destination) +
                    " overlap; the nearest start that works is " + std::to_string(end_of(source)),
                "/destination/start_rank");
        }
        for (const auto end : {M2nEnd::kSource, M2nEnd::kDestination}) {
            const auto& mesh = end == M2nEnd::kSource ? source : destination;
            if (communicator > 0 && end_of(mesh) > communicator) {
                add("outside-communicator",
                    "the mesh takes " + ranks_text(mesh) + ", but the communicator has " +
                        std::to_string(communicator) + "; the nearest size that works is " +
                        std::to_string(std::max(end_of(source), end_of(destination))),
                    "/" + std::string{name_of(end)} + "/mesh");
            }
        }
    }

    bool has_sound_meshes_ = true;
    Faults faults_;
};

}  // namespace

Faults m2n_faults(const M2nCall& call, const M2nSettings& settings) {
    Finder finder;
    finder.check_tensor(call.source, M2nEnd::kSource);
    finder.check_tensor(call.destination, M2nEnd::kDestination);
    finder.check_pair(call);
    if (settings.domain_size == 0) {
        finder.add(
            "empty-domain", "an NVLink domain of 0 ranks; the nearest that works is 1", "/domain_size");
    }
    return finder.take();
}

}  // namespace refit
