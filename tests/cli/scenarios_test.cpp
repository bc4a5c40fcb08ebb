// SPDX-License-Identifier: Apache-2.0
// Every shipped scenario through the built program: what it prints, and what must hold within its report.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace refit::testing_cli {
namespace {

using Json = nlohmann::json;

constexpr double kExact = 1e-9;

class Shipped : public testing::TestWithParam<std::string> {};

std::string name_of_case(const testing::TestParamInfo<std::string>& info) {
    auto name = info.param;
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Shipped, testing::ValuesIn(shipped_scenarios()), name_of_case);

TEST_P(Shipped, FitsOneScreenOfPlainAscii) {
    const auto outcome = run_refit({"compare", GetParam()});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    const auto lines = lines_of(outcome.out);
    EXPECT_LE(lines.size(), 30U);
    for (const auto& line : lines) {
        EXPECT_LE(line.size(), 100U) << line;
        EXPECT_TRUE(std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; })) << line;
        EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
    }
}

TEST_P(Shipped, PrintsTheSameOnATerminalAndWithoutColours) {
    if (!has_terminals()) {
        GTEST_SKIP() << "this machine gives no pseudo-terminals";
    }
    const auto piped = run_refit({"compare", GetParam()});
    Setting terminal;
    terminal.environment = {{"TERM", "xterm-256color"}};
    terminal.on_terminal = true;
    EXPECT_EQ(run_refit({"compare", GetParam(), "--no-progress"}, terminal).out, piped.out);
    Setting plain;
    plain.environment = {{"NO_COLOR", "1"}};
    EXPECT_EQ(run_refit({"compare", GetParam()}, plain).out, piped.out);
    plain.environment = {{"TERM", "dumb"}};
    EXPECT_EQ(run_refit({"compare", GetParam()}, plain).out, piped.out);
}

TEST_P(Shipped, ExplainsWithin100Columns) {
    const auto outcome = run_refit({"explain", GetParam()});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const auto& line : lines_of(outcome.out)) {
        EXPECT_LE(line.size(), 100U) << line;
    }
}

TEST_P(Shipped, GivesTheSameJsonTwice) {
    const auto first = run_refit({"compare", GetParam(), "-o", "json"});
    const auto second = run_refit({"compare", GetParam(), "-o", "json"});
    ASSERT_EQ(first.code, 0) << first.err;
    EXPECT_EQ(first.out, second.out);
}

void expect_keys(const Json& object, const std::vector<std::string>& keys, const std::string& where) {
    for (const auto& key : keys) {
        EXPECT_TRUE(object.contains(key)) << where << " lacks " << key;
    }
}

void expect_method_keys(const Json& method) {
    const auto where = method.at("method").get<std::string>();
    expect_keys(method,
                {"method",
                 "kind",
                 "calibrated",
                 "seconds",
                 "seconds_low",
                 "seconds_high",
                 "estimate_seconds",
                 "transfer_seconds",
                 "bound_seconds",
                 "bound_line_rate_seconds",
                 "logical_bytes",
                 "network_bytes",
                 "nvlink_bytes",
                 "peak_extra_bytes",
                 "bottleneck",
                 "phases",
                 "published",
                 "refused"},
                where);
    expect_keys(method.at("peak_extra_bytes"), {"train", "generation"}, where);
    expect_keys(method.at("bottleneck"), {"resource", "where", "share"}, where);
    for (const auto& phase : method.at("phases")) {
        expect_keys(phase, {"name", "seconds", "hidden"}, where);
    }
    for (const auto& published : method.at("published")) {
        expect_keys(published, {"id", "seconds", "seconds_min", "seconds_max", "error"}, where);
    }
}

TEST_P(Shipped, ReportsEveryKeyOfTheFormat) {
    const auto report = compare_json({GetParam()});
    expect_keys(
        report,
        {"schema", "schema_version", "scenario", "model", "methods", "speedup", "try", "step", "assumptions"},
        "report");
    expect_keys(
        report.at("model"), {"id", "parameters", "mtp_parameters", "tensors", "weight_bytes"}, "model");
    expect_keys(report.at("speedup"), {"of", "over", "ratio", "low", "high"}, "speedup");
    expect_keys(report.at("step"), {"seconds", "refit_share", "step_speedup_at_most"}, "step");
    for (const auto& trial : report.at("try")) {
        expect_keys(trial, {"change", "seconds", "extra_bytes"}, "try");
    }
    for (const auto& entry : report.at("assumptions")) {
        expect_keys(entry, {"name", "value", "unit", "source", "kind"}, "assumption");
        EXPECT_FALSE(entry.at("source").get<std::string>().empty()) << entry.at("name");
    }
    EXPECT_EQ(report.at("schema"), "refit.report");
    EXPECT_EQ(report.at("schema_version"), "1.0");
    EXPECT_EQ(report.at("methods").size(), 5U);
    for (const auto& method : report.at("methods")) {
        expect_method_keys(method);
    }
}

/// What holds for one method whatever the scenario.
void expect_consistent_method(const Json& method) {
    SCOPED_TRACE(method.at("method").get<std::string>());
    const auto seconds = method.at("seconds").get<double>();
    const auto transfer = method.at("transfer_seconds").get<double>();
    const auto bound = method.at("bound_seconds").get<double>();
    EXPECT_LE(bound, transfer + kExact);
    EXPECT_LE(transfer, seconds + kExact);
    EXPECT_LE(method.at("bound_line_rate_seconds").get<double>(), bound + kExact);
    EXPECT_LE(method.at("seconds_low").get<double>(), seconds);
    EXPECT_GE(method.at("seconds_high").get<double>(), seconds);
    EXPECT_EQ(method.at("estimate_seconds"), method.at("seconds"));
    const auto share = method.at("bottleneck").at("share").get<double>();
    EXPECT_GT(share, 0.0);
    EXPECT_LE(share, 1.0);
    double sum = 0.0;
    for (const auto& phase : method.at("phases")) {
        sum += phase.at("hidden").get<bool>() ? 0.0 : phase.at("seconds").get<double>();
    }
    EXPECT_NEAR(sum, seconds, kExact);
}

