// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device.hpp"

struct CUstream_st;

namespace refit::exec {

/// A device with several streams. What is begun on one runs in order, beside that of the others but where it
/// waits for a mark. Calls of Device are those of stream 0. Streams and marks go with the device.
class StreamDevice : public Device {
public:
    /// Frees all memory, marks and graphs; streams stay. Pre: all is over that was begun.
    virtual void clear() noexcept = 0;
    /// Makes streams 1 to `count` - 1 beside 0.
    [[nodiscard]] virtual Result<void> open_streams(std::uint32_t count) = 0;
    /// As CUDA knows it: cudaStream_t.
    [[nodiscard]] virtual CUstream_st* stream(std::uint32_t index) const = 0;
    [[nodiscard]] virtual Result<void> launch_on(std::uint32_t stream, const LoadedTable& table) = 0;

    [[nodiscard]] virtual Result<std::uint32_t> make_mark() = 0;
    /// Moves a mark to behind what was begun on the stream so far.
    [[nodiscard]] virtual Result<void> set_mark(std::uint32_t mark, std::uint32_t stream) = 0;
    /// What is begun on the stream after this waits for the mark where it stands now. Pre: it was set; within
    /// a capture, since that began.
    [[nodiscard]] virtual Result<void> await_mark(std::uint32_t stream, std::uint32_t mark) = 0;
    /// Whether all before the mark is over. Pre: it was set, outside of a capture.
    [[nodiscard]] virtual Result<bool> is_passed(std::uint32_t mark) = 0;
};

}  // namespace refit::exec
