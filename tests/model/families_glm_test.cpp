// SPDX-License-Identifier: Apache-2.0
// The same for GLM-4, GLM-4.5 and GLM-5, and for Qwen3.5 with its dense MLP and vision tower.
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

TEST(Glm5, HasAnIndexerInEachLayerAndInMtp) {
    const auto model = shipped("glm-5");
    // 32 heads of 128 rows, from the latent of 2048.
    const auto wq = class_named(model, "model.layers.{layer}.self_attn.indexer.wq_b.weight");
    EXPECT_EQ(wq.shape, (Shape{4096, 2048}));
    EXPECT_EQ(wq.sharding, Sharding::kReplicated);
    EXPECT_EQ(wq.layers.size(), 78U);
    EXPECT_EQ(class_named(model, "model.layers.{layer}.self_attn.indexer.weights_proj.weight").shape,
              (Shape{32, 6144}));
    // MTP has no copies of embedding and head.
    std::uint64_t indexers = 0;
    for (const auto& entry : model.classes()) {
        indexers +=
            entry.part == ModelPart::kMtp && entry.name.find("indexer.wk") != std::string::npos ? 1U : 0U;
        EXPECT_EQ(entry.name.find("shared_head.head"), std::string::npos);
    }
    EXPECT_EQ(indexers, 1U);
}

TEST(Glm5, SharesIndexersWhereTheConfigSaysSo) {
    const auto model = shipped("glm-5.2");
    // Layers 0, 1 and 2, then every fourth from 6 on: 3 + 18.
    const auto layers = class_named(model, "model.layers.{layer}.self_attn.indexer.wk.weight").layers;
    EXPECT_EQ(layers.size(), 21U);
    EXPECT_EQ(layers.at(3), 6U);
    EXPECT_EQ(layers.back(), 74U);
}

TEST(Glm5, RefusesAListOfIndexersOfTheWrongKindOrLengthAndQueriesWithoutALatent) {
    auto facts = shipped_facts("glm-5.2");
    facts.set("indexer_types", std::vector<std::string>{"full", "shared"});
    EXPECT_TRUE(mentions(faults_of(facts), "'indexer_types' lists 2 layers, but there are 78"));
    facts.set("indexer_types", std::vector<std::string>(78, "half"));
    EXPECT_TRUE(mentions(faults_of(facts), "'indexer_types' has 'half' for layer 0"));
    facts = shipped_facts("glm-5");
    facts.set_null("q_lora_rank");
    EXPECT_TRUE(mentions(faults_of(facts), "'q_lora_rank' must be at least 1"));
}

TEST(Glm45, HasBiasesOfQueriesKeysAndValuesOnly) {
    const auto model = shipped("glm-4.5-air");
    // 96 query heads and 8 KV heads of 128 rows.
    const auto q = class_named(model, "model.layers.{layer}.self_attn.q_proj.bias");
    EXPECT_EQ(q.shape, (Shape{12288}));
    EXPECT_EQ(q.sharding, Sharding::kQuery);
    EXPECT_EQ(q.task, ExportTask::kFusedLeader);
    const auto v = class_named(model, "model.layers.{layer}.self_attn.v_proj.bias");
    EXPECT_EQ(v.shape, (Shape{1024}));
    EXPECT_EQ(v.task, ExportTask::kFusedMember);
    EXPECT_THROW((void)class_named(model, "model.layers.{layer}.self_attn.o_proj.bias"), std::out_of_range);
    EXPECT_THROW((void)class_named(model, "model.layers.{layer}.self_attn.q_norm.weight"), std::out_of_range);
    EXPECT_EQ(class_named(shipped("glm-4.5"), "model.layers.{layer}.self_attn.q_norm.weight").shape,
              (Shape{128}));
}

TEST(Glm45, HasOneDenseLayerBiasedRoutersAndOneOfMtp) {
    const auto model = shipped("glm-4.5-air");
    EXPECT_EQ(class_named(model, "model.layers.{layer}.mlp.up_proj.weight").layers,
              (std::vector<std::uint32_t>{0}));
    EXPECT_EQ(model.moe_layers(), 45U);
    EXPECT_EQ(class_named(model, "model.layers.{layer}.mlp.gate.e_score_correction_bias").dtype,
              Dtype::kFp32);
    EXPECT_EQ(class_named(model, "model.layers.{layer}.eh_proj.weight").layers,
              (std::vector<std::uint32_t>{46}));
    EXPECT_EQ(class_named(model, "model.layers.{layer}.shared_head.head.weight").shape,
              (Shape{151552, 4096}));
}

