// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "refit/box.hpp"
#include "refit/coverage.hpp"
#include "refit/strong_id.hpp"
#include "refit/units.hpp"

namespace refit {

/// How weights get from trainers to generators.
enum class Method : std::uint8_t { kGatherBroadcast, kHybrid, kDirect, kStriped, kM2n, kOptimal };

/// "gather-broadcast", "hybrid", "direct", "striped", "m2n", "optimal".
[[nodiscard]] std::string_view name_of(Method method) noexcept;
/// Also takes "reshard" for hybrid. Errors: kInvalidInput naming the nearest.
[[nodiscard]] Result<Method> parse_method(std::string_view text);

/// Point-to-point transfers of one logical tensor of a class, by columns.
/// Sources are numbered within a trainer stage, destinations over all generators.
/// Invariant: the columns have equal length; `box` indexes `boxes`.
struct TransferBlock {
    std::uint32_t parameter = 0;  ///< Index of the class in the workload.
    std::uint64_t element_bytes = 1;
    std::vector<Box> boxes;  ///< Which elements of the logical tensor a transfer carries.
    std::vector<std::uint32_t> source;
    std::vector<std::uint32_t> destination;
    std::vector<std::uint32_t> box;

    [[nodiscard]] std::size_t size() const noexcept { return source.size(); }
    bool operator==(const TransferBlock&) const = default;
};

/// A block run for each of `tensors` layers from the trainers that begin at `first_source`.
struct TransferUse {
    std::uint32_t block;
    RankId first_source;
    std::uint64_t tensors;
    bool operator==(const TransferUse&) const = default;
};

/// The same box of consecutive tensors of a class.
struct MessagePart {
    std::uint32_t parameter = 0;     ///< Index of the class in the workload.
    std::uint32_t slice = 0;         ///< Index into the class's slices: between which stages.
    std::uint32_t first_tensor = 0;  ///< Of the slice's tensors.
    std::uint32_t tensors = 1;
    Box box;
    bool operator==(const MessagePart&) const = default;
};

/// What travels as one: parts [first_part, first_part + parts) of its table.
struct Message {
    std::uint32_t first_part = 0;
    std::uint32_t parts = 0;
    std::uint64_t bytes = 0;
    bool operator==(const Message&) const = default;
};

/// Messages that ranks send, and pass on, by columns. Ranks are numbered over the job.
/// Invariant: the columns have equal length; a hop follows only an earlier one, of the same message, which ends where
/// it begins; a hop that follows none begins at a rank that holds the message.
struct RelayTable {
    static constexpr std::uint32_t kNone = 0xffffffff;

    std::vector<MessagePart> parts;
    std::vector<Message> messages;
    std::vector<std::uint32_t> message;  ///< Which message the hop carries.
    std::vector<std::uint32_t> source;
    std::vector<std::uint32_t> destination;
    std::vector<std::uint32_t> follows;  ///< The hop that brings the message to the source, or kNone.
    std::uint32_t chunks = 1;            ///< In which a rank passes a message on while it receives it.

    [[nodiscard]] std::size_t size() const noexcept { return source.size(); }
    /// Hops on the longest way from a holder to a receiver; 0 for an empty table.
    [[nodiscard]] std::uint32_t depth() const;
    bool operator==(const RelayTable&) const = default;
};

/// Groups of ranks that run the same collective side by side; the first of a group is its root.
using RankGroups = std::vector<std::vector<RankId>>;

enum class CollectiveRole : std::uint8_t {
    kPipelineBroadcast,  ///< A trainer stage's shards to all other stages.
    kTensorAllGather,    ///< Over the tensor-parallel ranks of a stage.
    kExpertAllGather,    ///< Over its expert-parallel ranks.
    kWeightBroadcast,    ///< Full parameters from a trainer to generators, and to trainers beside it.
    kReplicaAllGather,   ///< Stripes among generators that want the same shard.
    kReplicaBroadcast,   ///< A shard from one of them to the others.
};

[[nodiscard]] constexpr bool is_broadcast(CollectiveRole role) noexcept {
    return role == CollectiveRole::kPipelineBroadcast || role == CollectiveRole::kWeightBroadcast ||
           role == CollectiveRole::kReplicaBroadcast;
}
[[nodiscard]] constexpr bool is_among_replicas(CollectiveRole role) noexcept {
    return role == CollectiveRole::kReplicaAllGather || role == CollectiveRole::kReplicaBroadcast;
}

/// Collectives of one kind on the same groups, summed over their calls.
/// Invariant: one entry of `bytes` a group: the message of a broadcast, the gathered result of an all-gather.
struct Collective {
    CollectiveRole role;
    std::uint32_t groups;             ///< Index into Plan::groups.
    std::vector<std::uint64_t> bytes; ///< Over all calls.
    std::uint64_t calls = 0;          ///< Of each group, one after another; where groups differ, of the busiest.
    std::vector<std::uint32_t> parameters;  ///< Indices of the classes whose tensors it moves, ascending.
    std::vector<MessagePart> parts{};       ///< Of these, what a weight broadcast carries; none: all of it.
    bool operator==(const Collective&) const = default;
};

enum class StageKind : std::uint8_t {
    kGather,     ///< Trainers assemble full parameters.
    kBroadcast,  ///< Trainer 0, or each of several roots, sends them; the collectives run at once.
    kTransfer,   ///< Trainers of one stage send to generators, which may share among themselves after.
    kRelay,      ///< Ranks send and pass on messages, all at once, each at a steady rate.
};

/// A step of a plan. Gather and broadcast of one part run as a pipeline over packs; transfer stages run
/// `streams` at a time.
struct PlanStage {
    StageKind kind = StageKind::kGather;
    std::uint32_t train_stage = 0;  ///< For kTransfer.
    std::vector<TransferUse> transfers;
    std::vector<Collective> collectives;
    RelayTable relays;                     ///< For kRelay.
    Bytes payload;                         ///< Full parameters handled, each once.
    Bytes copied;                          ///< Device copies on each trainer.
    std::uint64_t loaded_tensors = 0;      ///< Hugging Face tensors that each receiver loads one by one.
    std::uint64_t expert_parameters = 0;   ///< Grouped expert parameters, one a projection and layer.
    std::uint64_t other_parameters = 0;    ///< Parameters outside FFNs and experts that go point to point.
    bool operator==(const PlanStage&) const = default;
};

/// Who sends what to whom, in which order. Ranks: trainers first, then generators.
struct Plan {
    Method method = Method::kGatherBroadcast;
    Coverage coverage = Coverage::kNemoRlNames;  ///< Of the bulk path, for kHybrid.
    std::vector<TransferBlock> blocks;
    std::vector<RankGroups> groups;
    std::vector<PlanStage> stages;
    bool operator==(const Plan&) const = default;
};

}  // namespace refit
