// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mendable.hpp"
#include "refit/io/json_file.hpp"

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
using testing_io::set_all;

TEST(Resolve, MakesAScenarioOfAWholeDraft) {
    const auto scenario = resolved(deepseek());
    EXPECT_EQ(scenario.name, "test");
    EXPECT_EQ(scenario.model.id(), "deepseek-v3");
    EXPECT_EQ(scenario.train.stage_layers.front(), 3U);
    EXPECT_EQ(scenario.train.stage_layers.back(), 2U);
    EXPECT_EQ(scenario.generate.tp, 32U);
    EXPECT_EQ(scenario.cluster.gpus(), 512U);
    EXPECT_EQ(scenario.cluster.train_system().name, "h100-nvl8");
    EXPECT_EQ(scenario.cluster.placement(), (Placement{8, 8, true}));
}

TEST(Resolve, FillsInDefaults) {
    const auto scenario = resolved(deepseek());
    EXPECT_EQ(scenario.engine.name, "nemo-rl");
    EXPECT_EQ(scenario.rules.version, "2026-11");
    EXPECT_EQ(scenario.coverage, Coverage::kNemoRlNames);
    EXPECT_EQ(scenario.engine.options, EngineOptions{});
    EXPECT_EQ(scenario.dtype, Dtype::kBf16);
    EXPECT_TRUE(scenario.published.empty());
    // 64 of the 72 GPUs of a rack.
    EXPECT_EQ(resolved(deepseek({{"system", "gb200-nvl72"}})).cluster.placement(), (Placement{64, 64, true}));
}

TEST(Resolve, TakesWhatTheDraftSays) {
    const auto scenario = resolved(deepseek({{"dtype", "float16"},
                                             {"engine.rules", "2026-08"},
                                             {"engine.coverage", "ffn"},
                                             {"engine.options.NRL_REFIT_NUM_STREAMS", "3"},
                                             {"engine.options.NRL_REFIT_NUM_BUFFERS", "4"},
                                             {"engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO", "0.05"},
                                             {"placement.gpus_used_per_domain", "4"},
                                             {"placement.generation_starts_new_domain", "false"},
                                             {"published", "post-dsv3-h100-broadcast,post-dsv3-h100-reshard"},
                                             {"note", "for people"}}));
    EXPECT_EQ(scenario.dtype, Dtype::kFp16);
    EXPECT_EQ(scenario.rules.version, "2026-08");
    EXPECT_EQ(scenario.coverage, Coverage::kFfn);
    EngineOptions options;
    options.streams = 3;
    options.buffers = 4;
    options.buffer_memory_ratio = 0.05;
    EXPECT_EQ(scenario.engine.options, options);
    EXPECT_EQ(scenario.cluster.placement(), (Placement{4, 4, false}));
    EXPECT_EQ(scenario.published, (std::vector<std::string>{"post-dsv3-h100-broadcast", "post-dsv3-h100-reshard"}));
    EXPECT_EQ(scenario.note, "for people");
}

TEST(Resolve, TakesTheVariantsOfAnEngine) {
    const auto options = resolved(deepseek({{"engine.options.broadcast_root", "each-pp-stage"},
                                            {"engine.options.broadcast_group", "generators"},
                                            {"engine.options.broadcast_senders", "4"},
                                            {"engine.options.transfer_order", "rounds"},
                                            {"engine.options.finalize", "slow-all-gather"},
                                            {"engine.options.bulk_cost", "per-expert"},
                                            {"engine.options.replica_ring", "every-nic"},
                                            {"engine.options.shadow_copy", "true"},
                                            {"engine.coverage", "pattern:*.experts.*"}})).engine.options;
    EXPECT_EQ(options.broadcast_root, BroadcastRoot::kEachStage);
    EXPECT_EQ(options.broadcast_group, BroadcastGroup::kGenerators);
    EXPECT_EQ(options.broadcast_senders, 4U);
    EXPECT_EQ(options.transfer_order, TransferOrder::kRounds);
    EXPECT_EQ(options.reading.finalize, FinalizeReading::kSlowAllGather);
    EXPECT_EQ(options.reading.bulk_cost, BulkCostReading::kPerExpert);
    EXPECT_EQ(options.reading.replica_ring, ReplicaRingReading::kEveryNic);
    EXPECT_TRUE(options.has_shadow_copy);
    EXPECT_FALSE(options.is_same_variant(EngineOptions{}));
}

