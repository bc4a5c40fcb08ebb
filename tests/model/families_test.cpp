// SPDX-License-Identifier: Apache-2.0
// Names, shapes and sharding of each family, and the configs that each refuses.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "models.hpp"

namespace refit {
namespace {

using testing_models::class_named;
using testing_models::faults_of;
using testing_models::mentions;
using testing_models::shipped;
using testing_models::shipped_facts;
using Shape = std::vector<std::uint64_t>;

TEST(DeepSeekV3, HasLatentAttentionByHead) {
    const auto model = shipped("deepseek-v3");
    // 128 heads of 128 + 64 rows; of 128 + 128 rows; of 128 columns.
    const auto q_b = class_named(model, "model.layers.{layer}.self_attn.q_b_proj.weight");
    EXPECT_EQ(q_b.shape, (Shape{24576, 1536}));
    EXPECT_EQ(q_b.units, 128U);
    EXPECT_EQ(class_named(model, "model.layers.{layer}.self_attn.kv_b_proj.weight").shape,
              (Shape{32768, 512}));
    const auto o = class_named(model, "model.layers.{layer}.self_attn.o_proj.weight");
    EXPECT_EQ(o.shape, (Shape{7168, 16384}));
    EXPECT_EQ(o.sharding, Sharding::kRow);
    // The latent of 512 and 64 rows for positions.
    const auto kv_a = class_named(model, "model.layers.{layer}.self_attn.kv_a_proj_with_mqa.weight");
    EXPECT_EQ(kv_a.shape, (Shape{576, 7168}));
    EXPECT_EQ(kv_a.sharding, Sharding::kReplicated);
}

TEST(DeepSeekV3, HasThreeDenseLayersAndOneOfMtp) {
    const auto model = shipped("deepseek-v3");
    EXPECT_EQ(class_named(model, "model.layers.{layer}.mlp.up_proj.weight").layers,
              (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(class_named(model, "model.layers.{layer}.mlp.gate.weight").layers.front(), 3U);
    EXPECT_EQ(class_named(model, "model.layers.{layer}.eh_proj.weight").layers,
              (std::vector<std::uint32_t>{61}));
}

TEST(DeepSeekV3, TakesAModelWithoutDenseLayers) {
    auto facts = shipped_facts("kimi-k2");
    facts.set("first_k_dense_replace", std::int64_t{0});
    const auto model = Inventory::make("mine", facts).value();
    EXPECT_EQ(model.moe_layers(), 61U);
    for (const auto& entry : model.classes()) {
        EXPECT_EQ(entry.name.find("mlp.up_proj"), std::string::npos);
    }
}

TEST(DeepSeekV3, RefusesMoreDenseLayersThanLayers) {
    auto facts = shipped_facts("deepseek-v3");
    facts.set("first_k_dense_replace", std::int64_t{62});
    EXPECT_TRUE(mentions(faults_of(facts), "'first_k_dense_replace' is 62"));
}

TEST(DeepSeekV3, RefusesBillionsOfLayers) {
    auto facts = shipped_facts("deepseek-v3");
    facts.set("num_hidden_layers", std::int64_t{2147483647});
    EXPECT_TRUE(mentions(faults_of(facts), "at most 4096 layers"));
}

TEST(DeepSeekV3, ProjectsQueriesAtOnceWithoutALatent) {
    const auto model = shipped("moonlight-16b-a3b");
    // 16 heads of 128 + 64 rows, straight from the hidden 2048.
    const auto q = class_named(model, "model.layers.{layer}.self_attn.q_proj.weight");
    EXPECT_EQ(q.shape, (Shape{3072, 2048}));
    EXPECT_EQ(q.sharding, Sharding::kColumn);
    EXPECT_EQ(q.units, 16U);
    EXPECT_THROW((void)class_named(model, "model.layers.{layer}.self_attn.q_a_proj.weight"), std::out_of_range);
    // Two shared experts of 1408.
    EXPECT_EQ(class_named(model, "model.layers.{layer}.mlp.shared_experts.up_proj.weight").shape, (Shape{2816, 2048}));
}

TEST(DeepSeekV3, WantsALatentUnlessItIsNull) {
    Facts facts{"config.json"};
    facts.set("model_type", std::string{"deepseek_v3"});
    EXPECT_TRUE(mentions(faults_of(facts), "'q_lora_rank' is missing"));
}

TEST(Qwen3Moe, HasGroupedQueryAttention) {
    const auto model = shipped("qwen3-235b-a22b");
    // 64 query heads and 4 KV heads of 128 rows.
    const auto q = class_named(model, "model.layers.{layer}.self_attn.q_proj.weight");
    EXPECT_EQ(q.shape, (Shape{8192, 4096}));
    EXPECT_EQ(q.sharding, Sharding::kQuery);
    EXPECT_EQ(q.units, 64U);
    EXPECT_EQ(q.task, ExportTask::kFusedLeader);
    const auto k = class_named(model, "model.layers.{layer}.self_attn.k_proj.weight");
    EXPECT_EQ(k.shape, (Shape{512, 4096}));
    EXPECT_EQ(k.units, 4U);
    EXPECT_EQ(k.task, ExportTask::kFusedMember);
    EXPECT_EQ(class_named(model, "model.layers.{layer}.self_attn.q_norm.weight").shape, (Shape{128}));
    EXPECT_EQ(class_named(model, "model.layers.{layer}.self_attn.o_proj.weight").shape, (Shape{4096, 8192}));
}

TEST(Qwen3Moe, HasExpertsInEveryLayer) {
    const auto model = shipped("qwen3-30b-a3b");
    const auto up = class_named(model, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight");
    EXPECT_EQ(up.shape, (Shape{768, 2048}));
    EXPECT_EQ(up.tensors(), 6144U);  // 48 layers of 128.
    EXPECT_TRUE(up.is_ffn);
    EXPECT_EQ(class_named(model, "model.layers.{layer}.mlp.experts.{expert}.down_proj.weight").shape,
              (Shape{2048, 768}));
}

TEST(Qwen3Moe, PutsDenseLayersWhereTheConfigSaysSo) {
    auto facts = shipped_facts("qwen3-30b-a3b");
    facts.set("decoder_sparse_step", std::int64_t{2});
    facts.set("mlp_only_layers", std::vector<std::int64_t>{1});
    const auto model = Inventory::make("mine", facts).value();
    // Of 48 layers every other one, 1, 3 … 47, has experts, but for layer 1.
    EXPECT_EQ(model.moe_layers(), 23U);
    const auto up = class_named(model, "model.layers.{layer}.mlp.up_proj.weight");
    EXPECT_EQ(up.shape, (Shape{6144, 2048}));
    EXPECT_EQ(up.layers.size(), 25U);
    EXPECT_EQ(up.layers.at(1), 1U);
}

TEST(Qwen3Moe, RefusesADenseLayerOutOfRange) {
    auto facts = shipped_facts("qwen3-30b-a3b");
    facts.set("mlp_only_layers", std::vector<std::int64_t>{48});
    EXPECT_TRUE(mentions(faults_of(facts), "'mlp_only_layers' names layer 48, but the layers are 0 to 47"));
}

TEST(Qwen3Moe, NamesEveryMissingFieldAndTheFile) {
    Facts facts{"some/config.json"};
    facts.set("model_type", std::string{"qwen3_moe"});
    facts.set("hidden_siz", std::int64_t{2048});
    const auto faults = faults_of(facts);
    for (const auto* field : {"hidden_size",
                              "num_hidden_layers",
                              "vocab_size",
                              "num_attention_heads",
                              "num_key_value_heads",
                              "head_dim",
                              "num_experts",
                              "moe_intermediate_size"}) {
        EXPECT_TRUE(mentions(faults, "'" + std::string{field} + "' is missing")) << field;
    }
    EXPECT_EQ(faults.size(), 8U);
    for (const auto& fault : faults) {
        EXPECT_EQ(fault.where, "some/config.json");
        EXPECT_EQ(fault.rule, "missing-field");
    }
    EXPECT_TRUE(mentions(faults, "the nearest name there is 'hidden_siz'"));
}

TEST(Qwen3Moe, RefusesQueryHeadsThatFormNoGroups) {
    auto facts = shipped_facts("qwen3-30b-a3b");
    facts.set("num_key_value_heads", std::int64_t{5});
    EXPECT_TRUE(mentions(faults_of(facts), "'num_attention_heads' is 32, but must be a multiple of"));
}

TEST(Qwen3Moe, RefusesAttentionBiasAsNotModelled) {
    auto facts = shipped_facts("qwen3-30b-a3b");
    facts.set("attention_bias", true);
    const auto faults = faults_of(facts);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults.front().code, ErrorCode::kUnsupported);
}

TEST(Qwen3Moe, LeavesOutATiedHead) {
    auto facts = shipped_facts("qwen3-30b-a3b");
    facts.set("tie_word_embeddings", true);
    EXPECT_THROW((void)class_named(Inventory::make("mine", facts).value(), "lm_head.weight"),
                 std::out_of_range);
}

TEST(NemotronH, CutsTheMambaProjectionInFiveSegments) {
    const auto model = shipped("nemotron-3-ultra-550b-a55b");
    // 256 heads of 64: d = 16384. 8 groups of 128 states: 1024. z and x, B and C, dt:
    // 2·16384 + 2·1024 + 256 = 35072 rows; units: gcd(256, 8) = 8.
    const auto in = class_named(model, "backbone.layers.{layer}.mixer.in_proj.weight");
    EXPECT_EQ(in.shape, (Shape{35072, 8192}));
    EXPECT_EQ(in.segments, (Shape{16384, 16384, 1024, 1024, 256}));
    EXPECT_EQ(in.units, 8U);
    EXPECT_EQ(in.units_name, "Mamba groups");
    // x, B and C: 16384 + 2·1024.
    const auto convolution = class_named(model, "backbone.layers.{layer}.mixer.conv1d.weight");
    EXPECT_EQ(convolution.shape, (Shape{18432, 1, 4}));
    EXPECT_EQ(convolution.segments, (Shape{16384, 1024, 1024}));
    EXPECT_EQ(class_named(model, "backbone.layers.{layer}.mixer.A_log").shape, (Shape{256}));
    EXPECT_EQ(class_named(model, "backbone.layers.{layer}.mixer.out_proj.weight").shape,
              (Shape{8192, 16384}));
}

TEST(NemotronH, HasUngatedExpertsInTheLatentSpace) {
    const auto model = shipped("nemotron-3-ultra-550b-a55b");
    const auto up = class_named(model, "backbone.layers.{layer}.mixer.experts.{expert}.up_proj.weight");
    EXPECT_EQ(up.shape, (Shape{5120, 2048}));
    EXPECT_EQ(up.task, ExportTask::kOwn);
    EXPECT_EQ(up.tensors(), 24576U);  // 48 layers of 512.
    const auto latent = class_named(model, "backbone.layers.{layer}.mixer.fc1_latent_proj.weight");
    EXPECT_EQ(latent.shape, (Shape{2048, 8192}));
    EXPECT_EQ(latent.sharding, Sharding::kReplicated);
    const auto shared = class_named(model, "backbone.layers.{layer}.mixer.shared_experts.up_proj.weight");
    EXPECT_EQ(shared.shape, (Shape{10240, 8192}));
    EXPECT_FALSE(shared.is_ffn);
}

TEST(NemotronH, HasNoLatentProjectionInNano) {
    const auto model = shipped("nemotron-3-nano-30b-a3b");
    EXPECT_EQ(class_named(model, "backbone.layers.{layer}.mixer.experts.{expert}.up_proj.weight").shape,
              (Shape{1856, 2688}));
    EXPECT_THROW((void)class_named(model, "backbone.layers.{layer}.mixer.fc1_latent_proj.weight"),
                 std::out_of_range);
}

TEST(NemotronH, ReadsAPatternOfCharacters) {
    // Super's pattern begins MEMEMEM*E: the first attention block is the eighth.
    const auto model = shipped("nemotron-3-super-120b-a12b");
    EXPECT_EQ(class_named(model, "backbone.layers.{layer}.mixer.q_proj.weight").layers.front(), 7U);
    EXPECT_EQ(class_named(model, "backbone.layers.{layer}.mixer.q_proj.weight").layers.size(), 8U);
    EXPECT_EQ(model.moe_layers(), 40U);
    // The MTP module: attention, then MoE.
    EXPECT_EQ(class_named(model, "mtp.layers.{layer}.mixer.q_proj.weight").layers,
              (std::vector<std::uint32_t>{0}));
    EXPECT_EQ(class_named(model, "mtp.layers.{layer}.eh_proj.weight").shape, (Shape{4096, 8192}));
    EXPECT_EQ(class_named(model, "mtp.layers.{layer}.final_layernorm.weight").layers,
              (std::vector<std::uint32_t>{1}));
}

TEST(NemotronH, RefusesAnUnknownBlock) {
    auto facts = shipped_facts("nemotron-3-ultra-550b-a55b");
    facts.set("layers_block_type", std::vector<std::string>{"mamba", "conv"});
    EXPECT_TRUE(mentions(faults_of(facts), "'layers_block_type' has 'conv' for layer 1"));
    facts = shipped_facts("nemotron-3-nano-30b-a3b");
    facts.set("hybrid_override_pattern", std::string{"ME-"});
    EXPECT_TRUE(mentions(faults_of(facts), "'hybrid_override_pattern' has '-' for layer 2"));
}

TEST(NemotronH, RefusesAListOfTheWrongKindOrLength) {
    auto facts = shipped_facts("nemotron-3-ultra-550b-a55b");
    facts.set("layers_block_type", std::vector<std::int64_t>{1, 2});
    EXPECT_TRUE(mentions(faults_of(facts), "'layers_block_type' must be a list of texts"));
    facts.set("layers_block_type", std::vector<std::string>{});
    EXPECT_TRUE(mentions(faults_of(facts), "'layers_block_type' lists no block"));
    facts = shipped_facts("nemotron-3-nano-30b-a3b");
    facts.set("num_hidden_layers", std::int64_t{53});
    EXPECT_TRUE(mentions(faults_of(facts), "'hybrid_override_pattern' lists 52 layers, but there are 53"));
}

TEST(NemotronH, NamesBothSpellingsOfAMissingList) {
    Facts facts{"config.json"};
    facts.set("model_type", std::string{"nemotron_h"});
    EXPECT_TRUE(mentions(faults_of(facts), "'layers_block_type' and 'hybrid_override_pattern' are missing"));
}

TEST(Qwen35Moe, FusesFourProjectionsOfAGatedDeltaNet) {
    const auto model = shipped("qwen3.8-2.4t-a95b");
    // 16 key heads and 128 value heads of 128: q 2048, k 2048, v 16384.
    const auto qkv = class_named(model, "model.layers.{layer}.linear_attn.in_proj_qkv.weight");
    EXPECT_EQ(qkv.shape, (Shape{20480, 8192}));
    EXPECT_EQ(qkv.segments, (Shape{2048, 2048, 16384}));
    EXPECT_EQ(qkv.units, 16U);
    EXPECT_EQ(qkv.task, ExportTask::kFusedLeader);
    EXPECT_EQ(qkv.layers.size(), 69U);
    const auto z = class_named(model, "model.layers.{layer}.linear_attn.in_proj_z.weight");
    EXPECT_EQ(z.shape, (Shape{16384, 8192}));
    EXPECT_EQ(z.task, ExportTask::kFusedMember);
    const auto a = class_named(model, "model.layers.{layer}.linear_attn.in_proj_a.weight");
    EXPECT_EQ(a.shape, (Shape{128, 8192}));
    EXPECT_EQ(a.units_name, "GDN value heads");
    EXPECT_EQ(class_named(model, "model.layers.{layer}.linear_attn.conv1d.weight").shape,
              (Shape{20480, 1, 4}));
}

TEST(Qwen35Moe, StoresAGateBesideEachQueryHead) {
    const auto model = shipped("qwen3.8-2.4t-a95b");
    // 64 heads of 256 rows and as many for the gate; 4 KV heads of 256.
    const auto q = class_named(model, "model.layers.{layer}.self_attn.q_proj.weight");
    EXPECT_EQ(q.shape, (Shape{32768, 8192}));
    EXPECT_EQ(q.heads.rows_per_query_head, 512U);
    EXPECT_EQ(q.heads.rows_per_key_value_head, 256U);
    EXPECT_EQ(q.layers.front(), 3U);
    EXPECT_EQ(class_named(model, "model.layers.{layer}.self_attn.v_proj.weight").shape, (Shape{1024, 8192}));
    EXPECT_EQ(class_named(model, "model.layers.{layer}.self_attn.o_proj.weight").shape, (Shape{8192, 16384}));
}

TEST(Qwen35Moe, CountsExpertsEachAndASharedOneWithItsGate) {
    const auto model = shipped("qwen3.8-2.4t-a95b");
    const auto gate = class_named(model, "model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight");
    EXPECT_EQ(gate.shape, (Shape{2048, 8192}));
    EXPECT_EQ(gate.tensors(), 47104U);  // 92 layers of 512.
    EXPECT_EQ(class_named(model, "model.layers.{layer}.mlp.shared_expert_gate.weight").shape,
              (Shape{1, 8192}));
    EXPECT_EQ(class_named(model, "mtp.fc.weight").shape, (Shape{8192, 16384}));
}

TEST(Qwen35Moe, TakesAListOfLayerKinds) {
    auto facts = shipped_facts("qwen3.8-2.4t-a95b");
    facts.set("num_hidden_layers", std::int64_t{2});
    facts.set("layer_types", std::vector<std::string>{"full_attention", "linear_attention"});
    const auto model = Inventory::make("mine", facts).value();
    EXPECT_EQ(class_named(model, "model.layers.{layer}.self_attn.q_proj.weight").layers,
              (std::vector<std::uint32_t>{0}));
}

TEST(Qwen35Moe, RefusesAListOfTheWrongKindOrLength) {
    auto facts = shipped_facts("qwen3.8-2.4t-a95b");
    facts.set("layer_types", std::vector<std::string>{"full_attention", "linear_attention"});
    EXPECT_TRUE(mentions(faults_of(facts), "'layer_types' lists 2 layers, but there are 92"));
    facts.set("layer_types", std::vector<std::string>(92, "sliding_attention"));
    EXPECT_TRUE(mentions(faults_of(facts), "'layer_types' has 'sliding_attention' for layer 0"));
    facts.set("layer_types", std::string{"full_attention"});
    EXPECT_TRUE(mentions(faults_of(facts), "'layer_types' must be a list of texts"));
}

TEST(KimiK3, CutsOnlyTheHeadsOfThePaddedDecay) {
    const auto model = shipped("kimi-k3");
    // 96 heads stored in 128 rows.
    const auto decay = class_named(model, "language_model.model.layers.{layer}.self_attn.A_log");
    EXPECT_EQ(decay.shape, (Shape{128}));
    EXPECT_EQ(decay.segments, (Shape{96}));
    EXPECT_EQ(decay.parameters(), 96U);
    EXPECT_EQ(decay.tensor_bytes(), Bytes{512U});
    EXPECT_EQ(decay.layers.size(), 69U);
}

TEST(KimiK3, HasKdaTensorsOfTheirOwn) {
    const auto model = shipped("kimi-k3");
    // 96 heads of 128 rows.
    const auto q = class_named(model, "language_model.model.layers.{layer}.self_attn.q_proj.weight");
    EXPECT_EQ(q.shape, (Shape{12288, 7168}));
    EXPECT_EQ(q.sharding, Sharding::kColumn);
    EXPECT_EQ(q.task, ExportTask::kOwn);
    EXPECT_EQ(q.units, 96U);
    // Lists count from one, layers from zero: 1, 2, 3 and 5 are 0, 1, 2 and 4.
    EXPECT_EQ(q.layers.at(3), 4U);
    const auto convolution =
        class_named(model, "language_model.model.layers.{layer}.self_attn.q_conv1d.weight");
    EXPECT_EQ(convolution.shape, (Shape{12288, 1, 4}));
    EXPECT_EQ(convolution.dtype, Dtype::kFp32);
}

TEST(KimiK3, HasLatentExpertsNamedByNumber) {
    const auto model = shipped("kimi-k3");
    const std::string prefix = "language_model.model.layers.{layer}.block_sparse_moe.";
    const auto gate = class_named(model, prefix + "experts.{expert}.w1.weight");
    EXPECT_EQ(gate.shape, (Shape{3072, 3584}));
    EXPECT_TRUE(gate.is_ffn);
    EXPECT_EQ(gate.task, ExportTask::kFusedLeader);
    EXPECT_EQ(class_named(model, prefix + "experts.{expert}.w3.weight").task, ExportTask::kFusedMember);
    EXPECT_EQ(class_named(model, prefix + "experts.{expert}.w2.weight").shape, (Shape{3584, 3072}));
    // Two shared experts of 3072.
    EXPECT_EQ(class_named(model, prefix + "shared_experts.up_proj.weight").shape, (Shape{6144, 7168}));
}

TEST(KimiK3, PutsItsVisionTowerBeforeTheFirstLayer) {
    const auto model = shipped("kimi-k3");
    // 3·1536 rows; a 2·2 patch of 1024 each.
    const auto qkv = class_named(model, "vision_tower.encoder.blocks.26.wqkv.weight");
    EXPECT_EQ(qkv.shape, (Shape{4608, 1024}));
    EXPECT_EQ(qkv.part, ModelPart::kVision);
    EXPECT_EQ(qkv.sharding, Sharding::kReplicated);
    EXPECT_TRUE(qkv.layers.empty());
    EXPECT_FALSE(qkv.on_last_stage);
    EXPECT_EQ(class_named(model, "mm_projector.proj.2.weight").shape, (Shape{7168, 4096}));
}

TEST(KimiK3, RefusesALayerOutOfRange) {
    constexpr const char* kKey = "text_config.linear_attn_config.full_attn_layers";
    auto facts = shipped_facts("kimi-k3");
    facts.set(kKey, std::vector<std::int64_t>{4, 94});
    EXPECT_TRUE(mentions(faults_of(facts), "names layer 94, but the layers are 1 to 93"));
    facts.set(kKey, std::vector<std::int64_t>{0});
    EXPECT_TRUE(mentions(faults_of(facts), "names layer 0, but the layers are 1 to 93"));
}

TEST(KimiK3, RefusesALayerThatStandsTwiceOrNowhere) {
    constexpr const char* kKey = "text_config.linear_attn_config.full_attn_layers";
    auto facts = shipped_facts("kimi-k3");
    facts.set(kKey, std::vector<std::int64_t>{1});
    EXPECT_TRUE(mentions(faults_of(facts), "layer 1 stands 2 times"));
    facts.set(kKey, std::vector<std::int64_t>{});
    EXPECT_TRUE(mentions(faults_of(facts), "layer 4 stands 0 times"));
    facts.set(kKey, std::vector<std::string>{"four"});
    EXPECT_TRUE(mentions(faults_of(facts), "must be a list of whole numbers"));
}

TEST(KimiK3, RefusesAMergeThatIsNoPair) {
    auto facts = shipped_facts("kimi-k3");
    facts.set("vision_config.merge_kernel_size", std::vector<std::int64_t>{2, 2, 2});
    EXPECT_TRUE(mentions(faults_of(facts), "'vision_config.merge_kernel_size' must be two whole numbers"));
}

TEST(TeachingMatrix, IsOneColumnShardedMatrix) {
    const auto model = shipped("teaching-matrix");
    ASSERT_EQ(model.classes().size(), 1U);
    EXPECT_EQ(model.classes().front().shape, (Shape{65536, 65536}));
    EXPECT_EQ(model.classes().front().sharding, Sharding::kColumn);
    EXPECT_EQ(model.title(), "Teaching matrix");
    EXPECT_EQ(model.layers(), 1U);
}

}  // namespace
}  // namespace refit
