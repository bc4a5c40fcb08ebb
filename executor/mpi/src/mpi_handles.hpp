// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <mpi.h>

#include "refit/exec/strided_copy.hpp"

namespace refit::exec::mpi {

/// Owns a committed datatype.
class Datatype {
public:
    Datatype() = default;
    explicit Datatype(MPI_Datatype type) : type_{type} {}
    ~Datatype();
    Datatype(Datatype&& other) noexcept : type_{std::exchange(other.type_, MPI_DATATYPE_NULL)} {}
    Datatype& operator=(Datatype&& other) noexcept {
        std::swap(type_, other.type_);
        return *this;
    }
    [[nodiscard]] MPI_Datatype get() const noexcept { return type_; }

private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// Owns a communicator.
class Communicator {
public:
    Communicator() = default;
    explicit Communicator(MPI_Comm comm) : comm_{comm} {}
    ~Communicator();
    Communicator(Communicator&& other) noexcept : comm_{std::exchange(other.comm_, MPI_COMM_NULL)} {}
    Communicator& operator=(Communicator&& other) noexcept {
        std::swap(comm_, other.comm_);
        return *this;
    }
    [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }

private:
    MPI_Comm comm_ = MPI_COMM_NULL;
};

/// A buffer as MPI takes it: one element of `type` at `address`.
struct TypedBuffer {
    void* address = nullptr;
    Datatype type;
};

/// `bytes` that lie one after the other, however many: MPI's own counts end at 2^31 - 1.
[[nodiscard]] TypedBuffer bytes_at(std::uint64_t address, std::uint64_t bytes);

/// Which side of a copy is the rank's memory.
enum class MemorySide : std::uint8_t { kSource, kDestination };

/// What copies take from memory, or put there, one after the other: nested vectors of contiguous runs, joined
/// by a struct. Pre: at least one copy.
[[nodiscard]] TypedBuffer memory_of(std::span<const StridedCopy> copies, MemorySide side);

}  // namespace refit::exec::mpi
