// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/cluster.hpp"
#include "refit/m2n_tensor.hpp"
#include "refit/result.hpp"
#include "refit/system.hpp"
#include "refit/workload.hpp"

namespace refit {

/// A refit of one tensor that is given by its two meshes, not by a model's layout.
struct ExplicitJob {
    Workload workload;
    Cluster cluster;
};

/// The tensor's shards by PyTorch's rules for placements, uneven chunks included, on trainers that come first and
/// generators that follow, in NVLink domains of `domain_size` ranks counted from rank 0.
/// Pre: m2n_faults has none. Errors: kUnsupported where other ranks lie before, between or after the meshes.
[[nodiscard]] Result<ExplicitJob> explicit_job(const std::string& name, const M2nCall& call, std::uint32_t domain_size,
                                               const System& system);

}  // namespace refit
