// SPDX-License-Identifier: Apache-2.0
// Systems and placement, as a whole draft is resolved.
#include <utility>

#include <gtest/gtest.h>

#include "mendable.hpp"

namespace refit::io {
namespace {

using testing_io::deepseek;
using testing_io::described;
using testing_io::expect_mendable;
using testing_io::faults_of;
using testing_io::resolved;
using testing_io::set_all;

TEST(ResolveSystem, LetsTheSidesDiffer) {
    auto draft = deepseek({{"system.train", "gb200-nvl72"}});
    auto scenario = resolved(draft);
    EXPECT_EQ(scenario.cluster.train_system().name, "gb200-nvl72");
    EXPECT_EQ(scenario.cluster.generate_system().name, "h100-nvl8");
    EXPECT_EQ(scenario.cluster.placement(), (Placement{64, 8, true}));
    draft = deepseek({{"system.generate", "gb200-nvl72"}});
    EXPECT_EQ(resolved(draft).cluster.generate_system().name, "gb200-nvl72");
    // Without one for both.
    draft.erase("system");
    set_all(draft, {{"system.train", "h200-nvl8"}}, Precedence::kFile);
    scenario = resolved(draft);
    EXPECT_EQ(scenario.cluster.train_system().name, "h200-nvl8");
    EXPECT_EQ(scenario.cluster.generate_system().name, "gb200-nvl72");
}

TEST(ResolveSystem, LetsAFlagForBothSidesOutrankAFilesWordOnOne) {
    auto draft = deepseek({{"system.train", "gb200-nvl72"}});
    set_all(draft, {{"system", "h200-nvl8"}}, Precedence::kFlag);
    const auto scenario = resolved(draft);
    EXPECT_EQ(scenario.cluster.train_system().name, "h200-nvl8");
    EXPECT_EQ(scenario.cluster.generate_system().name, "h200-nvl8");
}

TEST(ResolveSystem, AsksForTheSideThatIsMissing) {
    for (const auto& [given, missing] :
         {std::pair{"system.train", "system.generate"}, std::pair{"system.generate", "system.train"}}) {
        auto draft = deepseek({{given, "gb200-nvl72"}});
        draft.erase("system");
        const auto faults = faults_of(draft);
        ASSERT_EQ(faults.size(), 1U) << described(faults);
        EXPECT_EQ(faults[0].nearest.value().field, missing);
        draft.apply(*faults[0].nearest);
        const auto scenario = resolved(draft);
        EXPECT_NE(scenario.cluster.train_system(), scenario.cluster.generate_system());
    }
}

TEST(ResolveSystem, TellsAFaultOfBothSidesOnce) {
    EXPECT_EQ(faults_of(deepseek({{"system", "h100"}})).size(), 1U);
    EXPECT_EQ(faults_of(deepseek({{"system.train", "h100"}, {"system.generate", "h200"}})).size(), 2U);
}

TEST(ResolveSystem, LimitsThePlacementToTheSmallerDomain) {
    const auto draft = deepseek({{"system.train", "gb200-nvl72"}, {"placement.gpus_used_per_domain", "64"}});
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].nearest.value().value, "8");
    expect_mendable(draft);
}

}  // namespace
}  // namespace refit::io
