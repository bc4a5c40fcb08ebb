// SPDX-License-Identifier: Apache-2.0
#include "refit/io/field_options.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "refit/io/scenario_draft.hpp"

namespace refit::io {
namespace {

TEST(FieldOptions, EachHasAFlagOfItsOwnAndSetsAFieldOfScenarios) {
    std::set<std::string> flags;
    for (const auto& option : field_options()) {
        EXPECT_TRUE(flags.insert(option.flag).second) << option.flag;
        EXPECT_FALSE(check_field_name(option.field)) << option.field;
    }
    EXPECT_TRUE(flags.contains("--train") && flags.contains("--without"));
}

TEST(FieldOptions, NameTheFlagOfAFieldAndQuoteItsValue) {
    EXPECT_EQ(flag_for("train.layout", "tp4.pp8.ep16@128"), "--train tp4.pp8.ep16@128");
    EXPECT_EQ(flag_for("engine.coverage", "pattern:*.mlp.*"), "--coverage 'pattern:*.mlp.*'");
    EXPECT_EQ(flag_for("fabric.nics.trainer:17", "down"), "--nic trainer:17=down");
    EXPECT_EQ(flag_for("system.nic", "800Gbit/s"), "--set system.nic=800Gbit/s");
    EXPECT_EQ(flag_for("name", "two words"), "--set 'name=two words'");
}

}  // namespace
}  // namespace refit::io
