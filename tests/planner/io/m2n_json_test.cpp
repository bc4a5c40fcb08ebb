// SPDX-License-Identifier: Apache-2.0
#include "refit/io/m2n_json.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

constexpr const char* kGolden = REFIT_GOLDEN_DIR "/m2n/plans.json";

Ordered golden_records() {
    std::ifstream file{kGolden};
    return Ordered::parse(file);
}

/// A sound record: 4 to 4 ranks.
Json small_record() {
    return Json::parse(R"json({"name":"small","tensor_shape":[8,4],"element_bytes":2,
        "source":{"mesh":[1,4],"placements":["replicate","shard(0)"],"start_rank":0},
        "destination":{"mesh":[1,4],"placements":["replicate","shard(1)"],"start_rank":4},
        "domain_size":8,"path":"split"})json");
}

M2nAnswer answer_to(const Json& record) {
    return answer(read_m2n_requests(record, "calls.json").value()).front();
}

Faults faults_of(const Json& json) {
    const auto requests = read_m2n_requests(json, "calls.json");
    return requests ? Faults{} : requests.error();
}

std::vector<std::string> golden_names() {
    std::vector<std::string> names;
    for (const auto& record : golden_records()) {
        names.push_back(record.at("name").get<std::string>());
    }
    return names;
}

Ordered golden_record(const std::string& name) {
    const auto records = golden_records();
    return *std::ranges::find_if(records, [&](const Ordered& record) { return record.at("name") == name; });
}

/// One record of NCCL M2N's own plans, by its name.
class M2nGolden : public testing::TestWithParam<std::string> {};

TEST_P(M2nGolden, IsReproducedFieldByField) {
    const auto record = golden_record(GetParam());
    EXPECT_EQ(to_json(answer_to(record)).dump(), record.dump());
}

TEST_P(M2nGolden, NeedsNoneOfItsOutputFields) {
    const auto record = golden_record(GetParam());
    Json input = record;
    for (const char* field : {"inject", "destinations", "split_active", "totals", "refused"}) {
        input.erase(field);
    }
    EXPECT_EQ(to_json(answer_to(input)).dump(), record.dump());
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
    auto name = info.param;
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Records, M2nGolden, testing::ValuesIn(golden_names()), test_name);

TEST(M2nJson, HoldsFortySixGoldenRecords) {
    EXPECT_EQ(golden_records().size(), 46U);
}

TEST(M2nJson, ReadsAListAsAListAndARecordAsOne) {
    EXPECT_FALSE(read_m2n_requests(small_record(), "calls.json").value().is_list);
    const auto list = read_m2n_requests(Json::array({small_record(), small_record()}), "calls.json").value();
    EXPECT_TRUE(list.is_list);
    EXPECT_EQ(list.entries.size(), 2U);
}

TEST(M2nJson, KeepsSettingsThatDifferFromTheUsual) {
    auto record = small_record();
    record["balance"] = "uniform";
    record["communicator_ranks"] = 9;
    record["single_injection"] = true;
    record["staging_bytes"] = 4096;
    const auto json = to_json(answer_to(record));
    EXPECT_EQ(json.at("balance"), "uniform");
    EXPECT_EQ(json.at("communicator_ranks"), 9);
    EXPECT_EQ(json.at("single_injection"), true);
    EXPECT_EQ(json.at("staging_bytes"), 4096);
}

TEST(M2nJson, SaysWhetherTheLsaPathWasTaken) {
    auto record = small_record();
    record["path"] = "lsa";
    const auto taken = to_json(answer_to(record));
    EXPECT_EQ(taken.at("lsa_active"), true);
    // Each of 4 sources holds 2 x 4 elements of 2 B and sends all of it: 16 B, over NVLink.
    EXPECT_EQ(taken.at("totals").at("max_rank_network_tx"), 0);
    EXPECT_EQ(taken.at("totals").at("max_rank_nvlink_tx"), 16);
    // The path is closed to meshes in reverse order; M2N then splits.
    record["source"]["start_rank"] = 4;
    record["destination"]["start_rank"] = 0;
    const auto closed = to_json(answer_to(record));
    EXPECT_EQ(closed.at("lsa_active"), false);
    EXPECT_EQ(closed.at("split_active"), true);
}

TEST(M2nJson, WritesARefusalByLimitAndNumbers) {
    auto record = small_record();
    record["source"]["placements"] = {"shard(0)", "shard(1)"};
    EXPECT_EQ(to_json(answer_to(record)).at("refused").dump(),
              R"({"limit":"SHARD_AXES","side":"source","found":2,"allowed":1})");
}

TEST(M2nJson, NamesTheUnknownFieldNearestToAMissingOne) {
    auto record = small_record();
    record["tensor_shap"] = record["tensor_shape"];
    record.erase("tensor_shape");
    const auto faults = faults_of(Json::array({small_record(), record}));
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].rule, "missing-field");
    EXPECT_EQ(faults[0].where, "calls.json: /1/tensor_shape");
    EXPECT_NE(faults[0].message.find("is it 'tensor_shap'?"), std::string::npos) << faults[0].message;
}

TEST(M2nJson, RefusesAValueOfTheWrongKindQuotingIt) {
    auto record = small_record();
    record["source"]["mesh"] = {1, -4};
    record["destination"]["placements"][1] = "shard(x)";
    record["path"] = "splat";
    const auto faults = faults_of(record);
    ASSERT_EQ(faults.size(), 3U);
    EXPECT_EQ(faults[0].where, "calls.json: /source/mesh/1");
    EXPECT_NE(faults[0].message.find("-4"), std::string::npos);
    EXPECT_EQ(faults[1].where, "calls.json: /destination/placements/1");
    EXPECT_EQ(faults[2].where, "calls.json: /path");
    EXPECT_NE(faults[2].message.find("the nearest is 'split'"), std::string::npos);
}

TEST(M2nJson, TellsWhereRankSetsOverlapAndWhatWouldNot) {
    auto record = small_record();
    record["destination"]["start_rank"] = 2;
    const auto faults = faults_of(record);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].rule, "ranks-overlap");
    EXPECT_EQ(faults[0].where, "calls.json: /destination/start_rank");
    EXPECT_NE(faults[0].message.find("the nearest start that works is 4"), std::string::npos)
        << faults[0].message;
}

TEST(M2nJson, ComparesShapesThatStandInTheSides) {
    auto record = small_record();
    record["destination"]["tensor_shape"] = {8, 8};
    const auto faults = faults_of(record);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].rule, "shapes-differ");
    EXPECT_EQ(faults[0].where, "calls.json: /destination/tensor_shape");
}

TEST(M2nJson, SaysWhatBothSidesShareOnce) {
    auto record = small_record();
    record["tensor_shape"] = {0, 4};
    const auto faults = faults_of(record);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].where, "calls.json: /tensor_shape/0");
}

TEST(M2nJson, RefusesWhatHoldsNoRecord) {
    EXPECT_EQ(faults_of(Json::array()).front().rule, "no-record");
    EXPECT_EQ(faults_of(Json{3}).front().rule, "field-type");
    EXPECT_EQ(faults_of(Json("text")).front().where, "calls.json: /");
}

}  // namespace
}  // namespace refit::io
