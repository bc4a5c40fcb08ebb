// SPDX-License-Identifier: Apache-2.0
// Pods, rails and NICs, as a whole draft is resolved.
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mendable.hpp"

namespace refit::io {
namespace {

using testing_io::count_rule;
using testing_io::deepseek;
using testing_io::described;
using testing_io::expect_mendable;
using testing_io::faults_of;
using testing_io::Fields;
using testing_io::mentions;
using testing_io::resolved;

FabricSettings fabric_of(const Fields& fields) {
    return resolved(deepseek(fields)).cluster.fabric();
}

TEST(ResolveFabric, IsPlainWhereNothingIsSaid) {
    EXPECT_EQ(fabric_of({}), FabricSettings{});
    EXPECT_TRUE(fabric_of({}).is_plain());
}

TEST(ResolveFabric, ReadsAScenarioFile) {
    const auto json =
        nlohmann::json::parse(R"({"schema": "refit.scenario", "schema_version": "1.0", "name": "n",
        "model": "deepseek-v3", "train": {"gpus": 256, "layout": "pp16:3:2.ep16"}, "generate": {"gpus": 256, "layout": "tp32"},
        "system": "h100-nvl8", "fabric": {"domains_per_pod": 8, "oversubscription": 1.5, "rail_only": true,
        "nics": {"17": "down", "generation:5": "200Gbit/s"}}})");
    const auto fabric = resolved(draft_from_json(json, "mine.json").value()).cluster.fabric();
    FabricSettings expected;
    expected.domains_per_pod = 8;
    expected.oversubscription = 1.5;
    expected.is_rail_only = true;
    expected.nics.emplace(17, std::nullopt);
    expected.nics.emplace(261, Bandwidth::gigabits_per_second(200.0));
    EXPECT_EQ(fabric, expected);
}

TEST(ResolveFabric, ReadsRatiosWithAndWithoutAColon) {
    for (const auto& [text, ratio] : {std::pair{"2:1", 2.0},
                                      std::pair{"2", 2.0},
                                      std::pair{"7:2", 3.5},
                                      std::pair{"1:1", 1.0},
                                      std::pair{"1.25", 1.25},
                                      std::pair{"100:1", 100.0}}) {
        const auto fabric = fabric_of({{"fabric.oversubscription", text}, {"fabric.domains_per_pod", "4"}});
        EXPECT_EQ(fabric.oversubscription, ratio) << text;
    }
}

TEST(ResolveFabric, RefusesWhatIsNoRatioOrBelowOne) {
    for (const auto& [text, rule, nearest] : {std::tuple{"2x", "ratio-syntax", "2:1"},
                                              std::tuple{"3:", "ratio-syntax", "3:1"},
                                              std::tuple{"2:1:1", "ratio-syntax", "2:1"},
                                              std::tuple{"", "ratio-syntax", "2:1"},
                                              std::tuple{"-2:1", "ratio-syntax", "2:1"},
                                              std::tuple{"0:1", "ratio-syntax", "2:1"},
                                              std::tuple{"1:2", "ratio-range", "1:1"},
                                              std::tuple{"0.5", "ratio-range", "1:1"},
                                              std::tuple{"101:1", "ratio-range", "100:1"}}) {
        const auto draft = deepseek({{"fabric.oversubscription", text}, {"fabric.domains_per_pod", "4"}});
        const auto faults = faults_of(draft);
        ASSERT_EQ(faults.size(), 1U) << text << "\n" << described(faults);
        EXPECT_EQ(faults[0].rule, rule) << text;
        EXPECT_EQ(faults[0].where, "file.json: /fabric.oversubscription");
        EXPECT_EQ(faults[0].nearest.value().value, nearest) << text;
        expect_mendable(draft);
    }
    EXPECT_EQ(faults_of(deepseek({{"fabric.oversubscription", "1:2"}})).front().message,
              "fabric.oversubscription: '1:2' gives a pod more uplinks than its NICs can fill; 1:1 is a "
              "network that does not limit");
}

TEST(ResolveFabric, AsksForPodsWhereUplinksAreOversubscribed) {
    const auto draft = deepseek({{"fabric.oversubscription", "2:1"}});
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].rule, "missing-field");
    EXPECT_TRUE(mentions(faults, "'fabric.domains_per_pod' is missing"));
    expect_mendable(draft);
    EXPECT_TRUE(faults_of(deepseek({{"fabric.oversubscription", "1:1"}})).empty());
}

