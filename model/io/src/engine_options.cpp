// SPDX-License-Identifier: Apache-2.0
#include "engine_options.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "refit/suggest.hpp"

namespace refit::io {
namespace {

constexpr std::uint32_t kMostSenders = 1U << 20U;

template <class Value>
using Word = std::pair<std::string_view, Value>;

constexpr std::array kRoots{Word<BroadcastRoot>{"trainer-0", BroadcastRoot::kTrainer0},
                            Word<BroadcastRoot>{"each-pp-stage", BroadcastRoot::kEachStage}};
constexpr std::array kGroups{Word<BroadcastGroup>{"all", BroadcastGroup::kAll},
                             Word<BroadcastGroup>{"root-domain", BroadcastGroup::kRootDomain},
                             Word<BroadcastGroup>{"generators", BroadcastGroup::kGenerators},
                             Word<BroadcastGroup>{"pairs", BroadcastGroup::kPairs}};
constexpr std::array kOrders{Word<TransferOrder>{"by-tensor", TransferOrder::kByTensor},
                             Word<TransferOrder>{"rounds", TransferOrder::kRounds}};
constexpr std::array kOverlaps{Word<PackOverlap>{"pipelined", PackOverlap::kPipelined},
                               Word<PackOverlap>{"serial", PackOverlap::kSerial}};
constexpr std::array kSources{Word<DirectSource>{"shards", DirectSource::kShards},
                              Word<DirectSource>{"gathered", DirectSource::kGathered}};
constexpr std::array kLoadings{Word<DirectLoading>{"none", DirectLoading::kNone},
                               Word<DirectLoading>{"local", DirectLoading::kLocal},
                               Word<DirectLoading>{"all", DirectLoading::kAll}};
constexpr std::array kFinalizing{Word<FinalizeReading>{"per-expert", FinalizeReading::kPerExpert},
                                 Word<FinalizeReading>{"slow-all-gather", FinalizeReading::kSlowAllGather},
                                 Word<FinalizeReading>{"per-local-byte", FinalizeReading::kPerLocalByte}};
constexpr std::array kBulkCosts{Word<BulkCostReading>{"per-parameter", BulkCostReading::kPerParameter},
                                Word<BulkCostReading>{"floor", BulkCostReading::kFloor},
                                Word<BulkCostReading>{"per-expert", BulkCostReading::kPerExpert}};
constexpr std::array kReplicaRings{Word<ReplicaRingReading>{"one-nic", ReplicaRingReading::kOneNic},
                                   Word<ReplicaRingReading>{"every-nic", ReplicaRingReading::kEveryNic}};
constexpr std::array kFlags{Word<bool>{"false", false}, Word<bool>{"true", true}};

class VariantReader {
public:
    VariantReader(const ScenarioDraft& draft, Faults& faults) : draft_{draft}, faults_{faults} {}

    /// `target`: the value, or an optional of it.
    template <class Value, class Target>
    void word(const char* option, std::span<const Word<Value>> words, Target& target) {
        const auto name = std::string{"engine.options."} + option;
        const auto* field = draft_.find(name);
        if (field == nullptr) {
            return;
        }
        std::vector<std::string> known;
        for (const auto& [text, value] : words) {
            if (text == field->text) {
                target = value;
                return;
            }
            known.emplace_back(text);
        }
        refuse(name,
               *field,
               "unknown-value",
               "'" + field->text + "' is none of " + join_names(known),
               nearest_name(field->text, known));
    }

    void count(const char* option, std::uint32_t& target) {
        const auto name = std::string{"engine.options."} + option;
        const auto* field = draft_.find(name);
        if (field == nullptr) {
            return;
        }
        const auto& text = field->text;
        std::uint32_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMostSenders) {
            refuse(name,
                   *field,
                   "number-range",
                   "'" + text + "' is not a whole number from 1 to " + std::to_string(kMostSenders),
                   "1");
            return;
        }
        target = value;
    }

private:
    void refuse(const std::string& name,
                const DraftField& field,
                const char* rule,
                const std::string& what,
                const std::string& nearest) {
        faults_.push_back({ErrorCode::kInvalidInput,
                           rule,
                           name + ": " + what,
                           field.origin,
                           Suggestion{name, nearest, ""}});
    }

    const ScenarioDraft& draft_;
    Faults& faults_;
};

}  // namespace

void read_engine_variants(const ScenarioDraft& draft, EngineOptions& options, Faults& faults) {
    VariantReader reader{draft, faults};
    reader.word<BroadcastRoot>("broadcast_root", kRoots, options.broadcast_root);
    reader.word<BroadcastGroup>("broadcast_group", kGroups, options.broadcast_group);
    reader.count("broadcast_senders", options.broadcast_senders);
    reader.word<bool>("broadcast_in_turns", kFlags, options.broadcast_in_turns);
    reader.word<PackOverlap>("pack_overlap", kOverlaps, options.pack_overlap);
    reader.word<PackOverlap>("direct_overlap", kOverlaps, options.direct_overlap);
    reader.word<DirectSource>("direct_source", kSources, options.direct_source);
    reader.word<DirectLoading>("direct_loading", kLoadings, options.direct_loading);
    reader.word<TransferOrder>("transfer_order", kOrders, options.transfer_order);
    reader.word<bool>("shadow_copy", kFlags, options.has_shadow_copy);
    reader.word<FinalizeReading>("finalize", kFinalizing, options.reading.finalize);
    reader.word<BulkCostReading>("bulk_cost", kBulkCosts, options.reading.bulk_cost);
    reader.word<ReplicaRingReading>("replica_ring", kReplicaRings, options.reading.replica_ring);
}

}  // namespace refit::io
