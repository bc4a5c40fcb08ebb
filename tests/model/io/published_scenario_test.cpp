// SPDX-License-Identifier: Apache-2.0
#include "refit/io/published_scenario.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "drafts.hpp"

namespace refit::io {
namespace {

using testing_io::described;
using testing_io::library;
using testing_io::mentions;

const std::vector<PublishedRecord>& shipped() {
    static const auto records = library().published().value();
    return records;
}

PublishedRecord record_of(const std::string& id) {
    return *std::ranges::find(shipped(), id, &PublishedRecord::id);
}

Result<PublishedScenario> made(const PublishedRecord& record) {
    return scenario_of(record, shipped(), library());
}

/// A headline record with a change that makes it impossible.
template <class Change>
Faults refused(Change change) {
    auto record = record_of("post-dsv3-h100-reshard");
    change(record);
    const auto scenario = made(record);
    return scenario ? Faults{} : scenario.error();
}

bool assumes(const PublishedScenario& scenario, const std::string& text) {
    return std::ranges::find(scenario.assumed, text) != scenario.assumed.end();
}

TEST(PublishedScenario, IsTheShippedScenarioOfTheSameRefit) {
    for (const auto& [id, name] : {std::pair{"post-dsv3-h100-broadcast", "deepseek-v3-h100"},
                                   std::pair{"post-dsv3-gb200-reshard", "deepseek-v3-gb200"},
                                   std::pair{"post-235b-h100-reshard", "qwen3-235b-h100"},
                                   std::pair{"post-ultra-gb200-broadcast", "nemotron-ultra-gb200"}}) {
        const auto scenario = made(record_of(id)).value();
        const auto expected = resolve(library().scenario(name).value(), library()).value();
        EXPECT_EQ(scenario.scenario.train, expected.train) << id;
        EXPECT_EQ(scenario.scenario.generate, expected.generate) << id;
        EXPECT_EQ(scenario.scenario.cluster.train_system(), expected.cluster.train_system()) << id;
        EXPECT_EQ(scenario.scenario.cluster.placement(), expected.cluster.placement()) << id;
        EXPECT_EQ(scenario.scenario.engine, expected.engine) << id;
        EXPECT_TRUE(scenario.assumed.empty()) << id << ": " << scenario.assumed.front();
    }
}

TEST(PublishedScenario, TellsWhatItAssumes) {
    // Neither the GPU nor its NIC nor the split of 61 layers over 16 stages is published there.
    const auto guide = made(record_of("nemo-ckpteng-dsv3-nccl-async")).value();
    EXPECT_TRUE(assumes(guide, "H100 NVL8 (GPU not published; 8 in an NVLink domain)"));
    EXPECT_TRUE(assumes(guide, "NIC 400Gbit/s a GPU (as h100-nvl8)"));
    EXPECT_TRUE(assumes(guide, "61 layers as 3 + 14x4 + 2 (as in post-dsv3-h100-broadcast)"));
    EXPECT_EQ(guide.scenario.generate.gpus, 32U);
    const auto shrink = made(record_of("nemo-shrink-1024")).value();
    EXPECT_TRUE(assumes(shrink, "trainers pp2.ep8 (not published)"));
    EXPECT_TRUE(assumes(shrink, "generators tp2 (not published)"));
    EXPECT_EQ(describe(shrink.scenario.generate), "TP2 x DP256");
}

TEST(PublishedScenario, TakesAnAssumedLayoutFromARecordOfTheSameModelAndEngine) {
    auto record = record_of("nemo-shrink-32");
    record.id = "unseen";
    record.train.assumed_layout.reset();
    record.generate.assumed_layout.reset();
    EXPECT_TRUE(assumes(made(record).value(), "trainers pp2.ep8 (not published; as for nemo-shrink-32)"));
    record.engine = "nemo-rl-reshard";
    EXPECT_TRUE(mentions(made(record).error(), "the layout of the trainers is not published"));
}

TEST(PublishedScenario, TakesCountsFromALayoutWithItsDp) {
    auto record = record_of("nemo-reshard-doc-4b");
    record.train.gpus.reset();  // {"dp": 8}
    const auto scenario = made(record).value();
    EXPECT_EQ(scenario.scenario.train.gpus, 8U);
    EXPECT_TRUE(assumes(scenario, "8 trainers (from the layout)"));
}

TEST(PublishedScenario, LetsTheDpOfGeneratorsFollowFromTheirNumber) {
    // Some sources write EP8 DP2 for 16 GPUs, where each engine is one GPU and dp is 16.
    auto record = record_of("nemo-reshard-doc-30b-bf16");
    record.generate.layout = LayoutText{};
    record.generate.layout->ep = 8;
    record.generate.layout->dp = 2;
    const auto scenario = made(record).value();
    EXPECT_EQ(scenario.scenario.generate.dp, 16U);
    EXPECT_TRUE(assumes(scenario, "generators are 16, so dp2 is not taken at its word"));
}

TEST(PublishedScenario, OfAnotherFrameworkNeedsNothingButTheCostsOfItsEngine) {
    struct Row {
        const char* id;
        const char* model;
        const char* system;
        const char* train;
        const char* generate;
    };
    for (const auto& row : {Row{"verl-gh200-27b-8-8-multi", "qwen3.5-27b", "gh200-nvl4", "FSDP8", "TP4 x DP2"},
                            Row{"verl-delta-8b-a100-nccl", "qwen3-8b", "a100-nvl8", "FSDP16", "DP16"},
                            Row{"verl-delta-8b-a100-hsdp-nccl", "qwen3-8b", "a100-nvl8", "FSDP8 x DP2", "DP16"},
                            Row{"verl-delta-8b-a100-tp2-nccl", "qwen3-8b", "a100-nvl8", "TP2", "DP16"},
                            Row{"verl-delta-30b-a100-nccl", "qwen3-30b-a3b", "a100-nvl8", "EP8 x FSDP2", "TP4 x DP4"},
                            Row{"verl-delta-30b-veomni-nccl", "qwen3-30b-a3b", "h100-nvl8", "EP8 x FSDP1", "TP4 x DP2"},
                            Row{"verl-delta-235b-veomni-nccl", "qwen3-235b-a22b", "h100-nvl8", "EP8 x FSDP8", "TP16"},
                            Row{"verl-delta-72b-nccl", "qwen2.5-72b", "h100-nvl8", "FSDP32", "TP8 x DP4"},
                            Row{"miles-moonlight-nccl", "moonlight-16b-a3b", "h100-nvl8", "TP2 x EP8", "TP8 x EP8"},
                            Row{"miles-glmz1-nccl", "glm-z1-9b", "h100-nvl8", "TP2 x CP2", "TP4 x DP2"}}) {
        auto record = record_of(row.id);
        record.engine = "nemo-rl-broadcast";
        const auto made_of = made(record);
        ASSERT_TRUE(made_of.has_value()) << row.id << "\n" << described(made_of.error());
        EXPECT_EQ(made_of->scenario.model.id(), row.model) << row.id;
        EXPECT_EQ(made_of->scenario.cluster.train_system().name, row.system) << row.id;
        EXPECT_EQ(describe(made_of->scenario.train), row.train) << row.id;
        EXPECT_EQ(describe(made_of->scenario.generate), row.generate) << row.id;
    }
}

TEST(PublishedScenario, ShardsFsdpOverAllTrainersUnlessTheRecordSaysHowMany) {
    auto record = record_of("nemo-reshard-doc-30b-bf16");
    record.engine = "nemo-rl-broadcast";
    record.train.gpus = 16;
    record.train.layout = LayoutText{};
    record.train.layout->ep = 8;
    record.train.shards = ShardsOver::kAll;
    EXPECT_EQ(describe(made(record).value().scenario.train), "EP8 x FSDP2");
    record.train.shards = ShardsOver::kNumber;
    record.train.layout->fsdp = 1;
    EXPECT_EQ(describe(made(record).value().scenario.train), "EP8 x FSDP1 x DP2");
}

TEST(PublishedScenario, TakesHsdpToShardWithinADomain) {
    auto record = record_of("nemo-reshard-doc-30b-bf16");
    record.engine = "nemo-rl-broadcast";
    record.train.gpus = 16;
    record.train.layout = LayoutText{};
    record.train.shards = ShardsOver::kSome;
    const auto scenario = made(record).value();
    EXPECT_EQ(describe(scenario.scenario.train), "FSDP8 x DP2");
    EXPECT_TRUE(assumes(scenario, "trainers shard within an NVLink domain (sizes of HSDP not published)"));
}

TEST(PublishedScenario, TakesTheGpusOfAFsdpLayoutWithItsDp) {
    auto record = record_of("nemo-reshard-doc-30b-bf16");
    record.engine = "nemo-rl-broadcast";
    record.train.gpus.reset();
    record.train.layout = parse_layout("ep2.fsdp4.dp2").value();
    const auto scenario = made(record).value();
    EXPECT_EQ(scenario.scenario.train.gpus, 16U);
    EXPECT_TRUE(assumes(scenario, "16 trainers (from the layout)"));
}

TEST(PublishedScenario, TakesTheFewestTrainersThatALayoutTakes) {
    // 8 stages, each of the least that both TP8 and EP32 divide: 32.
    auto record = record_of("post-235b-h100-reshard");
    record.train.gpus.reset();
    record.train.layout = parse_layout("tp8.pp8.ep32").value();
    const auto scenario = made(record).value();
    EXPECT_EQ(scenario.scenario.train.gpus, 256U);
    EXPECT_TRUE(assumes(scenario, "256 trainers (not published; the fewest that the layout takes)"));
    record.engine = "nemo-rl-broadcast";
    record.train.layout = parse_layout("ep2.fsdp4").value();
    EXPECT_EQ(made(record).value().scenario.train.gpus, 8U);
    record.train.layout = LayoutText{};
    record.train.shards = ShardsOver::kAll;
    EXPECT_TRUE(mentions(made(record).error(), "the number of trainers is not published"));
}

TEST(PublishedScenario, TakesCopiesOfAttentionInAnEngineAsSmallerEngines) {
    // TP32 with attention in 8 copies, each over 4 ranks; experts whole over 32.
    auto record = record_of("post-235b-h100-reshard");
    record.generate.layout = parse_layout("tp32.ep32.dp4").value();
    record.generate.attention_groups = 8;
    const auto scenario = made(record).value();
    EXPECT_EQ(describe(scenario.scenario.generate), "TP4 x EP32 x DP32");
    EXPECT_TRUE(assumes(scenario, "generators tp32 with 8 copies of attention as tp4"));
    record.generate.layout->ep.reset();
    EXPECT_TRUE(mentions(made(record).error(), "dp_attn 8 of the generators needs a tp that it divides, and experts over ep"));
}

TEST(PublishedScenario, LeavesTheFloorOpenOnlyForSoftwareThatMayBeNewerThanThatOfTheFit) {
    // The cost of a bulk parameter was fitted to times of 2026-06-27 and later.
    const auto is_open = [](PublishedRecord record, const char* date) {
        record.date = date;
        return made(record).value().scenario.engine.options.reading.is_floor_open;
    };
    auto unseen = record_of("nemo-pr2971-30b-a");
    unseen.id = "unseen";
    unseen.train.layout = parse_layout("ep8").value();
    EXPECT_FALSE(is_open(unseen, "2026-06-27"));
    EXPECT_FALSE(is_open(unseen, "2026-05"));
    EXPECT_TRUE(is_open(unseen, "2026-06"));  // Perhaps its last day.
    EXPECT_TRUE(is_open(unseen, "2026-06-28"));
    EXPECT_TRUE(is_open(unseen, ""));
    // A refit that was published before is no newer.
    EXPECT_FALSE(is_open(record_of("nemo-reshard-doc-30b-bf16"), "2026-07-28"));
    EXPECT_TRUE(is_open(record_of("nemo-reshard-doc-dsv3-h100"), "2026-07-28"));
}

TEST(PublishedScenario, RefusesAPullWhereTpCutsTensors) {
    auto record = record_of("vllm-rdt-235b-rdt3");  // To EP16, each rank with whole tensors.
    EXPECT_TRUE(made(record).has_value());
    record.generate.layout = parse_layout("tp8").value();
    const auto faults = made(record).error();
    ASSERT_EQ(faults.size(), 1U) << described(faults);
    EXPECT_TRUE(mentions(faults, "vllm-pull-3's cost of a tensor is told by whole tensors alone"));
    record.engine = "vllm-broadcast";
    EXPECT_TRUE(made(record).has_value());
}

TEST(PublishedScenario, TakesVirtualStagesAndFp8OnBothSides) {
    auto record = record_of("post-dsv3-h100-broadcast");
    record.train.virtual_stages = 2;
    EXPECT_FALSE(made(record).has_value());  // 3 layers of the first stage are not two chunks
    record.train.virtual_stages.reset();
    record.train_dtype = record.generate_dtype = "fp8";
    record.generate.layout = parse_layout("tp16.dp16").value();
    const auto scenario = made(record).value();
    EXPECT_EQ(scenario.scenario.dtype, Dtype::kFp8);
    EXPECT_TRUE(assumes(scenario, "FP8 in blocks of 128 x 128 on both sides"));
}

TEST(PublishedScenario, UsesTheRecordsOwnNicDomainAndStreams) {
    auto record = record_of("post-dsv3-gb200-reshard");
    record.nic = Bandwidth::gigabits_per_second(200.0);
    record.domain = 36;
    record.streams = 4;
    const auto scenario = made(record).value().scenario;
    EXPECT_DOUBLE_EQ(scenario.cluster.train_system().nic_per_gpu().bytes_per_second(), 25e9);
    // Of 36 GPUs a job uses the largest multiple of 16.
    EXPECT_EQ(scenario.cluster.placement().train_gpus_per_domain, 32U);
    EXPECT_EQ(scenario.engine.options.streams, 4U);
}

TEST(PublishedScenario, KnowsAGpuByItsShortName) {
    auto record = record_of("post-dsv3-h100-reshard");
    for (const auto* name : {"H100-80GB", "NVIDIA H100 SXM", "DGX-H100", "h100"}) {
        record.gpu = name;
        EXPECT_EQ(made(record).value().scenario.cluster.train_system().name, "h100-nvl8") << name;
    }
}

TEST(PublishedScenario, SaysThatAnEngineIsUnknownOrNotModelledAndNoMore) {
    const auto of = [](const char* engine) {
        return refused([&](PublishedRecord& record) {
            record.engine = engine;
            record.model = "unheard of";
        });
    };
    for (const auto& [engine, why] :
         {std::pair{"", "the source does not say which engine was timed"},
          std::pair{"torchstore", "torchstore: no file of data/engines has a path for this engine"},
          std::pair{"nemo-rl-reshard-all",
                    "nemo-rl-reshard-all: an earlier code path that sends every parameter by transfers, "
                    "timed without loading"}}) {
        const auto faults = of(engine);
        ASSERT_EQ(faults.size(), 1U) << described(faults);
        EXPECT_EQ(faults[0].message, why);
        EXPECT_EQ(faults[0].code, ErrorCode::kUnsupported);
    }
}

TEST(PublishedScenario, GivesEveryReasonAtOnce) {
    const auto faults = refused([](PublishedRecord& record) {
        record.weights = "delta";
        record.model = "GLM-6";
        record.engine = "nemo-rl-broadcast";
        record.generate_dtype = "fp8";
        record.train.layout.reset();
        record.generate.gpus.reset();
        record.generate.layout->dp.reset();
        record.gpu = "B300";
    });
    EXPECT_EQ(faults.size(), 6U) << described(faults);
    for (const auto* why : {"moves only part of the weights (delta)",
                            "no model of data/models is called 'GLM-6'",
                            "from bf16 to fp8: a change of dtype on the way has no plan yet",
                            "the layout of the trainers is not published",
                            "the number of generators is not published",
                            "no system of data/systems has B300 in NVLink domains of 8"}) {
        EXPECT_TRUE(mentions(faults, why)) << why << "\n" << described(faults);
    }
}

TEST(PublishedScenario, RefusesWhatItCannotPlace) {
    EXPECT_TRUE(mentions(refused([](PublishedRecord& record) {
                             record.train.unplaced = {"vpp", "engines"};
                         }),
                         "the layout of the trainers has no place for vpp, engines"));
    // 671 B published, 500 said: another model of the same name.
    EXPECT_TRUE(mentions(refused([](PublishedRecord& record) { record.parameters = 500e9; }),
                         "has 500 B parameters, but deepseek-v3 has 671 B: another model"));
    EXPECT_TRUE(mentions(refused([](PublishedRecord& record) {
                             record.gpu.clear();
                             record.domain.reset();
                         }),
                         "the GPU is not published"));
    EXPECT_TRUE(mentions(refused([](PublishedRecord& record) { record.gpu = "H100 / H200"; }),
                         "names several GPUs (H100 / H200): which side has which is not said"));
    EXPECT_TRUE(mentions(refused([](PublishedRecord& record) { record.domain = 72; }),
                         "no system of data/systems has H100 in NVLink domains of 72"));
    EXPECT_TRUE(mentions(refused([](PublishedRecord& record) { record.model.clear(); }),
                         "the source names no model"));
    // What a scenario of these fields would be refused for: 256 trainers are no multiple of 3 x 16.
    EXPECT_TRUE(mentions(refused([](PublishedRecord& record) { record.train.layout->tp = 3; }), "not whole"));
}

TEST(PublishedScenario, TakesReshardToFp8AsWeightsThatTrainersKeepInFp8) {
    // NeMo RL's rule 16 refuses to reshard BF16 weights to FP8; gather and broadcast lets the receivers quantise.
    auto record = record_of("nemo-pr2971-30b-h");
    const auto scenario = made(record).value();
    EXPECT_EQ(scenario.scenario.dtype, Dtype::kFp8);
    EXPECT_EQ(scenario.scenario.facts.at("train.fp8_recipe"), "blockwise");
    EXPECT_TRUE(assumes(scenario, "trainers keep FP8 blockwise (nemo-rl sends no BF16 weights to FP8 this way)"));
    record.engine = "nemo-rl-broadcast";
    EXPECT_TRUE(mentions(made(record).error(), "from bf16 to fp8: a change of dtype on the way has no plan yet"));
    record.engine = "nemo-rl-reshard";
    record.train_dtype = "fp16";
    EXPECT_TRUE(mentions(made(record).error(), "from fp16 to fp8"));
}

TEST(PublishedScenario, IsMadeOfEachShippedTimeOfNemoRlButTheSmallFp8Check) {
    std::size_t count = 0;
    for (const auto& record : shipped()) {
        if (!record.engine.starts_with("nemo-rl-")) {
            continue;
        }
        const auto scenario = made(record);
        EXPECT_EQ(scenario.has_value(), record.engine != "nemo-rl-reshard-all" && record.id != "nemo-ckpteng-qwen05-fp8")
            << record.id << (scenario ? "" : described(scenario.error()));
        count += scenario ? 1U : 0U;
    }
    EXPECT_EQ(count, 38U);
}

TEST(PublishedScenario, TakesTheSettingsOfTheEnginesPath) {
    const auto scenario = made(record_of("nemo-ckpteng-dsv3-nixl-async"));
    ASSERT_TRUE(scenario.has_value());
    const auto& engine = scenario->scenario.engine;
    EXPECT_EQ(engine.name, "nemo-rl");
    EXPECT_EQ(engine.options.direct_source, DirectSource::kGathered);
    EXPECT_EQ(engine.options.direct_loading, DirectLoading::kAll);
    ASSERT_NE(engine.path_of("direct"), nullptr);
    EXPECT_EQ(engine.path_of("direct")->name, "nemo-rl-nixl");
    EXPECT_EQ(engine.path_of("hybrid"), nullptr);  // NeMo RL's reshard has other settings
}

}  // namespace
}  // namespace refit::io
