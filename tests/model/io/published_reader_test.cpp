// SPDX-License-Identifier: Apache-2.0
#include "refit/io/published_reader.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "drafts.hpp"
#include "scratch.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;
using testing_io::described;
using testing_io::library;
using testing_io::mentions;

Result<std::vector<PublishedRecord>> read(const std::string& records) {
    return published_from_json(Json::parse(R"({"records": [)" + records + "]}"), "times.json");
}

TEST(PublishedReader, TakesEveryFactOfARecord) {
    const auto records = read(R"({
        "id": "a", "source_title": "title", "engine": "nemo-rl-reshard", "seconds": 2, "seconds_min": 1.5,
        "seconds_max": 2.5, "tier": "A", "model": "DeepSeek-V3", "total_params_B": 671.0, "dtype_src": "bf16",
        "dtype_dst": "fp8", "train_gpus": 256, "train_layout": {"tp": 1, "cp": 2, "pp": 16, "ep": 8, "etp": 4,
        "dp": 3, "first_stage_layers": 5, "last_stage_layers": 6}, "gen_gpus": 32,
        "gen_layout": {"tp": 32, "engines": 2}, "hardware": {"gpu": "H100-80GB", "nvlink_domain": 8,
        "nic_gbps_per_gpu": 200}, "class": "delta", "bytes_GB": 1.5, "confidence": "headline figure",
        "stat": "envelope low/high", "extra": {"streams": 4}, "inferred": ["train_gpus"], "fitted": true,
        "same_configuration_as": ["b"], "assumed": {"gen_layout": {"tp": 2}}, "unheard_of": [1]})")
                             .value();
    ASSERT_EQ(records.size(), 1U);
    const auto& record = records[0];
    EXPECT_EQ(record.source, "title");
    EXPECT_EQ(record.seconds, Seconds{2.0});
    EXPECT_EQ(record.low, Seconds{1.5});
    EXPECT_EQ(record.high, Seconds{2.5});
    EXPECT_EQ(record.parameters, 671e9);
    EXPECT_EQ(record.weights, "delta");
    EXPECT_EQ(record.generate_dtype, "fp8");
    EXPECT_EQ(record.train.gpus, 256U);
    LayoutText layout;
    layout.tp = 1;
    layout.cp = 2;
    layout.pp = 16;
    layout.ep = 8;
    layout.etp = 4;
    layout.dp = 3;
    layout.first_stage_layers = 5;
    layout.last_stage_layers = 6;
    EXPECT_EQ(record.train.layout, layout);
    EXPECT_TRUE(record.generate.unplaced.empty());
    EXPECT_EQ(record.generate.layout->dp, 2U);  // "engines"
    EXPECT_EQ(record.generate.assumed_layout->tp, 2U);
    EXPECT_EQ(record.gpu, "H100-80GB");
    EXPECT_EQ(record.nic, Bandwidth::gigabytes_per_second(25.0));  // 200 Gbit/s / 8.
    EXPECT_EQ(record.bytes, Bytes{1'500'000'000U});
    EXPECT_EQ(record.streams, 4U);
    EXPECT_TRUE(record.is_headline && record.is_size_anchor && record.served_to_fit);
    EXPECT_EQ(record.same_configuration_as, std::vector<std::string>{"b"});
}

TEST(PublishedReader, TakesRecordsThatSayLittle) {
    const auto records = read(R"({"id": "a", "seconds": null, "engine": null, "train_layout": null,
                                  "hardware": {"gpu": null}, "extra": null, "inferred": null}, {"id": "b"})")
                             .value();
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].engine, "");
    EXPECT_EQ(records[0].weights, "full");
    EXPECT_FALSE(records[0].train.layout || records[0].seconds || records[0].domain);
    EXPECT_FALSE(records[1].is_headline || records[1].served_to_fit);
}

TEST(PublishedReader, RefusesAllFaultsAtOnceEachWithItsPlace) {
    const auto records = read(R"({"id": "a", "seconds": "fast", "train_gpus": 2.5, "train_layout": [4]},
        {"id": "a", "seconds": -1, "gen_layout": {"tp": 0}, "hardware": {"nvlink_domain": "8"}},
        {"seconds_min": 3, "seconds_max": 2, "inferred": [1], "engine": 7}, 5)");
    ASSERT_FALSE(records.has_value());
    for (const auto* place : {"/records/0/seconds",
                              "/records/0/train_gpus",
                              "/records/0/train_layout",
                              "/records/1/id",
                              "/records/1/seconds",
                              "/records/1/hardware/nvlink_domain",
                              "/records/2/id",
                              "/records/2/seconds_min",
                              "/records/2/inferred",
                              "/records/2/engine",
                              "/records/3"}) {
        EXPECT_TRUE(std::ranges::any_of(
            records.error(),
            [&](const Fault& fault) { return fault.where == std::string{"times.json: "} + place; }))
            << place << "\n"
            << described(records.error());
    }
    EXPECT_EQ(records.error().size(), 11U) << described(records.error());
    EXPECT_TRUE(mentions(records.error(), "'seconds' must be a number above 0, and is \"fast\""));
    EXPECT_TRUE(mentions(records.error(), "the id 'a' is there twice; first at times.json: /records/0"));
    EXPECT_EQ(records.error()[0].code, ErrorCode::kInvalidInput);
}

