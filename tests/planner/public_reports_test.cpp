// SPDX-License-Identifier: Apache-2.0
// Cases from public bug reports; the number in a test's name is the case's id in docs/public_reports.md, which also
// says where the others are tested or why they are not.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/content_map.hpp"
#include "refit/dtensor.hpp"
#include "refit/holdings.hpp"
#include "refit/layout_check.hpp"
#include "refit/megatron.hpp"
#include "refit/methods.hpp"
#include "refit/overlap.hpp"
#include "refit/slices.hpp"
#include "refit/traffic.hpp"
#include "refit/vllm.hpp"

namespace refit {
namespace {

using Changes = std::initializer_list<std::pair<std::string, std::string>>;
using Runs = std::vector<Run>;

Scenario scenario_of(const std::string& model, const std::string& train, const std::string& generate, Changes more = {}) {
    const auto library = shipped_library();
    io::ScenarioDraft draft;
    draft.apply({"model", model, ""});
    draft.apply({"train.layout", train, ""});
    draft.apply({"generate.layout", generate, ""});
    draft.apply({"system", "h100-nvl8", ""});
    for (const auto& [field, value] : more) {
        draft.apply({field, value, ""});
    }
    auto scenario = io::resolve(draft, library);
    if (!scenario) {
        throw std::runtime_error{scenario.error().front().message};
    }
    return std::move(*scenario);
}

const WorkloadClass& class_named(const Workload& workload, const std::string& name) {
    const auto found = std::ranges::find(workload.classes(), name, [](const auto& entry) { return entry.parameter.name; });
    if (found == workload.classes().end()) {
        throw std::out_of_range{name};
    }
    return *found;
}

std::uint64_t generator_bytes(const Scenario& scenario, std::uint32_t rank) {
    return Workload::make(scenario).generator_bytes()[rank];
}

/// Bytes between each source and destination rank of the expert classes of one direct plan.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> expert_pairs(const Scenario& scenario) {
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kDirect, scenario, workload).value();
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> pairs;
    for (const auto& stage : plan.stages) {
        for (const auto& use : stage.transfers) {
            const auto& block = plan.blocks[use.block];
            for (std::size_t i = 0; workload.classes()[block.parameter].parameter.is_expert() && i < block.size(); ++i) {
                pairs[{use.first_source.index() + block.source[i], block.destination[i]}] +=
                    block.boxes[block.box[i]].volume() * block.element_bytes * use.tensors;
            }
        }
    }
    return pairs;
}

