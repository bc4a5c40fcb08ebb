// SPDX-License-Identifier: Apache-2.0
#include "refit/scenario.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "models.hpp"
#include "systems.hpp"

namespace refit {
namespace {

Scenario scenario_of(const char* model, Dtype dtype) {
    const auto system = testing_systems::system_of("nvl8", 8);
    return {"scenario",
            testing_models::shipped(model),
            dtype,
            {},
            {},
            Cluster{system, system, 1, 1, {8, 8, true}},
            {},
            {}, {},
            Coverage::kAll,
            {},
            ""};
}

Bytes bytes_of(const std::vector<ParameterClass>& classes) {
    Bytes sum;
    for (const auto& entry : classes) {
        sum += entry.bytes();
    }
    return sum;
}

TEST(Scenario, MovesTextAndVisionButNoMtp) {
    const auto payload = scenario_of("deepseek-v3", Dtype::kBf16).payload();
    EXPECT_TRUE(
        std::ranges::none_of(payload, [](const auto& entry) { return entry.part == ModelPart::kMtp; }));
    // 671,026,419,200 parameters of 2 B, of which the 58 routers' biases of 256 take 2 B more each.
    EXPECT_EQ(bytes_of(payload).count(), 671'026'419'200U * 2U + 58U * 256U * 2U);
}

TEST(Scenario, StoresInItsDtypeWhatTheModelHasInBf16) {
    const auto payload = scenario_of("deepseek-v3", Dtype::kFp32).payload();
    EXPECT_EQ(bytes_of(payload).count(), 671'026'419'200U * 4U);
    const auto half = scenario_of("deepseek-v3", Dtype::kFp16).payload();
    const auto is_fp32 = [](const auto& entry) { return entry.dtype == Dtype::kFp32; };
    // Only the routers' biases stay.
    EXPECT_EQ(std::ranges::count_if(half, is_fp32), 1);
    EXPECT_TRUE(std::ranges::find_if(half, is_fp32)->name.ends_with("e_score_correction_bias"));
}

TEST(Scenario, MovesScalesBehindTheirProjectionInFp8) {
    const auto payload = scenario_of("qwen3-30b-a3b", Dtype::kFp8).payload();
    std::size_t scales = 0;
    for (std::size_t i = 1; i < payload.size(); ++i) {
        if (payload[i].name.ends_with("_scale_inv")) {
            ++scales;
            EXPECT_EQ(payload[i].name, payload[i - 1].name + "_scale_inv");
            EXPECT_EQ(payload[i - 1].dtype, Dtype::kFp8);
        }
    }
    // q, k, v and o; gate, up and down of the experts.
    EXPECT_EQ(scales, 7U);
}

}  // namespace
}  // namespace refit