struct Wrong {
    const char* title;
    Fields changes;
    const char* rule;
    const char* message;  ///< A part of it.
    const char* field;    ///< Of the suggestion.
    const char* value;
};
void PrintTo(const Wrong& wrong, std::ostream* stream) {
    *stream << wrong.title;
}

class WrongField : public testing::TestWithParam<Wrong> {};

TEST_P(WrongField, IsRefusedWithASuggestionThatMendsIt) {
    const auto& wrong = GetParam();
    const auto draft = deepseek(wrong.changes);
    const auto faults = faults_of(draft);
    ASSERT_EQ(count_rule(faults, wrong.rule), faults.size()) << described(faults);
    ASSERT_FALSE(faults.empty());
    EXPECT_TRUE(mentions(faults, wrong.message)) << described(faults);
    ASSERT_TRUE(faults.front().nearest.has_value());
    EXPECT_EQ(faults.front().nearest->field, wrong.field);
    EXPECT_EQ(faults.front().nearest->value, wrong.value);
    EXPECT_EQ(faults.front().where, "file.json: /" + wrong.changes.front().first);
    expect_mendable(draft);
}

INSTANTIATE_TEST_SUITE_P(
    Names,
    WrongField,
    testing::Values(
        Wrong{"Model",
              {{"model", "deepseek-v4"}},
              "unknown-model",
              "did you mean 'deepseek-v3'",
              "model",
              "deepseek-v3"},
        Wrong{"HubModel",
              {{"model", "deepseek-ai/DeepSeek-V4"}},
              "unknown-model",
              "nearest is 'deepseek-ai/DeepSeek-V3'",
              "model",
              "deepseek-v3"},
        Wrong{"System",
              {{"system", "h100-nvl9"}},
              "unknown-system",
              "did you mean 'h100-nvl8'",
              "system",
              "h100-nvl8"},
        Wrong{"Engine",
              {{"engine.name", "nemo"}},
              "unknown-engine",
              "did you mean 'nemo-rl'",
              "engine.name",
              "nemo-rl"},
        Wrong{"Coverage",
              {{"engine.coverage", "fnn"}},
              "unknown-coverage",
              "the nearest is 'ffn'",
              "engine.coverage",
              "ffn"},
        Wrong{"Rules",
              {{"engine.rules", "2026-12"}},
              "unknown-rules",
              "is none of the versions 2026-08 and 2026-11",
              "engine.rules",
              "2026-11"},
        Wrong{"TrainEngine",
              {{"train.engine", "megatro"}},
              "unknown-value",
              "is none of megatron and fsdp",
              "train.engine",
              "megatron"},
        Wrong{"GenerateEngine",
              {{"generate.engine", "sglang"}},
              "unknown-value",
              "is none of vllm",
              "generate.engine",
              "vllm"},
        Wrong{"Dtype", {{"dtype", "bf17"}}, "unknown-dtype", "unknown dtype 'bf17'", "dtype", "bf16"},
        Wrong{"DtypeOfNoKind", {{"dtype", "fp9"}}, "unknown-dtype", "unknown dtype 'fp9'", "dtype", "fp16"},
        Wrong{"GenerateDtype",
              {{"generate.dtype", "b16"}},
              "unknown-dtype",
              "unknown dtype 'b16'",
              "generate.dtype",
              "bf16"},
        Wrong{"NewDomain",
              {{"placement.generation_starts_new_domain", "yes"}},
              "unknown-value",
              "is none of true and false",
              "placement.generation_starts_new_domain",
              "true"}),
    [](const auto& test) { return test.param.title; });

