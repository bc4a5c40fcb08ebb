// SPDX-License-Identifier: Apache-2.0
#include "mpi_handles.hpp"

#include <limits>

namespace refit::exec::mpi {
namespace {

/// Half of what an int counts: parts of 1 GiB leave room for a rest.
constexpr std::uint64_t kBlock = std::uint64_t{1} << 30;
constexpr std::uint64_t kMost = std::numeric_limits<int>::max();

void* pointer(std::uint64_t address) {
    return reinterpret_cast<void*>(
        address);  // NOLINT(performance-no-int-to-ptr): copies keep addresses as numbers
}

/// Frees an intermediate type as soon as another is built on it.
MPI_Datatype replaced(MPI_Datatype old, MPI_Datatype next) {
    if (old != MPI_BYTE) {
        MPI_Type_free(&old);
    }
    return next;
}

MPI_Datatype repeated(std::uint64_t extent, std::uint64_t stride, MPI_Datatype type);

/// `extent` times `type`, each `stride` bytes after the one before; `type` stays.
MPI_Datatype vector_of(std::uint64_t extent, std::uint64_t stride, MPI_Datatype type) {
    MPI_Datatype result = MPI_DATATYPE_NULL;
    MPI_Type_create_hvector(static_cast<int>(extent), 1, static_cast<MPI_Aint>(stride), type, &result);
    return result;
}

/// As vector_of, for extents that an int does not hold.
MPI_Datatype long_vector(std::uint64_t extent, std::uint64_t stride, MPI_Datatype type) {
    MPI_Datatype block = vector_of(kBlock, stride, type);
    MPI_Datatype parts[] = {repeated(extent / kBlock, kBlock * stride, block), MPI_DATATYPE_NULL};
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {0, static_cast<MPI_Aint>(extent / kBlock * kBlock * stride)};
    const std::uint64_t rest = extent % kBlock;
    if (rest > 0) {
        parts[1] = vector_of(rest, stride, type);
    }
    MPI_Datatype result = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(rest > 0 ? 2 : 1, lengths, places, parts, &result);
    MPI_Type_free(&block);
    MPI_Type_free(&parts[0]);
    if (rest > 0) {
        MPI_Type_free(&parts[1]);
    }
    return result;
}

MPI_Datatype repeated(std::uint64_t extent, std::uint64_t stride, MPI_Datatype type) {
    return extent <= kMost ? vector_of(extent, stride, type) : long_vector(extent, stride, type);
}

MPI_Datatype contiguous(std::uint64_t bytes) {
    if (bytes > kMost) {
        return long_vector(bytes, 1, MPI_BYTE);
    }
    MPI_Datatype result = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &result);
    return result;
}

MPI_Datatype type_of(const StridedCopy& copy, MemorySide side) {
    MPI_Datatype type = contiguous(copy.run);
    for (std::size_t axis = copy.axes; axis-- > 0;) {
        const auto& steps = side == MemorySide::kSource ? copy.source_step : copy.destination_step;
        type = replaced(type, repeated(copy.count[axis], steps[axis], type));
    }
    return type;
}

}  // namespace

Datatype::~Datatype() {
    if (type_ != MPI_DATATYPE_NULL) {
        MPI_Type_free(&type_);
    }
}

Communicator::~Communicator() {
    if (comm_ != MPI_COMM_NULL) {
        MPI_Comm_free(&comm_);
    }
}

TypedBuffer bytes_at(std::uint64_t address, std::uint64_t bytes) {
    MPI_Datatype type = contiguous(bytes);
    MPI_Type_commit(&type);
    return {pointer(address), Datatype{type}};
}

TypedBuffer memory_of(std::span<const StridedCopy> copies, MemorySide side) {
    std::vector<MPI_Datatype> types;
    std::vector<MPI_Aint> places;
    const std::vector<int> lengths(copies.size(), 1);
    const auto address = [side](const StridedCopy& copy) {
        return side == MemorySide::kSource ? copy.source : copy.destination;
    };
    for (const StridedCopy& copy : copies) {
        types.push_back(type_of(copy, side));
        places.push_back(static_cast<MPI_Aint>(address(copy)) -
                         static_cast<MPI_Aint>(address(copies.front())));
    }
    MPI_Datatype type = types.front();
    if (copies.size() > 1) {
        MPI_Type_create_struct(
            static_cast<int>(copies.size()), lengths.data(), places.data(), types.data(), &type);
        for (MPI_Datatype& part : types) {
            MPI_Type_free(&part);
        }
    }
    MPI_Type_commit(&type);
    return {pointer(address(copies.front())), Datatype{type}};
}

}  // namespace refit::exec::mpi
