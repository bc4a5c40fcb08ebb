// SPDX-License-Identifier: Apache-2.0
#include "refit/io/engine_writer.hpp"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "drafts.hpp"
#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

using testing_io::library;

std::filesystem::path shipped() {
    return library().engine_file("nemo-rl").value();
}

TEST(EngineWriter, ChangesNothingWhereNothingChanged) {
    const auto constants = library().engine("nemo-rl").value().constants;
    EXPECT_EQ(engine_text(shipped(), constants).value(), read_text(shipped()).value());
}

TEST(EngineWriter, WritesInTheUnitsOfTheFile) {
    auto constants = library().engine("nemo-rl").value().constants;
    constants.call_cost.value = 0.25e-3;
    constants.call_cost.low = 0.2e-3;
    constants.call_cost.kind = "measured";
    constants.correlations = {{&EngineConstants::call_cost, &EngineConstants::fixed_cost, -0.25}};
    const auto json = nlohmann::json::parse(engine_text(shipped(), constants).value());
    EXPECT_EQ(json.at("constants").at("call_cost").at("unit"), "ms");
    EXPECT_EQ(json.at("constants").at("call_cost").at("value"), 0.25);
    EXPECT_EQ(json.at("constants").at("call_cost").at("low"), 0.2);
    EXPECT_EQ(json.at("constants").at("call_cost").at("kind"), "measured");
    EXPECT_TRUE(json.at("constants").at("call_cost").contains("prior"));
    ASSERT_EQ(json.at("correlations").size(), 1U);
    EXPECT_EQ(json.at("correlations")[0].at("between"), (nlohmann::json{"call_cost", "fixed_cost"}));
    EXPECT_EQ(json.at("correlations")[0].at("value"), -0.25);
    EXPECT_EQ(json.at("options"), read_json(shipped()).value().at("options"));
}

TEST(EngineWriter, NeedsTheFile) {
    EXPECT_EQ(engine_text("no-such-file.json", {}).error()[0].code, ErrorCode::kIo);
}

}  // namespace
}  // namespace refit::io
