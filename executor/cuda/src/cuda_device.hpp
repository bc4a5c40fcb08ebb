// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <cuda_runtime_api.h>

#include "stream_device.hpp"

namespace refit::exec::cuda {

/// How a device's memory is had: cudaMalloc, or as NCCL wants what it registers.
class Allocator {
public:
    virtual ~Allocator() = default;
    [[nodiscard]] virtual Result<void*> allocate(std::uint64_t bytes) = 0;
    virtual void release(void* memory) noexcept = 0;
};
[[nodiscard]] std::unique_ptr<Allocator> plain_allocator();

/// Nothing where the call went well; else its name and CUDA's words. Clears the error that the next call
/// would repeat.
[[nodiscard]] Result<void> check(cudaError_t code, const char* call);

/// GPUs of this machine. Errors: kUnsupported where CUDA finds none, in its words.
[[nodiscard]] Result<int> count_devices();
/// Errors: kInfeasible, "transport".
[[nodiscard]] Result<std::unique_ptr<StreamDevice>> open_device(int index,
                                                                std::unique_ptr<Allocator> allocator);

}  // namespace refit::exec::cuda
