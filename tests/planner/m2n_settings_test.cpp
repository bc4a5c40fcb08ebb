// SPDX-License-Identifier: Apache-2.0
#include "refit/m2n_settings.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(M2nSettings, NamesRoundTrip) {
    for (const auto path : {M2nPath::kSplit, M2nPath::kCombined, M2nPath::kLsa}) {
        EXPECT_EQ(parse_m2n_path(name_of(path)).value(), path);
    }
    for (const auto balance : {M2nBalance::kAdaptive, M2nBalance::kUniform, M2nBalance::kNodeAware}) {
        EXPECT_EQ(parse_m2n_balance(name_of(balance)).value(), balance);
    }
}

TEST(M2nSettings, AnUnknownNameIsAnsweredWithTheNearest) {
    const auto path = parse_m2n_path("combine");
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().front().message,
              "unknown path 'combine'; the nearest is 'combined' (known: split, combined and lsa)");
    EXPECT_NE(parse_m2n_balance("NODE_AWARE").error().front().message.find("'node-aware'"),
              std::string::npos);
}

TEST(M2nSettings, DefaultsAreThoseOfM2n) {
    const M2nSettings settings;
    EXPECT_EQ(settings.path, M2nPath::kSplit);
    EXPECT_EQ(settings.large_communicator, 200U);
    EXPECT_EQ(settings.staging, 2_GiB);
}

}  // namespace
}  // namespace refit
