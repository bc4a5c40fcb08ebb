// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace refit::exec {

/// The text of the first process of an MPI job, in all of its processes; each calls it once. Begins and ends
/// MPI.
[[nodiscard]] std::string share_over_mpi(const std::string& mine);

}  // namespace refit::exec
