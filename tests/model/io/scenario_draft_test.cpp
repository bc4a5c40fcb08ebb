// SPDX-License-Identifier: Apache-2.0
#include "refit/io/scenario_draft.hpp"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "drafts.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;
using testing_io::described;
using testing_io::mentions;

DraftField field(const char* text, Precedence precedence) {
    return {text, DraftField::Kind::kText, precedence, "somewhere"};
}

/// A scenario with the given members beside its schema.
Json scenario(const Json& members) {
    Json json{{"schema", "refit.scenario"}, {"schema_version", "1.0"}};
    json.update(members);
    return json;
}

Faults faults_of(const Json& json) {
    const auto draft = draft_from_json(json, "mine.json");
    return draft ? Faults{} : draft.error();
}

TEST(ScenarioDraft, FindsWhatWasSet) {
    ScenarioDraft draft;
    EXPECT_EQ(draft.find("model"), nullptr);
    draft.set("model", field("a", Precedence::kFile));
    ASSERT_NE(draft.find("model"), nullptr);
    EXPECT_EQ(*draft.find("model"), field("a", Precedence::kFile));
    draft.erase("model");
    EXPECT_EQ(draft.find("model"), nullptr);
}

TEST(ScenarioDraft, KeepsTheHigherPrecedenceWhateverTheOrder) {
    const std::vector<Precedence> ascending{
        Precedence::kDefault, Precedence::kFile, Precedence::kEnvironment, Precedence::kFlag};
    for (const auto first : ascending) {
        for (const auto second : ascending) {
            ScenarioDraft draft;
            draft.set("model", field("first", first));
            draft.set("model", field("second", second));
            // Of equals the later one counts.
            EXPECT_EQ(draft.find("model")->text, second >= first ? "second" : "first");
        }
    }
}

TEST(ScenarioDraft, AppliesASuggestionAsAFlag) {
    ScenarioDraft draft;
    draft.set("model", field("a", Precedence::kFlag));
    draft.apply({"model", "b", ""});
    EXPECT_EQ(draft.find("model")->text, "b");
    EXPECT_EQ(draft.find("model")->precedence, Precedence::kFlag);
    EXPECT_EQ(draft.find("model")->origin, "suggestion");
}

TEST(ScenarioDraft, RenamesAKeyWhereASuggestionSaysSo) {
    ScenarioDraft draft;
    draft.set("modle", field("a", Precedence::kFile));
    draft.apply({"-modle", "model", "rename the key"});
    EXPECT_EQ(draft.find("modle"), nullptr);
    EXPECT_EQ(*draft.find("model"), field("a", Precedence::kFile));
    draft.apply({"-absent", "system", ""});
    EXPECT_EQ(draft.fields().size(), 1U);
}

TEST(ScenarioDraft, TakesTheWholePipelineFromASuggestedTrainLayout) {
    ScenarioDraft draft;
    draft.set("train.pipeline.first", field("3", Precedence::kFlag));
    draft.set("train.pipeline.last", field("2", Precedence::kFile));
    draft.apply({"generate.layout", "tp8", ""});
    EXPECT_EQ(draft.fields().size(), 3U);
    draft.apply({"train.layout", "pp16", ""});
    EXPECT_EQ(draft.find("train.pipeline.first"), nullptr);
    EXPECT_EQ(draft.find("train.pipeline.last"), nullptr);
}

TEST(ScenarioFields, AreNamedOnceAndExplained) {
    std::set<std::string_view> names;
    for (const auto& info : scenario_fields()) {
        EXPECT_TRUE(names.insert(info.name).second) << info.name;
        EXPECT_FALSE(info.meaning.empty()) << info.name;
    }
    for (const auto* name :
         {"model", "train.layout", "generate.gpus", "system.nic", "engine.coverage", "published"}) {
        EXPECT_TRUE(names.contains(name)) << name;
    }
}

TEST(DraftFromJson, NamesFieldsByTheirPathAndRemembersWhereTheyStood) {
    const auto draft =
        draft_from_json(scenario({{"name", "n"},
                                  {"train", {{"gpus", 256}, {"pipeline", {{"first", 3}}}}},
                                  {"placement", {{"generation_starts_new_domain", false}}},
                                  {"engine", {{"options", {{"NRL_REFIT_BUFFER_MEMORY_RATIO", 0.05}}}}}}),
                        "mine.json")
            .value();
    EXPECT_EQ(*draft.find("name"),
              (DraftField{"n", DraftField::Kind::kText, Precedence::kFile, "mine.json: /name"}));
    EXPECT_EQ(*draft.find("train.gpus"),
              (DraftField{"256", DraftField::Kind::kNumber, Precedence::kFile, "mine.json: /train/gpus"}));
    EXPECT_EQ(draft.find("train.pipeline.first")->origin, "mine.json: /train/pipeline/first");
    EXPECT_EQ(*draft.find("placement.generation_starts_new_domain"),
              (DraftField{"false",
                          DraftField::Kind::kFlag,
                          Precedence::kFile,
                          "mine.json: /placement/generation_starts_new_domain"}));
    EXPECT_EQ(draft.find("engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO")->text, "0.05");
}

