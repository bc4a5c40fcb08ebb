// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "refit/box.hpp"
#include "refit/workload.hpp"

namespace refit::program {

inline constexpr std::uint32_t kNone = 0xffffffff;

/// One logical tensor of a workload: the `number`-th of a slice of a class.
struct Tensor {
    std::uint32_t parameter = 0;  ///< Index of the class.
    std::uint32_t slice = 0;      ///< Index into its slices.
    std::uint32_t number = 0;     ///< Of the slice's tensors.
    auto operator<=>(const Tensor&) const = default;
};

/// Which of its class's logical tensors it is, over all slices. A copy has the number of what it copies, and
/// so the same values. Range: below WorkloadClass::logical_tensors().
[[nodiscard]] std::uint64_t logical_number(const Workload& workload, const Tensor& tensor);
/// "model.layers.{layer}.mlp.down_proj.weight, tensor 3".
[[nodiscard]] std::string describe(const Workload& workload, const Tensor& tensor);

/// In which memory of a rank a region lies.
enum class Arena : std::uint8_t {
    kSource,       ///< What a trainer holds before the refit; read only.
    kDestination,  ///< What a generator wants; executors keep two and change over at the end.
    kScratch,      ///< What a rank holds for a while, to pass it on.
};
inline constexpr std::size_t kArenas = 3;

/// A box of a tensor that a rank stores by itself, row-major, `offset` bytes into an arena.
/// Invariant: regions of the source and the destination arena never overlap in memory; two of the scratch
/// arena do so only where one's last wave lies before the other's first. Offsets are multiples of kAlignment.
struct Region {
    Tensor tensor;
    Box box;
    Arena arena = Arena::kSource;
    std::uint32_t element_bytes = 1;  ///< Range: 1, 2, 4.
    std::uint64_t offset = 0;         ///< Unit: byte.
    std::uint32_t first_wave = 0;     ///< That writes it; 0 for sources.
    std::uint32_t last_wave = 0;      ///< That reads it; the last of the program for destinations.

    [[nodiscard]] std::uint64_t bytes() const noexcept { return box.volume() * element_bytes; }
    bool operator==(const Region&) const = default;
};
inline constexpr std::uint64_t kAlignment = 256;

/// A box of a tensor that a message carries, row-major.
struct Part {
    Tensor tensor;
    Box box;
    std::uint32_t element_bytes = 1;
    std::uint32_t owner =
        0;  ///< Place in the group of the member that gives it; 0 for point to point and broadcasts.
    std::uint64_t offset = 0;  ///< In the message. Unit: byte.

    [[nodiscard]] std::uint64_t bytes() const noexcept { return box.volume() * element_bytes; }
    bool operator==(const Part&) const = default;
};

/// Elements of a part and the region of this rank where they lie, or are to be put. The box is a box of the
/// logical tensor, inside the part's and inside the region's.
struct Landing {
    std::uint32_t part = 0;    ///< Index into the operation's parts.
    std::uint32_t region = 0;  ///< Index into the rank's regions.
    Box box;
    bool operator==(const Landing&) const = default;
};

enum class OperationKind : std::uint8_t {
    kSend,
    kReceive,
    kBroadcast,  ///< From the first of the group to those others that want it.
    kAllGather,  ///< Each member gives the parts that it owns, of its own length, maybe none, to all.
};

/// One rank's end of a message, or of a collective.
/// Invariant: id, bytes and parts are the same on all ends. The parts lie one after the other in the message,
/// by ascending owner. Where this rank gives parts, its landings cover these exactly; of parts that it gets,
/// they name each element at most once, and none that it has no use for. A collective gives no member what it
/// has.
struct Operation {
    OperationKind kind = OperationKind::kSend;
    std::uint32_t id = 0;  ///< Over the whole program, ascending within a wave: ranks post by ascending ids.
    std::uint32_t peer = kNone;   ///< For kSend and kReceive.
    std::uint32_t lane = 0;       ///< Tells messages of a pair in a wave apart: parts of one lane came the same way.
    std::uint32_t group = kNone;  ///< For the collectives: index into the rank's groups.
    std::uint32_t place = 0;      ///< Of this rank in the group.
    std::uint64_t bytes = 0;      ///< Of all parts.
    std::vector<Part> parts;
    std::vector<Landing> landings;

    [[nodiscard]] bool is_collective() const noexcept { return group != kNone; }
    /// Whether this rank gives the part.
    [[nodiscard]] bool gives(const Part& part) const noexcept {
        return kind == OperationKind::kSend || (is_collective() && part.owner == place);
    }
    bool operator==(const Operation&) const = default;
};

/// What a rank posts as one group, and completes before the next wave.
/// Invariant: no operation reads what another of its wave writes; in each lane at most one message to each peer and one
/// from it.
struct Wave {
    std::uint32_t stage = 0;  ///< Of the plan: the first, where it serves several that run at once.
    std::vector<Operation> operations;
    bool operator==(const Wave&) const = default;
};

/// All that one rank does to run a plan.
/// Invariant: as many waves, of the same stages, as every other rank has; where it has nothing to do, a wave
/// is empty.
struct RankProgram {
    std::uint32_t rank = 0;
    std::uint64_t digest = 0;  ///< Of the plan, the workload and the settings: equal on all ranks of a run.
    std::array<std::uint64_t, kArenas> arena_bytes{};
    std::vector<Region> regions;
    std::vector<std::vector<std::uint32_t>>
        groups;  ///< Ranks of each collective's group, this rank among them.
    std::vector<Wave> waves;

    [[nodiscard]] std::uint64_t bytes_in(Arena arena) const {
        return arena_bytes.at(static_cast<std::size_t>(arena));
    }
    bool operator==(const RankProgram&) const = default;
};

}  // namespace refit::program
