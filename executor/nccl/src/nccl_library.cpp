// SPDX-License-Identifier: Apache-2.0
#include "nccl_library.hpp"

#include <thread>

#include <dlfcn.h>

namespace refit::exec::nccl {
namespace {

Failure unsupported(const std::string& what) {
    return fail(ErrorCode::kUnsupported, "transport", what, "--transport");
}

/// Binds one function; remembers the first that is missing.
template <class Function>
void bind(void* library, const char* name, Function& function, std::string& missing) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr && missing.empty()) {
        missing = name;
    }
}

/// Source: NCCL_VERSION in nccl.h, from 2.9 on.
std::string version_text(int code) {
    return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
           std::to_string(code % 100);
}

}  // namespace

std::string Library::lacks(const char* function, int since) const {
    int version = 0;
    get_version(&version);
    return "NCCL " + version_text(version) + " has no " + function + ", which takes " + version_text(since) +
           " or later";
}

Result<Library> Library::open() {
    void* const library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return unsupported(std::string{"NCCL cannot be opened: "} + ::dlerror());
    }
    Library functions;
    std::string missing;
    bind(library, "ncclGetVersion", functions.get_version, missing);
    bind(library, "ncclGetUniqueId", functions.get_unique_id, missing);
    bind(library, "ncclCommInitRankConfig", functions.comm_init_rank_config, missing);
    bind(library, "ncclCommSplit", functions.comm_split, missing);
    bind(library, "ncclCommGetAsyncError", functions.comm_get_async_error, missing);
    bind(library, "ncclCommFinalize", functions.comm_finalize, missing);
    bind(library, "ncclCommDestroy", functions.comm_destroy, missing);
    bind(library, "ncclCommAbort", functions.comm_abort, missing);
    bind(library, "ncclCommRegister", functions.comm_register, missing);
    bind(library, "ncclCommDeregister", functions.comm_deregister, missing);
    bind(library, "ncclMemAlloc", functions.mem_alloc, missing);
    bind(library, "ncclMemFree", functions.mem_free, missing);
    bind(library, "ncclGroupStart", functions.group_start, missing);
    bind(library, "ncclGroupEnd", functions.group_end, missing);
    bind(library, "ncclSend", functions.send, missing);
    bind(library, "ncclRecv", functions.recv, missing);
    bind(library, "ncclBroadcast", functions.broadcast, missing);
    bind(library, "ncclGetErrorString", functions.get_error_string, missing);
    bind(library, "ncclGetLastError", functions.get_last_error, missing);
    std::string optional;
    bind(library, "ncclCommShrink", functions.comm_shrink, optional);
    bind(library, "ncclCommRevoke", functions.comm_revoke, optional);
    if (!missing.empty()) {
        return unsupported("this machine's NCCL has no " + missing + "; version 2.19 or later does");
    }
    return functions;
}

Result<void> Library::check(ncclResult_t code, const char* call) const {
    if (code == ncclSuccess || code == ncclInProgress) {
        return {};
    }
    return fail(ErrorCode::kInfeasible,
                "transport",
                std::string{call} + ": " + get_error_string(code) + "; " + get_last_error(nullptr));
}

Result<void> Library::settle(ncclComm_t comm,
                             const char* call,
                             std::chrono::milliseconds deadline,
                             const std::function<Result<void>()>& trouble) const {
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (true) {
        ncclResult_t state = ncclSuccess;
        if (auto asked = check(comm_get_async_error(comm, &state), "ncclCommGetAsyncError"); !asked) {
            return asked;
        }
        if (state != ncclInProgress) {
            return check(state, call);
        }
        if (std::chrono::steady_clock::now() >= end) {
            return fail(
                ErrorCode::kInfeasible,
                "deadline",
                std::string{call} + " was not done after " + std::to_string(deadline.count()) + " ms");
        }
        if (auto sound = trouble ? trouble() : Result<void>{}; !sound) {
            return sound;
        }
        std::this_thread::yield();
    }
}

}  // namespace refit::exec::nccl
