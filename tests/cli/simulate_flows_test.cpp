// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "../model/io/scratch.hpp"
#include "program.hpp"

namespace refit::testing_cli {
namespace {

class SimulateFlows : public testing_io::Scratch {
protected:
    Outcome simulate(const std::string& text, std::vector<std::string> arguments = {}) {
        file_ = write("flows.txt", text).string();
        arguments.insert(arguments.begin(), {"simulate", "--flows", file_});
        return run_refit(arguments);
    }

    std::string file_;
};

// Two nodes of two GPUs, NVLink at 9 B/s, NICs at 3 B/s. 0 -> 1 over NVLink: 18 B in 2 s. 0 -> 2 and 1 -> 2
// share the NIC of 2: 1.5 B/s each, so 3 B end at 2 s; the other 7.5 B have 4.5 B left, at 3 B/s: 3.5 s.
constexpr const char* kFlows = "4 2 9 3 3\n0 1 18\n0 2 3\n1 2 7.5\n";

TEST_F(SimulateFlows, PrintsATimeALineAndItsCostBeside) {
    for (const std::string quotient : {"on", "off"}) {
        const auto outcome = simulate(kFlows, {"--quotient", quotient});
        EXPECT_EQ(outcome.code, 0);
        EXPECT_EQ(outcome.out, "2\n2\n3.5\n");
        EXPECT_NE(outcome.err.find("3 flows over at 3.5 s, 3 events"), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find("s of CPU time"), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find("MB at most"), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(simulate(kFlows, {"--quiet"}).err, "");
}

TEST_F(SimulateFlows, PrintsSeventeenDigits) {
    // 1 B at 3 B/s: the double nearest to a third.
    EXPECT_EQ(simulate("2 1 9 3 1\n0 1 1\n").out, "0.33333333333333331\n");
}

TEST_F(SimulateFlows, WritesAWholeFile) {
    const auto times = path("times.txt").string();
    const auto outcome = simulate(kFlows, {"-O", times});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out, "");
    std::ifstream file{times};
    EXPECT_EQ((std::string{std::istreambuf_iterator<char>{file}, {}}), "2\n2\n3.5\n");
}

TEST_F(SimulateFlows, SaysThatItIsApproximate) {
    // The three ends are exactly at 2 s or far from it, so the times are the exact ones.
    const auto outcome = simulate(kFlows, {"--fast", "0.001"});
    EXPECT_EQ(outcome.out, "2\n2\n3.5\n");
    EXPECT_NE(outcome.err.find("approximate (--fast 0.001)"), std::string::npos) << outcome.err;
}

TEST_F(SimulateFlows, RefusesAllFaultsWithTheirLinesAndWritesNothing) {
    const auto times = path("times.txt").string();
    const auto outcome = simulate("4 2 9 5 4\n0 1 5\n1 1 5\n0 9 nan\n", {"-O", times});
    EXPECT_EQ(outcome.code, 3);
    EXPECT_EQ(outcome.out, "");
    for (const auto* place : {":3\n", ":4\n", ":5\n"}) {
        EXPECT_NE(outcome.err.find(file_ + place), std::string::npos) << outcome.err;
    }
    EXPECT_NE(outcome.err.find("4 faults"), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(times));
}

TEST_F(SimulateFlows, RefusesWhatDoesNotFitTogether) {
    EXPECT_EQ(run_refit({"simulate"}).code, 2);
    EXPECT_EQ(run_refit({"simulate", "--flows", "/nowhere/flows.txt"}).code, 6);
    EXPECT_EQ(simulate(kFlows, {"--quotient", "maybe"}).code, 2);
    EXPECT_EQ(simulate(kFlows, {"--fast", "0"}).code, 2);
    EXPECT_EQ(simulate(kFlows, {"--fast", "0.5"}).code, 2);
    EXPECT_EQ(simulate(kFlows, {"--fast", "nan"}).code, 2);
    EXPECT_EQ(simulate(kFlows, {"-o", "json"}).code, 2);
    EXPECT_EQ(simulate(kFlows, {"--model", "deepseek-v3"}).code, 2);
    EXPECT_EQ(simulate(kFlows, {"-O", "/nowhere/times.txt"}).code, 6);
}

}  // namespace
}  // namespace refit::testing_cli
