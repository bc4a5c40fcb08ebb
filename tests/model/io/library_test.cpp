// SPDX-License-Identifier: Apache-2.0
#include "refit/io/library.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../small_models.hpp"
#include "drafts.hpp"
#include "refit/io/json_file.hpp"
#include "scratch.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;
using testing_io::described;
using testing_io::library;
using testing_io::mentions;

Json data(const std::string& file) {
    return read_json(std::filesystem::path{REFIT_DATA_DIR} / file).value();
}

/// Expects a figure with a unit, a source and a value within its interval.
void expect_figure(const Json& figure, const std::string& name) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(figure.is_object());
    EXPECT_FALSE(figure.value("unit", "").empty());
    EXPECT_FALSE(figure.value("source", "").empty());
    ASSERT_TRUE(figure.contains("low") && figure.contains("value") && figure.contains("high"));
    EXPECT_LE(figure.at("low").get<double>(), figure.at("value").get<double>());
    EXPECT_LE(figure.at("value").get<double>(), figure.at("high").get<double>());
}

std::set<std::string> published_ids() {
    std::set<std::string> ids;
    const auto records = library().published().value();
    for (const auto& record : records) {
        ids.insert(record.id);
    }
    return ids;
}

TEST(Library, IsRefusedWhereItsFolderIsNot) {
    const auto missing = Library::open("no/such/folder");
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error()[0].code, ErrorCode::kIo);
    EXPECT_EQ(missing.error()[0].rule, "no-data");
    EXPECT_EQ(missing.error()[0].where, "no/such/folder");
}

TEST(Library, ListsNamesInOrder) {
    const auto models = library().models();
    EXPECT_TRUE(std::ranges::is_sorted(models));
    // As listed for the tests of the distributions.
    EXPECT_TRUE(std::ranges::equal(models, testing_models::kShippedIds));
    EXPECT_EQ(library().engines(), (std::vector<std::string>{"miles", "nemo-rl", "trl", "verl", "vllm"}));
    EXPECT_FALSE(library().systems().empty());
    EXPECT_FALSE(library().scenarios().empty());
}

TEST(Library, ReadsEveryModel) {
    for (const auto& name : library().models()) {
        const auto model = library().model(name);
        ASSERT_TRUE(model.has_value()) << described(model.error());
        EXPECT_EQ(model->id(), name);
        EXPECT_GT(model->payload_totals().parameters, 0U);
    }
}

TEST(Library, ReadsEverySystem) {
    for (const auto& name : library().systems()) {
        const auto system = library().system(name, "system");
        ASSERT_TRUE(system.has_value()) << described(system.error());
        EXPECT_EQ(system->name, name);
        EXPECT_FALSE(system->title.empty());
        EXPECT_EQ(system->gpus_per_domain % system->gpus_per_node, 0U) << name;
    }
}

TEST(Library, HasAUnitASourceAndAnIntervalForEveryFigureOfASystem) {
    for (const auto& name : library().systems()) {
        const auto json = data("systems/" + name + ".json");
        for (const auto* figure : {"gpu_memory", "nic", "nvlink", "hbm_copy"}) {
            expect_figure(json.at(figure), name + " " + figure);
            EXPECT_FALSE(json.at(figure).value("kind", "").empty()) << name << " " << figure;
        }
    }
}

