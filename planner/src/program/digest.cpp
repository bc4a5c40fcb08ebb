// SPDX-License-Identifier: Apache-2.0
#include "digest.hpp"

#include <concepts>
#include <span>

namespace refit::program {
namespace {

/// FNV-1a over words of 64 bits, each spread first. Source: Fowler, Noll, Vo; the multiplier of splitmix64.
class Digest {
public:
    void add(std::uint64_t word) {
        word *= 0x9e3779b97f4a7c15U;
        state_ = (state_ ^ word ^ (word >> 32U)) * 0x100000001b3U;
    }
    template <std::integral T>
    void add(const std::vector<T>& column) {
        add(column.size());
        for (const auto value : column) {
            add(std::uint64_t{value});
        }
    }
    void add(const Box& box) {
        add(box.axes().size());
        for (const auto& axis : box.axes()) {
            add(axis.begin);
            add(axis.end);
        }
    }
    void add(const Distribution& distribution) {
        add(distribution.shards().size());
        for (const auto extent : distribution.shape()) {
            add(extent);
        }
        for (const auto& shard : distribution.shards()) {
            add(shard.members);
            for (const auto& box : shard.boxes) {
                add(box);
            }
        }
    }
    void add(std::span<const MessagePart> parts) {
        add(parts.size());
        for (const auto& part : parts) {
            add(part.parameter);
            add(part.slice);
            add(part.first_tensor);
            add(part.tensors);
            add(part.box);
        }
    }
    [[nodiscard]] std::uint64_t value() const { return state_; }

private:
    std::uint64_t state_ = 0xcbf29ce484222325U;
};

void add_class(Digest& digest, const WorkloadClass& entry) {
    for (const auto letter : entry.parameter.name) {
        digest.add(std::uint64_t{static_cast<unsigned char>(letter)});
    }
    digest.add(entry.element_bytes());
    digest.add(entry.source);
    for (const auto& destination : entry.destinations) {
        digest.add(destination);
    }
    for (const auto& slice : entry.slices) {
        digest.add(slice.train_stage);
        digest.add(slice.generate_stage);
        digest.add(slice.layers);
        digest.add(std::uint64_t{slice.is_copy});
        digest.add(slice.numbers);
    }
}

void add_stage(Digest& digest, const PlanStage& stage) {
    digest.add(static_cast<std::uint64_t>(stage.kind));
    digest.add(stage.train_stage);
    for (const auto& use : stage.transfers) {
        digest.add(use.block);
        digest.add(use.first_source.index());
        digest.add(use.tensors);
    }
    for (const auto& collective : stage.collectives) {
        digest.add(static_cast<std::uint64_t>(collective.role));
        digest.add(collective.groups);
        digest.add(collective.calls);
        digest.add(collective.parameters);
        digest.add(collective.parts);
    }
    const auto& relays = stage.relays;
    digest.add(relays.parts);
    for (const auto& message : relays.messages) {
        digest.add(message.first_part);
        digest.add(message.parts);
    }
    for (const auto* column : {&relays.message, &relays.source, &relays.destination, &relays.follows}) {
        digest.add(*column);
    }
    digest.add(relays.chunks);
}

}  // namespace

std::uint64_t digest_of(const Plan& plan,
                        const Workload& workload,
                        std::uint32_t train_gpus,
                        const Settings& settings) {
    Digest digest;
    digest.add(train_gpus);
    digest.add(settings.most_operations);
    digest.add(settings.wave_bytes.count());
    digest.add(settings.pack_bytes.count());
    digest.add(settings.least_chunk.count());
    digest.add(workload.trainers_per_stage());
    digest.add(workload.losses().absent());
    for (const auto& entry : workload.classes()) {
        add_class(digest, entry);
    }
    for (const auto& block : plan.blocks) {
        digest.add(block.parameter);
        for (const auto& box : block.boxes) {
            digest.add(box);
        }
        for (const auto* column : {&block.source, &block.destination, &block.box}) {
            digest.add(*column);
        }
    }
    for (const auto& groups : plan.groups) {
        for (const auto& group : groups) {
            digest.add(group.size());
            for (const auto rank : group) {
                digest.add(rank.index());
            }
        }
    }
    for (const auto& stage : plan.stages) {
        add_stage(digest, stage);
    }
    return digest.value();
}

}  // namespace refit::program
