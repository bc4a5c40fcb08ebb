// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "refit/units.hpp"

namespace refit {

/// A constant of an engine's cost model, in its base unit (second, or a pure number; second per byte).
struct Constant {
    double value = 0.0;
    double low = 0.0;  ///< 68 % interval.
    double high = 0.0;
    std::string unit;  ///< As the file gives it, for people.
    std::string source;
    std::string kind;  ///< "fitted", "prior", "alternative" or "fixed".
    std::vector<std::string> identified_by;  ///< Ids of the published records that determine it.
    bool operator==(const Constant&) const = default;
};

/// Software costs of one refit engine, shared by every model, layout and system. Formulas: docs/cost_model.md.
struct EngineConstants {
    Constant nic_efficiency;         ///< Share of the NIC's line rate that NCCL reaches.
    Constant nvlink_efficiency;      ///< The same for NVLink.
    Constant call_cost;              ///< Per collective call of the export. Unit: s.
    Constant tensor_cost;            ///< Per tensor loaded on a receiver. Unit: s.
    Constant tensor_cost_per_expert; ///< Added to it for each routed expert of a layer. Unit: s.
    Constant fixed_cost;             ///< Per refit. Unit: s.
    Constant fixed_cost_per_gpu;     ///< Per refit and GPU. Unit: s.
    Constant bulk_parameter_cost;    ///< Per grouped expert parameter of a trainer stage. Unit: s.
    Constant bulk_parameter_cost_floor;      ///< The other reading of the same rows. Unit: s.
    Constant finalize_per_expert;            ///< Per local expert and MoE layer, Blackwell generators. Unit: s.
    Constant finalize_slow_allgather_factor; ///< Alternative: share of the NVLink rate that replicas reach.
    Constant finalize_per_local_byte;        ///< Alternative: per byte of the local shard. Unit: s/B.
    // What some engines do beside; no cost where their file is silent.
    Constant staging_cost_per_byte;  ///< Per gathered byte on its way through a sender's host copy. Unit: s/B.
    Constant staging_tensor_cost;    ///< Per Hugging Face tensor of it. Unit: s.
    Constant load_cost_per_byte;             ///< Per byte that reaches a receiver. Unit: s/B.
    Constant nic_sharing;                    ///< How far a broadcast adds to gathers on the same NICs. Range: 0 to 1.
    Constant ring_nics;                      ///< Most NICs of a domain over which a ring spreads its channels.
    Constant ring_hop_cost;                  ///< By how much each rank of a ring lags behind the one before. Unit: s.
    Constant model_error;                    ///< Relative widening of a predicted range, each way.
    bool operator==(const EngineConstants&) const = default;
};

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

    /// Whether all but the sizes, streams and buffers agree.
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

/// A way that an engine takes, under the name by which published times tell what was timed.
struct EnginePath {
    std::string name;    ///< "nemo-rl-reshard".
    std::string method;  ///< "hybrid".
    bool is_calibrated = true;  ///< Whether published times determine its costs.
    std::map<std::string, std::string> settings;  ///< Engine options by name that differ from the engine's own.
    EngineOptions options;                        ///< With these settings.
    bool operator==(const EnginePath&) const = default;
};

/// A refit engine of one version.
struct Engine {
    std::string name;     ///< "nemo-rl".
    std::string title;    ///< "NeMo RL".
    std::string version;
    EngineConstants constants;
    EngineOptions options;
    Bytes pack_cap;       ///< Largest pack, whatever the ratio.
    std::vector<EnginePath> paths;

    /// The path by which it runs the method with these options, or none: then no published time speaks of it.
    [[nodiscard]] const EnginePath* path_of(std::string_view method) const noexcept;
    /// The path of that name, or none.
    [[nodiscard]] const EnginePath* find_path(std::string_view path) const noexcept;
    bool operator==(const Engine&) const = default;
};

}  // namespace refit
