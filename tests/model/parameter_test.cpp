// SPDX-License-Identifier: Apache-2.0
#include "refit/parameter.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace refit {
namespace {

ParameterClass of_shape(std::vector<std::uint64_t> shape) {
    ParameterClass entry;
    entry.name = "w";
    entry.shape = std::move(shape);
    return entry;
}

TEST(ParameterClass, OutsideTheLayersIsOneTensor) {
    const auto norm = of_shape({7168});
    EXPECT_EQ(norm.tensors(), 1U);
    EXPECT_EQ(norm.tensors_per_layer(), 1U);
    EXPECT_FALSE(norm.is_expert());
    EXPECT_EQ(norm.bytes(), Bytes{14336U});
}

TEST(ParameterClass, OfExpertsHasATensorForEachExpertAndLayer) {
    // 3 layers of 4 experts, each 2·5 elements of 2 bytes.
    auto up = of_shape({2, 5});
    up.experts = 4;
    up.layers = {0, 1, 2};
    EXPECT_TRUE(up.is_expert());
    EXPECT_EQ(up.tensors_per_layer(), 4U);
    EXPECT_EQ(up.tensors(), 12U);
    EXPECT_EQ(up.elements(), 10U);
    EXPECT_EQ(up.tensor_bytes(), Bytes{20U});
    EXPECT_EQ(up.bytes(), Bytes{240U});
}

TEST(ParameterClass, TakesItsBytesFromItsDtype) {
    auto bias = of_shape({256});
    bias.dtype = Dtype::kFp32;
    EXPECT_EQ(bias.bytes(), Bytes{1024U});
    bias.dtype = Dtype::kFp8;
    EXPECT_EQ(bias.bytes(), Bytes{256U});
}

TEST(ParameterClass, CountsNoPaddingAsParameters) {
    // 96 of 128 rows belong to a segment; all 128 are stored.
    auto padded = of_shape({128, 3});
    padded.segments = {64, 32};
    EXPECT_EQ(padded.parameters(), 288U);
    EXPECT_EQ(padded.elements(), 384U);
    auto whole = padded;
    whole.segments = {64, 64};
    EXPECT_EQ(whole.parameters(), whole.elements());
}

TEST(ParameterClass, ThrowsWhereElementsOverflow) {
    const auto huge = of_shape({1ULL << 32U, 1ULL << 32U});
    EXPECT_THROW((void)huge.elements(), std::overflow_error);
    EXPECT_THROW((void)huge.bytes(), std::overflow_error);
    // 2^63 elements still fit, their 2^64 bytes do not.
    const auto large = of_shape({1ULL << 32U, 1ULL << 31U});
    EXPECT_EQ(large.elements(), 1ULL << 63U);
    EXPECT_THROW((void)large.tensor_bytes(), std::overflow_error);
}

TEST(ParameterClass, EqualsOneWithTheSameFields) {
    const auto one = of_shape({2});
    auto other = one;
    EXPECT_EQ(one, other);
    other.on_last_stage = true;
    EXPECT_NE(one, other);
}

}  // namespace
}  // namespace refit
