// SPDX-License-Identifier: Apache-2.0
#include "structure.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace refit::proof {
namespace {

bool lies_inside(const Box& box, std::span<const std::uint64_t> shape) {
    return std::ranges::equal(box.axes(), shape, [](const Interval& interval, std::uint64_t extent) {
        return interval.begin <= interval.end && interval.end <= extent;
    });
}

void check_distribution(FaultLog& log,
                        const Place& place,
                        const Distribution& distribution,
                        std::span<const std::uint64_t> shape,
                        std::uint32_t ranks) {
    if (!std::ranges::equal(distribution.shape(), shape)) {
        log.add("workload-shape", place, "source and destination have different shapes");
        return;
    }
    std::set<std::uint32_t> seen;
    for (const auto& shard : distribution.shards()) {
        for (const auto& box : shard.boxes) {
            if (!lies_inside(box, shape)) {
                log.add("workload-box", place, "a shard has a box outside the tensor");
            }
        }
        for (const auto member : shard.members) {
            if (member >= ranks || !seen.insert(member).second) {
                log.add("workload-member",
                        place,
                        "member " + std::to_string(member) + " does not exist or is in two shards");
            }
        }
    }
}

/// Which stages may have a collective.
StageKind kind_of(CollectiveRole role) {
    if (is_among_replicas(role)) {
        return StageKind::kTransfer;
    }
    return role == CollectiveRole::kWeightBroadcast ? StageKind::kBroadcast : StageKind::kGather;
}

class StructureCheck {
public:
    StructureCheck(FaultLog& log, const Plan& plan, const Workload& workload, const JobSize& job)
        : log_{log}, plan_{plan}, workload_{workload}, job_{job} {}

    void run() {
        for (std::size_t i = 0; i < plan_.groups.size(); ++i) {
            check_groups(i);
        }
        for (std::size_t i = 0; i < plan_.blocks.size(); ++i) {
            check_block(i);
        }
        for (std::size_t i = 0; i < plan_.stages.size() && log_.is_empty(); ++i) {
            check_stage(i);
        }
    }

private:
    [[nodiscard]] bool takes_part(std::uint32_t rank) const {
        return rank < job_.gpus() && !workload_.losses().is_absent(rank);
    }

    [[nodiscard]] const WorkloadClass* class_at(std::uint32_t index) const {
        return index < workload_.classes().size() ? &workload_.classes()[index] : nullptr;
    }

    void check_groups(std::size_t index) {
        std::set<std::uint32_t> seen;
        for (const auto& group : plan_.groups[index]) {
            for (const auto rank : group) {
                if (!takes_part(rank.index()) || !seen.insert(rank.index()).second) {
                    log_.add("group-member",
                             {.rank = rank.index()},
                             "does not exist or is lost, or is twice in groups " + std::to_string(index) +
                                 " that run side by side");
                }
            }
            if (group.empty()) {
                log_.add("group-empty", {}, "groups " + std::to_string(index) + " have one without members");
            }
        }
    }

    void check_block(std::size_t index) {
        const auto& block = plan_.blocks[index];
        const auto name = "block " + std::to_string(index) + " ";
        const Place place{.parameter = block.parameter};
        const auto* entry = class_at(block.parameter);
        if (entry == nullptr || block.destination.size() != block.size() ||
            block.box.size() != block.size()) {
            log_.add("block-columns",
                     place,
                     name + "has columns of unequal length, or a class that does not exist");
            return;
        }
        if (block.element_bytes != entry->element_bytes()) {
            log_.add("block-bytes",
                     place,
                     name + "has elements of " + std::to_string(block.element_bytes) + " bytes");
        }
        for (const auto& box : block.boxes) {
            if (!lies_inside(box, entry->source.shape()) || box.volume() == 0) {
                log_.add("block-box", place, name + "has an empty box, or one outside the tensor");
            }
        }
        for (std::size_t i = 0; i < block.size(); ++i) {
            if (block.box[i] >= block.boxes.size() ||
                block.destination[i] >= workload_.generator_bytes().size()) {
                log_.add("block-transfer", place, name + "names a box or generator that does not exist");
            }
        }
    }