TEST(Glm45, RefusesMoreDenseLayersThanLayersHeadsInNoGroupsAndNoBiases) {
    auto facts = shipped_facts("glm-4.5-air");
    facts.set("first_k_dense_replace", std::int64_t{47});
    EXPECT_TRUE(mentions(faults_of(facts), "'first_k_dense_replace' is 47"));
    facts = shipped_facts("glm-4.5-air");
    facts.set("num_key_value_heads", std::int64_t{7});
    EXPECT_TRUE(mentions(faults_of(facts), "'num_attention_heads' is 96, but must be a multiple of"));
    facts = shipped_facts("glm-4.5-air");
    facts.set("attention_bias", false);
    EXPECT_TRUE(mentions(faults_of(facts), "'attention_bias' is false"));
}

TEST(Glm4, StoresGateAboveUpAndNormsBehindAttentionAndMlp) {
    const auto model = shipped("glm-z1-9b");
    const auto joined = class_named(model, "model.layers.{layer}.mlp.gate_up_proj.weight");
    EXPECT_EQ(joined.shape, (Shape{27392, 4096}));
    EXPECT_EQ(joined.segments, (Shape{13696, 13696}));
    EXPECT_EQ(joined.units, 13696U);
    EXPECT_TRUE(joined.is_ffn);
    EXPECT_EQ(joined.task, ExportTask::kOwn);
    EXPECT_EQ(class_named(model, "model.layers.{layer}.post_self_attn_layernorm.weight").shape,
              (Shape{4096}));
    EXPECT_EQ(class_named(model, "model.layers.{layer}.post_mlp_layernorm.weight").shape, (Shape{4096}));
    EXPECT_EQ(class_named(model, "model.layers.{layer}.self_attn.k_proj.bias").shape, (Shape{256}));
    EXPECT_THROW((void)class_named(model, "model.layers.{layer}.mlp.up_proj.weight"), std::out_of_range);
}

TEST(Glm4, RefusesAttentionWithoutBias) {
    auto facts = shipped_facts("glm-z1-9b");
    facts.set("attention_bias", false);
    EXPECT_TRUE(mentions(faults_of(facts), "'attention_bias' is false"));
}

TEST(Qwen35, HasADenseMlpBesideGatedDeltaNets) {
    const auto model = shipped("qwen3.5-27b");
    EXPECT_EQ(model.experts(), 0U);
    const auto up = class_named(model, "model.language_model.layers.{layer}.mlp.up_proj.weight");
    EXPECT_EQ(up.shape, (Shape{17408, 5120}));
    EXPECT_TRUE(up.is_ffn);
    EXPECT_EQ(up.layers.size(), 64U);
    // 16 key heads and 48 value heads of 128: 2048 + 2048 + 6144.
    const auto qkv = class_named(model, "model.language_model.layers.{layer}.linear_attn.in_proj_qkv.weight");
    EXPECT_EQ(qkv.segments, (Shape{2048, 2048, 6144}));
    EXPECT_EQ(qkv.layers.size(), 48U);
    EXPECT_EQ(class_named(model, "model.language_model.layers.{layer}.linear_attn.A_log").dtype,
              Dtype::kBf16);
    // 24 heads of 256 with their gates.
    EXPECT_EQ(class_named(model, "model.language_model.layers.{layer}.self_attn.q_proj.weight").shape,
              (Shape{12288, 5120}));
    EXPECT_EQ(class_named(model, "mtp.layers.{layer}.mlp.up_proj.weight").layers.size(), 1U);
    EXPECT_EQ(class_named(model, "lm_head.weight").shape, (Shape{248320, 5120}));
}

TEST(Qwen35, HasAVisionTowerBeforeTheFirstLayer) {
    const auto model = shipped("qwen3.5-27b");
    // Two frames of 16 x 16 in three colours.
    const auto patches = class_named(model, "model.visual.patch_embed.proj.weight");
    EXPECT_EQ(patches.shape, (Shape{1152, 3, 2, 16, 16}));
    EXPECT_EQ(patches.part, ModelPart::kVision);
    EXPECT_FALSE(patches.on_last_stage);
    EXPECT_EQ(class_named(model, "model.visual.blocks.26.attn.qkv.bias").shape, (Shape{3456}));
    // Four patches become one.
    EXPECT_EQ(class_named(model, "model.visual.merger.linear_fc2.weight").shape, (Shape{5120, 4608}));
}

TEST(Qwen35, NamesMissingFieldsOfTextAndVision) {
    Facts facts{"config.json"};
    facts.set("model_type", std::string{"qwen3_5"});
    const auto faults = faults_of(facts);
    EXPECT_TRUE(mentions(faults, "'text_config.hidden_size' is missing"));
    EXPECT_TRUE(mentions(faults, "'text_config.intermediate_size' is missing"));
    EXPECT_TRUE(mentions(faults, "'vision_config.out_hidden_size' is missing"));
}

}  // namespace
}  // namespace refit
