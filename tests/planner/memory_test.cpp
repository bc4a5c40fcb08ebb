// SPDX-License-Identifier: Apache-2.0
#include "refit/memory.hpp"

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

PeakBytes peak_of(Method method, const std::string& name,
                  std::initializer_list<std::pair<std::string, std::string>> changes = {}) {
    const auto scenario = shipped_scenario(name, changes);
    const auto workload = Workload::make(scenario);
    return peak_bytes(make_plan(method, scenario, workload).value(), scenario, workload);
}

TEST(PackTarget, IsTwoPercentOfTheGpuUpToTheCap) {
    // 79.2 GiB x 0.02 = 1.70 GB; a GPU of 288 GiB would pack 6.2 GB, but packs end at 5 GiB.
    const auto engine = shipped_library().engine("nemo-rl").value();
    EXPECT_EQ(pack_target(engine, Bytes{std::uint64_t{85'040'352'461}}).count(), 1'700'807'049U);
    EXPECT_EQ(pack_target(engine, 288_GiB), 5_GiB);
}

TEST(PeakBytes, AMatrixLargerThanAPackFillsOnePackAlone) {
    // 8 GiB in one tensor: the trainer holds it as a list and packed, the receiver once.
    const auto peak = peak_of(Method::kGatherBroadcast, "reshard-one-domain");
    EXPECT_EQ(peak.train, 16_GiB);
    EXPECT_EQ(peak.generation, 8_GiB);
}

TEST(PeakBytes, OneBufferHoldsOnePack) {
    const auto two = peak_of(Method::kGatherBroadcast, "deepseek-v3-h100");
    const auto one = peak_of(Method::kGatherBroadcast, "deepseek-v3-h100",
                             {{"engine.options.NRL_REFIT_NUM_BUFFERS", "1"}});
    EXPECT_LT(one.train, two.train);
    EXPECT_GE(one.train * 2, two.train);
}

TEST(PeakBytes, ADirectReceiverHoldsOneRegionAStream) {
    // DeepSeek-V3, TP32: the largest region is an expert projection's share, 256 x 64 x 7168 x 2 B = 235 MB, two
    // streams. A trainer stacks 16 experts, 16 x 2048 x 7168 x 2 B = 470 MB; but the embedding, whole on TP1, is
    // larger: 129,280 x 7168 x 2 B, held twice.
    const auto peak = peak_of(Method::kDirect, "deepseek-v3-h100");
    EXPECT_EQ(peak.generation.count(), 2U * 256 * 64 * 7168 * 2);
    EXPECT_EQ(peak.train.count(), 2U * 129'280 * 7168 * 2);
}

}  // namespace
}  // namespace refit