INSTANTIATE_TEST_SUITE_P(
    Numbers,
    WrongField,
    testing::Values(
        Wrong{"ZeroGpus",
              {{"train.gpus", "0"}},
              "number-range",
              "train.gpus: '0' is not a whole number from 1 to 1048576",
              "train.gpus",
              "256"},
        Wrong{"NegativeGpus",
              {{"generate.gpus", "-8"}},
              "number-range",
              "'-8' is not a whole number",
              "generate.gpus",
              "256"},
        Wrong{"NanGpus",
              {{"generate.gpus", "nan"}},
              "number-range",
              "'nan' is not a whole number",
              "generate.gpus",
              "256"},
        Wrong{"HugeGpus",
              {{"train.gpus", "99999999999999999999"}},
              "number-range",
              "'99999999999999999999' is not",
              "train.gpus",
              "256"},
        Wrong{"FractionOfGpus",
              {{"train.gpus", "256.0"}},
              "number-range",
              "'256.0' is not",
              "train.gpus",
              "256"},
        Wrong{"SpacedGpus", {{"train.gpus", " 256"}}, "number-range", "' 256' is not", "train.gpus", "256"},
        Wrong{"EmptyGpus", {{"train.gpus", ""}}, "number-range", "'' is not", "train.gpus", "256"},
        Wrong{"ZeroStreams",
              {{"engine.options.NRL_REFIT_NUM_STREAMS", "0"}},
              "number-range",
              "from 1 to 64",
              "engine.options.NRL_REFIT_NUM_STREAMS",
              "2"},
        Wrong{"ManyBuffers",
              {{"engine.options.NRL_REFIT_NUM_BUFFERS", "65"}},
              "number-range",
              "from 1 to 64",
              "engine.options.NRL_REFIT_NUM_BUFFERS",
              "2"},
        Wrong{"NanRatio",
              {{"engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO", "nan"}},
              "number-range",
              "is not a share between 0 and 1",
              "engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO",
              "0.02"},
        Wrong{"WholeRatio",
              {{"engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO", "1"}},
              "number-range",
              "is not a share",
              "engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO",
              "0.02"},
        Wrong{"NegativeRatio",
              {{"engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO", "-0.1"}},
              "number-range",
              "is not a share",
              "engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO",
              "0.02"},
        Wrong{"PercentRatio",
              {{"engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO", "2%"}},
              "number-range",
              "is not a share",
              "engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO",
              "0.02"},
        Wrong{"MoreThanTheDomain",
              {{"placement.gpus_used_per_domain", "9"}},
              "number-range",
              "from 1 to 8",
              "placement.gpus_used_per_domain",
              "8"},
        // With 2 layers at the end, 59 are left: 14 stages of 4 take 56.
        Wrong{"FirstStage",
              {{"train.pipeline.first", "nan"}},
              "number-range",
              "'nan' is not a whole number from 1 to 61",
              "train.pipeline.first",
              "3"},
        Wrong{"LastStage",
              {{"train.pipeline.last", "0"}},
              "number-range",
              "'0' is not a whole number from 1 to 61",
              "train.pipeline.last",
              "2"},
        Wrong{"BareRate", {{"system.nic", "400"}}, "unit-missing", "system.nic: ", "system.nic", "400Gbit/s"},
        Wrong{"RateInSmallLetters",
              {{"system.nic", "400gb/s"}},
              "unit-case",
              "400gb/s",
              "system.nic",
              "400Gbit/s"},
        Wrong{"ZeroRate", {{"system.nvlink", "0GB/s"}}, "number-range", "0GB/s", "system.nvlink", "1GB/s"}),
    [](const auto& test) { return test.param.title; });