TEST(ResolveFabric, WantsTheSameRailsOnBothSides) {
    const auto draft = deepseek({{"fabric.rail_only", "true"}, {"system.train", "gb200-nvl72"}});
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].message,
              "fabric.rail_only = true: a node has 4 rails where it trains and 8 where it generates; which "
              "of them meet is not "
              "known");
    expect_mendable(draft);
}

TEST(ResolveFabric, TellsEveryFaultOfNicsAtOnceWithItsPlace) {
    const auto draft = deepseek({{"fabric.nics.trainer:256", "down"},
                                 {"fabric.nics.600", "down"},
                                 {"fabric.nics.generator:5", "down"},
                                 {"fabric.nics.first", "down"},
                                 {"fabric.nics.3", "dwon"},
                                 {"fabric.nics.4", "0Gbit/s"},
                                 {"fabric.nics.5", "200"},
                                 {"fabric.nics.6", "800Gbit/s"},
                                 {"fabric.nics.7", "200Gbit/s"},
                                 {"fabric.nics.trainer:7", "down"}});
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 9U) << described(faults);
    EXPECT_EQ(count_rule(faults, "unknown-rank"), 4U);
    EXPECT_TRUE(mentions(faults, "fabric.nics.trainer:256: there are 256 trainers, 0 to 255"));
    EXPECT_TRUE(mentions(faults, "fabric.nics.600: there are 512 ranks, 0 to 511"));
    EXPECT_TRUE(mentions(faults,
                         "fabric.nics.generator:5: 'generator:5' names no GPU; write a rank of the job, "
                         "trainer:N or generation:N"));
    EXPECT_TRUE(
        mentions(faults, "fabric.nics.3: 'dwon' is neither down nor a rate above zero such as 200Gbit/s"));
    EXPECT_TRUE(mentions(faults, "fabric.nics.4: '0Gbit/s' is neither down"));
    EXPECT_EQ(count_rule(faults, "unit-missing"), 1U);
    EXPECT_TRUE(mentions(
        faults, "fabric.nics.6 = 800Gbit/s: the NICs of a GPU of h100-nvl8 reach 400Gbit/s together"));
    EXPECT_TRUE(mentions(faults, "fabric.nics.trainer:7 and fabric.nics.7 are the NICs of the same GPU"));
    EXPECT_TRUE(mentions(faults_of(deepseek({{"fabric.nics.generation:999", "down"}})),
                         "fabric.nics.generation:999: there are 256 generators, 0 to 255"));
    for (const auto& fault : faults) {
        EXPECT_TRUE(fault.where.starts_with("file.json: /fabric.nics.")) << fault.where;
    }
    expect_mendable(draft);
}

TEST(ResolveFabric, RefusesADomainWithoutAnyNic) {
    Fields fields;
    for (int rank = 8; rank < 16; ++rank) {
        fields.emplace_back("fabric.nics." + std::to_string(rank), "down");
    }
    const auto faults = faults_of(deepseek(fields));
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].rule, "cut-off");
    EXPECT_EQ(faults[0].message,
              "fabric.nics.8 = down: then no NIC of NVLink domain 1 works, and nothing leaves or enters it");
    EXPECT_EQ(faults[0].nearest, (Suggestion{"fabric.nics.8", "400Gbit/s", ""}));
    expect_mendable(deepseek(fields));
    fields.pop_back();
    EXPECT_TRUE(faults_of(deepseek(fields)).empty());
}

TEST(ResolveFabric, RefusesUnknownKeysOfTheObject) {
    const auto json = nlohmann::json::parse(R"({"schema": "refit.scenario", "schema_version": "1.0",
        "fabric": {"oversubscribed": "2:1", "nics": [], "pods": 4}})");
    const auto draft = draft_from_json(json, "mine.json");
    ASSERT_FALSE(draft.has_value());
    EXPECT_EQ(count_rule(draft.error(), "unknown-key"), 2U) << described(draft.error());
    EXPECT_TRUE(mentions(draft.error(), "did you mean 'fabric.oversubscription'?"));
    EXPECT_TRUE(mentions(draft.error(), "'fabric.nics' must be an object"));
}

}  // namespace
}  // namespace refit::io