TEST(PublicReports, A02_KvHeadsAreSharedByConsecutiveRanks) {
    const auto scenario = scenario_of("qwen3-30b-a3b", "tp1@8", "tp8@8");
    const auto workload = Workload::make(scenario);
    const auto& k = class_named(workload, "model.layers.{layer}.self_attn.k_proj.weight");
    const auto shards = k.destinations.front().shards();
    ASSERT_EQ(shards.size(), 4U);
    EXPECT_EQ(shards[0].members, (std::vector<std::uint32_t>{0, 1}));
    EXPECT_EQ(shards[3].members, (std::vector<std::uint32_t>{6, 7}));
    EXPECT_EQ(shards[0].elements() * 2, 524'288U);
    EXPECT_EQ(workload.delivered_bytes().count(), 61'444'685'824U);
    EXPECT_EQ(workload.payload_bytes().count(), 61'064'245'248U);
}

TEST(PublicReports, A03_OverShardingKvCostsCopies) {
    EXPECT_EQ(generator_bytes(scenario_of("llama-3.1-70b", "tp8@8", "tp8@8"), 0), 17'640'734'720U);
    const auto wide = scenario_of("llama-3.1-70b", "tp8@8", "tp16@16");
    EXPECT_EQ(generator_bytes(wide, 0), 8'989'458'432U);
    EXPECT_EQ(Workload::make(wide).delivered_bytes().count(), 143'831'334'912U);
}

TEST(PublicReports, A05_GroupedTrainingQkvFillsPlainInferenceQkv) {
    // Llama-3.1-8B, train TP4 (two KV groups a rank) to TP2: each destination draws q, k and v from two sources.
    const auto scenario = scenario_of("llama-3.1-8b", "tp4@4", "tp2@2");
    const auto workload = Workload::make(scenario);
    std::uint64_t bytes = 0;
    std::set<std::uint32_t> sources;
    for (const auto* name : {"q_proj", "k_proj", "v_proj"}) {
        const auto& entry = class_named(workload, "model.layers.{layer}.self_attn." + std::string{name} + ".weight");
        for (const auto& cell : overlap(entry.source, entry.destinations.front())) {
            if (cell.destination == 0) {
                bytes += cell.box.volume() * 2;
                sources.insert(cell.source);
            }
        }
    }
    EXPECT_EQ(bytes, 25'165'824U);
    EXPECT_EQ(sources, (std::set<std::uint32_t>{0, 1}));
}

TEST(PublicReports, A06_PackedPartsAreEachCutApart) {
    // [Q 1024, K 1024, V 1536] and Z 1536, beta 16, alpha 16 at TP2: 512 + 512 + 768 + 768 + 8 + 8 rows a rank.
    const ContentQuestion question{"vllm",
                                   "gdn-in-proj",
                                   {{"linear_num_key_heads", 16}, {"linear_key_head_dim", 64}, {"linear_num_value_heads", 16}, {"linear_value_head_dim", 96}, {"tp", 2}},
                                   {},
                                   {{3584, 1}, {1536, 1}}};
    const auto ranks = content_map(question).value();
    EXPECT_EQ(ranks[0].runs(question.inputs), (Runs{{0, 0, 512}, {0, 1024, 512}, {0, 2048, 768}, {1, 0, 768}}));
    EXPECT_EQ(ranks[1].runs(question.inputs).front(), (refit::Run{0, 512, 512}));
}

TEST(PublicReports, A07_BothHalvesMustDivideNotTheirSum) {
    const ContentQuestion question{"megatron-bridge", "gate-up", {{"ffn", 3}, {"hidden", 4}, {"tp", 2}, {"world_size", 2}}, {}, {{3, 4}, {3, 4}}};
    const auto refused = content_map(question);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().front().rule, "ffn-not-divisible-by-tp");
}

TEST(PublicReports, A08_GateAndUpComeFromTwoSourcesEach) {
    // Llama-3.1-8B, TP8 to TP4: destination d takes gate rows from 2d and 2d + 1, 1792 rows = 14,680,064 B each.
    const auto scenario = scenario_of("llama-3.1-8b", "tp8@8", "tp4@4");
    const auto workload = Workload::make(scenario);
    for (const auto* name : {"model.layers.{layer}.mlp.gate_proj.weight", "model.layers.{layer}.mlp.up_proj.weight"}) {
        const auto& entry = class_named(workload, name);
        const auto cells = overlap(entry.source, entry.destinations.front());
        ASSERT_EQ(cells.size(), 8U);
        for (const auto& cell : cells) {
            EXPECT_EQ(cell.source / 2, cell.destination);
            EXPECT_EQ(cell.box.volume() * 2, 14'680'064U);
        }
    }
}

TEST(PublicReports, A10_UpBeforeGateIsAnotherMapOfTheSameSize) {
    ContentQuestion question{"vllm", "experts-w13-tp", {{"experts", 1}, {"ffn", 768}, {"hidden", 2048}, {"tp", 1}}, {}, {{768, 2048}, {768, 2048}}};
    const auto plain = content_map(question).value();
    question.kind = "experts-w13-tp-swapped";
    const auto swapped = content_map(question).value();
    EXPECT_EQ(plain[0].shape(), swapped[0].shape());
    EXPECT_EQ(swapped[0].runs(question.inputs), (Runs{{1, 0, 768 * 2048}, {0, 0, 768 * 2048}}));
    EXPECT_NE(plain[0].pieces(), swapped[0].pieces());
}

TEST(PublicReports, A12_PaddingOfTheVocabularyIsNotSent) {
    // 151,936 rows, training TP8 pads to 152,576 = 8 x 19,072: the last rank has 18,432 real ones.
    const auto scenario = scenario_of("qwen3-32b", "tp8@8", "tp4@4");
    const auto workload = Workload::make(scenario);
    const auto& table = class_named(workload, "lm_head.weight");
    const auto last = table.source.shards().back().boxes.front().axes()[0];
    EXPECT_EQ(last.length(), 18'432U);
    std::uint64_t rows = 0;
    for (const auto& cell : overlap(table.source, table.destinations.front())) {
        rows += cell.box.axes()[0].length();
    }
    EXPECT_EQ(rows, 151'936U);
}

TEST(PublicReports, A14_ATiedTableIsDeliveredToTheLastStageToo) {
    // Qwen3-4B is tied: 151,936 x 2560 x 2 B = 777,912,320 B more than every parameter once.
    const auto workload = Workload::make(scenario_of("qwen3-4b", "tp1@2", "pp2@2"));
    constexpr std::uint64_t kTable = 151'936ULL * 2560 * 2;
    EXPECT_EQ(workload.delivered_bytes().count(), workload.payload_bytes().count() + kTable);
    // Stage 0: 18 of 36 layers and the table; stage 1 the same and the final norm, 2560 x 2 B.
    EXPECT_EQ(workload.generator_bytes()[1] - workload.generator_bytes()[0], 5120U);
}

TEST(PublicReports, A17_UnevenLayerCounts) {
    LayoutText text;
    text.pp = 8;
    EXPECT_EQ(split_layers(61, text).value(), (std::vector<std::uint32_t>{8, 8, 8, 8, 8, 7, 7, 7}));
    text.pp = 4;
    EXPECT_EQ(split_layers(61, text).value(), (std::vector<std::uint32_t>{16, 15, 15, 15}));
}

TEST(PublicReports, A18_VirtualStagesTakeTurns) {
    TrainLayout layout;
    layout.pp = 2;
    layout.stage_layers = {8, 8};
    layout.virtual_stages = 2;
    EXPECT_EQ(stage_of_layers(layout), (std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1}));
    // Llama-3.1-8B, 32 layers, PP2, VPP2: layers 0-7 and 16-23 on stage 0.
    const auto scenario = scenario_of("llama-3.1-8b", "pp2@2", "tp1@1", {{"train.virtual_pipeline", "2"}});
    const auto workload = Workload::make(scenario);
    EXPECT_EQ(class_named(workload, "model.layers.{layer}.mlp.up_proj.weight").slices,
              (std::vector<WorkloadSlice>{
                  {0, 0, 16, false, {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}},
                  {1, 0, 16, false, {8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31}}}));
}

TEST(PublicReports, A19_UnequalPipelinesAreNoReasonToRefuse) {
    const auto scenario = scenario_of("llama-3.1-8b", "pp4@4", "tp2.pp2@4");
    const auto workload = Workload::make(scenario);
    EXPECT_EQ(workload.generator_bytes()[0], 4'015'259'648U);
    EXPECT_EQ(workload.generator_bytes()[2], 4'015'267'840U);
    EXPECT_TRUE(make_plan(Method::kDirect, scenario, workload).has_value());
}

TEST(PublicReports, A20_TheHeaviestStageCounts) {
    const auto most = [](const std::string& layout) {
        const auto scenario = scenario_of("qwen3-32b", layout, "tp1@1");
        return summarise_layout(scenario, Workload::make(scenario)).train.most.count();
    };
    EXPECT_EQ(most("pp4@4"), 17'158'981'632U);
    EXPECT_EQ(most("pp4:15:15@4"), 16'578'343'424U);
}

TEST(PublicReports, A21_ExpertTensorParallelismHasTwoSourcesAnExpert) {
    const auto scenario = scenario_of("qwen3-30b-a3b", "tp1.etp2@2", "tp1@1");
    const auto workload = Workload::make(scenario);
    const auto& up = class_named(workload, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight");
    const auto cells = overlap(up.source, up.destinations.front());
    ASSERT_EQ(cells.size(), 2U);
    EXPECT_EQ(cells[0].box.axes()[1], (Interval{0, 384}));
    EXPECT_EQ(cells[1].box.axes()[1], (Interval{384, 768}));
}

TEST(PublicReports, A22_EightExpertGroupsToFour) {
    const auto pairs = expert_pairs(scenario_of("qwen3-30b-a3b", "ep8@8", "tp1.ep4@4"));
    std::map<std::uint32_t, std::vector<std::uint64_t>> received;
    for (const auto& [pair, bytes] : pairs) {
        received[pair.second].push_back(bytes);
    }
    for (const auto& [destination, bytes] : received) {
        EXPECT_EQ(bytes, (std::vector<std::uint64_t>{7'247'757'312, 7'247'757'312})) << destination;
    }
}

TEST(PublicReports, A23_ExpertGroupsToTensorParallel) {
    const auto scenario = scenario_of("qwen3-30b-a3b", "ep8@8", "tp8@8");
    const auto pairs = expert_pairs(scenario);
    EXPECT_EQ(pairs.size(), 64U);
    for (const auto& [pair, bytes] : pairs) {
        EXPECT_EQ(bytes, 905'969'664U);
    }
    EXPECT_EQ(generator_bytes(scenario, 0), 7'680'585'728U);
}

TEST(PublicReports, A24_ThePlacementRuleDecidesWhoHoldsWhichExpert) {
    ContentQuestion question{"vllm", "experts-ep-linear-w2", {{"experts", 16}, {"ffn", 2}, {"hidden", 1}, {"tp", 4}, {"ep", 4}, {"num_expert_group", 4}}, {{"expert_placement", "linear"}}, {}};
    question.inputs.assign(16, {1, 2});
    const auto first = [&] {
        const auto map = content_map(question).value();
        std::vector<std::int64_t> experts;
        for (const auto& run : map[0].runs(question.inputs)) {
            experts.push_back(run.input);
        }
        return experts;
    };
    EXPECT_EQ(first(), (std::vector<std::int64_t>{0, 1, 2, 3}));
    question.texts["expert_placement"] = "round_robin";
    EXPECT_EQ(first(), (std::vector<std::int64_t>{0, 4, 8, 12}));
}

TEST(PublicReports, A25_ExpertsOfALayerArriveTogether) {
    // The 128 experts of a layer are one tensor, and its gate, up and down leave a trainer stage in one stage of the plan:
    // no bucket cuts them apart, and the stage ends with the last.
    const auto scenario = scenario_of("qwen3-30b-a3b", "pp2.ep8@16", "tp2@8");
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kHybrid, scenario, workload).value();
    std::map<std::uint32_t, std::set<std::size_t>> stages_of_source;
    std::uint64_t layers = 0;
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
        for (const auto& use : plan.stages[stage].transfers) {
            const auto& parameter = workload.classes()[plan.blocks[use.block].parameter].parameter;
            EXPECT_EQ(workload.classes()[plan.blocks[use.block].parameter].source.shape()[0], parameter.is_expert() ? 128U : 0U);
            stages_of_source[use.first_source.index()].insert(stage);
            layers += use.tensors;
        }
    }
    EXPECT_EQ(layers, 48U * 3);
    EXPECT_EQ(stages_of_source, (std::map<std::uint32_t, std::set<std::size_t>>{{0, {0}}, {8, {1}}}));
}

TEST(PublicReports, A39_SmallPiecesOfAPairTravelAsOneMessage) {
    // A05 for all 32 layers. Two KV groups a source, of q, k and v apart: 6 runs a pair and layer, 192 a pair, 384 a
    // destination; 32 x 12,582,912 B = 402,653,184 B a pair: one message in buckets of 512 MiB, three of 128 MiB.
    const auto scenario = scenario_of("llama-3.1-8b", "tp4@4", "tp2@2");
    const auto all = Workload::make(scenario);
    std::vector<WorkloadClass> classes;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> runs;
    for (const auto& [name, rows] : {std::pair{"q_proj", 512U}, std::pair{"k_proj", 128U}, std::pair{"v_proj", 128U}}) {
        classes.push_back(class_named(all, "model.layers.{layer}.self_attn." + std::string{name} + ".weight"));
        for (const auto& cell : overlap(classes.back().source, classes.back().destinations.front())) {
            runs[{cell.source, cell.destination}] += cell.box.axes()[0].length() / rows * 32;
        }
    }
    EXPECT_EQ(runs, (std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>{{{0, 0}, 192}, {{1, 0}, 192}, {{2, 1}, 192}, {{3, 1}, 192}}));
    const auto packed = SliceTable::make(Workload::of(std::move(classes), 1, 4, 2), 4);
    ASSERT_EQ(packed.slices().size(), 4U);
    for (const auto& slice : packed.slices()) {
        EXPECT_EQ(slice.bytes, 402'653'184U);
        EXPECT_LE(slice.bytes, 512U << 20U);
        EXPECT_EQ(slice.bytes, 3U * (128U << 20U));
    }
}

TEST(PublicReports, A26_EpBelowTpIsRefusedByRule) {
    const auto model = shipped_library().model("qwen3-30b-a3b").value();
    const auto refused = make_generate_layout(parse_layout("tp8.ep4").value(), 8, model);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().front().rule, "generate-ep");
    EXPECT_TRUE(make_generate_layout(parse_layout(refused.error().front().nearest->value).value(), 8, model).has_value());
}

TEST(PublicReports, A27_AnFp8BlockMustDivideTheShard) {
    // DeepSeek-V3's dense width 18,432 / 32 = 576 is no multiple of 128; 18,432 / 16 = 9 blocks.
    const auto model = shipped_library().model("deepseek-v3").value();
    const auto layout = make_generate_layout(parse_layout("tp32").value(), 256, model).value();
    const auto faults = check_fp8_blocks(layout, model);
    const auto dense = std::ranges::find_if(faults, [](const Fault& fault) { return fault.message.find("18432 / 32 = 576") != std::string::npos; });
    ASSERT_NE(dense, faults.end());
    EXPECT_EQ(dense->rule, "fp8-block");
    const auto mended = make_generate_layout(parse_layout(dense->nearest->value).value(), 256, model).value();
    EXPECT_TRUE(check_fp8_blocks(mended, model).empty());
    EXPECT_EQ(mended.tp, 16U);
}

TEST(PublicReports, A36_AnElementCountOf2To32IsCounted) {
    ParameterClass fused;
    fused.shape = {512, 2048, 4096};
    EXPECT_EQ(fused.elements(), 4'294'967'296U);
    EXPECT_EQ(fused.tensor_bytes().count(), 8'589'934'592U);
}

TEST(PublicReports, A54_ReshardReceivesAnEighthOfABroadcast) {
    const auto scenario = scenario_of("qwen3-32b", "tp1@4", "tp8.dp2@16");
    const auto workload = Workload::make(scenario);
    EXPECT_EQ(workload.payload_bytes().count(), 65'524'246'528U);
    EXPECT_EQ(workload.generator_bytes()[0], 8'191'715'328U);
    EXPECT_EQ(workload.delivered_bytes().count(), 131'067'445'248U);
}

TEST(PublicReports, A56_ExpertBlocksAloneAreASixthOfTheModel) {
    EXPECT_EQ(generator_bytes(scenario_of("qwen3-30b-a3b", "tp1@8", "tp1.ep8@8"), 0), 10'329'944'064U);
}

TEST(PublicReports, A65_StridedShardFromTpThenFsdp) {
    const std::vector placements{parse_placement("strided_shard(0,split_factor=2)").value(), parse_placement("shard(0)").value()};
    const std::vector<std::uint64_t> shape{5};
    const auto ranks = dtensor_map(shape, std::vector<std::uint64_t>{2, 2}, placements).value();
    const std::vector<std::vector<std::uint64_t>> inputs{shape};
    EXPECT_EQ(ranks[0].runs(inputs), (Runs{{0, 0, 2}}));
    EXPECT_EQ(ranks[1].runs(inputs), (Runs{{0, 3, 1}}));
    EXPECT_EQ(ranks[2].runs(inputs), (Runs{{0, 2, 1}}));
    EXPECT_EQ(ranks[3].runs(inputs), (Runs{{0, 4, 1}}));
}

TEST(PublicReports, A66_TheLastShardMayBeEmpty) {
    const std::vector placements{parse_placement("shard(0)").value()};
    const auto ranks = dtensor_map(std::vector<std::uint64_t>{512}, std::vector<std::uint64_t>{30}, placements).value();
    EXPECT_EQ(ranks[27].shape()[0], 18U);
    EXPECT_EQ(ranks[28].shape()[0], 8U);
    EXPECT_EQ(ranks[29].shape()[0], 0U);
    EXPECT_TRUE(ranks[29].pieces().empty());
}

TEST(PublicReports, A67_MoreRanksThanNeeded) {
    const std::vector placements{parse_placement("shard(0)").value()};
    const auto ranks = dtensor_map(std::vector<std::uint64_t>{5}, std::vector<std::uint64_t>{4}, placements).value();
    std::vector<std::uint64_t> rows;
    for (const auto& rank : ranks) {
        rows.push_back(rank.shape()[0]);
    }
    EXPECT_EQ(rows, (std::vector<std::uint64_t>{2, 2, 1, 0}));
}

TEST(PublicReports, A68_FourReplicasServeFourOneEach) {
    const auto scenario = scenario_of("teaching-matrix", "tp1@4", "tp1.dp4@4");
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kDirect, scenario, workload).value();
    ASSERT_EQ(plan.blocks.size(), 1U);
    EXPECT_EQ(plan.blocks[0].source, (std::vector<std::uint32_t>{0, 1, 2, 3}));
    EXPECT_EQ(plan.blocks[0].destination, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(PublicReports, A69_ATensorCutOnTwoMeshAxes) {
    // EP4 x ETP2 to EP2: eight source pieces, four to each destination.
    const auto scenario = scenario_of("qwen3-30b-a3b", "ep4.etp2@8", "tp1.ep2@2");
    const auto workload = Workload::make(scenario);
    const auto& up = class_named(workload, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight");
    const auto cells = overlap(up.source, up.destinations.front());
    EXPECT_EQ(cells.size(), 8U);
    EXPECT_EQ(std::ranges::count(cells, 0U, &OverlapCell::destination), 4);
}

TEST(PublicReports, A70_AColumnCutIsManyRuns) {
    // down_proj 2048 x 768 at TP4: 2048 runs of 192 elements, 384 B.
    const ContentQuestion question{"vllm", "row", {{"tp", 4}}, {}, {{2048, 768}}};
    const auto runs = content_map(question).value()[1].runs(question.inputs);
    EXPECT_EQ(runs.size(), 2048U);
    EXPECT_TRUE(std::ranges::all_of(runs, [](const auto& run) { return run.count == 192; }));
}

TEST(PublicReports, A71_ReplicasShareTheSending) {
    // Llama-3.1-8B, TP2 x DP4 to TP2: each byte once, and each of 8 ranks sends an eighth within the largest tensor's
    // shard, 128,256 x 4096 / 2 x 2 B.
    const auto scenario = scenario_of("llama-3.1-8b", "tp2@8", "tp2@2");
    const auto workload = Workload::make(scenario);
    const auto plan = make_plan(Method::kDirect, scenario, workload).value();
    const auto sum = traffic(plan, scenario.cluster);
    EXPECT_EQ(sum.network_bytes(), 16'061'054'976U);
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
        EXPECT_NEAR(static_cast<double>(sum.ports()[rank].nic_out), 2'007'631'872.0, 525'336'576.0) << rank;
    }
}

TEST(PublicReports, A72_CoordinatesOfARankInBothMeshes) {
    // World 16, TP2 CP2 DP2 PP2, EP4 ETP1: rank 5 has tp 1, pp 0, ep 1; rank 11 tp 1, pp 1, ep 3; rank 14 tp 0, ep 2.
    const auto scenario = scenario_of("qwen3-30b-a3b", "tp2.cp2.pp2.ep4@16", "tp1@1");
    const auto workload = Workload::make(scenario);
    const auto& q = class_named(workload, "model.layers.{layer}.self_attn.q_proj.weight");
    const auto& up = class_named(workload, "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight");
    const auto coordinate = [](const Distribution& distribution, std::uint32_t member) {
        std::size_t index = 0;
        while (!std::ranges::binary_search(distribution.shards()[index].members, member)) {
            ++index;
        }
        return index;
    };
    for (const auto& [rank, tp, pp, ep] : {std::array{5U, 1U, 0U, 1U}, std::array{11U, 1U, 1U, 3U}, std::array{14U, 0U, 1U, 2U}}) {
        EXPECT_EQ(rank / 8, pp);
        EXPECT_EQ(coordinate(q.source, rank % 8), tp) << rank;
        EXPECT_EQ(coordinate(up.source, rank % 8), ep) << rank;
    }
}

TEST(PublicReports, A82_EveryFaultAtOnce) {
    const auto library = shipped_library();
    auto draft = library.scenario("deepseek-v3-h100").value();
    draft.apply({"train.layout", "tp3.pp16.ep16", ""});
    draft.apply({"generate.dtype", "fp8", ""});
    const auto refused = io::resolve(draft, library);
    ASSERT_FALSE(refused.has_value());
    std::set<std::string> rules;
    for (const auto& fault : refused.error()) {
        rules.insert(fault.rule);
    }
    for (const auto* rule : {"layout-product", "heads", "fp8-block", "dtype-pair"}) {
        EXPECT_TRUE(rules.contains(rule)) << rule;
    }
}

TEST(PublicReports, A88_AReplicatedTowerIsDeliveredToEveryRank) {
    // Kimi K3's vision tower, 447,358,976 BF16 parameters, is replicated: four ranks get it four times.
    const auto model = shipped_library().model("kimi-k3").value();
    const auto layout = make_generate_layout(parse_layout("tp4").value(), 4, model).value();
    std::uint64_t delivered = 0;
    for (const auto& parameter : model.classes()) {
        if (parameter.part == ModelPart::kVision) {
            const auto distribution = vllm::distribution(parameter, layout, 0);
            for (const auto& shard : distribution.shards()) {
                delivered += shard.elements() * 2 * shard.members.size() * std::max<std::size_t>(parameter.layers.size(), 1);
            }
        }
    }
    EXPECT_EQ(delivered, 4U * 447'358'976U * 2U);
}

}  // namespace
}  // namespace refit
