// SPDX-License-Identifier: Apache-2.0
#include "refit/local_tensor.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace refit {
namespace {

using Shape = std::vector<std::uint64_t>;
using Runs = std::vector<refit::Run>;

TEST(LocalTensor, ASliceOfColumnsIsOneRunARow) {
    // 2 x 4, columns 1-2: elements 1, 2 and 5, 6.
    const Shape shape{2, 4};
    const auto columns = LocalTensor::whole(0, shape).slice(1, {1, 3});
    EXPECT_EQ(columns.shape(), (Shape{2, 2}));
    EXPECT_EQ(columns.runs(std::vector<Shape>{shape}), (Runs{{0, 1, 2}, {0, 5, 2}}));
    EXPECT_EQ(columns.pieces().size(), 1U);
}

TEST(LocalTensor, WhatWasCutApartAndJoinedAgainIsOnePiece) {
    const Shape shape{6, 2};
    const auto whole = LocalTensor::whole(0, shape);
    const std::vector parts{whole.part(0, 3, 0), whole.part(0, 3, 1), whole.part(0, 3, 2)};
    EXPECT_EQ(LocalTensor::concat(parts, 0).pieces(), whole.pieces());
}

TEST(LocalTensor, PaddingHasNoInput) {
    const Shape shape{3};
    const auto padded = LocalTensor::whole(0, shape).padded(0, 5).part(0, 5, 4);
    EXPECT_EQ(padded.runs(std::vector<Shape>{shape}), (Runs{{-1, 0, 1}}));
    EXPECT_EQ(LocalTensor::padding({2, 2}).runs(std::vector<Shape>{shape}), (Runs{{-1, 0, 4}}));
}

TEST(LocalTensor, ATransposeWalksTheInputByColumns) {
    // 2 x 3 turned: 0 3 | 1 4 | 2 5.
    const Shape shape{2, 3};
    const auto turned = LocalTensor::whole(0, shape).transposed(0, 1);
    EXPECT_EQ(turned.shape(), (Shape{3, 2}));
    EXPECT_EQ(turned.runs(std::vector<Shape>{shape}),
              (Runs{{0, 0, 1}, {0, 3, 1}, {0, 1, 1}, {0, 4, 1}, {0, 2, 1}, {0, 5, 1}}));
}

TEST(LocalTensor, StackedTensorsKeepTheirInputs) {
    const Shape shape{2};
    const std::vector parts{LocalTensor::whole(1, shape), LocalTensor::whole(0, shape)};
    const auto stacked = LocalTensor::stack(parts);
    EXPECT_EQ(stacked.shape(), (Shape{2, 2}));
    EXPECT_EQ(stacked.runs(std::vector<Shape>{shape, shape}), (Runs{{1, 0, 2}, {0, 0, 2}}));
    EXPECT_EQ(stacked.slice(0, {1, 2}).without_axis(0).runs(std::vector<Shape>{shape, shape}), (Runs{{0, 0, 2}}));
}

TEST(LocalTensor, ImpossibleOperationsAreBugs) {
    const Shape shape{3, 2};
    const auto tensor = LocalTensor::whole(0, shape);
    EXPECT_THROW(static_cast<void>(tensor.part(0, 2, 0)), std::logic_error);
    EXPECT_THROW(static_cast<void>(tensor.slice(2, {0, 1})), std::logic_error);
    EXPECT_THROW(static_cast<void>(tensor.padded(0, 2)), std::logic_error);
    EXPECT_THROW(static_cast<void>(tensor.without_axis(0)), std::logic_error);
    EXPECT_THROW(static_cast<void>(LocalTensor::concat({}, 0)), std::logic_error);
}

}  // namespace
}  // namespace refit