INSTANTIATE_TEST_SUITE_P(
    Layouts,
    WrongField,
    testing::Values(Wrong{"Syntax",
                          {{"generate.layout", "tpp4"}},
                          "layout-syntax",
                          "generate.layout: 'tpp4' names no parallel axis",
                          "generate.layout",
                          "dp256.ep32"},
                    Wrong{"Product",
                          {{"train.layout", "pp16.ep32"}},
                          "layout-product",
                          "256 GPUs / (ep 32 x pp 16 = 512) is not whole",
                          "train.layout",
                          "pp16:3:2.ep16"},
                    Wrong{"Heads",
                          {{"generate.layout", "tp256"}},
                          "heads",
                          "generate.tp = 256: 128 attention heads are not divisible by 256",
                          "generate.layout",
                          "tp128.dp2"},
                    Wrong{"Pipeline",
                          {{"train.layout", "pp16:4.ep16"}},
                          "pipeline-split",
                          "61 layers less 6 in the given stages",
                          "train.layout",
                          "pp16.ep16"}),
    [](const auto& test) { return test.param.title; });

TEST(Resolve, RefusesABareRateThatCameAsAJsonNumber) {
    const auto json = parse_json(R"({"schema":"refit.scenario","schema_version":"1.0","model":"deepseek-v3",
        "train":{"gpus":256,"layout":"pp16:3:2.ep16"},"generate":{"gpus":256,"layout":"tp32"},
        "system":{"name":"h100-nvl8","nic":400}})",
                                 "mine.json");
    const auto draft = draft_from_json(json.value(), "mine.json").value();
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].rule, "unit-missing");
    EXPECT_EQ(faults[0].where, "mine.json: /system/nic");
    expect_mendable(draft);
}

TEST(Resolve, AppliesRatesToBothSystems) {
    const auto scenario = resolved(deepseek({{"system.nic", "800Gbit/s"}, {"system.nvlink", "900GB/s"}}));
    for (const auto* system : {&scenario.cluster.train_system(), &scenario.cluster.generate_system()}) {
        EXPECT_DOUBLE_EQ(system->nic.value.bytes_per_second(), 100e9);  // 800 / 8.
        EXPECT_DOUBLE_EQ(system->nic.low.bytes_per_second(), 100e9);
        EXPECT_EQ(system->nic.source, "file.json: /system.nic");
        EXPECT_DOUBLE_EQ(system->nvlink.value.bytes_per_second(), 900e9);
    }
}

TEST(Resolve, RefusesFp8GenerationOfBf16WeightsByRule16) {
    auto draft = deepseek();
    draft.set("generate.dtype", {"fp8", DraftField::Kind::kText, Precedence::kFlag, "--generate-dtype"});
    // TP16 cuts no FP8 block and EP32 has room, so that only the rule is left.
    draft.set("generate.layout", {"tp16.dp16.ep32", DraftField::Kind::kText, Precedence::kFlag, "--generate"});
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].code, ErrorCode::kInfeasible);
    EXPECT_EQ(faults[0].where, "--generate-dtype");
    EXPECT_EQ(faults[0].message,
              "generate.dtype = fp8: BF16 weights are not turned into blockwise FP8 [nemo-rl@2026-11 rule 16]; both "
              "sides must agree");
    EXPECT_EQ(faults[0].nearest.value(), (Suggestion{"generate.dtype", "bf16", ""}));
    expect_mendable(draft);
}

TEST(Resolve, ReadsWeightsThatBothSidesKeepInFp8) {
    // TP16 cuts no FP8 block and EP32 leaves experts whole.
    const Fields layout{{"generate.layout", "tp16.dp16.ep32"}};
    auto written = layout;
    written.insert(written.end(),
                   {{"train.fp8_param", "true"}, {"train.fp8_recipe", "blockwise"}, {"generate.dtype", "fp8"}});
    auto shorter = layout;
    shorter.emplace_back("dtype", "fp8");
    for (const auto& fields : {written, shorter}) {
        const auto scenario = resolved(deepseek(fields));
        EXPECT_EQ(scenario.dtype, Dtype::kFp8);
        for (const auto& [fact, value] : Fields{{"dtype", "fp8"},
                                                {"generate.dtype", "fp8"},
                                                {"train.fp8_param", "true"},
                                                {"train.fp8_recipe", "blockwise"}}) {
            EXPECT_EQ(scenario.facts.at(fact), value) << fact;
        }
        EXPECT_TRUE(violations(scenario.rules, scenario.facts).empty());
    }
}

