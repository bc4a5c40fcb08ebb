// SPDX-License-Identifier: Apache-2.0
#include "refit/io/content_map_json.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "refit/io/json_file.hpp"

namespace refit {
namespace {

using Json = nlohmann::json;

/// Records traced through the frameworks' own code (Megatron-Bridge 067f987, vLLM by a fork at 30b0f47, PyTorch 00131b6).
Json golden(const std::string& name) {
    const auto json = io::read_json(std::filesystem::path{REFIT_GOLDEN_DIR} / "content_maps" / (name + ".json")).value();
    return json.is_object() ? json.at("records") : json;
}

/// Asks each record without its answers and compares rank by rank, run by run. Returns how many were asked.
std::size_t expect_reproduced(const Json& records) {
    for (const auto& record : records) {
        auto question = record;
        question.erase("ranks");
        question.erase("refused");
        const auto answer = io::answer_content_maps(question).value();
        const auto name = record.at("name").get<std::string>();
        EXPECT_EQ(answer.contains("refused"), record.contains("refused")) << name << " " << answer.value("refused", "");
        if (record.contains("refused")) {
            EXPECT_EQ(answer.value("refused", ""), record.at("refused")) << name;
            EXPECT_TRUE(answer.at("ranks").empty()) << name;
            continue;
        }
        EXPECT_EQ(answer.at("ranks").size(), record.at("ranks").size()) << name;
        for (std::size_t i = 0; i < record.at("ranks").size() && i < answer.at("ranks").size(); ++i) {
            const auto& expected = record.at("ranks").at(i);
            const auto& rank = answer.at("ranks").at(i);
            EXPECT_EQ(rank.at("rank"), expected.at("rank")) << name;
            EXPECT_EQ(rank.at("local_shape"), expected.at("local_shape")) << name << " rank " << i;
            EXPECT_EQ(rank.at("runs"), expected.at("runs")) << name << " rank " << i;
        }
    }
    return records.size();
}

TEST(ContentMaps, PyTorchsDtensorIsReproducedRunByRun) { EXPECT_EQ(expect_reproduced(golden("pytorch_dtensor")), 200U); }

TEST(ContentMaps, MegatronWithItsBridgeIsReproducedRunByRun) { EXPECT_EQ(expect_reproduced(golden("megatron_bridge")), 91U); }

TEST(ContentMaps, VllmIsReproducedRunByRun) { EXPECT_EQ(expect_reproduced(golden("vllm")), 98U); }

TEST(ContentMaps, AListAndAFileGiveAListAndARecordGivesARecord) {
    const auto record = Json::parse(R"json({"logical_shape": [5], "mesh": [2], "placements": ["shard(0)"]})json");
    const auto list = io::answer_content_maps(Json::array({record, record})).value();
    ASSERT_TRUE(list.is_array());
    EXPECT_EQ(io::answer_content_maps(record).value(), list.at(0));
    // torch.chunk: ceil(5 / 2) = 3 and the rest.
    EXPECT_EQ(list.at(1).at("ranks").at(0).at("runs"), Json::parse("[[0, 3]]"));
    EXPECT_EQ(list.at(1).at("ranks").at(1).at("runs"), Json::parse("[[3, 2]]"));
    EXPECT_EQ(io::answer_content_maps(Json{{"records", Json::array({record, record})}}).value(), list);
}

TEST(ContentMaps, FaultyRecordsAreAnsweredByTheirFault) {
    const auto refused = [](const char* text) { return io::answer_content_maps(Json::parse(text)).value().at("refused"); };
    EXPECT_EQ(refused(R"json({"framework": "vllm", "kind": "no such kind", "config": {}, "inputs": []})json"), "unknown-kind");
    EXPECT_EQ(refused(R"json({"framework": "sglang", "kind": "row", "config": {}, "inputs": []})json"), "unknown-framework");
    EXPECT_EQ(refused(R"json({"framework": "vllm", "kind": "row", "config": {"tp": 2}, "inputs": []})json"), "missing-input");
    EXPECT_EQ(refused(R"json({"framework": "vllm", "kind": "row", "config": {"tp": 2}, "inputs": [{"shape": [-1]}]})json"), "record-shape");
    EXPECT_EQ(refused(R"json({"logical_shape": [4], "mesh": [2], "placements": ["shard(1)"]})json"), "placement-dim");
    EXPECT_EQ(refused(R"json({"logical_shape": [4], "mesh": [2], "placements": ["shard(x)"]})json"), "placement-syntax");
    EXPECT_EQ(refused(R"json({"logical_shape": [4], "mesh": [2], "placements": []})json"), "mesh-shape");
    EXPECT_FALSE(io::answer_content_maps(Json::parse("[]")).has_value());
    EXPECT_FALSE(io::answer_content_maps(Json::parse("3")).has_value());
}

}  // namespace
}  // namespace refit