    void check_stage(std::size_t index) {
        const auto& stage = plan_.stages[index];
        if (!stage.transfers.empty() && stage.kind != StageKind::kTransfer) {
            log_.add("stage-kind", {.stage = index}, "has transfers");
        }
        if (stage.relays.size() > 0 && stage.kind != StageKind::kRelay) {
            log_.add("stage-kind", {.stage = index}, "has relays");
        }
        for (const auto& use : stage.transfers) {
            check_use(index, use);
        }
        for (const auto& collective : stage.collectives) {
            check_collective(index, collective);
        }
        check_relays(index, stage.relays);
    }

    void check_use(std::size_t stage, const TransferUse& use) {
        if (use.block >= plan_.blocks.size() || use.tensors == 0) {
            log_.add("use", {.stage = stage}, "uses a block that does not exist, or for no tensor");
            return;
        }
        const auto& block = plan_.blocks[use.block];
        for (const auto source : block.source) {
            const auto rank = std::uint64_t{use.first_source.index()} + source;
            if (rank >= job_.train_gpus) {
                log_.add("use-source",
                         {.stage = stage, .parameter = block.parameter},
                         "the source " + std::to_string(rank) + " is no trainer");
                return;
            }
        }
    }

    void check_collective(std::size_t stage, const Collective& collective) {
        if (collective.groups >= plan_.groups.size() ||
            collective.bytes.size() != plan_.groups[collective.groups].size()) {
            log_.add(
                "collective-groups", {.stage = stage}, "a collective has no groups, or not a size for each");
        }
        if (kind_of(collective.role) != plan_.stages[stage].kind) {
            log_.add(
                "stage-kind", {.stage = stage}, "has a collective that belongs to another kind of stage");
        }
        const auto& classes = collective.parameters;
        const bool is_ascending = std::ranges::adjacent_find(classes, std::greater_equal{}) == classes.end();
        if (classes.empty() || !is_ascending || class_at(classes.back()) == nullptr) {
            log_.add("collective-classes",
                     {.stage = stage},
                     "a collective names no class, one twice, or one that does not exist");
        }
        if (!collective.parts.empty() && collective.role != CollectiveRole::kWeightBroadcast) {
            log_.add("collective-parts", {.stage = stage}, "a collective that is no weight broadcast has parts");
        }
        for (const auto& part : collective.parts) {
            check_part(stage, part);
            if (!std::ranges::binary_search(classes, part.parameter)) {
                log_.add("collective-parts", {.stage = stage, .parameter = part.parameter}, "a part is of a class that its collective does not name");
            }
        }
    }

    void check_relays(std::size_t stage, const RelayTable& relays) {
        if (relays.message.size() != relays.size() || relays.destination.size() != relays.size() ||
            relays.follows.size() != relays.size() || relays.chunks == 0) {
            log_.add(
                "relay-columns", {.stage = stage}, "columns have unequal lengths, or there are no chunks");
            return;
        }
        for (const auto& part : relays.parts) {
            check_part(stage, part);
        }
        for (std::size_t i = 0; i < relays.messages.size() && log_.is_empty(); ++i) {
            check_message(stage, relays, i);
        }
        for (std::size_t hop = 0; hop < relays.size(); ++hop) {
            if (relays.message[hop] >= relays.messages.size() || !takes_part(relays.source[hop]) ||
                !takes_part(relays.destination[hop]) || relays.source[hop] == relays.destination[hop]) {
                log_.add("relay-hop",
                         {.stage = stage, .rank = relays.source[hop]},
                         "hop " + std::to_string(hop) +
                             " names a message that does not exist or a rank that does not or is lost, or joins a rank to "
                             "itself");
            }
        }
    }

