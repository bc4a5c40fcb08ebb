// SPDX-License-Identifier: Apache-2.0
#include "refit/dtype.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(Dtype, HasItsSizeInBytes) {
    EXPECT_EQ(size_of(Dtype::kBf16), 2U);
    EXPECT_EQ(size_of(Dtype::kFp16), 2U);
    EXPECT_EQ(size_of(Dtype::kFp32), 4U);
    EXPECT_EQ(size_of(Dtype::kFp8), 1U);
}

TEST(Dtype, IsParsedFromItsOwnName) {
    for (const auto dtype : {Dtype::kBf16, Dtype::kFp16, Dtype::kFp32, Dtype::kFp8}) {
        EXPECT_EQ(parse_dtype(name_of(dtype)).value(), dtype);
    }
}

TEST(Dtype, IsParsedFromTheSpellingsOfOtherTools) {
    EXPECT_EQ(parse_dtype("bfloat16").value(), Dtype::kBf16);
    EXPECT_EQ(parse_dtype("float16").value(), Dtype::kFp16);
    EXPECT_EQ(parse_dtype("half").value(), Dtype::kFp16);
    EXPECT_EQ(parse_dtype("float32").value(), Dtype::kFp32);
    EXPECT_EQ(parse_dtype("float").value(), Dtype::kFp32);
}

TEST(Dtype, IsRefusedUnknownNamingTheNearest) {
    const auto dtype = parse_dtype("bf17");
    ASSERT_FALSE(dtype.has_value());
    EXPECT_EQ(dtype.error().front().code, ErrorCode::kInvalidInput);
    EXPECT_EQ(dtype.error().front().message, "unknown dtype 'bf17'; did you mean 'bf16'?");
}

}  // namespace
}  // namespace refit
