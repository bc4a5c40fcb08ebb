// SPDX-License-Identifier: Apache-2.0
// Spines, rails and NICs that fall short, as people ask for them and as they are shown.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "program.hpp"

namespace refit::testing_cli {
namespace {

using Words = std::vector<std::string>;

const std::vector<Words>& asked() {
    static const std::vector<Words> kAsked{
        {"deepseek-v3-h100", "--oversubscription", "2:1", "--domains-per-pod", "8"},
        {"deepseek-v3-h100",
         "--nic",
         "trainer:17=down",
         "--nic",
         "generation:5=200Gbit/s",
         "--set",
         "fabric.rail_only=true"},
        {"deepseek-v3-gb200",
         "--oversubscription",
         "4",
         "--domains-per-pod",
         "2",
         "--nic",
         "70=down",
         "--nic",
         "71=down"},
        {"qwen3-235b-h100",
         "--oversubscription",
         "4:1",
         "--domains-per-pod",
         "2",
         "--nic",
         "1=down",
         "--nic",
         "2=down",
         "--nic",
         "3=down",
         "--nic",
         "9=down",
         "--nic",
         "10=1GB/s"}};
    return kAsked;
}

Words with(Words words, const std::string& command, const Words& more = {}) {
    words.insert(words.begin(), command);
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST(FabricOptions, AreComparedOnOneScreen) {
    for (const auto& words : asked()) {
        const auto run = run_refit(with(words, "compare"));
        ASSERT_EQ(run.code, 0) << run.err;
        EXPECT_LE(lines_of(run.out).size(), 30U) << run.out;
        EXPECT_NE(run.out.find("\n  fabric     "), std::string::npos) << run.out;
        for (const auto& line : lines_of(run.out)) {
            EXPECT_LE(line.size(), 100U) << line;
        }
    }
    const auto run = run_refit(with(asked()[3], "compare"));
    EXPECT_NE(
        run.out.find(
            "  fabric     pods of 2 NVLink domains, 4:1 oversubscribed; NICs down: trainer 1, trainer 2, "
            "trainer\n             3 and 1 more; NIC slow: trainer 10 at 1 GB/s\n"),
        std::string::npos)
        << run.out;
    EXPECT_EQ(run_refit({"compare", "deepseek-v3-h100"}).out.find("fabric"), std::string::npos);
}

TEST(FabricOptions, AreExplainedWithWhatBinds) {
    const auto run = run_refit(with(asked()[3], "explain"));
    ASSERT_EQ(run.code, 0) << run.err;
    for (const auto* text : {"at the NIC of trainer 10",
                             "busiest: nic-out of trainer rank 10, NIC at 1 GB/s",
                             "busiest uplink",
                             "fabric.oversubscription",
                             "fabric.domains_per_pod"}) {
        EXPECT_NE(run.out.find(text), std::string::npos) << text << "\n" << run.out;
    }
    for (const auto& line : lines_of(run.out)) {
        EXPECT_LE(line.size(), 100U) << line;
    }
}

TEST(FabricOptions, GiveTheirValuesAndTheBusiestUplinkAsJson) {
    const auto report = compare_json({"qwen3-235b-h100",
                                      "--oversubscription",
                                      "4:1",
                                      "--domains-per-pod",
                                      "2",
                                      "--nic",
                                      "generation:1=down",
                                      "--nic",
                                      "3=200Gbit/s"});
    const auto& fabric = report.at("scenario").at("fabric");
    EXPECT_EQ(fabric.at("domains_per_pod"), 2);
    EXPECT_EQ(fabric.at("oversubscription"), 4.0);
    EXPECT_EQ(fabric.at("rail_only"), false);
    EXPECT_EQ(fabric.at("nics"), (nlohmann::json{{"3", 25e9}, {"129", "down"}}));
    EXPECT_EQ(method_of(report, "optimal").at("bottleneck").at("resource").get<std::string>().substr(0, 6),
              "spine-");
    EXPECT_FALSE(compare_json({"qwen3-235b-h100"}).at("scenario").contains("fabric"));
}

TEST(FabricOptions, ArePlannedAndFitATerminalOf80Columns) {
    for (const auto& words : asked()) {
        for (const auto* method : {"optimal", "direct"}) {
            const auto run = run_refit(with(words, "plan", {"--method", method}));
            ASSERT_EQ(run.code, 0) << run.err;
            EXPECT_NE(run.out.find("\n  fabric        "), std::string::npos) << run.out;
            EXPECT_EQ(run.out.find("inf"), std::string::npos) << run.out;
            for (const auto& line : lines_of(run.out)) {
                EXPECT_LE(line.size(), 80U) << line;
            }
        }
    }
    const auto uplink = run_refit(with(asked()[0], "plan", {"--method", "direct"}));
    EXPECT_NE(uplink.out.find(": spine-up of pod 1\n"), std::string::npos) << uplink.out;
}

TEST(FabricOptions, StandInTheConfigurationEachWithItsFlag) {
    const auto run = run_refit(with(asked()[1], "compare", {"--print-config"}));
    for (const auto* text :
         {"fabric.nics.generation:5               = 200Gbit/s                 # --nic generation:5\n",
          "fabric.nics.trainer:17                 = down                      # --nic trainer:17\n",
          "# fabric.oversubscription                default "}) {
        EXPECT_NE(run.out.find(text), std::string::npos) << text << "\n" << run.out;
    }
}

TEST(FabricOptions, OfAFileAreOverriddenByFlags) {
    const auto file = std::filesystem::temp_directory_path() / "refit-fabric-test.json";
    auto scenario = nlohmann::json::parse(
        std::ifstream{std::filesystem::path{REFIT_DATA_DIR} / "scenarios" / "qwen3-235b-h100.json"});
    scenario.erase("published");
    scenario["fabric"] = {
        {"domains_per_pod", 4}, {"oversubscription", "2:1"}, {"nics", {{"trainer:3", "down"}}}};
    std::ofstream{file} << scenario;
    const auto report =
        compare_json({file.string(), "--nic", "trainer:3=200Gbit/s", "--oversubscription", "3"});
    EXPECT_EQ(report.at("scenario").at("fabric").at("oversubscription"), 3.0);
    EXPECT_EQ(report.at("scenario").at("fabric").at("nics").at("3"), 25e9);
    scenario["fabric"]["nics"]["trainer:400"] = "off";
    std::ofstream{file} << scenario;
    const auto refused = run_refit({"check", file.string()});
    EXPECT_EQ(refused.code, 3);
    EXPECT_NE(refused.out.find("refit-fabric-test.json: /fabric/nics/trainer:400"), std::string::npos)
        << refused.out;
    std::filesystem::remove(file);
}

TEST(FabricOptions, ThatMakeNoSenseAreToldAtOnceWithACommandThatWorks) {
    const auto run = run_refit({"compare",
                                "deepseek-v3-h100",
                                "--oversubscription",
                                "1:2",
                                "--nic",
                                "600=down",
                                "--nic",
                                "generation:3=fast",
                                "--nic",
                                "5=200"});
    EXPECT_EQ(run.code, 3);
    for (const auto* text : {"4 faults",
                             "there are 512 ranks, 0 to 511",
                             "try    rename 'fabric.nics.600' to 'fabric.nics.511'",
                             "try    --nic generation:3=down",
                             "try    --oversubscription 1:1"}) {
        EXPECT_NE(run.err.find(text), std::string::npos) << text << "\n" << run.err;
    }
    const std::string start = "All of it:  ";
    const auto at = run.err.find(start);
    ASSERT_NE(at, std::string::npos) << run.err;
    std::istringstream command{run.err.substr(at + start.size(), run.err.find('\n', at) - at - start.size())};
    Words words;
    for (std::string word; command >> word;) {
        words.push_back(word);
    }
    ASSERT_EQ(words.front(), "refit");
    words.erase(words.begin());
    EXPECT_EQ(run_refit(words).code, 0) << run.err;
    const auto usage = run_refit({"compare", "deepseek-v3-h100", "--nic", "17"});
    EXPECT_EQ(usage.code, 2);
    EXPECT_NE(usage.err.find("--nic takes RANK=down or RANK=RATE, not '17'"), std::string::npos) << usage.err;
}

TEST(FabricOptions, ThatKeepDomainsApartRefuseWithTheReason) {
    const auto run = run_refit({"compare",
                                "reshard-two-domains",
                                "--method",
                                "direct",
                                "--set",
                                "fabric.rail_only=true",
                                "--nic",
                                "generation:0=down",
                                "--nic",
                                "generation:1=down",
                                "--nic",
                                "generation:2=down",
                                "--nic",
                                "generation:3=down"});
    EXPECT_EQ(run.code, 4);
    EXPECT_NE(run.out.find("[no-path]"), std::string::npos) << run.out;
    EXPECT_NE(run.out.find("try --set fabric.rail_only=false"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace refit::testing_cli
