// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "refit/exec/transport.hpp"
#include "refit/result.hpp"

namespace refit::exec {

/// By what means bytes move.
enum class TransportKind : std::uint8_t {
    kHost,  ///< Threads of this process, one copy from region to region.
    kMpi,   ///< Processes of an MPI job.
    kCuda,  ///< Ranks of this process on its GPUs.
    kNccl,  ///< A process a GPU.
};

/// "host", "mpi", "cuda", "nccl".
[[nodiscard]] std::string_view name_of(TransportKind kind) noexcept;
/// Errors: kInvalidInput naming the nearest.
[[nodiscard]] Result<TransportKind> parse_transport(std::string_view text);
/// Errors: kUnsupported where this program was built without it, saying what it takes.
[[nodiscard]] Result<std::unique_ptr<Transport>> make_transport(TransportKind kind);

}  // namespace refit::exec
