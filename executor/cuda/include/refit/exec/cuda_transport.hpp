// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "refit/exec/transport.hpp"
#include "refit/result.hpp"

namespace refit::exec {

/// The transport "cuda": all ranks of a job in this process, dealt over its GPUs in turn; one GPU runs a
/// whole plan. Each wave packs, moves messages (by a kernel on one GPU, by peer copies between two) and
/// unpacks, as NCCL's ranks do, so that what is validated is what they run. Errors: kUnsupported,
/// "transport": no GPU, in the words of CUDA.
[[nodiscard]] Result<std::unique_ptr<Transport>> make_cuda_transport();

}  // namespace refit::exec
