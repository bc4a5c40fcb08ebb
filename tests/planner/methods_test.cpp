// SPDX-License-Identifier: Apache-2.0
#include "refit/methods.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/layout_check.hpp"

namespace refit {
namespace {

std::uint64_t flat_index(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& index) {
    std::uint64_t flat = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        flat = flat * shape[axis] + index[axis];
    }
    return flat;
}

/// Calls `visit` with the flat index of each element of a box.
template <class Visit>
void for_each_element(const std::vector<std::uint64_t>& shape, const Box& box, Visit&& visit) {
    std::vector<std::uint64_t> index;
    for (const auto& axis : box.axes()) {
        index.push_back(axis.begin);
    }
    for (std::uint64_t left = box.volume(); left > 0; --left) {
        visit(flat_index(shape, index));
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            if (++index[axis] < box.axes()[axis].end) {
                break;
            }
            index[axis] = box.axes()[axis].begin;
        }
    }
}

std::set<std::uint64_t> elements(const std::vector<std::uint64_t>& shape, const std::vector<Box>& boxes) {
    std::set<std::uint64_t> all;
    for (const auto& box : boxes) {
        for_each_element(shape, box, [&](std::uint64_t element) { all.insert(element); });
    }
    return all;
}

const Shard* shard_of(const Distribution& distribution, std::uint32_t member) {
    for (const auto& shard : distribution.shards()) {
        if (std::ranges::find(shard.members, member) != shard.members.end()) {
            return &shard;
        }
    }
    return nullptr;
}

using Writes = std::map<std::uint32_t, std::map<std::uint64_t, int>>;

/// What each generator receives of one logical tensor, element by element; checks that every source holds what it sends.
Writes writes_of(const TransferBlock& block, const WorkloadClass& entry, const std::vector<std::uint64_t>& shape) {
    Writes writes;
    for (std::size_t i = 0; i < block.size(); ++i) {
        const auto* held = shard_of(entry.source, block.source[i]);
        EXPECT_NE(held, nullptr);
        const auto has = elements(shape, held->boxes);
        for_each_element(shape, block.boxes[block.box[i]], [&](std::uint64_t element) {
            EXPECT_TRUE(has.contains(element)) << entry.parameter.name;
            ++writes[block.destination[i]][element];
        });
    }
    return writes;
}

/// After transfers and the replicas' sharing, each receiver of the shard has each of its elements exactly once.
void expect_delivery(const Plan& plan, std::uint32_t index, const Workload& workload, bool replicas_share) {
    const auto& block = plan.blocks[index];
    const auto& entry = workload.classes()[block.parameter];
    const std::vector<std::uint64_t> shape{entry.source.shape().begin(), entry.source.shape().end()};
    const auto writes = writes_of(block, entry, shape);
    const auto& destination = entry.destinations.front();
    for (const auto& shard : destination.shards()) {
        const auto wanted = elements(shape, shard.boxes);
        std::map<std::uint64_t, int> shared;
        for (const auto member : shard.members) {
            const auto found = writes.find(member);
            const auto own = found == writes.end() ? std::map<std::uint64_t, int>{} : found->second;
            for (const auto& [element, count] : own) {
                EXPECT_TRUE(wanted.contains(element)) << entry.parameter.name;
                shared[element] += count;
            }
            if (!replicas_share) {
                EXPECT_EQ(own.size(), wanted.size()) << entry.parameter.name << " on " << member;
                for (const auto& [element, count] : own) {
                    EXPECT_EQ(count, 1) << entry.parameter.name;
                }
            }
        }
        if (replicas_share) {
            EXPECT_EQ(shared.size(), wanted.size()) << entry.parameter.name;
            for (const auto& [element, count] : shared) {
                EXPECT_EQ(count, 1) << entry.parameter.name << " element " << element;
            }
        }
    }
}

