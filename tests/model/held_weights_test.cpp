// SPDX-License-Identifier: Apache-2.0
#include "refit/held_weights.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models.hpp"
#include "refit/layout_check.hpp"
#include "systems.hpp"

namespace refit {
namespace {

using testing_models::shipped;

FullestRank trainer(const std::string& model_id, const std::string& layout, std::uint32_t gpus) {
    const auto model = shipped(model_id);
    return fullest_rank(make_train_layout(parse_layout(layout).value(), gpus, model).value(),
                        model.payload());
}

FullestRank generator(const std::string& model_id, const std::string& layout, std::uint32_t gpus) {
    const auto model = shipped(model_id);
    return fullest_rank(make_generate_layout(parse_layout(layout).value(), gpus, model).value(),
                        model.payload(),
                        model.layers());
}

constexpr Bytes bytes(std::uint64_t count) {
    return Bytes{count};
}

TEST(FullestRank, OfOneGpuHoldsTheModelWithItsPadding) {
    // 30,532,122,624 BF16 parameters; the vocabulary, 151,936 = 128 · 1187, needs no padding.
    EXPECT_EQ(trainer("qwen3-30b-a3b", "tp1", 1), (FullestRank{0, 0, bytes(61'064'245'248)}));
    EXPECT_EQ(generator("qwen3-30b-a3b", "tp1", 1), (FullestRank{0, 0, bytes(61'064'245'248)}));
}

TEST(FullestRank, CountsWhatTensorAndExpertParallelismLeave) {
    // Of Qwen3-30B-A3B over TP8 (public report A23: 7,680,585,728 B with every KV head twice).
    EXPECT_EQ(generator("qwen3-30b-a3b", "tp8", 8).bytes, bytes(7'680'585'728));
    // Trainers cut the fused rows instead: a layer has 33,555,200 elements of attention cut by 8 (q 4096 ·
    // 2048, k and v 512 · 2048 each, o as q: 18,874,368) and whole norms (2 · 2048 + 2 · 128) and router (128
    // · 2048). 48 · (18,874,368 / 8 + 4,352 + 262,144) + 48 · 128 · 3 · 768 · 2048 / 16 + 2048 · (1 + 2 ·
    // 152,576 / 8), in BF16.
    EXPECT_EQ(trainer("qwen3-30b-a3b", "tp8.ep16", 16).bytes,
              bytes(2 * (48 * (18'874'368 / 8 + 4'352 + 262'144) + 48ULL * 8 * 3 * 768 * 2048 +
                         2048 * (1 + 2 * 19'072))));
}

TEST(FullestRank, StandsInTheHeaviestStage) {
    // Public report A20: Qwen3-32B over PP4, 16 layers a stage: the last stage has the head and the final
    // norm.
    EXPECT_EQ(trainer("qwen3-32b", "pp4", 4), (FullestRank{3, 3, bytes(17'158'981'632)}));
    // With 15 + 17 + 17 + 15 layers, which only a layout string can say, a middle stage has most.
    const auto model = shipped("qwen3-32b");
    auto text = parse_layout("pp4").value();
    text.chunk_layers = {15, 17, 17, 15};
    const auto layout = make_train_layout(text, 8, model).value();
    EXPECT_EQ(fullest_rank(layout, model.payload()), (FullestRank{2, 1, bytes(16'578'343'424)}));
}

TEST(FullestRank, CountsATiedTableOnBothEnds) {
    // Qwen3-4B: 4,022,468,096 parameters, of which the table 151,936 · 2560 and the final norm 2560; half of
    // the rest lies on the last of two stages, with the table as head, and the norm.
    const auto expected = bytes(2 * ((4'022'468'096 - 388'956'160 - 2560) / 2 + 388'956'160 + 2560));
    EXPECT_EQ(generator("qwen3-4b", "pp2", 2), (FullestRank{1, 1, expected}));
    EXPECT_EQ(trainer("qwen3-4b", "pp2", 2), (FullestRank{1, 1, expected}));
}

TEST(FullestRank, HoldsTheLargerShareOfExpertsThatDoNotDivide) {
    // 128 experts over 48 ranks: 2 and 3, the first 32 have three. Dense parts are whole: 61,064,245,248 less
    // the experts' 48 · 128 · 3 · 768 · 2048 · 2 = 57,982,058,496, and three 128ths of those.
    EXPECT_EQ(generator("qwen3-30b-a3b", "dp48.ep48", 48).bytes,
              bytes(3'082'186'752 + 57'982'058'496 / 128 * 3));
}

TEST(GpuMemoryOf, ASystemIsThatOfItsGpu) {
    const auto system = testing_systems::system_of("mine", 8);
    EXPECT_EQ(memory_of(system, Dtype::kFp32),
              (GpuMemory{system.gpu_memory.value, system.gpu, Dtype::kFp32}));
}

}  // namespace
}  // namespace refit