TEST_P(Shipped, AgreesWithItself) {
    const auto report = compare_json({GetParam()});
    for (const auto& method : report.at("methods")) {
        expect_consistent_method(method);
        EXPECT_GE(method.at("network_bytes"), report.at("bound").at("effective").at("network_bytes"));
    }
    const auto slow = method_of(report, "gather-broadcast");
    const auto fast = method_of(report, "hybrid");
    const auto ratio = slow.at("seconds").get<double>() / fast.at("seconds").get<double>();
    EXPECT_NEAR(report.at("speedup").at("ratio").get<double>(), ratio, kExact);
    // Each parameter once when gathered and once when broadcast.
    const auto weights = report.at("model").at("weight_bytes").get<std::uint64_t>();
    EXPECT_EQ(slow.at("logical_bytes").get<std::uint64_t>(), 2 * weights);
    // Point to point, and to stripes that are then shared, every wanted byte makes one hop into its
    // generator.
    for (const char* name : {"direct", "striped"}) {
        const auto method = method_of(report, name);
        EXPECT_EQ(
            method.at("network_bytes").get<std::uint64_t>() + method.at("nvlink_bytes").get<std::uint64_t>(),
            method.at("logical_bytes").get<std::uint64_t>())
            << name;
    }
    // Optimal makes a further hop where a neighbour lends its NIC.
    const auto optimal = method_of(report, "optimal");
    EXPECT_GE(optimal.at("network_bytes").get<std::uint64_t>() + optimal.at("nvlink_bytes").get<std::uint64_t>(),
              optimal.at("logical_bytes").get<std::uint64_t>());
}

TEST_P(Shipped, PlansOptimalNearTheBoundAndAboveNoOtherMethod) {
    const auto report = compare_json({GetParam()});
    const auto optimal = method_of(report, "optimal");
    EXPECT_LE(optimal.at("transfer_seconds").get<double>(), 1.05 * optimal.at("bound_seconds").get<double>());
    for (const auto& method : report.at("methods")) {
        if (!method.at("refused").is_null()) {
            continue;
        }
        EXPECT_LE(optimal.at("transfer_seconds").get<double>(), 1.05 * method.at("transfer_seconds").get<double>())
            << method.at("method");
    }
}

TEST_P(Shipped, GivesOneSetOfNumbersInEveryFormat) {
    const auto report = compare_json({GetParam()});
    const auto csv = lines_of(run_refit({"compare", GetParam(), "-o", "csv"}).out);
    const auto markdown = lines_of(run_refit({"compare", GetParam(), "-o", "md"}).out);
    const auto& methods = report.at("methods");
    ASSERT_EQ(csv.size(), 1 + methods.size());
    ASSERT_EQ(markdown.size(), 2 + methods.size());
    const auto commas = std::ranges::count(csv.front(), ',');
    for (std::size_t i = 0; i < methods.size(); ++i) {
        const auto name = methods[i].at("method").get<std::string>();
        EXPECT_TRUE(csv[i + 1].starts_with(name + ",")) << csv[i + 1];
        EXPECT_EQ(std::ranges::count(csv[i + 1], ','), commas);
        EXPECT_NE(csv[i + 1].find("," + methods[i].at("network_bytes").dump() + ","), std::string::npos);
        EXPECT_TRUE(markdown[i + 2].starts_with("| " + name)) << markdown[i + 2];
    }
}

TEST(Published, TimesAreMetWithin20Percent) {
    for (const char* name :
         {"deepseek-v3-h100", "deepseek-v3-gb200", "nemotron-ultra-gb200", "qwen3-235b-h100"}) {
        const auto report = compare_json({name});
        for (const char* method : {"gather-broadcast", "hybrid"}) {
            const auto entry = method_of(report, method);
            ASSERT_EQ(entry.at("published").size(), 1U) << name << " " << method;
            const auto published = entry.at("published").front().at("seconds").get<double>();
            EXPECT_NEAR(entry.at("seconds").get<double>() / published, 1.0, 0.2) << name << " " << method;
        }
    }
}

TEST(Published, TimesAreLeftOutOnceTheRefitIsAnother) {
    EXPECT_EQ(
        method_of(compare_json({"deepseek-v3-h100", "--gen-gpus", "512"}), "hybrid").at("published").size(),
        0U);
    EXPECT_EQ(method_of(compare_json({"deepseek-v3-h100", "--set", "system.nic=800Gbit/s"}), "hybrid")
                  .at("published")
                  .size(),
              0U);
    // The same value again changes nothing.
    EXPECT_EQ(method_of(compare_json({"deepseek-v3-h100", "--system", "h100-nvl8"}), "hybrid")
                  .at("published")
                  .size(),
              1U);
}

// 2.78 T parameters of two bytes: 5.56 TB.
TEST(KimiK3, Moves5560GigabytesAndTwiceThatByGatherAndBroadcast) {
    const auto report = compare_json({"kimi-k3-h100"});
    const auto weights = report.at("model").at("weight_bytes").get<std::uint64_t>();
    EXPECT_NEAR(static_cast<double>(weights), 5.56e12, 0.005e12);
    EXPECT_EQ(method_of(report, "gather-broadcast").at("logical_bytes").get<std::uint64_t>(), 2 * weights);
    EXPECT_EQ(report.at("hybrid_coverage_ffn").at("method"), "hybrid");
}

}  // namespace
}  // namespace refit::testing_cli
