// SPDX-License-Identifier: Apache-2.0
#include "refit/memory.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "plan_builder.hpp"
#include "refit/broadcast_roots.hpp"
#include "refit/packs.hpp"

namespace refit {
namespace {

/// Bytes, and the rank that holds them.
struct Held {
    Bytes bytes;
    RankId rank;
};

void raise(Held& most, Bytes bytes, RankId rank) {
    if (bytes > most.bytes) {
        most = {bytes, rank};
    }
}

const Shard& largest_shard(const Distribution& distribution) {
    return *std::ranges::max_element(
        distribution.shards(), {}, [](const Shard& shard) { return shard.elements(); });
}

StageMemory memory_of(std::size_t stage, RankId rank, std::initializer_list<MemoryUse> uses) {
    StageMemory memory{stage, rank, {}};
    std::ranges::copy_if(
        uses, std::back_inserter(memory.uses), [](const MemoryUse& use) { return use.bytes.count() > 0; });
    return memory;
}

class Accountant {
public:
    Accountant(const Plan& plan, const Scenario& scenario, const Workload& workload)
        : plan_{plan}, scenario_{scenario}, workload_{workload} {}

    MemoryAccount run() {
        for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
            const auto& stage = plan_.stages[i];
            if (stage.kind == StageKind::kTransfer) {
                add_bulk(i);
            } else if (stage.kind == StageKind::kRelay) {
                add_relays(i);
            } else if (stage.kind == StageKind::kBroadcast) {
                add_packs(i - 1, classes_of(stage));
            } else if (i + 1 == plan_.stages.size() || plan_.stages[i + 1].kind != StageKind::kBroadcast) {
                add_gathered(i);
            }
        }
        add_shadow();
        return std::move(account_);
    }

private:
    void add(std::vector<StageMemory>& side, StageMemory memory) {
        if (!memory.uses.empty()) {
            side.push_back(std::move(memory));
        }
    }

    void add_bulk(std::size_t index) {
        const auto& stage = plan_.stages[index];
        Held stack;
        Held region;
        for (const auto& use : stage.transfers) {
            const auto& block = plan_.blocks[use.block];
            const auto& entry = workload_.classes()[block.parameter];
            const auto& held = largest_shard(entry.source);
            raise(stack,
                  Bytes{held.elements()} * block.element_bytes,
                  RankId{use.first_source.index() + held.members.front()});
            for (const auto& destination : entry.destinations) {
                const auto& wanted = largest_shard(destination);
                raise(region,
                      Bytes{wanted.elements()} * block.element_bytes,
                      scenario_.cluster.generator(wanted.members.front()));
            }
        }
        const auto streams = scenario_.engine.options.streams;
        add(account_.train,
            memory_of(index,
                      stack.rank,
                      {{MemoryCause::kStacks, stack.bytes}, {MemoryCause::kStaging, stack.bytes}}));
        add(account_.generation,
            memory_of(index, region.rank, {{MemoryCause::kRegions, region.bytes * streams}}));
    }

    /// The largest message bounds both sides.
    void add_relays(std::size_t index) {
        const auto& relays = plan_.stages[index].relays;
        Bytes largest;
        std::optional<RankId> train;
        std::optional<RankId> generation;
        for (const auto& message : relays.messages) {
            largest = std::max(largest, Bytes{message.bytes});
        }
        for (std::size_t hop = 0; hop < relays.size(); ++hop) {
            if (Bytes{relays.messages[relays.message[hop]].bytes} == largest) {
                for (const RankId rank : {RankId{relays.source[hop]}, RankId{relays.destination[hop]}}) {
                    auto& first = scenario_.cluster.is_trainer(rank) ? train : generation;
                    first = first.value_or(rank);
                }
            }
        }
        const auto staged = largest * scenario_.engine.options.streams;
        add(account_.train, memory_of(index, train.value_or(RankId{0}), {{MemoryCause::kMessages, staged}}));
        add(account_.generation,
            memory_of(index,
                      generation.value_or(scenario_.cluster.generator(0)),
                      {{MemoryCause::kMessages, staged}}));
    }

    /// What an export task gathered beside the tensor that closes a pack: the other ranks' experts, or in FSDP, which
    /// stacks them, all others.
    [[nodiscard]] Bytes gather_output(const ClassIndices& classes) const {
        const auto& train = scenario_.train;
        Bytes largest;
        for (const auto index : classes) {
            const auto& parameter = workload_.classes()[index].parameter;
            const auto gathered = train.is_fsdp() && train.ep > 1 ? parameter.experts : train.ep;
            largest = parameter.is_expert() ? std::max(largest, parameter.tensor_bytes() * (gathered - 1)) : largest;
        }
        return largest;
    }

    static ClassIndices classes_of(const PlanStage& broadcast) {
        ClassIndices classes;
        for (const auto& collective : broadcast.collectives) {
            classes.insert(classes.end(), collective.parameters.begin(), collective.parameters.end());
        }
        std::ranges::sort(classes);
        const auto repeated =
            std::unique(classes.begin(), classes.end());  // clang 14 cannot take ranges that return one
        classes.erase(repeated, classes.end());
        return classes;
    }

