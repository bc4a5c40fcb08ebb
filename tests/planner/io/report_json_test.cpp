// SPDX-License-Identifier: Apache-2.0
#include "refit/io/report_json.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../../shipped.hpp"

namespace refit {
namespace {

TEST(ReportJson, ARefusedMethodHasItsReasonsAndNoTimes) {
    const auto scenario = shipped_scenario("reshard-one-domain");
    Report report;
    report.line_rate_bound.time = Seconds{1.0};
    report.methods.resize(1);
    report.methods[0].method = Method::kHybrid;
    report.methods[0].refused = {{ErrorCode::kInfeasible, "reshard-generate-pp", "needs pp 1", "generate.layout",
                                  Suggestion{"generate.layout", "tp1.dp4", ""}}};
    const auto json = io::to_json(report, scenario);
    const auto& method = json.at("methods").at(0);
    EXPECT_FALSE(method.contains("seconds"));
    EXPECT_EQ(method.at("refused").at(0).at("code"), "reshard-generate-pp");
    EXPECT_EQ(method.at("refused").at(0).at("nearest").at("value"), "tp1.dp4");
}

TEST(ReportJson, BytesAreWholeNumbersAndUnitsStandInTheKeys) {
    const auto scenario = shipped_scenario("reshard-one-domain");
    Report report;
    report.line_rate_bound.time = Seconds{1.0};
    report.methods.resize(1);
    report.methods[0].network = Bytes{(std::uint64_t{1} << 53U) - 1};
    const auto json = io::to_json(report, scenario);
    EXPECT_TRUE(json.at("methods").at(0).at("network_bytes").is_number_unsigned());
    EXPECT_EQ(json.at("methods").at(0).at("network_bytes"), (std::uint64_t{1} << 53U) - 1);
    EXPECT_EQ(json.at("model").at("weight_bytes"), std::uint64_t{8'589'934'592});
}

}  // namespace
}  // namespace refit
