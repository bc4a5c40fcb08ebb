// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <nccl.h>

#include "refit/result.hpp"

namespace refit::exec::nccl {

/// What nccl.h has since 2.27.3 and 2.28.7: this builds with older ones, too. Source: nccl.h of NCCL 2.28.9.
using CommShrink = ncclResult_t (*)(
    ncclComm_t comm, int* excluded, int excluded_count, ncclComm_t* shrunk, ncclConfig_t* config, int flags);
using CommRevoke = ncclResult_t (*)(ncclComm_t comm, int flags);
inline constexpr int kShrinkDefault = 0;  ///< Pre: the parent has nothing outstanding.
inline constexpr int kShrinkAbort = 1;    ///< Ends first what the parent has outstanding.
inline constexpr int kRevokeDefault = 0;
inline constexpr int kShrinkSince = 22703;
inline constexpr int kRevokeSince = 22807;

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
    CommShrink comm_shrink = nullptr;  ///< Null where this NCCL has none.
    CommRevoke comm_revoke = nullptr;  ///< As above.

    /// Opened once, and never closed: NCCL leaves threads behind.
    /// Errors: kUnsupported, "transport", naming what is missing.
    [[nodiscard]] static Result<Library> open();

    /// "NCCL 2.26.2 has no ncclCommShrink, which takes 2.27.3 or later". `since`: as ncclGetVersion counts.
    [[nodiscard]] std::string lacks(const char* function, int since) const;
    /// Nothing where a call went well or goes on; else its name and NCCL's words.
    [[nodiscard]] Result<void> check(ncclResult_t code, const char* call) const;
    /// Polls a communicator until what it was told to do has been begun. Errors: NCCL's own; "deadline"; that
    /// of `trouble`, which is asked meanwhile and may be empty.
    [[nodiscard]] Result<void> settle(ncclComm_t comm,
                                      const char* call,
                                      std::chrono::milliseconds deadline,
                                      const std::function<Result<void>()>& trouble = {}) const;
};

}  // namespace refit::exec::nccl