    /// Packs in flight on trainers: of the root with the largest, and of all roots.
    [[nodiscard]] std::pair<Held, Bytes> packs_in_flight(const ClassIndices& classes) const {
        Held root;
        Bytes all;
        for (const auto& sent :
             dealt_packs(scenario_,
                         workload_,
                         classes,
                         pack_target(scenario_.engine, scenario_.cluster.train_system().gpu_memory.value))) {
            const Bytes packs{most_in_flight(sent.packs, scenario_.engine.options.buffers)};
            raise(root, packs, sent.root);
            all += packs;
        }
        return {root, all};
    }

    /// Packs that are gathered and stay on the trainers, from where receivers get their pieces.
    void add_gathered(std::size_t index) {
        ClassIndices classes;
        for (std::uint32_t i = 0; i < workload_.classes().size(); ++i) {
            classes.push_back(i);
        }
        const auto root = packs_in_flight(classes).first;
        add(account_.train,
            memory_of(index,
                      root.rank,
                      {{MemoryCause::kPackLists, root.bytes}, {MemoryCause::kGatherOutput, gather_output(classes)}}));
    }

    void add_packs(std::size_t index, const ClassIndices& classes) {
        const auto& options = scenario_.engine.options;
        const auto& cluster = scenario_.cluster;
        const auto [root, on_trainers] = packs_in_flight(classes);
        Bytes received;
        for (const auto& sent :
             dealt_packs(scenario_,
                         workload_,
                         classes,
                         pack_target(scenario_.engine, cluster.generate_system().gpu_memory.value))) {
            received += Bytes{most_in_flight(sent.packs, options.buffers)};
        }
        const auto from_others = options.broadcast_group == BroadcastGroup::kAll || options.broadcast_group == BroadcastGroup::kRootDomain ? on_trainers - root.bytes : Bytes{};
        add(account_.train,
            memory_of(index,
                      root.rank,
                      {{MemoryCause::kPackLists, root.bytes},
                       {MemoryCause::kPacks, root.bytes},
                       {MemoryCause::kGatherOutput, gather_output(classes)},
                       {MemoryCause::kReceivedPacks, from_others}}));
        add(account_.generation,
            memory_of(index, cluster.generator(0), {{MemoryCause::kReceivedPacks, received}}));
    }

    /// The copy is there from the first stage to the last, and largest where the weights are.
    void add_shadow() {
        if (!scenario_.engine.options.has_shadow_copy) {
            return;
        }
        const auto bytes = workload_.generator_bytes();
        const auto most = std::ranges::max_element(bytes);
        for (auto& memory : account_.generation) {
            memory.rank = scenario_.cluster.generator(static_cast<std::uint32_t>(most - bytes.begin()));
            memory.uses.push_back({MemoryCause::kShadowCopy, Bytes{*most}});
        }
    }

    const Plan& plan_;
    const Scenario& scenario_;
    const Workload& workload_;
    MemoryAccount account_;
};

}  // namespace

std::string_view name_of(MemoryCause cause) noexcept {
    switch (cause) {
        case MemoryCause::kPackLists:
            return "pack lists";
        case MemoryCause::kGatherOutput:
            return "gather output";
        case MemoryCause::kReceivedPacks:
            return "received packs";
        case MemoryCause::kStacks:
            return "stacked shards";
        case MemoryCause::kStaging:
            return "staging";
        case MemoryCause::kRegions:
            return "regions";
        case MemoryCause::kMessages:
            return "messages";
        case MemoryCause::kShadowCopy:
            return "shadow copy";
        case MemoryCause::kPacks:
            break;
    }
    return "packs";
}

Bytes StageMemory::total() const {
    return std::accumulate(
        uses.begin(), uses.end(), Bytes{}, [](Bytes sum, const MemoryUse& use) { return sum + use.bytes; });
}

const StageMemory* MemoryAccount::worst(const std::vector<StageMemory>& side) noexcept {
    const auto found = std::ranges::max_element(side, {}, &StageMemory::total);
    return found == side.end() ? nullptr : &*found;
}

PeakBytes MemoryAccount::peak() const {
    const auto total = [](const StageMemory* memory) {
        return memory == nullptr ? Bytes{} : memory->total();
    };
    return {total(worst(train)), total(worst(generation))};
}

Bytes pack_target(const Engine& engine, Bytes gpu_memory) {
    const auto target =
        static_cast<std::uint64_t>(gpu_memory.as_double() * engine.options.buffer_memory_ratio);
    return std::min(Bytes{target}, engine.pack_cap);
}

Bytes largest_region(const Plan& plan, const Workload& workload) {
    Bytes largest;
    for (const auto& block : plan.blocks) {
        for (const auto& destination : workload.classes()[block.parameter].destinations) {
            largest = std::max(largest, Bytes{largest_shard(destination).elements()} * block.element_bytes);
        }
    }
    return largest;
}

MemoryAccount account_memory(const Plan& plan, const Scenario& scenario, const Workload& workload) {
    return Accountant{plan, scenario, workload}.run();
}

PeakBytes peak_bytes(const Plan& plan, const Scenario& scenario, const Workload& workload) {
    return account_memory(plan, scenario, workload).peak();
}

}  // namespace refit