    void check_part(std::size_t stage, const MessagePart& part) {
        const Place place{.stage = stage, .parameter = part.parameter, .slice = part.slice};
        const auto* entry = class_at(part.parameter);
        if (entry == nullptr || part.slice >= entry->slices.size()) {
            log_.add("part-slice", place, "a part's class or slice does not exist");
            return;
        }
        const auto end = std::uint64_t{part.first_tensor} + part.tensors;
        if (part.tensors == 0 || end > entry->slices[part.slice].layers) {
            log_.add("part-tensors",
                     place,
                     "a part has tensors " + std::to_string(part.first_tensor) + " up to " +
                         std::to_string(end) + ", the slice has " +
                         std::to_string(entry->slices[part.slice].layers));
        }
        if (!lies_inside(part.box, entry->source.shape()) || part.box.volume() == 0) {
            log_.add("part-box", place, "a part's box is empty, or not inside the tensor");
        }
    }

    void check_message(std::size_t stage, const RelayTable& relays, std::size_t index) {
        const auto& message = relays.messages[index];
        if (std::uint64_t{message.first_part} + message.parts > relays.parts.size() || message.parts == 0) {
            log_.add("message-parts",
                     {.stage = stage},
                     "message " + std::to_string(index) + " has parts that do not exist, or none");
            return;
        }
        Bytes sum;
        for (auto i = message.first_part; i < message.first_part + message.parts; ++i) {
            const auto& part = relays.parts[i];
            sum += Bytes{part.box.volume()} * part.tensors * class_at(part.parameter)->element_bytes();
        }
        if (sum.count() != message.bytes) {
            log_.add("message-bytes",
                     {.stage = stage},
                     "message " + std::to_string(index) + " says " + std::to_string(message.bytes) +
                         " bytes, its parts have " + std::to_string(sum.count()));
        }
    }

    FaultLog& log_;
    const Plan& plan_;
    const Workload& workload_;
    const JobSize& job_;
};

/// Who takes no part holds and wants nothing.
void check_absent(FaultLog& log, const Place& place, const WorkloadClass& entry, const Workload& workload, std::uint32_t train_gpus) {
    const auto check = [&](const Distribution& distribution, std::uint32_t first) {
        for (const auto& shard : distribution.shards()) {
            for (const auto member : shard.members) {
                if (workload.losses().is_absent(first + member)) {
                    auto where = place;
                    where.rank = first + member;
                    log.add("workload-absent", where, "is lost, but holds or wants a shard");
                }
            }
        }
    };
    for (const auto& slice : entry.slices) {
        check(entry.source, slice.train_stage * workload.trainers_per_stage());
    }
    for (const auto& destination : entry.destinations) {
        check(destination, train_gpus);
    }
}

}  // namespace

void check_workload(FaultLog& log, const Workload& workload, const JobSize& job) {
    const auto generators = static_cast<std::uint32_t>(workload.generator_bytes().size());
    const auto trainers = std::uint64_t{workload.train_stages()} * workload.trainers_per_stage();
    if (trainers == 0 || trainers > job.train_gpus || generators > job.generate_gpus) {
        log.add("workload-ranks", {}, "the workload has more ranks than the cluster, or no trainers");
        return;
    }
    for (std::uint32_t i = 0; i < workload.classes().size(); ++i) {
        const auto& entry = workload.classes()[i];
        const Place place{.parameter = i};
        check_distribution(log, place, entry.source, entry.source.shape(), workload.trainers_per_stage());
        for (const auto& destination : entry.destinations) {
            check_distribution(log, place, destination, entry.source.shape(), generators);
        }
        check_absent(log, place, entry, workload, job.train_gpus);
        for (const auto& slice : entry.slices) {
            if (slice.train_stage >= workload.train_stages() ||
                slice.generate_stage >= entry.destinations.size()) {
                log.add("workload-slice", place, "a slice joins stages that do not exist");
            }
        }
    }
}

void check_structure(FaultLog& log, const Plan& plan, const Workload& workload, const JobSize& job) {
    StructureCheck{log, plan, workload, job}.run();
}

}  // namespace refit::proof
