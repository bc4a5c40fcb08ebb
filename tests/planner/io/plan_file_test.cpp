// SPDX-License-Identifier: Apache-2.0
#include "refit/io/plan_file.hpp"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../../shipped.hpp"
#include "../study.hpp"
#include "plan_names.hpp"
#include "refit/methods.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

PlanFile file_of(const std::string& scenario_name, Method method) {
    const auto scenario = shipped_scenario(scenario_name);
    auto workload = Workload::make(scenario);
    auto plan = make_plan(method, scenario, workload).value();
    return {scenario_name, std::move(workload), std::move(plan), scenario.cluster.train_gpus(), domain_starts(scenario.cluster)};
}

/// 8 x 16 BF16 elements from two trainers, twice, to two engines of two.
PlanFile small_file(Method method = Method::kOptimal) {
    const study::Layout layout{{8, 16}, 2, 2, 1, 1, 2, 2};
    auto workload = study::workload_of(layout);
    const auto scenario = shipped_scenario("reshard-two-domains");
    const Cluster cluster{scenario.cluster.train_system(), scenario.cluster.generate_system(), 4, 4, Placement{8, 8, true}};
    auto plan = make_plan(method, cluster, port_rates(cluster, 1.0, 1.0), workload).value();
    return {"small", std::move(workload), std::move(plan), 4, domain_starts(cluster)};
}

void expect_same_distribution(const Distribution& a, const Distribution& b) {
    EXPECT_TRUE(std::ranges::equal(a.shape(), b.shape()));
    ASSERT_EQ(a.shards().size(), b.shards().size());
    for (std::size_t i = 0; i < a.shards().size(); ++i) {
        EXPECT_EQ(a.shards()[i].boxes, b.shards()[i].boxes);
        EXPECT_EQ(a.shards()[i].members, b.shards()[i].members);
    }
}

void expect_same(const PlanFile& a, const PlanFile& b) {
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.train_gpus, b.train_gpus);
    EXPECT_EQ(a.domain_starts, b.domain_starts);
    EXPECT_EQ(a.plan, b.plan);
    EXPECT_TRUE(std::ranges::equal(a.workload.generator_bytes(), b.workload.generator_bytes()));
    ASSERT_EQ(a.workload.classes().size(), b.workload.classes().size());
    for (std::size_t i = 0; i < a.workload.classes().size(); ++i) {
        const auto& x = a.workload.classes()[i];
        const auto& y = b.workload.classes()[i];
        EXPECT_EQ(x.parameter.name, y.parameter.name);
        EXPECT_EQ(x.parameter.layers, y.parameter.layers);
        EXPECT_EQ(x.slices, y.slices);
        expect_same_distribution(x.source, y.source);
        ASSERT_EQ(x.destinations.size(), y.destinations.size());
        for (std::size_t d = 0; d < x.destinations.size(); ++d) {
            expect_same_distribution(x.destinations[d], y.destinations[d]);
        }
    }
}

/// The document's hash, after a change by hand.
std::string rehashed(Json document) {
    document.erase("hash");
    document["hash"] = plan_hash(document);
    return document.dump();
}

TEST(PlanFile, CarriesWhoIsLostAndIdle) {
    const auto scenario = shipped_scenario("reshard-two-domains", {{"train.gpus", "8"}, {"generate.layout", "tp2"}, {"lost", "3,10"}});
    auto workload = Workload::make(scenario);
    auto plan = make_plan(Method::kStriped, scenario, workload).value();
    const PlanFile file{"without", std::move(workload), std::move(plan), 8, domain_starts(scenario.cluster)};
    for (const auto encoding : {PlanEncoding::kJson, PlanEncoding::kCbor}) {
        const auto read = read_plan(write_plan(file, encoding), "plan").value();
        expect_same(file, read);
        EXPECT_EQ(read.workload.losses(), (Losses{{3, 10}, {11}}));
    }
    const auto document = Json::parse(write_plan(file, PlanEncoding::kJson));
    EXPECT_EQ(document["schema_version"], "1.2");
    for (const auto& [member, value] : std::initializer_list<std::pair<const char*, Json>>{
             {"lost", {10, 3}}, {"lost", {3, 11}}, {"lost", {24}}, {"lost", "3"}, {"lost", Json::array()}, {"idle", {3}}}) {
        auto wrong = document;
        wrong["ranks"][member] = value;
        EXPECT_FALSE(read_plan(rehashed(wrong), "plan")) << member << value;
    }
}

