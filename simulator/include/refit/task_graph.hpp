// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "refit/estimate.hpp"
#include "refit/flow_network.hpp"
#include "refit/rank_classes.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit {

/// What a task of a refit does.
enum class Activity : std::uint8_t {
    kControl,            ///< Fan-out of the call to every rank, and clean-up.
    kGrouping,           ///< A trainer stacks its grouped expert parameters.
    kCalls,              ///< Collectives of the export are posted, one after another.
    kPipelineBroadcast,  ///< Shards go to the other trainer stages.
    kTensorAllGather,
    kExpertAllGather,
    kStaging,          ///< Gathered tensors pass through a copy on a sender's host.
    kCopies,           ///< Gathered tensors are taken from lists and packed.
    kWeightBroadcast,  ///< A pack goes to all receivers.
    kLoading,          ///< A receiver's host loads a pack tensor by tensor.
    kPosting,          ///< A receiver's host posts the transfers of a tensor.
    kTransfer,         ///< Point-to-point messages of a tensor.
    kReplicas,         ///< Replicas share what they received.
    kRelay,            ///< A message, with the ranks that pass it on.
    kUnpacking,        ///< A receiver copies regions into place.
    kFinalising,       ///< Work on a receiver after the last tensor.
};
inline constexpr std::size_t kActivities = 16;

/// "control", "grouped experts", "collective calls", "pipeline broadcast", "TP all-gather", "EP all-gather",
/// "staging", "device copies", "weight broadcast", "loading", "posting", "transfers", "replicas", "relays", "unpacking",
/// "finalising".
[[nodiscard]] std::string_view name_of(Activity activity) noexcept;
/// The phase of a report that an activity belongs to: "fixed", "bulk", "gather", "broadcast", "load",
/// "finalize".
[[nodiscard]] std::string_view phase_of(Activity activity) noexcept;
/// Whether it moves bytes over links between ranks.
[[nodiscard]] bool is_on_links(Activity activity) noexcept;

/// Something that does one thing after another: a stream, a communicator, a host thread.
struct Lane {
    std::string name;  ///< "trainers, export", "stage 3, transfers", "generators, loading".
    bool operator==(const Lane&) const = default;
};

/// A task; the flow of the same number in the network says how long it takes.
struct Task {
    Activity activity = Activity::kControl;
    std::uint32_t lane = 0;
    std::uint32_t item = 0;   ///< Which pack, tensor or message, counted within the plan's stage.
    std::uint32_t stage = 0;  ///< Of the plan.
    double bytes = 0.0;       ///< Moved or copied by one rank or ring; 0 for time on hosts.
};

/// A link of the network: a port of a class of ranks, of which each has one; or what a pod can send or receive.
struct LinkOwner {
    Port port = Port::kNicOut;
    std::uint32_t section = 0;     ///< Index into TaskGraph::sections.
    std::uint32_t rank_class = 0;  ///< Of the section; for an uplink, the pod.
};

/// A plan as tasks over links: what depends on what, and what shares what. Parts of a refit that follow each
/// other are sections; each has its own classes of ranks, and links for them. Invariant: `network` has a flow
/// for each task and a link for each owner.
struct TaskGraph {
    FlowNetwork network;
    std::vector<Task> tasks;
    std::vector<Lane> lanes;
    std::vector<LinkOwner> links;
    std::vector<RankClasses> sections;
    std::vector<std::vector<RankId>> pods;  ///< The first rank of each; empty where no spine limits.

    [[nodiscard]] std::vector<std::uint32_t> lane_of_tasks() const;
    /// The ranks that a link stands for; of a pod, its first.
    [[nodiscard]] const std::vector<RankId>& ranks_of(std::uint32_t link) const {
        const auto& owner = links[link];
        const bool is_pod = owner.port == Port::kUplink || owner.port == Port::kDownlink;
        return is_pod ? pods[owner.rank_class] : sections[owner.section].members(owner.rank_class);
    }
};

struct GraphOptions {
    bool has_software = true;  ///< Else links alone: no host, copy or fixed cost.
    /// Most of one point-to-point pair across domains: NCCL's channels a peer times their rate. Unit: bytes
    /// per second.
    double pair_rate = std::numeric_limits<double>::infinity();
    /// All-gathers inside a domain are multicast by its switches (NVLink SHARP), where NCCL can.
    bool has_nvls = false;
    /// Chunks of a message that a relay can hold; it takes no more until it has passed some on. 0: no limit.
    std::uint32_t staged_chunks = 0;
    /// Tables with more hops run each message's hops at one rate, instead of chunk by chunk.
    std::uint32_t most_chunked_hops = 50'000;
    /// Asked between packs, tensors and messages; true ends the building early, with a graph that is of no use.
    std::function<bool()> is_cancelled;
};

/// Builds the graph of a plan.
///
/// Links: NIC and NVLink ports at the rate that software reaches, and a copy engine, for each class of ranks.
/// Collectives are NCCL's rings (docs/cost_model.md), packs and stages follow each other as the engine's
/// options say: `buffers` packs and `streams` transfer stages in flight, one communicator for each root's
/// broadcasts. Sources of each rule: docs/simulation.md. Cost: in packs, tensors and classes of ranks.
[[nodiscard]] TaskGraph make_task_graph(const Plan& plan,
                                        const Workload& workload,
                                        const Scenario& scenario,
                                        const GraphOptions& options = {});

}  // namespace refit
