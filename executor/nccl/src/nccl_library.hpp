// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include <nccl.h>

#include "refit/result.hpp"

namespace refit::exec::nccl {

/// The functions of NCCL that the transport calls, from the library that was found at run time.
struct Library {
    decltype(&::ncclGetVersion) get_version = nullptr;
    decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
    decltype(&::ncclCommInitRankConfig) comm_init_rank_config = nullptr;
    decltype(&::ncclCommSplit) comm_split = nullptr;
    decltype(&::ncclCommGetAsyncError) comm_get_async_error = nullptr;
    decltype(&::ncclCommFinalize) comm_finalize = nullptr;
    decltype(&::ncclCommDestroy) comm_destroy = nullptr;
    decltype(&::ncclCommAbort) comm_abort = nullptr;
    decltype(&::ncclCommRegister) comm_register = nullptr;
    decltype(&::ncclCommDeregister) comm_deregister = nullptr;
    decltype(&::ncclMemAlloc) mem_alloc = nullptr;
    decltype(&::ncclMemFree) mem_free = nullptr;
    decltype(&::ncclGroupStart) group_start = nullptr;
    decltype(&::ncclGroupEnd) group_end = nullptr;
    decltype(&::ncclSend) send = nullptr;
    decltype(&::ncclRecv) recv = nullptr;
    decltype(&::ncclBroadcast) broadcast = nullptr;
    decltype(&::ncclGetErrorString) get_error_string = nullptr;
    decltype(&::ncclGetLastError) get_last_error = nullptr;

    /// Opened once, and never closed: NCCL leaves threads behind.
    /// Errors: kUnsupported, "transport", naming what is missing.
    [[nodiscard]] static Result<Library> open();

    /// Nothing where a call went well or goes on; else its name and NCCL's words.
    [[nodiscard]] Result<void> check(ncclResult_t code, const char* call) const;
    /// Polls a communicator until what it was told to do has been begun. Errors: NCCL's own; "deadline".
    [[nodiscard]] Result<void> settle(ncclComm_t comm,
                                      const char* call,
                                      std::chrono::milliseconds deadline) const;
};

}  // namespace refit::exec::nccl