TEST(PlanFile, CarriesWhatTheScenarioWasAskedToBe) {
    auto file = small_file();
    EXPECT_FALSE(Json::parse(write_plan(file, PlanEncoding::kJson)).contains("scenario"));
    file.scenario = {{"model", "qwen3-4b"}, {"train.layout", "tp2"}};
    file.changes = {{"train.layout", "tp4"}};
    for (const auto encoding : {PlanEncoding::kJson, PlanEncoding::kCbor}) {
        const auto read = read_plan(write_plan(file, encoding), "plan").value();
        EXPECT_EQ(read.scenario, file.scenario);
        EXPECT_EQ(read.changes, file.changes);
        expect_same(read, file);
    }
}

TEST(PlanFile, ReadsBackDealtBroadcastsAndPatterns) {
    const auto scenario = shipped_scenario("qwen3-235b-h100", {{"engine.options.broadcast_root", "each-pp-stage"},
                                                               {"engine.options.broadcast_senders", "2"},
                                                               {"engine.coverage", "pattern:*.down_proj.weight"}});
    auto workload = Workload::make(scenario);
    auto plan = make_plan(Method::kHybrid, scenario, workload).value();
    ASSERT_FALSE(plan.stages.back().collectives.front().parts.empty());
    const PlanFile file{"dealt", std::move(workload), std::move(plan), scenario.cluster.train_gpus(), domain_starts(scenario.cluster)};
    for (const auto encoding : {PlanEncoding::kJson, PlanEncoding::kCbor}) {
        const auto read = read_plan(write_plan(file, encoding), "plan");
        ASSERT_TRUE(read.has_value()) << read.error().front().message;
        expect_same(*read, file);
    }
}

TEST(PlanFile, IsOfTheSameJobWhateverTheMethodButNotOfOtherRanksOrWeights) {
    const auto file = file_of("reshard-two-domains", Method::kDirect);
    const auto is_same = [&](const Scenario& scenario) { return is_same_job(file, scenario, Workload::make(scenario)); };
    EXPECT_TRUE(is_same(shipped_scenario("reshard-two-domains")));
    EXPECT_FALSE(is_same(shipped_scenario("reshard-one-domain")));
    EXPECT_FALSE(is_same(shipped_scenario("reshard-two-domains", {{"model", "teaching-matrix/16"}})));
    EXPECT_FALSE(is_same(shipped_scenario("reshard-two-domains", {{"generate.gpus", "8"}})));
}

TEST(PlanFile, ReadsBackWhatItWrote) {
    for (const auto method :
         {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped, Method::kOptimal}) {
        const auto file = file_of("qwen3-235b-h100", method);
        for (const auto encoding : {PlanEncoding::kJson, PlanEncoding::kCbor}) {
            const auto bytes = write_plan(file, encoding);
            const auto read = read_plan(bytes, "plan");
            ASSERT_TRUE(read.has_value()) << read.error().front().where << " " << read.error().front().message;
            expect_same(*read, file);
            EXPECT_EQ(write_plan(*read, encoding), bytes);
        }
    }
}

TEST(PlanFile, IsTheSameBytesForTheSameInput) {
    EXPECT_EQ(write_plan(file_of("reshard-two-domains", Method::kOptimal), PlanEncoding::kCbor),
              write_plan(file_of("reshard-two-domains", Method::kOptimal), PlanEncoding::kCbor));
}

TEST(PlanFile, IsWhatAnyWriterOfItsDocumentWrites) {
    // Keys in order, numbers as short as they can be: nlohmann's writers give the same bytes, and its CBOR the same hash.
    for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped, Method::kOptimal}) {
        auto file = method == Method::kHybrid ? file_of("qwen3-235b-h100", method) : small_file(method);
        file.name = "Größe \"1\"\\\n";
        const auto text = write_plan(file, PlanEncoding::kJson);
        const auto cbor = write_plan(file, PlanEncoding::kCbor);
        auto document = Json::parse(text);
        EXPECT_EQ(document.dump() + "\n", text) << name_of(method);
        const auto bytes = Json::to_cbor(document);
        EXPECT_EQ(std::string(bytes.begin(), bytes.end()), cbor) << name_of(method);
        const auto hash = document.at("hash").get<std::string>();
        document.erase("hash");
        EXPECT_EQ(plan_hash(document), hash) << name_of(method);
    }
}

