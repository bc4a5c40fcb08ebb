// SPDX-License-Identifier: Apache-2.0
#include "device_memory.hpp"

#include <utility>

#include "refit/exec/values.hpp"

namespace refit::exec {
namespace {

using program::Arena;
using program::RankProgram;
using program::Region;

/// Row-major, innermost axis first.
std::vector<std::uint64_t> place_of(std::uint64_t index, std::span<const std::uint64_t> shape) {
    std::vector<std::uint64_t> at(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        at[axis] = index % shape[axis];
        index /= shape[axis];
    }
    return at;
}

std::uint64_t destinations(const DeviceMemory& memory, bool is_served) {
    return is_served ? memory.served : memory.arenas[static_cast<std::size_t>(Arena::kDestination)];
}

/// The element of a region that was found wrong.
Result<Mismatch> mismatch_of(Device& device,
                             const RankProgram& program,
                             std::uint32_t region,
                             const RegionElements& elements,
                             std::uint64_t place,
                             std::span<const std::uint64_t> shape) {
    std::uint64_t found = 0;
    const std::span bytes{reinterpret_cast<std::byte*>(&found), elements.element_bytes};
    if (auto done = device.download(elements.address + place * elements.element_bytes, bytes); !done) {
        return Failure{done.error()};
    }
    Mismatch mismatch;
    mismatch.rank = program.rank;
    mismatch.tensor = program.regions[region].tensor;
    mismatch.element = logical_index(elements, place);
    mismatch.expected = narrowed(element_value(elements, place), elements.element_bytes);
    mismatch.found = found;
    blame(program, region, place_of(mismatch.element, shape), mismatch);
    return mismatch;
}

}  // namespace

Result<DeviceMemory> allocate(Device& device, const RankProgram& program) {
    DeviceMemory memory;
    const auto take_bytes = [&](std::uint64_t bytes, std::uint64_t& address) -> Result<void> {
        if (bytes == 0) {
            return {};
        }
        const auto place = device.allocate(bytes);
        if (!place) {
            return Failure{place.error()};
        }
        address = *place;
        return {};
    };
    for (std::size_t arena = 0; arena < program::kArenas; ++arena) {
        if (auto done = take_bytes(program.arena_bytes[arena], memory.arenas[arena]); !done) {
            return Failure{done.error()};
        }
    }
    for (const auto& [bytes, address] :
         {std::pair{program.bytes_in(Arena::kDestination), &memory.served},
          std::pair{program.regions.size() * sizeof(ElementVerdict), &memory.verdicts}}) {
        if (auto done = take_bytes(bytes, *address); !done) {
            return Failure{done.error()};
        }
    }
    return memory;
}

RegionElements elements_of(const Workload& workload,
                           const Region& region,
                           std::uint64_t memory,
                           std::uint64_t version) {
    RegionElements elements;
    elements.address = memory + region.offset;
    elements.seed = seed_of(version, region.tensor.parameter, logical_number(workload, region.tensor));
    elements.count = region.box.volume();
    elements.element_bytes = region.element_bytes;
    const auto shape = workload.classes()[region.tensor.parameter].source.shape();
    std::uint64_t stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        const std::size_t inner = shape.size() - 1 - axis;
        const Interval& interval = region.box.axes()[axis];
        elements.extents[inner] = interval.length();
        elements.strides[inner] = stride;
        elements.base += interval.begin * stride;
        stride *= shape[axis];
    }
    return elements;
}

Result<void> begin_fill(Device& device,
                        const RankProgram& program,
                        const Workload& workload,
                        const DeviceMemory& memory,
                        std::uint64_t version) {
    for (const Region& region : program.regions) {
        if (region.arena == Arena::kScratch || region.box.volume() == 0) {
            continue;
        }
        const auto arena = memory.arenas[static_cast<std::size_t>(region.arena)];
        const bool is_shadow = region.arena == Arena::kDestination;
        if (auto begun = device.fill(elements_of(workload, region, arena, version), is_shadow); !begun) {
            return begun;
        }
    }
    return {};
}

Result<void> begin_fill_served(Device& device,
                               const RankProgram& program,
                               const Workload& workload,
                               const DeviceMemory& memory,
                               std::uint64_t version) {
    for (const Region& region : program.regions) {
        if (region.arena != Arena::kDestination || region.box.volume() == 0) {
            continue;
        }
        if (auto begun = device.fill(elements_of(workload, region, memory.served, version), false); !begun) {
            return begun;
        }
    }
    return {};
}

Result<void> begin_compare(Device& device,
                           const RankProgram& program,
                           const Workload& workload,
                           const DeviceMemory& memory,
                           bool is_served,
                           std::uint64_t version) {
    if (program.regions.empty()) {
        return {};
    }
    const std::vector<ElementVerdict> none(program.regions.size());
    if (auto done = device.upload(memory.verdicts, std::as_bytes(std::span{none})); !done) {
        return done;
    }
    for (std::size_t index = 0; index < program.regions.size(); ++index) {
        const Region& region = program.regions[index];
        if (region.arena != Arena::kDestination || region.box.volume() == 0) {
            continue;
        }
        const auto elements = elements_of(workload, region, destinations(memory, is_served), version);
        if (auto begun = device.compare(elements, memory.verdicts + index * sizeof(ElementVerdict)); !begun) {
            return begun;
        }
    }
    return {};
}

Result<Compared> finish_compare(Device& device,
                                const RankProgram& program,
                                const Workload& workload,
                                const DeviceMemory& memory,
                                bool is_served,
                                std::uint64_t version) {
    std::vector<ElementVerdict> verdicts(program.regions.size());
    if (auto done = verdicts.empty()
                        ? Result<void>{}
                        : device.download(memory.verdicts, std::as_writable_bytes(std::span{verdicts}));
        !done) {
        return Failure{done.error()};
    }
    Compared compared;
    compared.record.rank = program.rank;
    compared.record.digest = program.digest;
    for (std::uint32_t index = 0; index < program.regions.size(); ++index) {
        const Region& region = program.regions[index];
        if (region.arena != Arena::kDestination || region.box.volume() == 0) {
            continue;
        }
        const auto elements = elements_of(workload, region, destinations(memory, is_served), version);
        if (verdicts[index].first_wrong < elements.count) {
            const auto shape = workload.classes()[region.tensor.parameter].source.shape();
            auto mismatch = mismatch_of(device, program, index, elements, verdicts[index].first_wrong, shape);
            if (!mismatch) {
                return Failure{mismatch.error()};
            }
            compared.mismatch = *mismatch;
            return compared;
        }
        compared.record.elements += elements.count;
        compared.record.checksum =
            compared.record.checksum * power(kChecksumFactor, elements.count) + verdicts[index].checksum;
    }
    return compared;
}

}  // namespace refit::exec