TEST(Resolve, RefusesFp8WhereALayoutCutsABlockOnEitherSide) {
    // 18432 / 32 = 4.5 blocks of 128 on generators; on trainers 2048 / 32 is half a block.
    const auto draft = deepseek({{"dtype", "fp8"}, {"train.layout", "tp32.pp8.ep32"}, {"train.pipeline.first", "4"},
                                 {"train.pipeline.last", "3"}});
    const auto faults = faults_of(draft);
    EXPECT_TRUE(mentions(faults, "generate.tp = 32: 18432 / 32 = 576, but an FP8 block is 128 wide")) << described(faults);
    EXPECT_TRUE(mentions(faults, "train.tp = 32: 2048 / 32 = 64, but an FP8 block is 128 wide")) << described(faults);
    expect_mendable(draft);
}

TEST(Resolve, RefusesFp8ThatIsNotSaidInFull) {
    const auto only = [](const Fields& fields) {
        auto all = fields;
        all.emplace_back("generate.layout", "tp16.dp16.ep32");
        const auto draft = deepseek(all);
        expect_mendable(draft);
        const auto faults = faults_of(draft);
        return faults.size() == 1 ? faults[0].message : described(faults);
    };
    EXPECT_EQ(only({{"train.fp8_param", "true"}, {"generate.dtype", "fp8"}}),
              "train.fp8_recipe is missing: weights kept in fp8 can be modelled blockwise only");
    EXPECT_EQ(only({{"dtype", "fp8"}, {"train.fp8_recipe", "tensorwise"}}),
              "train.fp8_recipe = tensorwise: weights kept in fp8 can be modelled blockwise only");
    EXPECT_EQ(only({{"dtype", "fp8"}, {"train.fp8_param", "false"}}),
              "train.fp8_param: dtype is fp8, so the weights are kept in fp8");
    EXPECT_EQ(only({{"dtype", "fp16"},
                    {"train.fp8_param", "true"},
                    {"train.fp8_recipe", "blockwise"},
                    {"generate.dtype", "fp8"}}),
              "dtype = fp16: beside weights in fp8, the others can be modelled in bf16 only");
    EXPECT_EQ(only({{"train.fp8_param", "true"}, {"train.fp8_recipe", "blockwise"}}),
              "generate.dtype = bf16: FP8 weights need FP8 generation [nemo-rl@2026-11 rule 17]; both sides must agree");
    EXPECT_EQ(only({{"dtype", "fp8"}, {"generate.is_mx", "true"}}),
              "generate.dtype = fp8: blockwise FP8 weights are not turned into MXFP8 [nemo-rl@2026-11 rule 13]; both "
              "sides must agree");
}

TEST(Resolve, RefusesFp8UnderFsdp) {
    const auto draft = deepseek({{"model", "qwen3-32b"},
                                 {"dtype", "fp8"},
                                 {"train.layout", "fsdp256"},
                                 {"train.engine", "fsdp"},
                                 {"generate.layout", "tp4"}});
    const auto faults = faults_of(draft);
    EXPECT_TRUE(mentions(faults, "dtype = fp8: FSDP shards weights by rows")) << described(faults);
}

