// SPDX-License-Identifier: Apache-2.0
#include "refit/plan.hpp"

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

}  // namespace
}  // namespace refit