TEST(DraftFromJson, ReadsASystemAsATextOrAsAnObjectWithAName) {
    EXPECT_EQ(draft_from_json(scenario({{"system", "h100-nvl8"}}), "").value().find("system")->text,
              "h100-nvl8");
    const auto draft =
        draft_from_json(scenario({{"system", {{"name", "h100-nvl8"}, {"nic", "800Gbit/s"}}}}), "").value();
    EXPECT_EQ(draft.find("system")->text, "h100-nvl8");
    EXPECT_EQ(draft.find("system.nic")->text, "800Gbit/s");
}

TEST(DraftFromJson, JoinsPublishedIds) {
    EXPECT_EQ(draft_from_json(scenario({{"published", {"a", "b"}}}), "").value().find("published")->text,
              "a,b");
    EXPECT_EQ(draft_from_json(scenario({{"published", Json::array()}}), "").value().find("published")->text,
              "");
}

TEST(DraftFromJson, TakesNullForAbsent) {
    const auto draft =
        draft_from_json(scenario({{"model", nullptr}, {"train", nullptr}, {"system", Json::object()}}), "");
    ASSERT_TRUE(draft.has_value()) << described(draft.error());
    EXPECT_EQ(draft->find("model"), nullptr);
}

TEST(DraftFromJson, RefusesAnotherSchemaAndANewerMajorVersion) {
    EXPECT_EQ(faults_of(Json{{"schema_version", "1.0"}}).at(0).rule, "scenario-schema");
    EXPECT_EQ(faults_of(Json{{"schema", "refit.report"}, {"schema_version", "1.0"}}).at(0).rule,
              "scenario-schema");
    const auto newer = faults_of(Json{{"schema", "refit.scenario"}, {"schema_version", "2.0"}});
    EXPECT_EQ(newer.at(0).rule, "scenario-version");
    EXPECT_TRUE(mentions(newer, R"("schema_version" is "2.0")"));
    EXPECT_TRUE(mentions(faults_of(Json{{"schema", "refit.scenario"}}), R"("schema_version" is missing)"));
    EXPECT_TRUE(mentions(faults_of(Json{{"schema", "refit.scenario"}, {"schema_version", 1.0}}), "is 1.0"));
    EXPECT_TRUE(faults_of(Json{{"schema", "refit.scenario"}, {"schema_version", "1.9"}}).empty());
}

TEST(DraftFromJson, RefusesWhatIsNoObject) {
    for (const auto& json : {Json::array(), Json(5), Json("text"), Json(nullptr)}) {
        EXPECT_EQ(faults_of(json).at(0).rule, "scenario-shape") << json;
    }
}

TEST(DraftFromJson, NamesEveryUnknownKeyWithTheNearest) {
    const auto faults = faults_of(scenario({{"modle", "deepseek-v3"},
                                            {"train", {{"layuot", "tp4"}, {"gpu", 4}}},
                                            {"engine", {{"options", {{"NRL_REFIT_NUM_STREAM", 2}}}}},
                                            {"extra", nullptr},
                                            {"more", Json::object()}}));
    ASSERT_EQ(faults.size(), 6U) << described(faults);
    EXPECT_TRUE(mentions(faults, "unknown key 'modle'; did you mean 'model'?"));
    EXPECT_TRUE(mentions(faults, "unknown key 'train.layuot'; did you mean 'train.layout'?"));
    EXPECT_TRUE(mentions(faults, "unknown key 'train.gpu'; did you mean 'train.gpus'?"));
    EXPECT_TRUE(mentions(faults, "did you mean 'engine.options.NRL_REFIT_NUM_STREAMS'?"));
    EXPECT_TRUE(mentions(faults, "unknown key 'extra'"));
    EXPECT_TRUE(mentions(faults, "unknown key 'more'"));
    for (const auto& fault : faults) {
        EXPECT_EQ(fault.code, ErrorCode::kInvalidInput);
        EXPECT_TRUE(fault.where.starts_with("mine.json: /")) << fault.where;
        EXPECT_TRUE(fault.nearest.value().field.starts_with("-"));
    }
}

TEST(DraftFromJson, RefusesValuesOfAWrongKind) {
    const auto faults = faults_of(scenario({{"model", {"a", "b"}}, {"train", "tp4"}, {"published", {1, 2}}}));
    ASSERT_EQ(faults.size(), 3U) << described(faults);
    EXPECT_TRUE(mentions(faults, "'model' must be a single value"));
    EXPECT_TRUE(mentions(faults, "'train' must be an object"));
    EXPECT_TRUE(mentions(faults, "'published' must be"));
}

}  // namespace
}  // namespace refit::io
