// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "refit/exec/transport.hpp"

namespace refit::exec {

/// The transport "mpi": each process of an MPI job is one rank. Begins MPI where nobody has, and then ends it
/// too.
///
/// A rank that sees no progress within the job's deadline says on stderr what it waits for and ends the whole
/// job with code kNoProgress, since no call of MPI that waits for a lost rank can be given up.
[[nodiscard]] std::unique_ptr<Transport> make_mpi_transport();

inline constexpr int kNoProgress = 75;

/// For who begins MPI without a transport, before MPI_Init: lets ranks that wait give way, where there are
/// more of them than processors. Open MPI does so by itself only where it was told of the processors; else
/// plans take 20 times as long.
void prepare_mpi();

}  // namespace refit::exec
