// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

namespace refit::exec::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kBlocksOnMultiprocessor = 8;
constexpr unsigned kLoadsInFlight = 4;

/// Loads several units before it stores any, so that their latencies overlap.
template <class Unit>
__device__ void copy_units(const TiledCopy& copy, const Tile& tile) {
    for (std::uint32_t first = threadIdx.x; first < tile.units; first += kThreads * kLoadsInFlight) {
        Unit held[kLoadsInFlight];
        std::uint64_t to[kLoadsInFlight];
#pragma unroll
        for (unsigned load = 0; load < kLoadsInFlight; ++load) {
            const std::uint32_t unit = first + load * kThreads;
            if (unit < tile.units) {
                const UnitPlace place = place_of(copy, tile, unit);
                held[load] = *reinterpret_cast<const Unit*>(copy.source + place.source);
                to[load] = copy.destination + place.destination;
            }
        }
#pragma unroll
        for (unsigned load = 0; load < kLoadsInFlight; ++load) {
            if (first + load * kThreads < tile.units) {
                *reinterpret_cast<Unit*>(to[load]) = held[load];
            }
        }
    }
}

__global__ void __launch_bounds__(kThreads) copy_tiles(DeviceCopies table) {
    __shared__ TiledCopy copy;
    __shared__ Tile tile;
    for (std::uint32_t index = blockIdx.x; index < table.tiles; index += gridDim.x) {
        __syncthreads();
        if (threadIdx.x == 0) {
            const std::uint32_t which = copy_of_tile(table.first_tiles, table.count, index);
            copy = table.copies[which];
            tile = tile_at(copy, index - table.first_tiles[which]);
        }
        __syncthreads();
        switch (copy.width) {
            case 16:
                copy_units<uint4>(copy, tile);
                break;
            case 8:
                copy_units<uint2>(copy, tile);
                break;
            case 4:
                copy_units<std::uint32_t>(copy, tile);
                break;
            case 2:
                copy_units<std::uint16_t>(copy, tile);
                break;
            default:
                copy_units<std::uint8_t>(copy, tile);
                break;
        }
    }
}

template <class Element>
__global__ void __launch_bounds__(kThreads) fill_elements(RegionElements elements, std::uint64_t flip) {
    auto* const data = reinterpret_cast<Element*>(elements.address);
    const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
    for (std::uint64_t place = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x; place < elements.count;
         place += step) {
        data[place] = static_cast<Element>(element_value(elements, place) ^ flip);
    }
}

/// `step_back`: the inverse of the checksum's factor to the number of threads.
template <class Element>
__global__ void __launch_bounds__(kThreads)
    compare_elements(RegionElements elements, std::uint64_t step_back, ElementVerdict* verdict) {
    const auto* const data = reinterpret_cast<const Element*>(elements.address);
    const std::uint64_t step = std::uint64_t{gridDim.x} * kThreads;
    std::uint64_t place = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
    std::uint64_t wrong = elements.count;
    std::uint64_t sum = 0;
    std::uint64_t factor = place < elements.count ? power(kChecksumFactor, elements.count - 1 - place) : 0;
    for (; place < elements.count; place += step, factor *= step_back) {
        const Element found = data[place];
        if (found != static_cast<Element>(element_value(elements, place)) && place < wrong) {
            wrong = place;
        }
        sum += found * factor;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        sum += __shfl_down_sync(0xffffffffU, sum, distance);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&verdict->checksum), static_cast<unsigned long long>(sum));
    }
    if (wrong < elements.count) {
        atomicMin(reinterpret_cast<unsigned long long*>(&verdict->first_wrong), static_cast<unsigned long long>(wrong));
    }
}

unsigned blocks_for(std::uint64_t count) {
    constexpr std::uint64_t kMostBlocks = 4096;
    const std::uint64_t blocks = (count + kThreads - 1) / kThreads;
    return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

}  // namespace

cudaError_t launch_copies(const DeviceCopies& table, int multiprocessors, cudaStream_t stream) {
    const unsigned fill = static_cast<unsigned>(multiprocessors) * kBlocksOnMultiprocessor;
    const unsigned blocks = table.tiles > fill ? fill : table.tiles;
    copy_tiles<<<blocks, kThreads, 0, stream>>>(table);
    return cudaGetLastError();
}

cudaError_t launch_fill(const RegionElements& elements, bool complemented, cudaStream_t stream) {
    const std::uint64_t flip = complemented ? ~std::uint64_t{0} : 0;
    const unsigned blocks = blocks_for(elements.count);
    switch (elements.element_bytes) {
        case 1:
            fill_elements<std::uint8_t><<<blocks, kThreads, 0, stream>>>(elements, flip);
            break;
        case 2:
            fill_elements<std::uint16_t><<<blocks, kThreads, 0, stream>>>(elements, flip);
            break;
        default:
            fill_elements<std::uint32_t><<<blocks, kThreads, 0, stream>>>(elements, flip);
            break;
    }
    return cudaGetLastError();
}

cudaError_t launch_compare(const RegionElements& elements, ElementVerdict* verdict, cudaStream_t stream) {
    const unsigned blocks = blocks_for(elements.count);
    const std::uint64_t step_back = inverse(power(kChecksumFactor, std::uint64_t{blocks} * kThreads));
    switch (elements.element_bytes) {
        case 1:
            compare_elements<std::uint8_t><<<blocks, kThreads, 0, stream>>>(elements, step_back, verdict);
            break;
        case 2:
            compare_elements<std::uint16_t><<<blocks, kThreads, 0, stream>>>(elements, step_back, verdict);
            break;
        default:
            compare_elements<std::uint32_t><<<blocks, kThreads, 0, stream>>>(elements, step_back, verdict);
            break;
    }
    return cudaGetLastError();
}

}  // namespace refit::exec::cuda