/// Qwen3-MoE's structure, small enough to check every element.
Scenario small_scenario(const std::string& train, const std::string& generate, const std::string& coverage = "nemo-rl-names") {
    Facts facts{"small"};
    facts.set("model_type", std::string{"qwen3_moe"});
    for (const auto& [key, value] : std::initializer_list<std::pair<const char*, std::int64_t>>{{"hidden_size", 8},
                                                                                               {"num_hidden_layers", 4},
                                                                                               {"vocab_size", 256},
                                                                                               {"num_attention_heads", 8},
                                                                                               {"num_key_value_heads", 2},
                                                                                               {"head_dim", 4},
                                                                                               {"intermediate_size", 16},
                                                                                               {"moe_intermediate_size", 8},
                                                                                               {"num_experts", 8},
                                                                                               {"decoder_sparse_step", 1}}) {
        facts.set(key, value);
    }
    facts.set("mlp_only_layers", std::vector<std::int64_t>{});
    facts.set("tie_word_embeddings", false);
    facts.set("attention_bias", false);
    auto scenario = shipped_scenario("reshard-one-domain");
    scenario.model = Inventory::make("small", facts).value();
    const auto train_text = parse_layout(train).value();
    const auto generate_text = parse_layout(generate).value();
    scenario.train = make_train_layout(train_text, *train_text.gpus, scenario.model).value();
    scenario.generate = make_generate_layout(generate_text, *generate_text.gpus, scenario.model).value();
    scenario.coverage = parse_coverage(coverage).value();
    scenario.facts["train.etp"] = std::to_string(scenario.train.etp);
    scenario.facts["generate.tp"] = std::to_string(scenario.generate.tp);
    scenario.facts["generate.pp"] = std::to_string(scenario.generate.pp);
    scenario.facts["generate.ep"] = std::to_string(scenario.generate.ep);
    scenario.cluster = Cluster{scenario.cluster.train_system(), scenario.cluster.generate_system(), scenario.train.gpus,
                               scenario.generate.gpus, scenario.cluster.placement()};
    return scenario;
}

struct LayoutPair {
    const char* train;
    const char* generate;
};

class DeliveryOf : public testing::TestWithParam<LayoutPair> {};

TEST_P(DeliveryOf, DirectGivesEachReceiverEachElementOnce) {
    const auto scenario = small_scenario(GetParam().train, GetParam().generate);
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kDirect, scenario, workload).value();
    for (std::uint32_t i = 0; i < plan.blocks.size(); ++i) {
        expect_delivery(plan, i, workload, false);
    }
}

TEST_P(DeliveryOf, StripedGivesTheReplicasTogetherEachElementOnce) {
    const auto scenario = small_scenario(GetParam().train, GetParam().generate);
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kStriped, scenario, workload).value();
    for (std::uint32_t i = 0; i < plan.blocks.size(); ++i) {
        expect_delivery(plan, i, workload, true);
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts,
                         DeliveryOf,
                         testing::Values(LayoutPair{"pp2.ep4@8", "tp4.dp2@8"},
                                         LayoutPair{"tp2.ep2@4", "tp1.dp3@3"},
                                         LayoutPair{"tp8.pp2.ep8@16", "tp4.dp4@16"},  // cuts through KV groups
                                         LayoutPair{"tp2.cp2.ep8@8", "tp4.ep4.dp2@8"},
                                         LayoutPair{"tp4.ep2.etp2@4", "tp2.dp4.ep8@8"},
                                         LayoutPair{"fsdp8@8", "tp4.dp2@8"},
                                         LayoutPair{"fsdp5.dp2@10", "tp2.dp4@8"},  // uneven rows, replicas
                                         LayoutPair{"ep4.fsdp2@8", "tp2.dp4.ep8@8"},
                                         LayoutPair{"ep2.fsdp3.dp2@12", "tp4.dp2@8"}));

TEST(Methods, ReshardMeansHybridAndTyposGetTheNearest) {
    EXPECT_EQ(parse_method("reshard").value(), Method::kHybrid);
    const auto unknown = parse_method("stripes");
    ASSERT_FALSE(unknown.has_value());
    EXPECT_NE(unknown.error().front().message.find("'striped'"), std::string::npos);
}

TEST(Methods, ExportCallsOfThePublishedModelsAreCountedFromTheInventory) {
    // DeepSeek-V3: 790 dense tasks (PP) + 58 x 16 local experts x (2 PP + 3 EP); no TP.
    // Qwen3-235B: 661 + 94 x 8 x 5, and 190 TP-sharded dense tasks.
    // Nemotron Ultra, without gates: 807 + 48 x 16 x (2 + 2), and 506 TP-sharded dense tasks.
    const auto calls = [](const std::string& name) {
        const auto scenario = shipped_scenario(name);
        const auto plan = make_plan(Method::kGatherBroadcast, scenario, Workload::make(scenario)).value();
        std::uint64_t sum = 0;
        for (const auto& collective : plan.stages.front().collectives) {
            sum += collective.calls;
        }
        return sum;
    };
    EXPECT_EQ(calls("deepseek-v3-h100"), 790U + 58 * 16 * 5);
    EXPECT_EQ(calls("deepseek-v3-h100"), 5430U);
    EXPECT_EQ(calls("qwen3-235b-h100"), 661U + 94 * 8 * 5 + 190);
    EXPECT_EQ(calls("nemotron-ultra-gb200"), 807U + 48 * 16 * 4 + 506);
}

