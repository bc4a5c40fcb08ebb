// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/rank_storage.hpp"

#include <cstring>
#include <string>
#include <utility>

#include <sys/mman.h>

#include "refit/exec/values.hpp"

namespace refit::exec {
namespace {

using program::Arena;
using program::RankProgram;
using program::Region;

/// Calls use(row-major index in the tensor, byte in the region, elements) for each row of a region, in order;
/// stops where it returns false.
template <class Use>
bool for_each_row(const Region& region, std::span<const std::uint64_t> shape, Use&& use) {
    const auto axes = region.box.axes();
    const auto last = axes.size() - 1;
    const auto row = axes[last].length();
    std::array<std::uint64_t, Box::kMostAxes> at{};
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        at[axis] = axes[axis].begin;
    }
    const auto rows = region.box.volume() / row;
    for (std::uint64_t n = 0; n < rows; ++n) {
        std::uint64_t index = 0;
        for (std::size_t axis = 0; axis < axes.size(); ++axis) {
            index = index * shape[axis] + at[axis];
        }
        if (!use(index, n * row * region.element_bytes, row)) {
            return false;
        }
        for (auto axis = last; axis-- > 0;) {
            if (++at[axis] < axes[axis].end) {
                break;
            }
            at[axis] = axes[axis].begin;
        }
    }
    return true;
}

std::uint64_t seed_of(const Workload& workload, const Region& region, std::uint64_t version) {
    return exec::seed_of(version, region.tensor.parameter, logical_number(workload, region.tensor));
}

template <class Element>
void fill_region(const Region& region,
                 std::span<const std::uint64_t> shape,
                 std::uint64_t seed,
                 std::uint64_t mask,
                 std::byte* memory) {
    for_each_row(region, shape, [&](std::uint64_t index, std::uint64_t byte, std::uint64_t elements) {
        for (std::uint64_t i = 0; i < elements; ++i) {
            const auto value = static_cast<Element>(value_of(seed, index + i) ^ mask);
            std::memcpy(memory + byte + i * sizeof(Element), &value, sizeof(Element));
        }
        return true;
    });
}

void fill_region(const Workload& workload,
                 const Region& region,
                 std::uint64_t version,
                 std::uint64_t mask,
                 std::byte* memory) {
    const auto shape = workload.classes()[region.tensor.parameter].source.shape();
    const auto seed = seed_of(workload, region, version);
    switch (region.element_bytes) {
        case 1:
            return fill_region<std::uint8_t>(region, shape, seed, mask, memory);
        case 2:
            return fill_region<std::uint16_t>(region, shape, seed, mask, memory);
        default:
            return fill_region<std::uint32_t>(region, shape, seed, mask, memory);
    }
}

/// The first element of a region that differs.
struct Difference {
    std::uint64_t index = 0;
    std::uint64_t expected = 0;
    std::uint64_t found = 0;
};

template <class Element>
std::optional<Difference> compare_region(const Region& region,
                                         std::span<const std::uint64_t> shape,
                                         std::uint64_t seed,
                                         const std::byte* memory,
                                         std::uint64_t& checksum) {
    std::optional<Difference> difference;
    for_each_row(region, shape, [&](std::uint64_t index, std::uint64_t byte, std::uint64_t elements) {
        for (std::uint64_t i = 0; i < elements; ++i) {
            Element found{};
            std::memcpy(&found, memory + byte + i * sizeof(Element), sizeof(Element));
            const auto expected = static_cast<Element>(value_of(seed, index + i));
            checksum = checksum * 0x100000001b3U + found;
            if (found != expected) {
                difference = Difference{index + i, expected, found};
                return false;
            }
        }
        return true;
    });
    return difference;
}

std::optional<Difference> compare_region(const Workload& workload,
                                         const Region& region,
                                         std::uint64_t version,
                                         const std::byte* memory,
                                         std::uint64_t& checksum) {
    const auto shape = workload.classes()[region.tensor.parameter].source.shape();
    const auto seed = seed_of(workload, region, version);
    switch (region.element_bytes) {
        case 1:
            return compare_region<std::uint8_t>(region, shape, seed, memory, checksum);
        case 2:
            return compare_region<std::uint16_t>(region, shape, seed, memory, checksum);
        default:
            return compare_region<std::uint32_t>(region, shape, seed, memory, checksum);
    }
}

/// The bits of an element.
std::uint64_t bits_at(const std::byte* memory, std::uint32_t bytes) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, memory, bytes);
    return bits;
}