TEST(PlanFile, HasOneHashInBothEncodings) {
    const auto file = small_file();
    const auto text = Json::parse(write_plan(file, PlanEncoding::kJson));
    EXPECT_EQ(text, Json::from_cbor(write_plan(file, PlanEncoding::kCbor)));
    EXPECT_TRUE(text.at("hash").get<std::string>().starts_with("xxh3-128:"));
}

TEST(PlanFile, TakesAtMost100BytesATransferInCbor) {
    const auto file = file_of("deepseek-v3-h100", Method::kOptimal);
    const auto& relays = file.plan.stages.front().relays;
    EXPECT_LE(write_plan(file, PlanEncoding::kCbor).size(), 100 * relays.size());
}

std::string refusal(const std::string& bytes) {
    const auto read = read_plan(bytes, "plan.json");
    return read ? "" : read.error().front().where + ": " + read.error().front().message;
}

/// The small file after a change of its JSON, with the hash made to fit.
std::string changed(const std::function<void(Json&)>& change) {
    auto document = Json::parse(write_plan(small_file(), PlanEncoding::kJson));
    change(document);
    document.erase("hash");
    document["hash"] = plan_hash(document);
    return document.dump();
}

TEST(PlanFile, KeepsWhichLayersAnInterleavedPipelineHas) {
    const auto scenario = shipped_scenario("reshard-one-domain",
                                           {{"model", "llama-3.1-8b"},
                                            {"train.layout", "pp4.tp2"},
                                            {"train.gpus", "8"},
                                            {"train.virtual_pipeline", "2"},
                                            {"generate.layout", "tp2.pp2"},
                                            {"generate.gpus", "8"}});
    const auto workload = Workload::make(scenario);
    const PlanFile file{"interleaved", workload, make_plan(Method::kDirect, scenario, workload).value(), 8,
                        domain_starts(scenario.cluster)};
    const auto text = write_plan(file, PlanEncoding::kJson);
    EXPECT_NE(text.find("\"numbers\":[16,17,18,19]"), std::string::npos);
    expect_same(read_plan(text, "plan").value(), file);
    expect_same(read_plan(write_plan(file, PlanEncoding::kCbor), "plan").value(), file);
    auto document = Json::parse(text);
    for (auto& entry : document["classes"]) {
        if (entry["slices"].front().contains("numbers")) {
            entry["slices"].front()["numbers"][1] = 0;
        }
    }
    document.erase("hash");
    document["hash"] = plan_hash(document);
    EXPECT_NE(refusal(document.dump()).find("must ascend"), std::string::npos) << refusal(document.dump());
}

TEST(PlanFile, RefusesWhatIsCutOff) {
    const auto text = write_plan(small_file(), PlanEncoding::kJson);
    const auto cbor = write_plan(small_file(), PlanEncoding::kCbor);
    for (std::size_t length = 0; length < cbor.size(); length += 7) {
        EXPECT_FALSE(read_plan(cbor.substr(0, length), "plan.cbor").has_value()) << length;
    }
    for (std::size_t length = 0; length + 1 < text.size(); length += 7) {
        EXPECT_FALSE(read_plan(text.substr(0, length), "plan.json").has_value()) << length;
    }
    EXPECT_NE(refusal(text.substr(0, text.size() / 2)).find("looks truncated"), std::string::npos);
    EXPECT_NE(refusal(cbor.substr(0, cbor.size() / 2)).find("looks truncated"), std::string::npos);
}

