// SPDX-License-Identifier: Apache-2.0
#include "refit/explicit_job.hpp"

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/check.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

using Kind = DtensorPlacement::Kind;

/// 10 x 6 elements of 2 bytes: rows over four trainers by torch.chunk, columns over 2 x 2 generators.
M2nCall uneven_call() {
    M2nCall call;
    call.source = {{10, 6}, 2, {{4}, RankId{0}}, {{Kind::kShard, 0, 1}}};
    call.destination = {{10, 6}, 2, {{2, 2}, RankId{4}}, {{Kind::kReplicate, 0, 1}, {Kind::kShard, 1, 1}}};
    return call;
}

System system() { return shipped_scenario("reshard-one-domain").cluster.train_system(); }

TEST(ExplicitJob, FollowsThePlacements) {
    const auto job = explicit_job("w", uneven_call(), 4, system()).value();
    const auto& entry = job.workload.classes().front();
    // Chunks of ceil(10 / 4) = 3 rows: 3, 3, 3, 1.
    ASSERT_EQ(entry.source.shards().size(), 4U);
    EXPECT_EQ(entry.source.shards()[3].boxes.front().axes()[0], (Interval{9, 10}));
    ASSERT_EQ(entry.destinations.front().shards().size(), 2U);
    EXPECT_EQ(entry.destinations.front().shards()[1].members, (std::vector<std::uint32_t>{1, 3}));
    EXPECT_EQ(entry.destinations.front().shards()[1].boxes.front().axes()[1], (Interval{3, 6}));
    EXPECT_EQ(job.cluster.domain_of(RankId{3}), DomainId{0});
    EXPECT_EQ(job.cluster.domain_of(RankId{4}), DomainId{1});
}

TEST(ExplicitJob, IsPlannedByEveryMethodThatNeedsNoNames) {
    const auto job = explicit_job("w", uneven_call(), 4, system()).value();
    for (const auto method : {Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal}) {
        const auto plan = make_plan(method, job.cluster, port_rates(job.cluster, 1.0, 1.0), job.workload).value();
        EXPECT_TRUE(check_plan(plan, job.workload, job.cluster).empty()) << name_of(method);
    }
    const auto hybrid = make_plan(Method::kHybrid, job.cluster, port_rates(job.cluster, 1.0, 1.0), job.workload);
    ASSERT_FALSE(hybrid.has_value());
    EXPECT_EQ(hybrid.error().front().code, ErrorCode::kUnsupported);
}

TEST(ExplicitJob, LeavesOutRanksWithoutElements) {
    // Two rows over four ranks: chunks of 1, 1, 0, 0.
    auto call = uneven_call();
    call.source.shape = call.destination.shape = {2, 6};
    const auto job = explicit_job("w", call, 8, system()).value();
    EXPECT_EQ(job.workload.classes().front().source.shards().size(), 2U);
}

TEST(ExplicitJob, RefusesIdleRanksAndOddElements) {
    auto apart = uneven_call();
    apart.destination.mesh.first_rank = RankId{5};
    EXPECT_EQ(explicit_job("w", apart, 8, system()).error().front().rule, "ranks-apart");
    auto wide = uneven_call();
    wide.source.element_bytes = wide.destination.element_bytes = 8;
    EXPECT_EQ(explicit_job("w", wide, 8, system()).error().front().rule, "element-bytes");
}

}  // namespace
}  // namespace refit