TEST(Resolve, RefusesFp8OfModelsThatItDoesNotFit) {
    for (const auto* model : {"kimi-k3", "qwen2.5-0.5b"}) {
        for (const auto& fields : {Fields{{"dtype", "fp8"}},
                                   Fields{{"dtype", "fp8"}, {"generate.dtype", "bf16"}},
                                   Fields{{"train.fp8_param", "true"},
                                          {"train.fp8_recipe", "blockwise"},
                                          {"generate.dtype", "fp8"}}}) {
            auto all = fields;
            all.emplace_back("model", model);
            const auto faults = faults_of(deepseek(all));
            EXPECT_GE(count_rule(faults, "fp8-model"), 1U) << described(faults);
            expect_mendable(deepseek(all));
        }
    }
}

TEST(Resolve, TellsMxfp8ByItsOwnRule) {
    Fields fields{{"generate.dtype", "fp8"}, {"generate.is_mx", "true"}, {"generate.layout", "tp16.dp16.ep32"}};
    // NeMo RL makes MXFP8 of BF16, which Refit has no model of; of FP16 NeMo RL does not, by rule 15.
    auto faults = faults_of(deepseek(fields));
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].code, ErrorCode::kUnsupported);
    EXPECT_EQ(faults[0].message,
              "generate.dtype = fp8: generators that turn bf16 weights into mxfp8 cannot be modelled yet; both sides must "
              "agree");
    fields.emplace_back("dtype", "fp16");
    faults = faults_of(deepseek(fields));
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].code, ErrorCode::kInfeasible);
    EXPECT_TRUE(mentions(faults, "MXFP8 is made from BF16 weights only [nemo-rl@2026-11 rule 15]")) << described(faults);
    expect_mendable(deepseek(fields));
}

TEST(Resolve, TellsAnotherChangeOfDtypeWithoutARule) {
    const auto faults = faults_of(deepseek({{"generate.dtype", "fp16"}}));
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].code, ErrorCode::kUnsupported);
    EXPECT_FALSE(mentions(faults, "rule"));
}

TEST(Resolve, OffersTheTrainersDtypeForGeneration) {
    const auto draft = deepseek({{"dtype", "fp32"}, {"generate.dtype", "bf"}, {"generate.layout", "tp64.dp4"}});
    const auto faults = faults_of(draft);
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_EQ(faults[0].nearest.value().value, "fp32");
    expect_mendable(draft);
}

TEST(Resolve, AsksForWhatIsMissing) {
    for (const auto* name : {"model", "system", "train.gpus", "generate.gpus"}) {
        auto draft = deepseek();
        draft.erase(name);
        const auto faults = faults_of(draft);
        ASSERT_EQ(faults.size(), 1U) << name << "\n" << described(faults);
        EXPECT_EQ(faults[0].rule, "missing-field");
        EXPECT_EQ(faults[0].where, name);
        EXPECT_EQ(faults[0].nearest.value().field, name);
        expect_mendable(draft);
    }
}

TEST(Resolve, TellsSeveralFaultsAtOnce) {
    const auto draft = deepseek({{"model", "deepsek-v3"},
                                 {"dtype", "bf15"},
                                 {"generate.dtype", "fp8"},
                                 {"train.engine", "deepspeed"},
                                 {"engine.name", "nemo"},
                                 {"engine.coverage", "al"},
                                 {"engine.rules", "x"},
                                 {"engine.options.NRL_REFIT_NUM_STREAMS", "none"},
                                 {"engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO", "2"},
                                 {"train.gpus", "none"},
                                 {"train.layout", "tp3.pp16.ep16"},
                                 {"generate.layout", "tp4:4"},
                                 {"generate.gpus", "0"},
                                 {"system", "h100"},
                                 {"system.nic", "400"},
                                 {"system.nvlink", "900gb/s"},
                                 {"placement.gpus_used_per_domain", "1000"},
                                 {"placement.generation_starts_new_domain", "perhaps"}});
    const auto faults = faults_of(draft);
    for (const auto& [rule, count] : std::vector<std::pair<std::string, std::size_t>>{{"unknown-model", 1},
                                                                                      {"unknown-dtype", 1},
                                                                                      {"dtype-pair", 1},
                                                                                      {"unknown-value", 2},
                                                                                      {"unknown-rules", 1},
                                                                                      {"unknown-engine", 1},
                                                                                      {"unknown-coverage", 1},
                                                                                      {"unknown-system", 1},
                                                                                      {"unit-missing", 1},
                                                                                      {"unit-case", 1},
                                                                                      {"number-range", 5},
                                                                                      {"layout-syntax", 1},
                                                                                      {"heads", 1}}) {
        EXPECT_EQ(count_rule(faults, rule), count) << rule << " in\n" << described(faults);
    }
    expect_mendable(draft);
}

