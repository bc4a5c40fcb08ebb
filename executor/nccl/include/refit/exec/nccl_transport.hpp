// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "refit/exec/control_plane.hpp"
#include "refit/exec/transport.hpp"
#include "refit/result.hpp"

namespace refit::exec {

/// The transport "nccl": this process is one rank, with the GPU of its local rank. NCCL's library is opened
/// at run time. Messages go in groups of NCCL (posting.hpp); what waits for others is polled, against the job's deadline.
/// Errors: kUnsupported, "transport", where there is no libnccl.so.2, or an older one than this was built
/// for, or no GPU; those of process_place.
[[nodiscard]] Result<std::unique_ptr<Transport>> make_nccl_transport(const ProcessPlace& place,
                                                                     Rendezvous rendezvous);

}  // namespace refit::exec
