// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "refit/reading.hpp"

namespace refit {

/// Which trainers broadcast gathered parameters.
enum class BroadcastRoot : std::uint8_t {
    kTrainer0,   ///< Trainer 0, all parameters: NeMo RL.
    kEachStage,  ///< The first rank of each pipeline stage, its own stage's; nothing goes from stage to stage.
};

/// Who takes part in a broadcast beside its root and the generators.
enum class BroadcastGroup : std::uint8_t {
    kAll,         ///< All other trainers: NeMo RL.
    kRootDomain,  ///< Those in the root's NVLink domain, over whose NICs the ring then leaves too.
    kGenerators,  ///< None.
    kPairs,       ///< None, and each generator has a trainer of its own as root, all at once.
};

/// In which order a stage's point-to-point transfers of a tensor are posted.
enum class TransferOrder : std::uint8_t {
    kByTensor,  ///< By what the receivers want, one receiver's pieces after another's.
    kRounds,    ///< In rounds, in each of which every rank has at most one partner: a static schedule.
};

/// How the packs of gather and broadcast follow each other.
enum class PackOverlap : std::uint8_t {
    kPipelined,  ///< While one is sent, the next is gathered and the one before loaded: NeMo RL.
    kSerial,     ///< A pack is gathered, sent and loaded before the next is begun.
};

/// What trainers send by method direct.
enum class DirectSource : std::uint8_t {
    kShards,    ///< The pieces that they hold.
    kGathered,  ///< Full parameters, which the trainers of the broadcast root's kind gather first.
};

/// Which Hugging Face tensors a receiver loads one by one after method direct.
enum class DirectLoading : std::uint8_t {
    kNone,   ///< None: the transfers end where the weights lie.
    kLocal,  ///< Those of which it holds a part.
    kAll,    ///< All, as after a broadcast.
};

/// Settings of the engine that a user can change, under the framework's own names where it has them.
struct EngineOptions {
    std::uint32_t streams = 2;         ///< NRL_REFIT_NUM_STREAMS: stages in flight.
    std::uint32_t buffers = 2;         ///< NRL_REFIT_NUM_BUFFERS: packs in flight.
    double buffer_memory_ratio = 0.02; ///< NRL_REFIT_BUFFER_MEMORY_RATIO: pack size as a share of GPU memory.

    // Variants; as they stand they are NeMo RL's.
    BroadcastRoot broadcast_root = BroadcastRoot::kTrainer0;
    BroadcastGroup broadcast_group = BroadcastGroup::kAll;
    std::uint32_t broadcast_senders = 1;      ///< Ranks, of all or of each stage, over which the packs are dealt.
    bool broadcast_in_turns = false;          ///< Of several roots one at a time.
    PackOverlap pack_overlap = PackOverlap::kPipelined;    ///< Of gather, broadcast and loading.
    PackOverlap direct_overlap = PackOverlap::kPipelined;  ///< Of gather, transfers and loading by direct.
    DirectSource direct_source = DirectSource::kShards;
    DirectLoading direct_loading = DirectLoading::kNone;
    TransferOrder transfer_order = TransferOrder::kByTensor;
    bool has_shadow_copy = false;             ///< Receivers keep serving from a second copy of their weights.
    ReadingChoice reading;                    ///< Of what published times leave open.

    /// Whether all but the sizes, streams, buffers and readings agree.
    [[nodiscard]] bool is_same_variant(const EngineOptions& other) const noexcept;
    bool operator==(const EngineOptions&) const = default;
};

/// "all", "root-domain", "generators", "pairs".
[[nodiscard]] std::string_view name_of(BroadcastGroup group) noexcept;
/// "trainer-0", "each-pp-stage".
[[nodiscard]] std::string_view name_of(BroadcastRoot root) noexcept;
/// "by-tensor", "rounds".
[[nodiscard]] std::string_view name_of(TransferOrder order) noexcept;

/// "pipelined", "serial".
[[nodiscard]] std::string_view name_of(PackOverlap overlap) noexcept;
/// "shards", "gathered".
[[nodiscard]] std::string_view name_of(DirectSource source) noexcept;
/// "none", "local", "all".
[[nodiscard]] std::string_view name_of(DirectLoading loading) noexcept;

}  // namespace refit
