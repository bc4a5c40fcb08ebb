// SPDX-License-Identifier: Apache-2.0
#include "refit/inventory.hpp"

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models.hpp"

namespace refit {
namespace {

using testing_models::shipped;
using testing_models::test_name;

/// Exact counts by part, published with the model collection.
struct Expected {
    std::string id;
    std::uint64_t parameters, tensors, mtp_parameters, mtp_tensors, vision_parameters, vision_tensors,
        ffn_parameters;
};

void PrintTo(const Expected& expected, std::ostream* stream) {
    *stream << expected.id;
}

class PublishedCounts : public testing::TestWithParam<Expected> {};

TEST_P(PublishedCounts, AreMetExactlyByPart) {
    const auto& expected = GetParam();
    const auto inventory = shipped(expected.id);
    const auto text = inventory.totals(ModelPart::kText);
    EXPECT_EQ(text.parameters, expected.parameters);
    EXPECT_EQ(text.tensors, expected.tensors);
    EXPECT_EQ(inventory.totals(ModelPart::kMtp).parameters, expected.mtp_parameters);
    EXPECT_EQ(inventory.totals(ModelPart::kMtp).tensors, expected.mtp_tensors);
    EXPECT_EQ(inventory.totals(ModelPart::kVision).parameters, expected.vision_parameters);
    EXPECT_EQ(inventory.totals(ModelPart::kVision).tensors, expected.vision_tensors);
    std::uint64_t ffn = 0;
    for (const auto& entry : inventory.payload()) {
        ffn += entry.is_ffn ? entry.parameters() * entry.tensors() : 0;
    }
    EXPECT_EQ(ffn, expected.ffn_parameters);
}

TEST_P(PublishedCounts, MakeUpThePayloadWithoutMtp) {
    const auto& expected = GetParam();
    const auto totals = shipped(expected.id).payload_totals();
    EXPECT_EQ(totals.parameters, expected.parameters + expected.vision_parameters);
    EXPECT_EQ(totals.tensors, expected.tensors + expected.vision_tensors);
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    PublishedCounts,
    testing::Values(
        Expected{"deepseek-v3", 671026419200, 45395, 13463426304, 788, 0, 0, 655097856000},
        Expected{"glm-4.5", 352797829024, 44189, 5539962272, 502, 0, 0, 336529981440},
        Expected{"glm-4.5-air", 106852251264, 17925, 3616573568, 404, 0, 0, 99791142912},
        Expected{"glm-4.7-flash", 29943393920, 9491, 1278094656, 212, 0, 0, 27845984256},
        Expected{"glm-5", 743911218432, 59079, 9952920576, 791, 0, 0, 725455208448},
        Expected{"glm-5-4-layers", 12983272704, 841, 0, 0, 0, 0, 10343153664},
        Expected{"glm-5.2", 743377019904, 58794, 9952920576, 791, 0, 0, 725455208448},
        Expected{"glm-z1-9b", 9400279040, 523, 0, 0, 0, 0, 6731857920},
        Expected{"kimi-k2", 1026408232448, 69975, 0, 0, 0, 0, 1015082385408},
        Expected{"kimi-k3", 2779484476000, 249756, 0, 0, 447358976, 168, 2723467493376},
        Expected{"llama-3.1-8b", 8030261248, 291, 0, 0, 0, 0, 5637144576},
        Expected{"llama-3.1-70b", 70553706496, 723, 0, 0, 0, 0, 56371445760},
        Expected{"llama-3.1-405b", 405853388800, 1137, 0, 0, 0, 0, 329772957696},
        Expected{"qwen3-4b", 4022468096, 398, 0, 0, 0, 0, 2689597440},
        Expected{"qwen3-32b", 32762123264, 707, 0, 0, 0, 0, 25165824000},
        Expected{"moonlight-16b-a3b", 15960110208, 5317, 0, 0, 0, 0, 14464057344},
        Expected{"qwen2.5-0.5b", 494032768, 290, 0, 0, 0, 0, 313786368},
        Expected{"qwen2.5-1.5b", 1543714304, 338, 0, 0, 0, 0, 1156055040},
        Expected{"qwen2.5-3b", 3085938688, 434, 0, 0, 0, 0, 2434793472},
        Expected{"qwen2.5-7b", 7615616512, 339, 0, 0, 0, 0, 5703204864},
        Expected{"qwen2.5-14b", 14770033664, 579, 0, 0, 0, 0, 10192158720},
        Expected{"qwen2.5-32b", 32763876352, 771, 0, 0, 0, 0, 27179089920},
        Expected{"qwen3-0.6b", 596049920, 310, 0, 0, 0, 0, 264241152},
        Expected{"qwen3-1.7b", 1720574976, 310, 0, 0, 0, 0, 1056964608},
        Expected{"qwen3-14b", 14768307200, 443, 0, 0, 0, 0, 10695475200},
        Expected{"qwen3-8b", 8190735360, 399, 0, 0, 0, 0, 5435817984},
        Expected{"qwen3.5-27b", 26895998464, 851, 424699392, 15, 460730096, 333, 17112760320},
        Expected{"qwen3.5-397b-a17b", 396346350336, 93078, 6595568128, 1553, 456010480, 333, 386547056640},
        Expected{"qwen2.5-72b", 72706203648, 963, 0, 0, 0, 0, 58133053440},
        Expected{"nemotron-3-nano-30b-a3b", 31577940288, 6243, 0, 0, 0, 0, 29374808064},
        Expected{"nemotron-3-super-120b-a12b", 120668707840, 41643, 2942325248, 1040, 0, 0, 112742891520},
        Expected{"nemotron-3-ultra-550b-a55b", 549308993536, 49983, 11215610368, 1040, 0, 0, 515396075520},
        Expected{"qwen3-235b-a22b", 235093634560, 36945, 0, 0, 0, 0, 227096395776},
        Expected{"qwen3-30b-a3b", 30532122624, 18867, 0, 0, 0, 0, 28991029248},
        Expected{"qwen3.8-2.4t-a95b", 2419804697984, 142718, 26378027520, 1553, 0, 0, 2370821947392},
        Expected{"teaching-matrix", 4294967296, 1, 0, 0, 0, 0, 4294967296}),
    [](const auto& test) { return test_name(test.param.id); });

/// Tasks of the trainers' export for the text part without routed experts: one for each tensor that Megatron
/// stores, so q, k and v are one, and so are gate and up. `sharded` ones are cut over tensor parallelism.
struct DenseTasks {
    std::string id;
    std::uint64_t all, sharded;
};

void PrintTo(const DenseTasks& tasks, std::ostream* stream) {
    *stream << tasks.id;
}

class ExportTasks : public testing::TestWithParam<DenseTasks> {};

TEST_P(ExportTasks, AreThePublishedNumberForDenseTensors) {
    std::uint64_t all = 0;
    std::uint64_t sharded = 0;
    const auto inventory = shipped(GetParam().id);
    for (const auto& entry : inventory.classes()) {
        if (entry.part == ModelPart::kText && !entry.is_expert() && entry.task != ExportTask::kFusedMember) {
            all += entry.tensors();
            sharded += entry.sharding == Sharding::kReplicated ? 0 : entry.tensors();
        }
    }
    EXPECT_EQ(all, GetParam().all);
    EXPECT_EQ(sharded, GetParam().sharded);
}

// Outside the layers: embedding, final norm, head: 3, of which 2 sharded.
// DeepSeek-V3, all 61 layers: 2 norms, q_a, q_a norm, q_b, kv_a, kv_a norm, kv_b, o = 9 (3 sharded: q_b,
// kv_b, o);
//   3 dense layers: gate+up, down = 2 (2); 58 MoE layers: gate, bias, shared gate+up, shared down = 4 (2).
//   61·9 + 3·2 + 58·4 + 3 = 790;  61·3 + 3·2 + 58·2 + 2 = 307.
// Kimi-K3, all 93 layers: 2 norms, 2 residual norms, 2 residual projections = 6 (0); 69 KDA: q, k, v, 3
// convolutions,
//   f_a, f_b, b, g, A_log, dt_bias, o_norm, o = 14 (12); 24 MLA: 7 of the above and g = 8 (4); 1 dense: 2
//   (2); 92 MoE: gate, bias, down, norm, up, shared gate+up, shared down = 7 (2); outside 2 more for the
//   residual. 93·6 + 69·14 + 24·8 + 2 + 92·7 + 5 = 2367;  69·12 + 24·4 + 2 + 92·2 + 2 = 1112.
// Nemotron Ultra, 48 Mamba: norm, in_proj, conv weight, conv bias, A_log, D, dt_bias, norm, out_proj = 9 (8);
//   12 attention: norm, qkv, o = 3 (2); 48 MoE: norm, gate, bias, 2 latent, shared up, shared down = 7 (2).
//   48·9 + 12·3 + 48·7 + 3 = 807;  48·8 + 12·2 + 48·2 + 2 = 506.
// Qwen3-235B, 94 layers: 2 norms, qkv, q norm, k norm, o, gate = 7 (2).
//   94·7 + 3 = 661;  94·2 + 2 = 190.
// Qwen3.8, all 92 layers: 2 norms, gate, shared gate+up, shared down, shared gate = 6 (2); 69 GDN: in_proj,
// conv,
//   dt_bias, A_log, norm, out_proj = 6 (5); 23 full: qkv, q norm, k norm, o = 4 (2).
//   92·6 + 69·6 + 23·4 + 3 = 1061;  92·2 + 69·5 + 23·2 + 2 = 577.
INSTANTIATE_TEST_SUITE_P(Models,
                         ExportTasks,
                         testing::Values(DenseTasks{"deepseek-v3", 790, 307},
                                         DenseTasks{"kimi-k3", 2367, 1112},
                                         DenseTasks{"nemotron-3-ultra-550b-a55b", 807, 506},
                                         DenseTasks{"qwen3-235b-a22b", 661, 190},
                                         DenseTasks{"qwen3.8-2.4t-a95b", 1061, 577}),
                         [](const auto& test) { return test_name(test.param.id); });

class ShippedModel : public testing::TestWithParam<std::string> {};

TEST_P(ShippedModel, NamesEachTensorOnceInALayerInRange) {
    const auto inventory = shipped(GetParam());
    std::set<std::pair<std::string, std::uint32_t>> tensors;
    for (const auto& entry : inventory.classes()) {
        EXPECT_EQ(entry.layers.empty(), entry.name.find("{layer}") == std::string::npos) << entry.name;
        EXPECT_EQ(entry.is_expert(), entry.name.find("{expert}") != std::string::npos) << entry.name;
        EXPECT_TRUE(std::ranges::is_sorted(entry.layers)) << entry.name;
        const auto layers = entry.layers.empty() ? std::vector<std::uint32_t>{0} : entry.layers;
        for (const auto layer : layers) {
            EXPECT_TRUE(tensors.emplace(entry.name, layer).second) << entry.name << " in layer " << layer;
        }
        if (entry.part == ModelPart::kText) {
            EXPECT_LT(layers.back(), inventory.layers()) << entry.name;
        }
    }
}

TEST_P(ShippedModel, CutsEverySegmentInWholeUnits) {
    const auto inventory = shipped(GetParam());
    for (const auto& entry : inventory.classes()) {
        if (entry.sharding == Sharding::kReplicated || entry.sharding == Sharding::kVocabulary) {
            continue;
        }
        ASSERT_GT(entry.units, 0U) << entry.name;
        EXPECT_FALSE(entry.units_name.empty()) << entry.name;
        const auto cut = entry.shape.at(entry.sharding == Sharding::kRow ? 1 : 0);
        const auto segments = entry.segments.empty() ? std::vector<std::uint64_t>{cut} : entry.segments;
        std::uint64_t sum = 0;
        for (const auto segment : segments) {
            EXPECT_EQ(segment % entry.units, 0U) << entry.name;
            sum += segment;
        }
        EXPECT_LE(sum, cut) << entry.name;
    }
}

TEST_P(ShippedModel, FollowsEveryFusedLeaderByAMember) {
    const auto inventory = shipped(GetParam());
    const auto classes = inventory.classes();
    for (std::size_t i = 0; i < classes.size(); ++i) {
        if (classes[i].task == ExportTask::kFusedLeader) {
            ASSERT_LT(i + 1, classes.size());
            EXPECT_EQ(classes[i + 1].task, ExportTask::kFusedMember) << classes[i].name;
            EXPECT_EQ(classes[i + 1].layers, classes[i].layers) << classes[i].name;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All,
                         ShippedModel,
                         testing::Values("deepseek-v3",
                                         "glm-4.5-air",
                                         "glm-4.7-flash",
                                         "glm-5",
                                         "glm-5.2",
                                         "glm-z1-9b",
                                         "kimi-k2",
                                         "kimi-k3",
                                         "moonlight-16b-a3b",
                                         "nemotron-3-nano-30b-a3b",
                                         "nemotron-3-super-120b-a12b",
                                         "nemotron-3-ultra-550b-a55b",
                                         "qwen3-235b-a22b",
                                         "qwen3-30b-a3b",
                                         "qwen3.5-27b",
                                         "qwen3.5-397b-a17b",
                                         "qwen3.8-2.4t-a95b",
                                         "teaching-matrix"),
                         [](const auto& test) { return test_name(test.param); });

/// What Hugging Face counts in a model's safetensors, MTP and vision included.
class HubTotals : public testing::TestWithParam<std::pair<std::string, std::uint64_t>> {};

TEST_P(HubTotals, AreMetExactlyWithMtpAndVision) {
    const auto inventory = shipped(GetParam().first);
    EXPECT_EQ(inventory.payload_totals().parameters + inventory.totals(ModelPart::kMtp).parameters, GetParam().second);
}

// Moonlight's is 15,960,111,936: 64 for each of its 27 layers more than its parameters, perhaps rotary frequencies.
INSTANTIATE_TEST_SUITE_P(Models,
                         HubTotals,
                         testing::Values(std::pair{"glm-4.5", 358'337'791'296U},
                                         std::pair{"glm-4.5-air", 110'468'824'832U},
                                         std::pair{"glm-4.7-flash", 31'221'488'576U},
                                         std::pair{"glm-5", 753'864'139'008U},
                                         std::pair{"glm-5.2", 753'329'940'480U},
                                         std::pair{"glm-z1-9b", 9'400'279'040U},
                                         std::pair{"qwen2.5-0.5b", 494'032'768U},
                                         std::pair{"qwen2.5-1.5b", 1'543'714'304U},
                                         std::pair{"qwen2.5-3b", 3'085'938'688U},
                                         std::pair{"qwen2.5-7b", 7'615'616'512U},
                                         std::pair{"qwen2.5-14b", 14'770'033'664U},
                                         std::pair{"qwen2.5-32b", 32'763'876'352U},
                                         std::pair{"qwen3-0.6b", 596'049'920U},
                                         std::pair{"qwen3-8b", 8'190'735'360U},
                                         std::pair{"qwen3-14b", 14'768'307'200U},
                                         std::pair{"qwen3.5-27b", 27'781'427'952U}),
                         [](const auto& test) { return test_name(test.param.first); });

TEST(Inventory, TakesItsTitleFromTheFactsOrElseItsId) {
    EXPECT_EQ(shipped("kimi-k3").title(), "Kimi-K3");
    Facts facts{"config.json"};
    facts.set("model_type", std::string{"teaching_matrix"});
    facts.set("rows", std::int64_t{2});
    facts.set("columns", std::int64_t{3});
    EXPECT_EQ(Inventory::make("mine", facts).value().title(), "mine");
}

TEST(Inventory, CountsExpertsAndTheirLayersWithoutMtp) {
    const auto ultra = shipped("nemotron-3-ultra-550b-a55b");
    EXPECT_EQ(ultra.layers(), 108U);
    EXPECT_EQ(ultra.experts(), 512U);
    EXPECT_EQ(ultra.moe_layers(), 48U);  // The MTP module has one more.
    EXPECT_EQ(shipped("teaching-matrix").experts(), 0U);
}

TEST(Inventory, NamesTheNearestFamilyForAnUnknownOne) {
    Facts facts{"a/config.json"};
    facts.set("model_type", std::string{"qwen3_mo"});
    const auto inventory = Inventory::make("mine", facts);
    ASSERT_FALSE(inventory.has_value());
    ASSERT_EQ(inventory.error().size(), 1U);
    const auto& fault = inventory.error().front();
    EXPECT_EQ(fault.code, ErrorCode::kInvalidInput);
    EXPECT_EQ(fault.rule, "unknown-family");
    EXPECT_NE(fault.message.find("the nearest is 'qwen3_moe'"), std::string::npos) << fault.message;
    EXPECT_EQ(fault.where, "a/config.json");
}

TEST(Inventory, RefusesSizesThatMultiplyOutBeyond64Bits) {
    // Embedding and head: 2·(2^31 − 1)²·2 bytes, just below 2^64; with the layer it is above.
    auto facts = testing_models::shipped_facts("qwen3-30b-a3b");
    facts.set("vocab_size", std::int64_t{2147483647});
    facts.set("hidden_size", std::int64_t{2147483647});
    const auto inventory = Inventory::make("huge", facts);
    ASSERT_FALSE(inventory.has_value());
    EXPECT_EQ(inventory.error().front().rule, "overflow");
}

TEST(NativeBytes, AreThoseOfThePublicCheckpoints) {
    // Tensor data of the Hugging Face repositories: their safetensors bytes less 115 to 152 bytes of header a tensor
    // (688,586,727,753 and 1,029,190,981,272 and 1,560,936,091,448 bytes with headers).
    const auto native = [](const std::string& id) {
        const auto inventory = shipped(id);
        return (inventory.payload_totals().native_bytes + inventory.totals(ModelPart::kMtp).native_bytes).count();
    };
    EXPECT_EQ(native("deepseek-v3"), 688'574'839'360U);
    EXPECT_EQ(native("kimi-k2"), 1'029'173'249'888U);
    EXPECT_EQ(native("kimi-k3"), 1'560'860'307'200U);
    EXPECT_EQ(native("qwen3-235b-a22b"), 470'187'269'120U);
    // `total_size` of the index of Qwen3.8-27B, which has the same shape as Qwen3.5-27B.
    EXPECT_EQ(native("qwen3.5-27b"), 55'562'855'904U);
}

}  // namespace
}  // namespace refit