TEST(PublishedReader, RefusesOtherFiles) {
    const auto faults_of = [](const char* text) {
        return published_from_json(Json::parse(text), "times.json").error();
    };
    for (const auto* text : {"5", "[]", "{}", R"({"records": {}})"}) {
        EXPECT_TRUE(mentions(faults_of(text), "\"records\" must be a list")) << text;
    }
    const auto faults = faults_of(R"({"schema": "refit.scenario", "schema_version": "2.0", "records": []})");
    EXPECT_EQ(faults.size(), 2U);
    EXPECT_TRUE(mentions(faults, "refit.published-timings"));
    EXPECT_TRUE(mentions(faults, "\"schema_version\" is \"2.0\""));
}

TEST(PublishedReader, ReadsFsdpWithAndWithoutANumber) {
    const auto side = [](const std::string& layout) {
        return read(R"({"id": "a", "train_gpus": 16, "train_layout": )" + layout + "}").value().at(0).train;
    };
    for (const auto* name : {"fsdp", "fsdp2", "hsdp"}) {
        const auto numbered = side("{\"ep\": 8, \"" + std::string{name} + "\": 2}");
        EXPECT_EQ(numbered.layout, parse_layout("ep8.fsdp2").value()) << name;
        EXPECT_EQ(numbered.shards, ShardsOver::kNumber) << name;
        EXPECT_TRUE(numbered.unplaced.empty()) << name;
    }
    EXPECT_EQ(side(R"({"fsdp": true})").shards, ShardsOver::kAll);
    EXPECT_EQ(side(R"({"fsdp2": true})").shards, ShardsOver::kAll);
    EXPECT_EQ(side(R"({"hsdp": true})").shards, ShardsOver::kSome);
    EXPECT_EQ(side(R"({"fsdp": false})").shards, ShardsOver::kNumber);
    EXPECT_FALSE(side(R"({"fsdp": true})").layout->fsdp.has_value());
    EXPECT_EQ(side(R"({"fsdp": "all"})").unplaced, std::vector<std::string>{"fsdp \"all\""});
}

TEST(PublishedReader, KnowsTheMembersOfLayoutsThatSourcesWrite) {
    const auto record = read(R"({"id": "a", "train_layout": {"TP": 2, "EP": 8, "edp": 4, "sequence_parallel": true, "vpp": 3, "cp": 0.5,
                                 "note": "guess"},
                                 "gen_layout": {"tp": 32, "ep": 32, "dp_attn": 8, "replicas": 2}})")
                            .value()
                            .at(0);
    EXPECT_EQ(record.train.layout, parse_layout("tp2.ep8").value());
    EXPECT_EQ(record.train.virtual_stages, 3U);
    EXPECT_EQ(record.train.unplaced, (std::vector<std::string>{"cp 0.5", "note"}));
    EXPECT_EQ(record.generate.layout, parse_layout("tp32.ep32.dp2").value());
    EXPECT_EQ(record.generate.attention_groups, 8U);
    EXPECT_TRUE(record.generate.unplaced.empty());
}

class PublishedFiles : public testing_io::Scratch {};

TEST_F(PublishedFiles, AreReadWholeOrNotAtAll) {
    EXPECT_EQ(read_published_records(write("a.json", R"({"records": [{"id": "a"}]})")).value().size(), 1U);
    EXPECT_EQ(read_published_records(path("none.json")).error()[0].code, ErrorCode::kIo);
    EXPECT_EQ(read_published_records(write("b.json", R"({"records": [{"id": "a"})")).error()[0].rule,
              "json-syntax");
}

TEST(PublishedReader, ReadsTheShippedRecords) {
    const auto records = library().published().value();
    EXPECT_EQ(records.size(), 116U);
    const auto count = [&](auto wanted) { return std::ranges::count_if(records, wanted); };
    EXPECT_EQ(count([](const PublishedRecord& record) { return record.tier == "A"; }), 73);
    EXPECT_EQ(count([](const PublishedRecord& record) { return record.engine.empty(); }), 5);
    EXPECT_EQ(count([](const PublishedRecord& record) { return record.is_size_anchor; }), 4);
    // Eight times of NeMo RL and a microbenchmark of which neither engine nor layout is known.
    EXPECT_EQ(count([](const PublishedRecord& record) { return record.is_headline; }), 9);
    // Of NeMo RL 12 of the broadcast, 20 of reshard and 3 by NIXL; 16 of miles, 3 of verl, 3 of vLLM and 2 of TRL.
    EXPECT_EQ(count([](const PublishedRecord& record) { return record.served_to_fit; }), 59);
}

}  // namespace
}  // namespace refit::io
