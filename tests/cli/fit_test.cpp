// SPDX-License-Identifier: Apache-2.0
// refit fit: what it shows, what it writes, what it refuses.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "program.hpp"

namespace refit::testing_cli {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class Fit : public testing::Test {
protected:
    void SetUp() override { fs::create_directories(folder_); }
    void TearDown() override { fs::remove_all(folder_); }
    [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }
    [[nodiscard]] std::string written(const std::string& name, const std::string& text) const {
        std::ofstream{folder_ / name} << text;
        return file(name);
    }

private:
    fs::path folder_ = fs::path{testing::TempDir()} / ("refit-fit-" + std::to_string(::getpid()));
};

/// A table of all_gather on `ranks` GPUs of `hosts` hosts with one rate, as nccl-tests print it.
std::string nccl_log(const std::string& test, int ranks, int hosts, double gigabytes_per_second) {
    std::ostringstream text;
    text << "# Collective test starting: " << test
         << "_perf\n# nThread 1 nGpus 1 minBytes 1 maxBytes 2\n# Using devices\n";
    for (int rank = 0; rank < ranks; ++rank) {
        text << "#  Rank " << rank << " Group 0 Pid 1 on host" << rank * hosts / ranks
             << " device 0 [0000:05:00] NVIDIA H100\n";
    }
    text << "#  size count type redop root time algbw busbw #wrong\n#  (B) (elements) (us) (GB/s) (GB/s)\n";
    for (const double size : {1e8, 1e9, 4e9}) {
        text << size << " 1 float none -1 " << size / gigabytes_per_second * 1e-3 << " 1.0 "
             << gigabytes_per_second << " 0\n";
    }
    return text.str();
}

TEST_F(Fit, OfTheShippedRecordsWritesTheShippedEngine) {
    const auto outcome = run_refit({"fit", "-O", file("engine.json")});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto shipped = std::string{REFIT_SOURCE_DIR} + "/data/engines/nemo-rl.json";
    EXPECT_EQ(file_text(file("engine.json")), file_text(shipped));
    const auto lines = lines_of(outcome.out);
    EXPECT_LE(lines.size(), 30U) << outcome.out;
    for (const auto& line : lines) {
        EXPECT_LE(line.size(), 100U) << line;
    }
    EXPECT_NE(outcome.out.find("Left out one at a time: median"), std::string::npos) << outcome.out;
}

TEST_F(Fit, OfTheShippedRecordsWritesEveryEngineThatShips) {
    for (const std::string name : {"miles", "trl", "verl", "vllm"}) {
        const auto outcome = run_refit({"fit", "--engine", name, "-O", file(name + ".json")});
        ASSERT_EQ(outcome.code, 0) << outcome.err;
        const auto shipped = std::string{REFIT_SOURCE_DIR} + "/data/engines/" + name + ".json";
        EXPECT_EQ(file_text(file(name + ".json")), file_text(shipped)) << name;
    }
}

TEST_F(Fit, IsTheSameInEveryFormat) {
    const auto json = Json::parse(run_refit({"fit", "--engine", "verl", "-o", "json"}).out);
    EXPECT_EQ(json.at("schema"), "refit.fit");
    EXPECT_EQ(json.at("refits").size(), 3U);
    // Three refits that are met to 1 % tell less than the four of 12 % that count with them.
    EXPECT_GT(json.at("row_error").get<double>(), 0.08);
    EXPECT_LT(json.at("row_error").get<double>(), 0.12);
    const auto csv = lines_of(run_refit({"fit", "--engine", "verl", "-o", "csv"}).out);
    EXPECT_EQ(csv.size(), 4U);
    EXPECT_TRUE(csv[0].starts_with("constant,value,low,high,unit,kind,")) << csv[0];
    EXPECT_TRUE(csv[1].starts_with("nic_efficiency,")) << csv[1];
    EXPECT_TRUE(run_refit({"fit", "--engine", "verl", "-o", "md"}).out.starts_with("| constant |"));
}

TEST_F(Fit, OfNcclTestsSetsTheLinksAlone) {
    const auto pairs = written("sendrecv.log", nccl_log("sendrecv", 2, 2, 46.0));
    const auto ring = written("ring.log", nccl_log("all_gather", 8, 1, 337.5));
    const auto outcome = run_refit(
        {"fit", "--nccl-tests", pairs + "," + ring, "--system", "h100-nvl8", "-O", file("engine.json")});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto constants = Json::parse(file_text(file("engine.json"))).at("constants");
    EXPECT_NEAR(constants.at("nic_efficiency").at("value").get<double>(), 46.0 / 50.0, 1e-6);
    EXPECT_NEAR(constants.at("nvlink_efficiency").at("value").get<double>(), 337.5 / 450.0, 1e-6);
    EXPECT_EQ(constants.at("nic_efficiency").at("kind"), "measured");
    const auto shipped = Json::parse(file_text(std::string{REFIT_SOURCE_DIR} + "/data/engines/nemo-rl.json"));
    EXPECT_EQ(constants.at("call_cost"), shipped.at("constants").at("call_cost"));
    // The file is one that other commands take.
    const auto report = compare_json({"qwen3-235b-h100", "--engine", file("engine.json")});
    EXPECT_FALSE(report.at("methods").empty());
}

TEST_F(Fit, TakesMeasuredReportsBesideTheRecords) {
    auto report = compare_json({"qwen3-235b-h100", "--method", "reshard"});
    auto& entry = report.at("methods").at(0);
    entry["kind"] = "measured";
    entry["seconds"] = 3.0;
    entry["seconds_low"] = 2.9;
    entry["seconds_high"] = 3.1;
    const auto measured = written("run.json", report.dump());
    const auto json = Json::parse(run_refit({"fit", "--measured", measured, "-o", "json"}).out);
    // It is the refit of post-235b-h100-reshard, 1.9 s, which now ranges to 3.1 s.
    EXPECT_EQ(json.at("refits").size(), 28U);
    const auto named = json.at("refits").dump();
    EXPECT_NE(named.find("run#hybrid"), std::string::npos) << named;
}

TEST_F(Fit, RefusesWhatItCannotUseAndWritesNothing) {
    const auto log = written("fast.log", nccl_log("sendrecv", 2, 2, 60.0));
    const auto fast =
        run_refit({"fit", "--nccl-tests", log, "--system", "h100-nvl8", "-O", file("engine.json")});
    EXPECT_EQ(fast.code, 3);
    EXPECT_NE(fast.err.find("above the line rate"), std::string::npos) << fast.err;
    EXPECT_EQ(run_refit({"fit", "--nccl-tests", log}).code, 2);
    EXPECT_EQ(run_refit({"fit", "--nccl-tests", file("none"), "--system", "h100-nvl8"}).code, 6);
    EXPECT_EQ(run_refit({"fit", "--records", written("none.json", R"({"records": [{"id": "a"}]})")}).code, 4);
    EXPECT_EQ(run_refit({"fit", "--measured", written("report.json", "{}")}).code, 3);
    const auto engine = run_refit({"fit", "--engine", "nemo-rk"});
    EXPECT_EQ(engine.code, 3);
    EXPECT_NE(engine.err.find("nemo-rl"), std::string::npos) << engine.err;
    EXPECT_FALSE(fs::exists(file("engine.json")));
}

TEST_F(Fit, HelpFitsAScreen) {
    const auto help = run_refit({"fit", "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_LE(lines_of(help.out).size(), 50U) << help.out;
}

}  // namespace
}  // namespace refit::testing_cli
