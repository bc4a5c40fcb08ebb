// SPDX-License-Identifier: Apache-2.0
#include "refit/strong_id.hpp"

#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

namespace refit {
namespace {

static_assert(!std::is_convertible_v<RankId, DomainId>);
static_assert(!std::is_constructible_v<RankId, DomainId>);
static_assert(!std::is_convertible_v<std::uint32_t, RankId>);
static_assert(!std::is_convertible_v<RankId, std::uint32_t>);

TEST(StrongId, ComparesByIndex) {
    EXPECT_EQ(RankId{3}, RankId{3});
    EXPECT_LT(RankId{3}, RankId{4});
    EXPECT_EQ(RankId{}.index(), 0U);
}

TEST(StrongId, IsAKeyOfHashTables) {
    const std::unordered_set<DomainId> domains{DomainId{1}, DomainId{2}, DomainId{1}};
    EXPECT_EQ(domains.size(), 2U);
}

}  // namespace
}  // namespace refit
