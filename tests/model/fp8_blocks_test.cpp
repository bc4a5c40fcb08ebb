// SPDX-License-Identifier: Apache-2.0
#include "refit/fp8_blocks.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "models.hpp"
#include "refit/coverage.hpp"
#include "refit/layout_check.hpp"
#include "refit/megatron.hpp"
#include "refit/vllm.hpp"

namespace refit {
namespace {

using testing_models::class_named;
using testing_models::shipped;
using Shape = std::vector<std::uint64_t>;

const std::string kLayer = "model.layers.{layer}.";
const std::string kExpert = kLayer + "mlp.experts.{expert}.";

ParameterClass scales_in(const Inventory& model, const std::string& name) {
    return scales_of(class_named(model, name));
}

GpuMemory in_fp8() {
    return {Bytes{std::uint64_t{1} << 40U}, "H100", Dtype::kFp8};
}

TEST(Fp8Blocks, HaveOneScaleEachOfWhichTheLastMayBeShort) {
    // DeepSeek-V3: 576 = 4 x 128 + 64 rows of latents and rotary keys, 7168 = 56 x 128 columns.
    const auto latents = scales_in(shipped("deepseek-v3"), kLayer + "self_attn.kv_a_proj_with_mqa.weight");
    EXPECT_EQ(latents.name, kLayer + "self_attn.kv_a_proj_with_mqa.weight_scale_inv");
    EXPECT_EQ(latents.shape, (Shape{5, 56}));
    EXPECT_EQ(latents.dtype, Dtype::kFp32);
    EXPECT_EQ(latents.tensor_bytes().count(), 5U * 56U * 4U);
    EXPECT_EQ(latents.layers.size(), 61U);
    // Qwen3-30B: 768 = 6 x 128 rows of an expert, 2048 = 16 x 128 columns; one tensor an expert.
    const auto gate = scales_in(shipped("qwen3-30b-a3b"), kExpert + "gate_proj.weight");
    EXPECT_EQ(gate.shape, (Shape{6, 16}));
    EXPECT_EQ(gate.tensors(), 48U * 128U);
    EXPECT_EQ(gate.task, ExportTask::kFusedLeader);
}

TEST(Fp8Blocks, OfQwen30BAreCountedByHand) {
    std::map<Dtype, std::uint64_t> bytes;
    std::map<Dtype, std::uint64_t> tensors;
    Bytes bulk;
    Bytes all;
    for (const auto& entry : kept_in(shipped("qwen3-30b-a3b").payload(), Dtype::kFp8)) {
        bytes[entry.dtype] += entry.bytes().count();
        tensors[entry.dtype] += entry.tensors();
        bulk += is_bulk(entry, Coverage::kNemoRlNames) ? entry.bytes() : Bytes{};
        all += entry.bytes();
    }
    // Experts: 48 layers x 128 x 3 x 768 x 2048. Attention: 48 x (q and o 4096 x 2048, k and v 512 x 2048).
    EXPECT_EQ(bytes[Dtype::kFp8], 28'991'029'248U + 905'969'664U);
    EXPECT_EQ(tensors[Dtype::kFp8], 18'432U + 192U);
    // A scale of 4 B for each 6 x 16 blocks of an expert's matrix; 32 x 16 of q and o, 4 x 16 of k and v.
    EXPECT_EQ(bytes[Dtype::kFp32], 18'432U * 6 * 16 * 4 + 48U * (2 * 32 * 16 + 2 * 4 * 16) * 4);
    EXPECT_EQ(tensors[Dtype::kFp32], 18'432U + 192U);
    // Embedding and head 151,936 x 2048, routers 48 x 128 x 2048, norms 48 x (2 x 2048 + 2 x 128) + 2048.
    EXPECT_EQ(bytes[Dtype::kBf16], 2 * (2 * 151'936U * 2048 + 48U * 128 * 2048 + 48U * 4352 + 2048));
    EXPECT_EQ(tensors[Dtype::kBf16], 48U * 5 + 3);
    EXPECT_EQ(all.count(), 31'174'545'408U);
    // NeMo RL's document gives 93.0 %.
    EXPECT_EQ(bulk.count(), 28'991'029'248U);
    EXPECT_NEAR(bulk.as_double() / all.as_double(), 0.930, 0.0005);
}

TEST(Fp8Blocks, AreWhatThePublicCheckpointsHold) {
    // The sizes of both FP8 repositories are checked in inventory_test.cpp.
    for (const auto* id : {"deepseek-v3", "kimi-k2"}) {
        const auto model = shipped(id);
        Bytes kept;
        for (const auto& entry : kept_in(model.payload(), Dtype::kFp8)) {
            kept += entry.bytes();
        }
        EXPECT_EQ(kept, model.payload_totals().native_bytes) << id;
    }
}

TEST(Fp8Blocks, ArePartOfNoOtherDtype) {
    const auto model = shipped("deepseek-v3");
    EXPECT_EQ(kept_in(model.payload(), Dtype::kBf16), model.payload());
    const auto half = kept_in(model.payload(), Dtype::kFp16);
    EXPECT_EQ(half.size(), model.payload().size());
    // Only the routers' biases are FP32.
    EXPECT_EQ(std::ranges::count(half, Dtype::kFp16, &ParameterClass::dtype), std::ssize(half) - 1);
}

TEST(Fp8Blocks, AreOfProjectionsAlone) {
    std::set<std::string> plain;
    for (const auto& entry : kept_in(shipped("glm-5").payload(), Dtype::kFp8)) {
        if (entry.dtype != Dtype::kFp8 && entry.dtype != Dtype::kFp32 && entry.shape.size() == 2) {
            plain.insert(entry.name);
        }
    }
    EXPECT_EQ(plain,
              (std::set<std::string>{"model.embed_tokens.weight",
                                     "lm_head.weight",
                                     kLayer + "mlp.gate.weight",
                                     kLayer + "self_attn.indexer.weights_proj.weight"}));
}

TEST(Fp8Blocks, ScalesGoByNoBulkPathUnlessAskedFor) {
    const auto scales = scales_in(shipped("qwen3-30b-a3b"), kExpert + "down_proj.weight");
    EXPECT_FALSE(is_bulk(scales, Coverage::kNemoRlNames));
    EXPECT_FALSE(is_bulk(scales, Coverage::kFfn));
    EXPECT_TRUE(is_bulk(scales, Coverage::kAll));
    EXPECT_TRUE(is_bulk(scales, Coverage::pattern("*.experts.*")));
}

/// The members of the shard that holds element (index…) of the logical tensor.
std::vector<std::uint32_t> holders(const Distribution& distribution, const Shape& index) {
    for (const auto& shard : distribution.shards()) {
        for (const auto& box : shard.boxes) {
            bool is_inside = true;
            for (std::size_t axis = 0; axis < index.size(); ++axis) {
                const auto& interval = box.axes()[axis];
                is_inside = is_inside && interval.begin <= index[axis] && index[axis] < interval.end;
            }
            if (is_inside) {
                return shard.members;
            }
        }
    }
    return {};
}

using Ranks = std::vector<std::uint32_t>;

TrainLayout train_layout(const char* text, std::uint32_t gpus, const Inventory& model) {
    return make_train_layout(parse_layout(text).value(), gpus, model, in_fp8()).value();
}

GenerateLayout generate_layout(const char* text, std::uint32_t gpus, const Inventory& model) {
    return make_generate_layout(parse_layout(text).value(), gpus, model, in_fp8()).value();
}

TEST(Fp8Scales, OfExpertsLieWhereTheirExpertsDo) {
    const auto model = shipped("qwen3-30b-a3b");
    const auto gate = scales_in(model, kExpert + "gate_proj.weight");
    // EP8: 16 experts a rank, so expert 50 is on rank 3 and, of 16 trainers, on rank 11.
    const auto train = megatron::distribution(gate, train_layout("ep8", 16, model));
    EXPECT_EQ(train.shape().size(), 3U);
    EXPECT_EQ(holders(train, {50, 0, 0}), (Ranks{3, 11}));
    EXPECT_EQ(holders(train, {50, 5, 15}), (Ranks{3, 11}));
    EXPECT_EQ(holders(train, {127, 2, 7}), (Ranks{7, 15}));
    // TP2 cuts 768 rows at 384, which is block 3, and the columns of down_proj likewise.
    const auto layout = generate_layout("tp2.dp2", 4, model);
    const auto rows = vllm::distribution(gate, layout, 0);
    EXPECT_EQ(holders(rows, {50, 2, 15}), (Ranks{0, 2}));
    EXPECT_EQ(holders(rows, {50, 3, 0}), (Ranks{1, 3}));
    const auto columns = vllm::distribution(scales_in(model, kExpert + "down_proj.weight"), layout, 0);
    EXPECT_EQ(holders(columns, {50, 15, 2}), (Ranks{0, 2}));
    EXPECT_EQ(holders(columns, {50, 0, 3}), (Ranks{1, 3}));
    // EP4: 32 experts each, whole.
    const auto spread = vllm::distribution(gate, generate_layout("tp4.ep4", 4, model), 0);
    EXPECT_EQ(holders(spread, {50, 5, 15}), (Ranks{1}));
}

TEST(Fp8Scales, OfFusedAttentionFollowItsGroups) {
    const auto model = shipped("qwen3-30b-a3b");
    const auto q = scales_in(model, kLayer + "self_attn.q_proj.weight");
    const auto k = scales_in(model, kLayer + "self_attn.k_proj.weight");
    // 4 groups of 8 heads of 128 rows, a block a head. TP4: a group each.
    const auto quarter = train_layout("tp4", 4, model);
    EXPECT_EQ(holders(megatron::distribution(q, quarter), {7, 0}), (Ranks{0}));
    EXPECT_EQ(holders(megatron::distribution(q, quarter), {8, 0}), (Ranks{1}));
    EXPECT_EQ(holders(megatron::distribution(k, quarter), {1, 15}), (Ranks{1}));
    // TP8: 5 of the 40 fused blocks each, so rank 1 has the last 3 queries of group 0, and its k and v.
    const auto eighth = train_layout("tp8", 8, model);
    EXPECT_EQ(holders(megatron::distribution(q, eighth), {4, 0}), (Ranks{0}));
    EXPECT_EQ(holders(megatron::distribution(q, eighth), {5, 0}), (Ranks{1}));
    EXPECT_EQ(holders(megatron::distribution(q, eighth), {8, 0}), (Ranks{2}));
    EXPECT_EQ(holders(megatron::distribution(k, eighth), {0, 0}), (Ranks{1}));
    // vLLM at TP8 with EP8: 4 heads each; a KV head on two ranks.
    const auto layout = generate_layout("tp8.ep8", 8, model);
    EXPECT_EQ(holders(vllm::distribution(q, layout, 0), {5, 0}), (Ranks{1}));
    EXPECT_EQ(holders(vllm::distribution(k, layout, 0), {1, 3}), (Ranks{2, 3}));
}

/// For each rank the blocks (…, row block, column block) of which it holds elements, by `step` elements a
/// block.
std::map<std::uint32_t, std::set<Shape>> blocks_by_rank(const Distribution& distribution,
                                                        std::uint64_t step) {
    std::map<std::uint32_t, std::set<Shape>> held;
    for (const auto& shard : distribution.shards()) {
        for (const auto& box : shard.boxes) {
            const auto axes = box.axes();
            const auto rows = axes[axes.size() - 2];
            const auto columns = axes[axes.size() - 1];
            for (auto row = rows.begin / step; row * step < rows.end; ++row) {
                for (auto column = columns.begin / step; column * step < columns.end; ++column) {
                    for (const auto member : shard.members) {
                        const auto expert = axes.size() == 3 ? axes[0].begin * 1000 + axes[0].end : 0;
                        held[member].insert({expert, row, column});
                    }
                }
            }
        }
    }
    return held;
}

class Fp8Layouts
    : public testing::TestWithParam<std::tuple<const char*, const char*, const char*, std::uint32_t>> {};

TEST_P(Fp8Layouts, KeepEveryScaleBesideItsBlock) {
    const auto& [id, train, generate, gpus] = GetParam();
    const auto model = shipped(id);
    const auto trainers = train_layout(train, gpus, model);
    const auto generators = generate_layout(generate, gpus, model);
    std::size_t projections = 0;
    for (const auto& entry : model.payload()) {
        if (!entry.is_projection) {
            continue;
        }
        ++projections;
        const auto scales = scales_of(entry);
        EXPECT_EQ(blocks_by_rank(megatron::distribution(scales, trainers), 1),
                  blocks_by_rank(megatron::distribution(entry, trainers), kFp8Block))
            << entry.name;
        EXPECT_EQ(blocks_by_rank(vllm::distribution(scales, generators, 0), 1),
                  blocks_by_rank(vllm::distribution(entry, generators, 0), kFp8Block))
            << entry.name;
    }
    EXPECT_GE(projections, 6U);  // q, k, v, o, gate and up (joined in GLM-4), down
}

INSTANTIATE_TEST_SUITE_P(All,
                         Fp8Layouts,
                         testing::Values(std::tuple{"qwen3-30b-a3b", "tp2.ep8", "tp2", 16U},
                                         std::tuple{"qwen3-30b-a3b", "tp8.ep2.etp2", "tp4.ep8", 16U},
                                         std::tuple{"qwen3-32b", "tp8", "tp4", 8U},
                                         std::tuple{"deepseek-v3", "tp4.ep8", "tp16", 32U},
                                         std::tuple{"glm-z1-9b", "tp1", "tp1", 2U},
                                         std::tuple{"glm-5", "tp8.ep4", "tp8.ep32", 32U}));

/// The one fault's message, and its suggestion, which is sure to work.
std::string refused(const Result<TrainLayout>& layout, std::uint32_t gpus, const Inventory& model) {
    if (layout || !layout.error().front().nearest) {
        return {};
    }
    const auto& fault = layout.error().front();
    const auto nearest = parse_layout(fault.nearest->value).value();
    return make_train_layout(nearest, gpus, model, in_fp8()).has_value() ? fault.message : "";
}

TEST(Fp8Layout, IsRefusedWhereItCutsABlock) {
    const auto model = shipped("qwen3-30b-a3b");
    const auto train = [&](const char* text, std::uint32_t gpus) {
        return refused(make_train_layout(parse_layout(text).value(), gpus, model, in_fp8()), gpus, model);
    };
    EXPECT_EQ(train("etp4", 4),
              "train.etp = 4: 768 / 4 = 192, but an FP8 block is 128 wide (" + kExpert + "gate_proj.weight)");
    EXPECT_EQ(train("tp16", 16),
              "train.tp = 16: 5120 / 16 = 320, but an FP8 block is 128 wide (fused qkv rows)");
    const auto generate = make_generate_layout(parse_layout("tp8").value(), 8, model, in_fp8());
    ASSERT_FALSE(generate.has_value());
    ASSERT_EQ(generate.error().size(), 1U);
    EXPECT_EQ(generate.error()[0].rule, "fp8-block");
    EXPECT_EQ(
        generate.error()[0].message,
        "generate.tp = 8: 768 / 8 = 96, but an FP8 block is 128 wide (" + kExpert + "gate_proj.weight)");
    const auto nearest = parse_layout(generate.error()[0].nearest->value).value();
    EXPECT_TRUE(make_generate_layout(nearest, 8, model, in_fp8()).has_value());
    // In BF16 nothing is wrong with it.
    EXPECT_TRUE(make_generate_layout(parse_layout("tp8").value(), 8, model).has_value());
}

TEST(Fp8Layout, TakesTheLargestTpThatThePublicModelsAllow) {
    // 2048 / 16 is a block and 18432 / 16 are 9; 1536 / 4 and 768 / 2 are 3, and a half of them is no whole
    // number.
    for (const auto& [id, most, next] : {std::tuple{"deepseek-v3", 16U, 32U},
                                         std::tuple{"qwen3-235b-a22b", 4U, 8U},
                                         std::tuple{"qwen3-30b-a3b", 2U, 4U}}) {
        const auto model = shipped(id);
        LayoutText text;
        text.tp = most;
        EXPECT_TRUE(make_generate_layout(text, 64, model, in_fp8()).has_value()) << id;
        text.tp = next;
        EXPECT_FALSE(make_generate_layout(text, 64, model, in_fp8()).has_value()) << id;
    }
}

TEST(Fp8Blocks, AreRefusedForModelsThatTheyDoNotFit) {
    EXPECT_EQ(why_not_in_fp8_blocks(shipped("qwen3-30b-a3b")), std::nullopt);
    EXPECT_EQ(why_not_in_fp8_blocks(shipped("deepseek-v3")), std::nullopt);
    // Which of Gated DeltaNet's and Mamba's projections trainers quantise is not known.
    for (const auto* id : {"qwen3.5-27b", "nemotron-3-ultra-550b-a55b", "kimi-k3", "teaching-matrix"}) {
        EXPECT_NE(why_not_in_fp8_blocks(shipped(id)).value_or("").find("is not known"), std::string::npos)
            << id;
    }
    // Heads of 64 rows lie in one block with their neighbours; 10944 = 85.5 x 128 rows of gate above up.
    EXPECT_NE(why_not_in_fp8_blocks(shipped("qwen2.5-0.5b"))
                  .value_or("")
                  .find("64 rows of " + kLayer + "self_attn.q_proj"),
              std::string::npos);
    EXPECT_NE(why_not_in_fp8_blocks(shipped("glm-4.5-air")).value_or("").find("10944 rows of"),
              std::string::npos);
}

}  // namespace
}  // namespace refit