std::optional<Difference> compare_region(const Workload& workload,
                                         const Region& region,
                                         const TensorSource& data,
                                         const std::byte* memory,
                                         std::uint64_t& checksum) {
    const auto shape = workload.classes()[region.tensor.parameter].source.shape();
    const auto number = logical_number(workload, region.tensor);
    const auto width = region.element_bytes;
    std::optional<Difference> difference;
    for_each_row(region, shape, [&](std::uint64_t index, std::uint64_t byte, std::uint64_t elements) {
        const auto* expected = data.elements(region.tensor.parameter, number, index);
        for (std::uint64_t i = 0; i < elements; ++i) {
            const auto found = bits_at(memory + byte + i * width, width);
            const auto right = bits_at(expected + i * width, width);
            checksum = checksum * 0x100000001b3U + found;
            if (found != right) {
                difference = Difference{index + i, right, found};
                return false;
            }
        }
        return true;
    });
    return difference;
}

bool contains(const Box& box, std::span<const std::uint64_t> at) {
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
        if (at[axis] < box.axes()[axis].begin || at[axis] >= box.axes()[axis].end) {
            return false;
        }
    }
    return true;
}

std::vector<std::uint64_t> place_of(std::uint64_t index, std::span<const std::uint64_t> shape) {
    std::vector<std::uint64_t> at(shape.size());
    for (auto axis = shape.size(); axis-- > 0;) {
        at[axis] = index % shape[axis];
        index /= shape[axis];
    }
    return at;
}

/// compare_one(region, its memory, checksum) says where a region differs.
template <class CompareOne>
Compared compare_all(const RankProgram& program,
                     const Workload& workload,
                     const RankStorage& storage,
                     CompareOne&& compare_one) {
    Compared compared;
    compared.record = record_of(program);
    for (std::uint32_t i = 0; i < program.regions.size(); ++i) {
        const auto& region = program.regions[i];
        if (region.arena != Arena::kDestination) {
            continue;
        }
        const auto* memory = storage.base(Arena::kDestination) + region.offset;
        if (const auto different = compare_one(region, memory, compared.record.checksum)) {
            auto& mismatch = compared.mismatch.emplace();
            mismatch = {program.rank, region.tensor, different->index, different->expected, different->found};
            const auto shape = workload.classes()[region.tensor.parameter].source.shape();
            blame(program, i, place_of(different->index, shape), mismatch);
            return compared;
        }
        compared.record.elements += region.box.volume();
    }
    return compared;
}

}  // namespace

Bytes bytes_needed(const RankProgram& program) {
    return Bytes{program.bytes_in(Arena::kSource)} + Bytes{program.bytes_in(Arena::kDestination)} * 2 +
           Bytes{program.bytes_in(Arena::kScratch)};
}

RankRecord record_of(const RankProgram& program) {
    RankRecord record{program.rank, program.digest};
    for (const auto& wave : program.waves) {
        for (const auto& operation : wave.operations) {
            const auto takers = operation.is_collective() ? program.groups[operation.group].size() - 1 : 1;
            for (const auto& landing : operation.landings) {
                const auto& part = operation.parts[landing.part];
                const auto bytes = landing.box.volume() * part.element_bytes;
                (operation.gives(part) ? record.sent : record.received) +=
                    operation.gives(part) ? bytes * takers : bytes;
            }
        }
    }
    return record;
}

void Unmap::operator()(std::byte* memory) const noexcept {
    munmap(memory, bytes);
}