TEST(Library, ReadsASystemsFiguresInBaseUnits) {
    const auto system = library().system("gb200-nvl72", "system").value();
    EXPECT_DOUBLE_EQ(system.nic.value.bytes_per_second(), 50e9);   // 400 Gbit/s / 8.
    EXPECT_DOUBLE_EQ(system.nic.low.bytes_per_second(), 43.75e9);  // 350 / 8.
    EXPECT_DOUBLE_EQ(system.nvlink.value.bytes_per_second(), 900e9);
    EXPECT_EQ(system.gpu_memory.value.count(), 199'501'230'899U);  // 185.8 · 2^30, rounded.
    EXPECT_TRUE(system.is_blackwell);
    EXPECT_EQ(system.gpus_per_domain, 72U);
    EXPECT_FALSE(library().system("h100-nvl8", "system").value().is_blackwell);
}

TEST(Library, SaysWhereEveryConstantOfEveryEngineComesFrom) {
    const auto ids = published_ids();
    const std::set<std::string> kinds{"fitted", "prior", "alternative", "fixed"};
    for (const auto& name : library().engines()) {
        const auto json = data("engines/" + name + ".json");
        for (const auto& [key, constant] : json.at("constants").items()) {
            expect_figure(constant, name + " " + key);
            const auto kind = constant.value("kind", "");
            EXPECT_TRUE(kinds.contains(kind)) << key << " is of kind '" << kind << "'";
            const auto identified_by = constant.at("identified_by").get<std::vector<std::string>>();
            EXPECT_TRUE(kind != "fitted" || !identified_by.empty()) << key << " is fitted to nothing";
            EXPECT_TRUE(std::ranges::is_sorted(identified_by)) << key;
            for (const auto& id : identified_by) {
                EXPECT_TRUE(ids.contains(id)) << key << " names the unknown record " << id;
            }
        }
        for (const auto& [key, option] : json.at("options").items()) {
            expect_figure(option, name + " " + key);
        }
    }
}

TEST(Library, ReadsEveryEngineInBaseUnits) {
    for (const auto& name : library().engines()) {
        const auto engine = library().engine(name);
        ASSERT_TRUE(engine.has_value()) << described(engine.error());
        EXPECT_EQ(engine->name, name);
        EXPECT_FALSE(engine->title.empty());
        EXPECT_FALSE(engine->version.empty());
    }
    const auto constants = library().engine("nemo-rl").value().constants;
    const auto json = data("engines/nemo-rl.json").at("constants");
    const auto in_file = [&](const char* key) { return json.at(key).at("value").get<double>(); };
    EXPECT_DOUBLE_EQ(constants.call_cost.value, in_file("call_cost") * 1e-3);      // ms.
    EXPECT_DOUBLE_EQ(constants.tensor_cost.value, in_file("tensor_cost") * 1e-6);  // us.
    EXPECT_DOUBLE_EQ(constants.fixed_cost.value, in_file("fixed_cost"));           // s.
    EXPECT_DOUBLE_EQ(constants.nic_efficiency.value, in_file("nic_efficiency"));   // 1.
    EXPECT_DOUBLE_EQ(constants.finalize_per_local_byte.value,
                     in_file("finalize_per_local_byte") * 1e-12);  // ms/GB = 1e-3 s / 1e9 B.
    EXPECT_EQ(constants.call_cost.unit, "ms");
    EXPECT_FALSE(constants.call_cost.source.empty());
    EXPECT_EQ(constants.call_cost.kind, "fitted");
}

TEST(Library, ReadsEachConstantFromItsOwnKey) {
    const auto c = library().engine("nemo-rl").value().constants;
    const std::vector<const Constant*> all{&c.nic_efficiency,
                                           &c.nvlink_efficiency,
                                           &c.call_cost,
                                           &c.tensor_cost,
                                           &c.tensor_cost_per_expert,
                                           &c.fixed_cost,
                                           &c.fixed_cost_per_gpu,
                                           &c.bulk_parameter_cost,
                                           &c.bulk_parameter_cost_floor,
                                           &c.bulk_parameter_cost_every_nic,
                                           &c.bulk_expert_cost,
                                           &c.finalize_per_expert,
                                           &c.finalize_slow_allgather_factor,
                                           &c.finalize_per_local_byte,
                                           &c.nic_sharing,
                                           &c.ring_nics,
                                           &c.ring_hop_cost,
                                           &c.model_error};
    EXPECT_EQ(all.size(), data("engines/nemo-rl.json").at("constants").size())
        << "a constant that nobody reads";
    std::set<std::string> sources;
    for (const auto* constant : all) {
        sources.insert(constant->source);
    }
    EXPECT_EQ(sources.size(), all.size()) << "two constants of one source";
}

TEST(Library, ResolvesEveryScenario) {
    const auto ids = published_ids();
    for (const auto& name : library().scenarios()) {
        const auto draft = library().scenario(name);
        ASSERT_TRUE(draft.has_value()) << described(draft.error());
        const auto scenario = resolve(*draft, library());
        ASSERT_TRUE(scenario.has_value()) << name << "\n" << described(scenario.error());
        EXPECT_EQ(scenario->name, name);
        EXPECT_EQ(draft->find("train.layout")->origin, name + ".json: /train/layout");
        for (const auto& id : scenario->published) {
            EXPECT_TRUE(ids.contains(id)) << name << " names the unknown record " << id;
        }
        EXPECT_TRUE(!scenario->published.empty() || !scenario->note.empty())
            << name << " says neither who published it nor who chose it";
    }
}

TEST(Library, ReadsThePublishedScenariosAsTheirSourcesPutThem) {
    const auto scenario_of = [](const char* name) {
        return resolve(library().scenario(name).value(), library()).value();
    };
    const auto deepseek = scenario_of("deepseek-v3-h100");
    EXPECT_EQ(describe(deepseek.train), "PP16 x EP16");
    EXPECT_EQ(describe_split(deepseek.train.stage_layers), "61 layers as 3 + 14x4 + 2");
    EXPECT_EQ(describe(deepseek.generate), "TP32 x DP8");
    const auto ultra = scenario_of("nemotron-ultra-gb200");
    EXPECT_EQ(describe(ultra.train), "TP8 x PP2 x EP32");
    EXPECT_EQ(ultra.cluster.placement().train_gpus_per_domain, 64U);
}

TEST(Library, HasRecordsWithIdsSourcesAndTimes) {
    const auto records = library().published().value();
    EXPECT_EQ(published_ids().size(), records.size()) << "an id twice";
    for (const auto& record : records) {
        EXPECT_FALSE(record.id.empty());
        EXPECT_FALSE(record.source.empty()) << record.id;
        EXPECT_TRUE(record.seconds || (record.low && record.high)) << record.id;
        if (record.low && record.high) {
            EXPECT_LE(*record.low, *record.high) << record.id;
            EXPECT_TRUE(!record.seconds ||
                        (*record.low <= *record.seconds && *record.seconds <= *record.high))
                << record.id;
        }
        for (const auto& id : record.same_configuration_as) {
            EXPECT_TRUE(published_ids().contains(id)) << record.id << " names " << id;
        }
    }
}

TEST(Library, KnowsModelsByTheNamesOfPublicReports) {
    for (const auto& [name, id] : {std::pair{"DeepSeek-V3", "deepseek-v3"},
                                   std::pair{"deepseek-ai/DeepSeek-V3-Base", "deepseek-v3"},
                                   std::pair{"DeepSeek-R1", "deepseek-v3"},
                                   std::pair{"qwen3-30b-a3b", "qwen3-30b-a3b"},
                                   std::pair{"NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", "nemotron-3-ultra-550b-a55b"},
                                   std::pair{"Nemotron-3-Super-120B", "nemotron-3-super-120b-a12b"},
                                   std::pair{"GLM-5 (4 layers)", "glm-5-4-layers"},
                                   std::pair{"GLM-Z1-9B", "glm-z1-9b"},
                                   std::pair{"Qwen3 235B_A22B", "qwen3-235b-a22b"},
                                   std::pair{"Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b"},
                                   std::pair{"Kimi-K2-Thinking", "kimi-k2"},
                                   std::pair{"Qwen3-8B-Base", "qwen3-8b"},
                                   std::pair{"QWEN3.5 397B", "qwen3.5-397b-a17b"},
                                   std::pair{"Qwen3-30B", "qwen3-30b-a3b"}}) {
        EXPECT_EQ(library().model_of_published_name(name).value_or("none"), id) << name;
    }
    for (const auto* name : {"", "27B dense (bf16)", "Qwen3", "Qwen3-30B-FP8", "Kimi-K2.5", "-a3b", "GLM-5.2 (5 layers)"}) {
        EXPECT_FALSE(library().model_of_published_name(name).has_value()) << name;
    }
}

TEST(Library, RefusesUnknownNamesWithTheNearest) {
    const auto system = library().system("gb200-nvl27", "system.train");
    ASSERT_FALSE(system.has_value());
    EXPECT_EQ(system.error()[0].rule, "unknown-system");
    EXPECT_EQ(system.error()[0].nearest.value(), (Suggestion{"system.train", "gb200-nvl72", ""}));
    EXPECT_EQ(library().model("kimi-k4").error()[0].nearest.value().field, "model");
    EXPECT_EQ(library().engine("nemorl").error()[0].nearest.value(),
              (Suggestion{"engine.name", "nemo-rl", ""}));
    const auto scenario = library().scenario("deepseek-v3-h1000");
    EXPECT_TRUE(mentions(scenario.error(), "did you mean 'deepseek-v3-h100'"));
    EXPECT_FALSE(scenario.error()[0].nearest.has_value()) << "no field of a scenario names it";
    EXPECT_FALSE(library().system("", "system").has_value());
}

TEST(Library, KnowsModelsByTheirHubNames) {
    EXPECT_EQ(library().model_of_hub_name("deepseek-ai/DeepSeek-V3-Base").value(), "deepseek-v3");
    EXPECT_EQ(library().model("Qwen/Qwen3-30B-A3B").value().id(), "qwen3-30b-a3b");
    const auto unknown = library().model("Qwen/Qwen3-30B-A4B");
    ASSERT_FALSE(unknown.has_value());
    EXPECT_EQ(unknown.error()[0].code, ErrorCode::kInvalidInput);
    EXPECT_EQ(unknown.error()[0].nearest.value(), (Suggestion{"model", "qwen3-30b-a3b", ""}));
    EXPECT_TRUE(mentions(unknown.error(), "the nearest is 'Qwen/Qwen3-30B-A3B'"));
}

class LibraryFiles : public testing_io::Scratch {
protected:
    /// A shipped file with changes, as a path that the library reads.
    [[nodiscard]] std::string changed(const std::string& file, const Json& patch) const {
        auto json = data(file);
        json.merge_patch(patch);
        return write("changed.json", json.dump()).string();
    }
};

TEST_F(LibraryFiles, MayBeAUsersOwn) {
    std::filesystem::create_directories(path("my-model"));
    const auto config = write("my-model/config.json", data("models/qwen3-30b-a3b.json").dump());
    EXPECT_EQ(library().model(config.string()).value().id(), "my-model");
    EXPECT_EQ(library().model(path("my-model").string()).value().id(), "my-model");
    EXPECT_EQ(library().model(path("my-model").string() + "/").value().id(), "my-model");
    const auto other = write("other.json", data("models/qwen3-30b-a3b.json").dump());
    EXPECT_EQ(library().model(other.string()).value().id(), "other");
    const auto system = changed("systems/h100-nvl8.json", {{"name", "mine"}, {"gpus_per_domain", 16}});
    EXPECT_EQ(library().system(system, "system").value().gpus_per_domain, 16U);
    const auto scenario = write("s.json", data("scenarios/qwen3-235b-h100.json").dump());
    EXPECT_TRUE(resolve(library().scenario(scenario.string()).value(), library()).has_value());
}

TEST_F(LibraryFiles, AreMissingAsFilesAre) {
    EXPECT_EQ(library().system(path("none.json").string(), "system").error()[0].code, ErrorCode::kIo);
    EXPECT_EQ(library().model(path("none/config.json").string()).error()[0].code, ErrorCode::kIo);
    EXPECT_EQ(library().scenario(path("none.json").string()).error()[0].code, ErrorCode::kIo);
    EXPECT_EQ(library().scenario(path("none.yaml").string()).error()[0].code, ErrorCode::kIo);
}

TEST_F(LibraryFiles, OfAnotherSchemaAreRefused) {
    const auto rule = [&](const Json& patch) {
        return library().system(changed("systems/h100-nvl8.json", patch), "system").error().at(0).rule;
    };
    EXPECT_EQ(rule({{"schema", "refit.engine"}}), "schema");
    EXPECT_EQ(rule({{"schema", nullptr}}), "schema");
    EXPECT_EQ(rule({{"schema_version", "2.0"}}), "schema-version");
    EXPECT_EQ(rule({{"schema_version", 1}}), "schema-version");
    const auto list = write("list.json", "[]").string();
    EXPECT_EQ(library().system(list, "system").error().at(0).rule, "schema");
    // A later minor version is read.
    EXPECT_TRUE(library()
                    .system(changed("systems/h100-nvl8.json", {{"schema_version", "1.7"}}), "system")
                    .has_value());
}

TEST_F(LibraryFiles, OfSystemsNameEveryFault) {
    const auto system = library().system(changed("systems/h100-nvl8.json",
                                                 {{"nic", 400},
                                                  {"nvlink", {{"unit", nullptr}}},
                                                  {"hbm_copy", {{"source", 5}}},
                                                  {"gpu_memory", {{"low", 1000}}},
                                                  {"gpus_per_node", 0},
                                                  {"gpus_per_domain", 8.5},
                                                  {"nics_per_gpu", nullptr},
                                                  {"architecture", "volta"},
                                                  {"title", 3}}),
                                         "system");
    ASSERT_FALSE(system.has_value());
    const auto& faults = system.error();
    EXPECT_TRUE(mentions(faults, "'nic' is the bare number 400")) << described(faults);
    EXPECT_TRUE(mentions(faults, "'nvlink' has no unit"));
    EXPECT_TRUE(mentions(faults, "'hbm_copy' names no source"));
    EXPECT_TRUE(mentions(faults, "'gpu_memory' must have low <= value <= high"));
    EXPECT_TRUE(mentions(faults, "'gpus_per_node' must be a whole number"));
    EXPECT_TRUE(mentions(faults, "'gpus_per_domain' must be a whole number"));
    EXPECT_TRUE(mentions(faults, "'nics_per_gpu' must be a whole number"));
    EXPECT_TRUE(mentions(faults, "'architecture' must be ampere, hopper, blackwell or cpu"));
    EXPECT_TRUE(mentions(faults, "'title' must be a text"));
    EXPECT_EQ(faults.size(), 9U) << described(faults);
}

TEST_F(LibraryFiles, OfSystemsAndEnginesHaveNoUnknownKeys) {
    const auto system = library().system(
        changed("systems/h100-nvl8.json", {{"nick", 5}, {"_remark", 5}, {"nic", {{"hihg", 5}, {"_why", "so"}}}}), "system");
    ASSERT_FALSE(system.has_value());
    EXPECT_EQ(system.error().size(), 2U) << described(system.error());
    EXPECT_TRUE(mentions(system.error(), "unknown key 'nick'; did you mean 'nic'?")) << described(system.error());
    EXPECT_TRUE(mentions(system.error(), "unknown key 'hihg'; did you mean 'high'?"));
    const auto engine = library().engine(changed("engines/nemo-rl.json",
                                                 {{"option", 5},
                                                  {"constants", {{"cal_cost", 5}}},
                                                  {"options", {{"NRL_REFIT_NUM_STREAM", 5}, {"_remark", 5}}}}));
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(engine.error().size(), 3U) << described(engine.error());
    EXPECT_TRUE(mentions(engine.error(), "unknown key 'option'; did you mean 'options'?")) << described(engine.error());
    EXPECT_TRUE(mentions(engine.error(), "unknown key 'cal_cost'; did you mean 'call_cost'?"));
    EXPECT_TRUE(mentions(engine.error(), "unknown key 'NRL_REFIT_NUM_STREAM'; did you mean 'NRL_REFIT_NUM_STREAMS'?"));
}

TEST_F(LibraryFiles, OfEnginesSayWhereFittedConstantsComeFrom) {
    const auto engine = library().engine(changed("engines/nemo-rl.json",
                                                 {{"constants",
                                                   {{"call_cost", {{"kind", "fitted"}, {"identified_by", Json::array()}}},
                                                    {"tensor_cost", {{"prior", {{"spread", 1.0}}}}},
                                                    {"fixed_cost", {{"prior", {{"source", ""}}}}},
                                                    {"fixed_cost_per_gpu", {{"prior", 5}}},
                                                    {"nic_efficiency", {{"bounds", {0.99, 1.0}}}},
                                                    {"nvlink_efficiency", {{"bounds", 0.5}}}}},
                                                  {"correlations",
                                                   {{{"between", {"call_cost", "tensor_cost"}}, {"value", 2}},
                                                    {{"between", {"cal_cost", "tensor_cost"}}, {"value", 0}},
                                                    {{"between", "all"}}}}}));
    ASSERT_FALSE(engine.has_value());
    const auto& faults = engine.error();
    EXPECT_TRUE(mentions(faults, "'call_cost' is fitted, but names no record")) << described(faults);
    EXPECT_TRUE(mentions(faults, "'tensor_cost.prior' must have value > 0 and spread > 1")) << described(faults);
    EXPECT_TRUE(mentions(faults, "'fixed_cost.prior' names no source")) << described(faults);
    EXPECT_TRUE(mentions(faults, "'fixed_cost_per_gpu.prior' must be an object")) << described(faults);
    EXPECT_TRUE(mentions(faults, "'nic_efficiency.bounds' must be [low, high]")) << described(faults);
    EXPECT_TRUE(mentions(faults, "'nvlink_efficiency.bounds' must be [low, high]")) << described(faults);
    EXPECT_TRUE(mentions(faults, "value 2 does not lie from -1 to 1")) << described(faults);
    EXPECT_TRUE(mentions(faults, "\"cal_cost\" is no constant")) << described(faults);
    EXPECT_TRUE(mentions(faults, "must be {\"between\"")) << described(faults);
}

TEST(Library, ReadsPriorsBoundsAndCorrelationsInBaseUnits) {
    const auto constants = library().engine("nemo-rl").value().constants;
    const auto json = data("engines/nemo-rl.json");
    ASSERT_TRUE(constants.call_cost.prior.has_value());
    EXPECT_DOUBLE_EQ(constants.call_cost.prior->value,
                     json.at("constants").at("call_cost").at("prior").at("value").get<double>() * 1e-3);  // ms.
    EXPECT_EQ(constants.call_cost.prior->spread, 2.0);
    EXPECT_FALSE(constants.call_cost.bounds.has_value());
    ASSERT_TRUE(constants.nic_efficiency.bounds.has_value());
    EXPECT_EQ(constants.nic_efficiency.bounds->high, 0.98);
    EXPECT_EQ(constants.correlations.size(), json.at("correlations").size());
    EXPECT_FALSE(constants.nic_sharing.prior.has_value());
}

TEST_F(LibraryFiles, OfSystemsKeepRatesInTheirLimits) {
    const auto faults_of = [&](const Json& nic) {
        const auto system = library().system(changed("systems/h100-nvl8.json", {{"nic", nic}}), "system");
        return system ? Faults{} : system.error();
    };
    EXPECT_TRUE(mentions(faults_of({{"value", 0}}), "nic.value"));
    EXPECT_TRUE(mentions(faults_of({{"value", -400}}), "nic.value"));
    EXPECT_TRUE(mentions(faults_of({{"value", "400"}}), "'nic.value' must be a finite number"));
    EXPECT_TRUE(mentions(faults_of({{"unit", "gb/s"}}), "gb/s"));
    EXPECT_TRUE(mentions(faults_of({{"unit", "furlongs"}}), "furlongs"));
    EXPECT_TRUE(mentions(faults_of("400Gbit/s"), "'nic' must be an object"));
    EXPECT_TRUE(faults_of({{"value", 4e11}, {"low", 1e6}, {"high", 5e11}, {"unit", "bit/s"}}).empty());
}

TEST_F(LibraryFiles, OfEnginesNameEveryFault) {
    const auto engine = library().engine(changed("engines/nemo-rl.json",
                                                 {{"constants",
                                                   {{"call_cost", {{"unit", "fortnights"}}},
                                                    {"tensor_cost", {{"low", -1}}},
                                                    {"fixed_cost", {{"identified_by", {1, 2}}}},
                                                    {"nic_sharing", {{"identified_by", nullptr}}},
                                                    {"model_error", {{"source", ""}}},
                                                    {"nic_efficiency", {{"high", 0.1}}},
                                                    {"nvlink_efficiency", {{"kind", 4}, {"source", {1}}}},
                                                    {"ring_nics", nullptr}}},
                                                  {"options",
                                                   {{"NRL_REFIT_NUM_STREAMS", {{"value", -1}}},
                                                    {"NRL_REFIT_NUM_BUFFERS", {{"value", 1e12}}},
                                                    {"NRL_REFIT_BUFFER_MEMORY_RATIO", {{"value", "much"}}},
                                                    {"pack_cap", 5}}}}));
    ASSERT_FALSE(engine.has_value());
    const auto& faults = engine.error();
    EXPECT_TRUE(mentions(faults, "unit 'fortnights' is none of")) << described(faults);
    EXPECT_TRUE(mentions(faults, "'tensor_cost' must have 0 <= low <= value <= high"));
    EXPECT_TRUE(mentions(faults, "'fixed_cost' does not say which records identify it"));
    EXPECT_TRUE(mentions(faults, "'nic_sharing' does not say which records identify it"));
    EXPECT_TRUE(mentions(faults, "'model_error' names no source"));
    EXPECT_TRUE(mentions(faults, "'nic_efficiency' must have"));
    EXPECT_TRUE(mentions(faults, "'nvlink_efficiency' names no source"));
    EXPECT_TRUE(mentions(faults, "'ring_nics' is missing"));
    for (const auto* option :
         {"NRL_REFIT_NUM_STREAMS", "NRL_REFIT_NUM_BUFFERS", "NRL_REFIT_BUFFER_MEMORY_RATIO"}) {
        EXPECT_TRUE(mentions(faults, std::string{"'"} + option)) << option;
    }
    EXPECT_TRUE(mentions(faults, "'pack_cap' is the bare number 5"));
    EXPECT_EQ(faults.size(), 13U) << described(faults);
}

TEST_F(LibraryFiles, OfEnginesSayWhatIsWrongWithTheirPathsAndSettings) {
    const auto engine = library().engine(
        changed("engines/miles.json",
                {{"settings", {{"pack_overlap", "none"}, {"broadcast_rot", "trainer-0"}, {"shadow_copy", 5}}},
                 {"paths", {{"miles-p2p", {{"method", nullptr}, {"setings", 5}}}, {"other", {{"method", "direct"}}}}}}));
    ASSERT_FALSE(engine.has_value());
    const auto& faults = engine.error();
    EXPECT_TRUE(mentions(faults, "'none' is none of pipelined and serial")) << described(faults);
    EXPECT_TRUE(mentions(faults, "broadcast_rot"));
    EXPECT_TRUE(mentions(faults, "'shadow_copy' must be a text"));
    EXPECT_TRUE(mentions(faults, "'method' must be a text"));
    EXPECT_TRUE(mentions(faults, "unknown key 'setings'; did you mean 'settings'?"));
    EXPECT_TRUE(mentions(faults, "'source' must be a text"));
    EXPECT_EQ(faults.size(), 6U) << described(faults);
}

TEST_F(LibraryFiles, OfEnginesMayLackWholeSections) {
    const auto engine =
        library().engine(changed("engines/nemo-rl.json", {{"constants", 5}, {"options", "none"}}));
    ASSERT_FALSE(engine.has_value());
    // 6 constants without which there is no engine, 3 options and the pack's limit.
    EXPECT_EQ(engine.error().size(), 10U) << described(engine.error());
}

TEST_F(LibraryFiles, OfTimesMustBeAListOfObjects) {
    for (const auto* folder : {"models", "systems", "published"}) {
        std::filesystem::create_directories(path(folder));
    }
    const auto mine = Library::open(path("")).value();
    EXPECT_EQ(mine.published().error()[0].code, ErrorCode::kIo);
    for (const auto* text : {"[]", "{}", R"({"records": 4})", R"({"records": [1]})"}) {
        static_cast<void>(write("published/timings.json", text));
        EXPECT_EQ(mine.published().error()[0].code, ErrorCode::kInvalidInput) << text;
    }
    static_cast<void>(write("published/timings.json", R"({"records": [{"id": "a", "seconds": 1, "inferred": null}]})"));
    EXPECT_EQ(mine.published().value().size(), 1U);
    EXPECT_TRUE(mine.engines().empty());
    EXPECT_EQ(mine.engine("nemo-rl").error()[0].rule, "no-data");
}

}  // namespace
}  // namespace refit::io
