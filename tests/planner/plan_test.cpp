// SPDX-License-Identifier: Apache-2.0
#include "refit/plan.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(Plan, MethodsHaveTheNamesThatTheCommandLineTakes) {
    for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped, Method::kM2n, Method::kOptimal}) {
        EXPECT_EQ(parse_method(name_of(method)).value(), method);
    }
}

TEST(Plan, RolesKnowWhetherTheyBroadcastAndWhom) {
    EXPECT_TRUE(is_broadcast(CollectiveRole::kPipelineBroadcast));
    EXPECT_FALSE(is_broadcast(CollectiveRole::kReplicaAllGather));
    EXPECT_TRUE(is_among_replicas(CollectiveRole::kReplicaBroadcast));
    EXPECT_FALSE(is_among_replicas(CollectiveRole::kWeightBroadcast));
}

TEST(Plan, TheDepthOfRelaysIsTheLongestWayOfAMessage) {
    // Message 0 goes a -> b -> c -> d, message 1 a -> b -> c; their hops may stand side by side or take turns.
    constexpr auto kNone = RelayTable::kNone;
    RelayTable relays;
    EXPECT_EQ(relays.depth(), 0U);
    relays.source = {0, 1, 2, 0, 1};
    relays.destination = {1, 2, 3, 1, 2};
    relays.message = {0, 0, 0, 1, 1};
    relays.follows = {kNone, 0, 1, kNone, 3};
    EXPECT_EQ(relays.depth(), 3U);
    relays.source = {0, 0, 1, 1, 2};
    relays.destination = {1, 1, 2, 2, 3};
    relays.message = {0, 1, 0, 1, 0};
    relays.follows = {kNone, kNone, 0, 1, 2};
    EXPECT_EQ(relays.depth(), 3U);
    relays.follows = {kNone, kNone, 3, 1, 2};
    EXPECT_THROW((void)relays.depth(), std::logic_error);
}

}  // namespace
}  // namespace refit
