// SPDX-License-Identifier: Apache-2.0
#include "refit/layout_check.hpp"

#include <algorithm>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "small_models.hpp"

namespace refit {
namespace {

using testing_models::kShippedIds;
using testing_models::shipped;
using testing_models::test_name;

LayoutText text_of(const std::string& text) {
    return parse_layout(text).value();
}

Faults train_faults(const std::string& text, std::uint32_t gpus, const std::string& model) {
    const auto layout = make_train_layout(text_of(text), gpus, shipped(model));
    return layout ? Faults{} : layout.error();
}

Faults generate_faults(const std::string& text, std::uint32_t gpus, const std::string& model) {
    const auto layout = make_generate_layout(text_of(text), gpus, shipped(model));
    return layout ? Faults{} : layout.error();
}

bool mentions(const Faults& faults, const std::string& text) {
    return std::ranges::any_of(
        faults, [&](const auto& fault) { return fault.message.find(text) != std::string::npos; });
}

TEST(TrainLayoutCheck, DerivesReplicasOfDenseAndOfExpertRanks) {
    const auto layout = make_train_layout(text_of("tp4.pp8.ep16"), 256, shipped("qwen3-235b-a22b")).value();
    EXPECT_EQ(layout.dp, 8U);   // 256 / (4 · 8).
    EXPECT_EQ(layout.edp, 2U);  // 256 / (16 · 8).
    EXPECT_EQ(layout.gpus, 256U);
    EXPECT_EQ(layout.stage_layers.size(), 8U);
}

TEST(TrainLayoutCheck, TakesThePublishedLayouts) {
    EXPECT_TRUE(train_faults("pp16:3:2.ep16", 256, "deepseek-v3").empty());
    EXPECT_TRUE(train_faults("tp4.pp8:11:11.ep16", 128, "qwen3-235b-a22b").empty());
    EXPECT_TRUE(train_faults("tp8.pp2:54:54.ep32", 64, "nemotron-3-ultra-550b-a55b").empty());
    EXPECT_TRUE(generate_faults("tp32.dp8", 256, "deepseek-v3").empty());
    EXPECT_TRUE(generate_faults("tp8.dp86.ep8", 688, "nemotron-3-ultra-550b-a55b").empty());
}

TEST(TrainLayoutCheck, RefusesGpusThatDoNotMultiplyOut) {
    EXPECT_TRUE(mentions(train_faults("tp4.pp3", 128, "qwen3-235b-a22b"),
                         "train.tp = 4: 128 GPUs / (tp 4 x pp 3 = 12) is not whole"));
    EXPECT_TRUE(mentions(train_faults("pp2.ep128", 128, "deepseek-v3"),
                         "train.ep = 128: 128 GPUs / (ep 128 x pp 2 = 256) is not whole"));
    EXPECT_TRUE(mentions(train_faults("tp4.dp3", 16, "deepseek-v3"), "(tp 4 x pp 1 = 4) is 4"));
}

TEST(TrainLayoutCheck, NamesHeadsWidthsAndExpertsThatDoNotDivide) {
    // 64 heads and 4 KV heads do not divide by 24; 1536 rows of an expert do.
    const auto heads = train_faults("tp24", 24, "qwen3-235b-a22b");
    EXPECT_TRUE(mentions(heads, "train.tp = 24: 64 attention heads are not divisible by 24"));
    EXPECT_TRUE(mentions(train_faults("etp5", 5, "qwen3-235b-a22b"), "train.etp = 5: expert width 1536 is"));
    EXPECT_TRUE(mentions(train_faults("ep24", 24, "qwen3-235b-a22b"),
                         "train.ep = 24: 128 experts are not divisible by 24"));
    // 8 groups of Mamba heads; TP16 also cuts fused qkv rows, which is allowed.
    EXPECT_TRUE(mentions(train_faults("tp16", 16, "nemotron-3-nano-30b-a3b"),
                         "8 Mamba groups are not divisible by 16"));
    EXPECT_TRUE(
        mentions(train_faults("tp32", 32, "qwen3.8-2.4t-a95b"), "16 GDN key heads are not divisible by 32"));
}

TEST(TrainLayoutCheck, LetsTpBeAMultipleOfTheKvHeads) {
    // 4 KV heads: TP8 cuts the fused rows; for generation they are replicated.
    EXPECT_TRUE(train_faults("tp8", 8, "qwen3-30b-a3b").empty());
    EXPECT_TRUE(generate_faults("tp8", 8, "qwen3-30b-a3b").empty());
}

TEST(TrainLayoutCheck, RefusesFusedRowsThatDoNotDivide) {
    // 8 heads and 2 KV heads of 3 rows: (8 + 2 + 2) · 3 = 36 fused rows, of which TP8 takes 4.5 each and
    // TP4 9.
    auto facts = testing_models::shrunken("qwen3-30b-a3b").facts;
    facts.set("head_dim", std::int64_t{3});
    const auto model = Inventory::make("mine", facts).value();
    const auto refused = make_train_layout(text_of("tp8"), 8, model);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().size(), 1U);
    EXPECT_TRUE(mentions(refused.error(), "train.tp = 8: 36 fused qkv rows are not divisible by 8"));
    EXPECT_EQ(refused.error()[0].nearest.value().value, "tp4");
    EXPECT_TRUE(make_train_layout(text_of("tp4"), 8, model).has_value());
    // Generators do not store them fused.
    EXPECT_TRUE(make_generate_layout(text_of("tp8"), 8, model).has_value());
}

TEST(TrainLayoutCheck, RefusesExpertsOfADenseModel) {
    EXPECT_TRUE(mentions(train_faults("ep2", 2, "teaching-matrix"), "the model has no experts to spread"));
    EXPECT_TRUE(
        mentions(generate_faults("tp2.ep2", 2, "teaching-matrix"), "the model has no experts to spread"));
}

TEST(TrainLayoutCheck, RefusesPipelinesThatDoNotSplit) {
    EXPECT_TRUE(mentions(train_faults("pp64", 64, "deepseek-v3"),
                         "train.pp = 64: pp 64 leaves stages without a layer"));
    EXPECT_TRUE(mentions(train_faults("pp16:3:3", 16, "deepseek-v3"),
                         "61 layers less 6 in the given stages do not divide"));
}

TEST(TrainLayoutCheck, TellsAllFaultsAtOnce) {
    // tp 3: no whole number of replicas, no divisor of 128 heads, of 18,432 yes; ep 3: no divisor of 256;
    // pp 62.
    const auto faults = train_faults("tp3.pp62.ep3", 256, "deepseek-v3");
    EXPECT_TRUE(mentions(faults, "is not whole"));
    EXPECT_TRUE(mentions(faults, "128 attention heads"));
    EXPECT_TRUE(mentions(faults, "256 experts"));
    EXPECT_TRUE(mentions(faults, "leaves stages without a layer"));
}

TEST(FsdpLayoutCheck, DerivesReplicasAndPutsAllLayersOnOneStage) {
    const auto model = shipped("qwen3-235b-a22b");
    const auto layout = make_train_layout(text_of("ep8.fsdp4"), 64, model).value();
    EXPECT_EQ(layout.dp, 2U);  // 64 / (8 · 4).
    EXPECT_EQ(layout.edp, 2U);
    EXPECT_EQ(layout.stage_layers, (std::vector<std::uint32_t>{94}));
    EXPECT_EQ(layout.ranks_per_stage(), 64U);
}

TEST(FsdpLayoutCheck, CutsWhatTensorParallelismCould) {
    // 14 query heads and 2 KV heads by 24; 896 columns of a width that 24 does not divide.
    EXPECT_TRUE(train_faults("fsdp24", 24, "qwen2.5-0.5b").empty());
    EXPECT_TRUE(train_faults("fsdp24.dp2", 48, "qwen2.5-0.5b").empty());
}

TEST(FsdpLayoutCheck, RefusesProductsExpertsAndOtherAxes) {
    const auto product = train_faults("fsdp24", 64, "qwen3-32b");
    EXPECT_TRUE(mentions(product, "train.fsdp = 24: 64 GPUs / (fsdp 24 = 24) is not whole"));
    // 24 is 1.58 from 16, and 1.42 from 32.
    EXPECT_EQ(product.at(0).nearest.value().value, "fsdp32");
    EXPECT_TRUE(mentions(train_faults("ep3.fsdp2", 6, "qwen3-30b-a3b"), "128 experts are not divisible by 3"));
    EXPECT_TRUE(mentions(train_faults("ep8.fsdp4", 48, "qwen3-30b-a3b"),
                         "train.fsdp = 4: 48 GPUs / (ep 8 x fsdp 4 = 32) is not whole"));
    EXPECT_TRUE(mentions(train_faults("ep2.fsdp4", 8, "qwen3-32b"), "the model has no experts to spread"));
    EXPECT_TRUE(mentions(train_faults("fsdp8.dp3", 16, "qwen3-32b"), "(fsdp 8 = 8) is 2"));
    for (const auto* axis : {"tp", "cp", "pp", "etp"}) {
        const auto faults = train_faults(std::string{axis} + "2.fsdp8", 16, "qwen3-30b-a3b");
        EXPECT_TRUE(mentions(faults, "train." + std::string{axis} + " = 2: beside fsdp there are only ep and dp")) << axis;
        EXPECT_EQ(faults.at(0).nearest.value().value, "fsdp8") << axis;
    }
    EXPECT_TRUE(mentions(generate_faults("fsdp8", 8, "qwen3-32b"), "generate.fsdp = 8: generation has no such axis"));
}

TEST(FsdpLayoutCheck, OffersMoreShardsOrGpusWhereWeightsDoNotFit) {
    // 65.5 GB of BF16 on 8 GPUs of 16 GB: over 8, not over 4.
    const GpuMemory memory{Bytes{16'000'000'000U}, "GPU", Dtype::kBf16};
    const auto refused = make_train_layout(text_of("fsdp4.dp2"), 8, shipped("qwen3-32b"), memory);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error()[0].rule, "gpu-memory");
    EXPECT_EQ(refused.error()[0].nearest.value().value, "fsdp8");
    const auto small = make_train_layout(text_of("fsdp4"), 4, shipped("qwen3-32b"), memory);
    ASSERT_FALSE(small.has_value());
    EXPECT_EQ(small.error().back().nearest.value(), (Suggestion{"train.gpus", "8", "of the doubled counts the first with room"}));
}

TEST(GenerateLayoutCheck, RefusesAxesThatGenerationDoesNotHave) {
    EXPECT_TRUE(mentions(generate_faults("tp2.cp2", 4, "deepseek-v3"),
                         "generate.cp = 2: generation has no such axis"));
    EXPECT_TRUE(mentions(generate_faults("tp2.etp2", 4, "deepseek-v3"),
                         "generate.etp = 2: generation has no such axis"));
    EXPECT_TRUE(
        mentions(generate_faults("pp4:15", 4, "deepseek-v3"), "first and last stage cannot be given"));
    EXPECT_TRUE(generate_faults("tp4.cp1.etp1", 4, "deepseek-v3").empty());
}

TEST(GenerateLayoutCheck, SpreadsExpertsOnlyOverWholeTpGroups) {
    EXPECT_TRUE(generate_faults("tp4.dp4.ep4", 16, "deepseek-v3").empty());
    EXPECT_TRUE(generate_faults("tp4.dp4.ep8", 16, "deepseek-v3").empty());
    EXPECT_TRUE(generate_faults("tp4.dp4.ep16", 16, "deepseek-v3").empty());
    EXPECT_TRUE(generate_faults("tp2.pp2.ep2", 4, "deepseek-v3").empty());
    // A26: experts over 4 groups, each cut by 2, is no layout of this engine.
    EXPECT_TRUE(mentions(generate_faults("tp8.ep4", 8, "qwen3-30b-a3b"),
                         "vLLM spreads experts over whole tensor-parallel groups"));
    EXPECT_TRUE(mentions(generate_faults("tp2.pp2.dp2.ep4", 8, "deepseek-v3"), "vLLM spreads experts"));
    EXPECT_TRUE(mentions(generate_faults("tp4.dp3.ep8", 12, "deepseek-v3"), "vLLM spreads experts"));
    EXPECT_TRUE(
        mentions(generate_faults("tp1.dp512.ep512", 512, "deepseek-v3"), "there are only 256 experts"));
}

TEST(GenerateLayoutCheck, RefusesAVocabularyThatDoesNotDivide) {
    // 151,936 = 64 · 2374, and 2374 = 2 · 1187: TP3 does not divide it.
    EXPECT_TRUE(
        mentions(generate_faults("tp3", 3, "qwen3-235b-a22b"), "the vocabulary, padded to a multiple of 64"));
}

TEST(GenerateLayoutCheck, CutsExpertsByTpOnlyWithoutEp) {
    // 768 rows of an expert over TP 32 leave 24 each; over EP they stay whole, but 32 heads forbid TP 64.
    EXPECT_TRUE(generate_faults("tp32", 32, "qwen3-30b-a3b").empty());
    // 1856 = 64 · 29.
    EXPECT_TRUE(mentions(generate_faults("tp3.ep3", 3, "nemotron-3-nano-30b-a3b"), "attention heads"));
    EXPECT_FALSE(mentions(generate_faults("tp3.ep3", 3, "nemotron-3-nano-30b-a3b"), "expert width 1856 is"));
    EXPECT_TRUE(mentions(generate_faults("tp3", 3, "nemotron-3-nano-30b-a3b"), "expert width 1856 is"));
}

TEST(LayoutSuggestion, IsTheNearestThatWorks) {
    const auto nearest = [](const Faults& faults) { return faults.at(0).nearest.value(); };
    // 61 layers do not split as 3 + 14·n + 3: the same axes with the most even split.
    EXPECT_EQ(nearest(train_faults("pp16:3:3.ep16", 256, "deepseek-v3")).value, "pp16.ep16");
    EXPECT_EQ(nearest(train_faults("pp16:3:3.ep16", 256, "deepseek-v3")).field, "train.layout");
    // TP 24 is 1.5 from 16 and 1.33 from 32, which 64 heads both allow; 4 KV heads divide 32 as well.
    EXPECT_EQ(nearest(generate_faults("tp24", 96, "qwen3-235b-a22b")).value, "tp32.dp3");
    EXPECT_EQ(nearest(generate_faults("tp24", 96, "qwen3-235b-a22b")).field, "generate.layout");
    // The pipeline's ends are kept where they are not what is wrong.
    EXPECT_EQ(nearest(train_faults("tp3.pp16:3:2.ep16", 256, "deepseek-v3")).value, "tp4.pp16:3:2.ep16");
}

TEST(LayoutSuggestion, KeepsALastStageThatIsGivenAlone) {
    auto text = text_of("tp3.pp4");
    // 61 = 3 · 20 + 1.
    text.last_stage_layers = 1;
    const auto layout = make_train_layout(text, 16, shipped("deepseek-v3"));
    ASSERT_FALSE(layout.has_value());
    EXPECT_EQ(layout.error()[0].nearest.value().value, "tp4.pp4:20:1");
}

class EveryModelRefuses : public testing::TestWithParam<const char*> {};

TEST_P(EveryModelRefuses, BadLayoutsWithASuggestionThatWorks) {
    const auto model = shipped(GetParam());
    std::mt19937 random{std::random_device::result_type{4711}};
    const auto any = [&](std::uint32_t most) {
        return std::uniform_int_distribution<std::uint32_t>{1, most}(random);
    };
    const auto maybe = [&](std::uint32_t most) {
        return any(2) == 1 ? std::optional{any(most)} : std::nullopt;
    };
    int bad = 0;
    while (bad < 60) {
        LayoutText text;
        text.tp = maybe(40);
        text.cp = maybe(4);
        text.pp = maybe(20);
        text.dp = any(4) == 1 ? std::optional{any(8)} : std::nullopt;
        text.ep = maybe(40);
        text.etp = any(4) == 1 ? std::optional{any(4)} : std::nullopt;
        text.fsdp = any(4) == 1 ? std::optional{any(40)} : std::nullopt;
        text.first_stage_layers = any(3) == 1 ? std::optional{any(10)} : std::nullopt;
        text.last_stage_layers = any(3) == 1 ? std::optional{any(10)} : std::nullopt;
        const auto gpus = any(300);
        if (const auto train = make_train_layout(text, gpus, model); !train) {
            ++bad;
            for (const auto& fault : train.error()) {
                ASSERT_TRUE(fault.nearest.has_value()) << fault.message;
                EXPECT_EQ(fault.nearest->field, "train.layout");
                EXPECT_EQ(fault.code, ErrorCode::kInfeasible);
                EXPECT_TRUE(make_train_layout(text_of(fault.nearest->value), gpus, model).has_value())
                    << fault.nearest->value << " on " << gpus;
            }
        }
        if (const auto generate = make_generate_layout(text, gpus, model); !generate) {
            ++bad;
            for (const auto& fault : generate.error()) {
                ASSERT_TRUE(fault.nearest.has_value()) << fault.message;
                EXPECT_EQ(fault.nearest->field, "generate.layout");
                EXPECT_TRUE(make_generate_layout(text_of(fault.nearest->value), gpus, model).has_value())
                    << fault.nearest->value << " on " << gpus;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModelRefuses, testing::ValuesIn(kShippedIds), [](const auto& test) {
    return test_name(test.param);
});

}  // namespace
}  // namespace refit