TEST(Resolve, GivesEachFaultTheOriginOfItsField) {
    auto draft = deepseek({{"engine.coverage", "none"}});
    draft.set("train.layout", {"tp3.pp16.ep16", DraftField::Kind::kText, Precedence::kFlag, "--train"});
    const auto faults = faults_of(draft);
    EXPECT_EQ(faults.back().where, "file.json: /engine.coverage");
    EXPECT_EQ(faults.front().where, "--train");
}

TEST(Resolve, OffersOnlyWhatMendsRandomDrafts) {
    // Each field is whole, wrong in some way, or missing.
    const std::vector<std::pair<std::string, std::vector<std::string>>> wrong{
        {"model", {"deepseek", "kimi-k2", "qwen3-30b-a3b", "teaching-matrix", "?"}},
        {"dtype", {"fp8", "float99", "fp32", ""}},
        {"generate.dtype", {"fp8", "x", "fp16"}},
        {"train.layout",
         {"tp3", "tp4.pp8.ep16@64", "ep7.pp5", "tpp", "tp2@", "pp16:3:3.ep16", "fsdp64", "ep7.fsdp3", "fsdp2.tp2", "tp999", "cp3.dp5", ""}},
        {"train.engine", {"fsdp", "megatron", "ddp"}},
        {"train.gpus", {"0", "-1", "7", "nan", "100", "1e3"}},
        {"train.pipeline.first", {"0", "61", "5", "first"}},
        {"train.pipeline.last", {"0", "62", "1", "-3"}},
        {"generate.layout", {"tp3", "tp24.ep5", "tp8.pp3.ep2@48", "tp4:2", "tp2.cp2", "pp100", "tp8.dp3"}},
        {"generate.gpus", {"0", "24", "9999999", "x"}},
        {"system", {"h100", "gb200-nvl72", ""}},
        {"system.train", {"b200", "gb300-nvl72"}},
        {"system.nic", {"400", "0GB/s", "400gb/s", "-1GB/s", "nan"}},
        {"engine.name", {"nemo", "verl"}},
        {"engine.coverage", {"most", "names"}},
        {"engine.options.NRL_REFIT_NUM_BUFFERS", {"0", "many"}},
        {"placement.gpus_used_per_domain", {"0", "73", "all"}}};
    std::mt19937 random{99};
    const auto below = [&](std::size_t count) {
        return std::uniform_int_distribution<std::size_t>{0, count - 1}(random);
    };
    int refused = 0;
    for (int round = 0; round < 40; ++round) {
        auto draft = deepseek();
        for (const auto& [name, texts] : wrong) {
            const auto choice = below(8);
            if (choice == 0) {
                draft.erase(name);
            } else if (choice <= 2) {
                const auto precedence = below(3) == 0 ? Precedence::kFlag : Precedence::kFile;
                set_all(draft, {{name, texts[below(texts.size())]}}, precedence);
            }
        }
        if (!faults_of(draft).empty()) {
            ++refused;
            std::string trace;
            for (const auto& [name, field] : draft.fields()) {
                trace +=
                    name + " = " + field.text + (field.precedence == Precedence::kFlag ? " (flag)\n" : "\n");
            }
            SCOPED_TRACE(trace);
            expect_mendable(draft);
            if (HasFailure()) {
                return;
            }
        }
    }
    EXPECT_GT(refused, 25);
}

}  // namespace
}  // namespace refit::io