TEST(Methods, TrainersPadTheVocabularyToTheirTpBeforeTheyGatherIt) {
    // Qwen3-235B, TP4: 151,936 rows are padded to 152,064 = 297 x 512. The TP all-gather carries the padded embedding
    // and head, 128 x 4096 x 2 B more each than the tensors have.
    const auto scenario = shipped_scenario("qwen3-235b-h100");
    const auto plan = make_plan(Method::kGatherBroadcast, scenario, Workload::make(scenario)).value();
    std::uint64_t sharded = 0;
    for (const auto& entry : scenario.payload()) {
        sharded += entry.sharding != Sharding::kReplicated && !entry.is_expert() ? entry.bytes().count() : 0;
    }
    for (const auto& collective : plan.stages.front().collectives) {
        if (collective.role == CollectiveRole::kTensorAllGather) {
            EXPECT_EQ(collective.bytes.front(), sharded + 2 * (128 * 4096 * 2));
            EXPECT_EQ(collective.bytes.size(), 128U / 4);
        }
    }
}

TEST(Methods, HybridRefusesWhatNemoRlRefusesAllAtOnce) {
    const auto scenario = small_scenario("tp4.ep2.etp2@4", "tp2.pp2.dp2@8");
    const auto plan = make_plan(Method::kHybrid, scenario, Workload::make(scenario));
    ASSERT_FALSE(plan.has_value());
    ASSERT_EQ(plan.error().size(), 2U);
    EXPECT_EQ(plan.error()[0].rule, "train-etp");
    EXPECT_EQ(plan.error()[1].rule, "generate-pp");
    EXPECT_NE(plan.error()[1].message.find("[nemo-rl@2026-11 rule 19]"), std::string::npos);
    const auto mended = small_scenario(plan.error()[0].nearest->value + "@4", plan.error()[1].nearest->value + "@8");
    EXPECT_TRUE(make_plan(Method::kHybrid, mended, Workload::make(mended)).has_value());
}

TEST(Methods, HybridRefusesExpertsThatArePlacedInTurn) {
    auto scenario = small_scenario("pp2.ep4@8", "tp2.dp4.ep8@8");
    scenario.generate.expert_placement = ExpertPlacement::kRoundRobin;
    const auto plan = make_plan(Method::kHybrid, scenario, Workload::make(scenario));
    ASSERT_FALSE(plan.has_value());
    EXPECT_EQ(plan.error().front().rule, "expert-placement");
    EXPECT_EQ(plan.error().front().nearest.value(), (Suggestion{"generate.expert_placement", "linear", ""}));
    // The other methods send what lies where it lies.
    EXPECT_TRUE(make_plan(Method::kStriped, scenario, Workload::make(scenario)).has_value());
}

TEST(Methods, TheRulesOfAugustWantGenerationEpOneOrTp) {
    auto scenario = small_scenario("pp2.ep4@8", "tp2.dp4.ep8@8");
    scenario.rules = shipped_library().rules("nemo-rl", "2026-08").value();
    const auto refused = make_plan(Method::kHybrid, scenario, Workload::make(scenario));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().front().rule, "generate-ep");
    EXPECT_EQ(refused.error().front().nearest->value, "tp2.dp4.ep2");
    scenario.rules = shipped_library().rules("nemo-rl", "2026-11").value();
    EXPECT_TRUE(make_plan(Method::kHybrid, scenario, Workload::make(scenario)).has_value());
}

TEST(Methods, TheSameScenarioGivesTheSamePlan) {
    const auto scenario = shipped_scenario("qwen3-235b-h100");
    const auto workload = Workload::make(scenario);
    EXPECT_EQ(make_plan(Method::kHybrid, scenario, workload).value(), make_plan(Method::kHybrid, scenario, workload).value());
}

TEST(Methods, WithoutReplicasStripesFallBackToTheFirstHolder) {
    // R = 1: nothing to stripe, so NeMo RL sends every box from its first holder. Replicated parameters, and the two KV
    // heads on four ranks, do have replicas.
    const auto scenario = small_scenario("tp1@4", "tp4@4");
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kStriped, scenario, workload).value();
    std::size_t seen = 0;
    for (const auto& block : plan.blocks) {
        const auto& shards = workload.classes()[block.parameter].destinations.front().shards();
        if (shards.front().members.size() == 1) {
            EXPECT_EQ(std::ranges::count(block.source, 0U), static_cast<std::ptrdiff_t>(block.size()));
            ++seen;
        }
    }
    EXPECT_EQ(seen, 7U);  // embedding, q, o, gate, up, down, head
}

}  // namespace
}  // namespace refit