Result<RankStorage> RankStorage::allocate(const RankProgram& program) {
    RankStorage storage;
    for (std::size_t i = 0; i < storage.arenas_.size(); ++i) {
        const auto bytes =
            program.arena_bytes[i == kServed ? static_cast<std::size_t>(Arena::kDestination) : i];
        if (bytes == 0) {
            continue;
        }
        void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            return fail(ErrorCode::kInfeasible,
                        "out-of-memory",
                        "rank " + std::to_string(program.rank) + " cannot allocate " + std::to_string(bytes) +
                            " bytes");
        }
        madvise(memory, bytes, MADV_HUGEPAGE);
        storage.arenas_[i] = Memory{static_cast<std::byte*>(memory), Unmap{bytes}};
    }
    return storage;
}

std::byte* RankStorage::base(Arena arena) const noexcept {
    return arenas_[static_cast<std::size_t>(arena)].get();
}

void RankStorage::flip() noexcept {
    std::swap(arenas_[static_cast<std::size_t>(Arena::kDestination)], arenas_[kServed]);
}

void fill(const RankProgram& program,
          const Workload& workload,
          std::uint64_t version,
          const RankStorage& storage) {
    for (const auto& region : program.regions) {
        if (region.arena != Arena::kScratch) {
            const bool is_source = region.arena == Arena::kSource;
            fill_region(workload,
                        region,
                        version,
                        is_source ? 0 : ~std::uint64_t{0},
                        storage.base(region.arena) + region.offset);
        }
    }
}

void fill(const RankProgram& program,
          const Workload& workload,
          const TensorSource& data,
          const RankStorage& storage) {
    for (const auto& region : program.regions) {
        if (region.arena == Arena::kScratch) {
            continue;
        }
        const auto shape = workload.classes()[region.tensor.parameter].source.shape();
        const auto number = logical_number(workload, region.tensor);
        auto* memory = storage.base(region.arena) + region.offset;
        for_each_row(region, shape, [&](std::uint64_t index, std::uint64_t byte, std::uint64_t elements) {
            const auto* from = data.elements(region.tensor.parameter, number, index);
            const auto bytes = elements * region.element_bytes;
            std::memcpy(memory + byte, from, bytes);
            for (std::uint64_t i = 0; region.arena == Arena::kDestination && i < bytes; ++i) {
                memory[byte + i] = ~memory[byte + i];
            }
            return true;
        });
    }
}

void fill_served(const RankProgram& program,
                 const Workload& workload,
                 std::uint64_t version,
                 const RankStorage& storage) {
    for (const auto& region : program.regions) {
        if (region.arena == Arena::kDestination) {
            fill_region(workload, region, version, 0, storage.served() + region.offset);
        }
    }
}

Compared compare(const RankProgram& program,
                 const Workload& workload,
                 std::uint64_t version,
                 const RankStorage& storage) {
    return compare_all(program,
                       workload,
                       storage,
                       [&](const Region& region, const std::byte* memory, std::uint64_t& checksum) {
                           return compare_region(workload, region, version, memory, checksum);
                       });
}

Compared compare(const RankProgram& program,
                 const Workload& workload,
                 const TensorSource& data,
                 const RankStorage& storage) {
    return compare_all(program,
                       workload,
                       storage,
                       [&](const Region& region, const std::byte* memory, std::uint64_t& checksum) {
                           return compare_region(workload, region, data, memory, checksum);
                       });
}

bool serves(const RankProgram& program,
            const Workload& workload,
            std::uint64_t version,
            const RankStorage& storage) {
    for (const auto& region : program.regions) {
        std::uint64_t checksum = 0;
        if (region.arena == Arena::kDestination &&
            compare_region(workload, region, version, storage.served() + region.offset, checksum)) {
            return false;
        }
    }
    return true;
}

void blame(const RankProgram& program,
           std::uint32_t region,
           std::span<const std::uint64_t> at,
           Mismatch& mismatch) {
    for (std::uint32_t wave = 0; wave < program.waves.size(); ++wave) {
        for (const auto& operation : program.waves[wave].operations) {
            for (const auto& landing : operation.landings) {
                const auto& part = operation.parts[landing.part];
                if (landing.region == region && !operation.gives(part) && contains(landing.box, at)) {
                    mismatch.wave = wave;
                    mismatch.operation = operation.id;
                    mismatch.giver = operation.is_collective() ? program.groups[operation.group][part.owner]
                                                               : operation.peer;
                    return;
                }
            }
        }
    }
}

}  // namespace refit::exec
