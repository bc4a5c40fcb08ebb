// SPDX-License-Identifier: Apache-2.0
#include "refit/packs.hpp"

#include <gtest/gtest.h>

#include "../shipped.hpp"

namespace refit {
namespace {

TEST(Packs, CloseWhenTheyExceedTheTargetSoOvershootByUpToOneTensor) {
    // Tensors of 40 and a target of 100: two are 80, the third makes 120 and closes the pack. Then 40 + 7 x
    // 10 = 110.
    const std::vector<ExportRun> runs{{0, 0, 0, 4, 40}, {1, 0, 0, 8, 10}};
    const auto packs = make_packs(runs, 100);
    ASSERT_EQ(packs.size(), 3U);
    EXPECT_EQ(packs[0], (Pack{120, {{0, 0, 3}}}));
    EXPECT_EQ(packs[1], (Pack{110, {{0, 3, 1}, {1, 0, 7}}}));
    EXPECT_EQ(packs[2], (Pack{10, {{1, 7, 1}}}));
}

TEST(Packs, ExactlyFullOnesStayOpen) {
    EXPECT_EQ(make_packs(std::vector<ExportRun>{{0, 0, 0, 3, 50}}, 100),
              (std::vector<Pack>{{150, {{0, 0, 3}}}}));
    EXPECT_EQ(make_packs(std::vector<ExportRun>{{0, 0, 0, 3, 50}}, 99),
              (std::vector<Pack>{{100, {{0, 0, 2}}}, {50, {{0, 2, 1}}}}));
}

TEST(Packs, ATargetOfNothingMakesOneOfEachTensor) {
    EXPECT_EQ(make_packs(std::vector<ExportRun>{{0, 0, 0, 5, 7}}, 0).size(), 5U);
    EXPECT_TRUE(make_packs({}, 0).empty());
}

TEST(Packs, InFlightAreNeighbours) {
    const std::vector<Pack> packs{{5, {}}, {1, {}}, {4, {}}, {3, {}}};
    EXPECT_EQ(most_in_flight(packs, 1), 5U);
    EXPECT_EQ(most_in_flight(packs, 2), 7U);   // 4 + 3, more than 5 + 1
    EXPECT_EQ(most_in_flight(packs, 3), 10U);  // 5 + 1 + 4
    EXPECT_EQ(most_in_flight(packs, 9), 13U);
    EXPECT_EQ(most_in_flight({}, 2), 0U);
}

TEST(Packs, TheExportGoesByLayersAlsoWhereStagesHaveThemInTurn) {
    const auto workload = Workload::make(
        shipped_scenario("reshard-one-domain",
                         {{"model", "llama-3.1-8b"},
                          {"train.layout", "pp8"},
                          {"train.gpus", "8"},
                          {"train.virtual_pipeline", "2"}}));
    std::uint32_t norm = 0;
    while (workload.classes()[norm].parameter.name != "model.layers.{layer}.input_layernorm.weight") {
        ++norm;
    }
    const auto order = export_order(workload, std::vector{norm});
    ASSERT_EQ(order.size(), 32U);
    // Layers 0 and 1 are on stage 0, 2 and 3 on stage 1; 16 and 17 on stage 0 again.
    EXPECT_EQ(std::pair(order[2].slice, order[2].tensor), std::pair(1U, 0U));
    EXPECT_EQ(std::pair(order[16].slice, order[16].tensor), std::pair(0U, 2U));
}

TEST(Packs, TheExportGoesLayerByLayerFromTheEmbeddingToTheHead) {
    const auto workload = Workload::make(shipped_scenario("deepseek-v3-h100"));
    std::vector<std::uint32_t> all(workload.classes().size());
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        all[i] = i;
    }
    const auto order = export_order(workload, all);
    const auto name = [&](const ExportRun& run) { return workload.classes()[run.parameter].parameter.name; };
    EXPECT_EQ(name(order.front()), "model.embed_tokens.weight");
    EXPECT_EQ(name(order.back()), "lm_head.weight");
    std::uint64_t bytes = 0;
    std::uint64_t tensors = 0;
    for (const auto& run : order) {
        bytes += run.bytes * run.tensors;
        tensors += run.tensors;
    }
    EXPECT_EQ(bytes, workload.payload_bytes().count());
    EXPECT_EQ(tensors, 45'395U);
}

}  // namespace
}  // namespace refit