TEST(PlanFile, RefusesAWrongHashAndOtherVersions) {
    auto text = write_plan(small_file(), PlanEncoding::kJson);
    text.replace(text.find("\"small\""), 7, "\"small2\"");
    EXPECT_NE(refusal(text).find("changed or damaged"), std::string::npos);
    EXPECT_NE(refusal(changed([](Json& plan) { plan["schema_version"] = "2.0"; })).find("this program reads 1.x"), std::string::npos);
    EXPECT_EQ(refusal(changed([](Json& plan) { plan["schema_version"] = "1.7"; })), "");
    EXPECT_NE(refusal(changed([](Json& plan) { plan["schema"] = "refit.report"; })).find("not 'refit.plan'"), std::string::npos);
}

TEST(PlanFile, NamesThePlaceOfEachFault) {
    const auto expect = [](const char* place, const std::function<void(Json&)>& change) {
        EXPECT_NE(refusal(changed(change)).find(place), std::string::npos) << place << " in " << refusal(changed(change));
    };
    expect("plan.json: /ranks/train", [](Json& plan) { plan["ranks"]["train"] = 5; });
    expect("plan.json: /ranks/domain_starts", [](Json& plan) { plan["ranks"]["domain_starts"] = {1, 4}; });
    expect("plan.json: /method", [](Json& plan) { plan.erase("method"); });
    expect("/classes/0/source/shards/0/boxes/0", [](Json& plan) {
        plan["classes"][0]["source"]["shards"][0]["boxes"][0] = {0, 9, 0, 16};
    });
    expect("/classes/0/source/shards/1/members/0", [](Json& plan) {
        plan["classes"][0]["source"]["shards"][1]["members"] = {4};
    });
    expect("/classes/0/shape", [](Json& plan) { plan["classes"][0]["shape"] = {1 << 30, 1 << 30}; });
    expect("/classes/0/dtype", [](Json& plan) { plan["classes"][0]["dtype"] = 16; });
    expect("/stages/0/kind", [](Json& plan) { plan["stages"][0]["kind"] = "teleport"; });
    expect("/stages/0/relays/hops/destination/0", [](Json& plan) { plan["stages"][0]["relays"]["hops"]["destination"][0] = 8; });
    expect("/stages/0/relays/hops/follows/0", [](Json& plan) { plan["stages"][0]["relays"]["hops"]["follows"][0] = 0; });
    expect("/stages/0/relays/messages/parts", [](Json& plan) { plan["stages"][0]["relays"]["messages"]["parts"][0] = 2; });
    expect("/stages/0/relays/parts/first_tensor/0", [](Json& plan) {
        plan["stages"][0]["relays"]["parts"]["tensors"][0] = 2;
    });
}

TEST(PlanFile, NamesAllFaultsAtOnce) {
    const auto read = read_plan(changed([](Json& plan) {
                                    plan["ranks"]["train"] = 5;
                                    plan["method"] = "teleport";
                                    plan["classes"][0]["dtype"] = "bf17";
                                }),
                                "plan.json");
    ASSERT_FALSE(read.has_value());
    EXPECT_GE(read.error().size(), 3U);
}

TEST(PlanFile, SurvivesAnyChangedMember) {
    // Every value replaced by one of another kind: read or refused, never a crash.
    const auto document = Json::parse(write_plan(small_file(), PlanEncoding::kJson));
    const auto flat = document.flatten();
    for (const auto& [pointer, value] : flat.items()) {
        for (const auto& other : {Json(-1), Json(4294967296), Json("x"), Json(nullptr), Json::array(), Json(1.5)}) {
            static_cast<void>(read_plan(changed([&, place = pointer](Json& plan) { plan[Json::json_pointer(place)] = other; }), "plan.json"));
        }
    }
}

TEST(PlanFile, RefusesDeepNesting) {
    EXPECT_FALSE(read_plan(std::string(1 << 20, '\x81'), "plan.cbor").has_value());
    EXPECT_FALSE(read_plan("{\"a\":" + std::string(1 << 20, '['), "plan.json").has_value());
}

TEST(PlanFile, RefusesListsThatClaimMoreThanTheFileHas) {
    // A CBOR list of 2^62 values, and a map of as many members, of which nothing follows.
    for (const char type : {'\x9b', '\xbb'}) {
        EXPECT_NE(refusal(type + std::string("\x40\0\0\0\0\0\0\0", 8)), "");
    }
}

}  // namespace
}  // namespace refit::io
