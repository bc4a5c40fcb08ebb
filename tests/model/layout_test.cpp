// SPDX-License-Identifier: Apache-2.0
#include "refit/layout.hpp"

#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "refit/layout_check.hpp"
#include "small_models.hpp"

namespace refit {
namespace {

using Split = std::vector<std::uint32_t>;

TEST(ParseLayout, ReadsEveryAxisInAnyOrder) {
    LayoutText expected;
    expected.tp = 4;
    expected.cp = 2;
    expected.pp = 16;
    expected.dp = 3;
    expected.ep = 8;
    expected.etp = 5;
    expected.first_stage_layers = 3;
    expected.last_stage_layers = 2;
    expected.gpus = 256;
    EXPECT_EQ(parse_layout("tp4.cp2.pp16:3:2.dp3.ep8.etp5@256").value(), expected);
    EXPECT_EQ(parse_layout("etp5.ep8.dp3.pp16:3:2.cp2.tp4@256").value(), expected);
}

TEST(ParseLayout, LeavesAxesAbsentThatAreNotNamed) {
    const auto layout = parse_layout("tp8").value();
    EXPECT_EQ(layout.tp, 8U);
    EXPECT_FALSE(layout.pp || layout.cp || layout.dp || layout.ep || layout.etp || layout.gpus);
    EXPECT_FALSE(layout.first_stage_layers || layout.last_stage_layers);
}

TEST(ParseLayout, ReadsLayoutsOfFsdp) {
    LayoutText expected;
    expected.fsdp = 8;
    expected.ep = 4;
    expected.dp = 2;
    expected.gpus = 64;
    EXPECT_EQ(parse_layout("ep4.fsdp8.dp2@64").value(), expected);
}

TEST(ParseLayout, ReadsTheFirstStageAlone) {
    const auto layout = parse_layout("pp8:7").value();
    EXPECT_EQ(layout.first_stage_layers, 7U);
    EXPECT_FALSE(layout.last_stage_layers.has_value());
}

TEST(ParseLayout, TakesNumbersUpTo2ToThe20) {
    EXPECT_EQ(parse_layout("tp1048576").value().tp, 1048576U);
    EXPECT_FALSE(parse_layout("tp1048577").has_value());
}

struct Malformed {
    const char* text;
    const char* message;  ///< A part of it.
};
void PrintTo(const Malformed& malformed, std::ostream* stream) {
    *stream << '"' << malformed.text << '"';
}

class MalformedLayout : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedLayout, IsRefusedQuotingTheFault) {
    const auto layout = parse_layout(GetParam().text);
    ASSERT_FALSE(layout.has_value());
    ASSERT_EQ(layout.error().size(), 1U);
    EXPECT_EQ(layout.error()[0].code, ErrorCode::kInvalidInput);
    EXPECT_EQ(layout.error()[0].rule, "layout-syntax");
    EXPECT_NE(layout.error()[0].message.find(GetParam().message), std::string::npos)
        << layout.error()[0].message;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    MalformedLayout,
    testing::Values(Malformed{"", "the layout is empty"},
                    Malformed{"@8", "the layout is empty"},
                    Malformed{"tpp4", "'tpp4' names no parallel axis; the nearest is 'tp'"},
                    Malformed{"ddp4", "the nearest is 'dp'"},
                    Malformed{"fdsp4", "'fdsp4' names no parallel axis; the nearest is 'fsdp'"},
                    Malformed{"fsdp", "axis 'fsdp' has ''"},
                    Malformed{"fsdp8:2", "axis 'fsdp' has too many numbers"},
                    Malformed{"TP4", "'TP4' names no parallel axis; the nearest is 'tp'"},
                    Malformed{"4", "'4' names no parallel axis"},
                    Malformed{"4tp", "'4tp' names no parallel axis"},
                    Malformed{"tp", "axis 'tp' has ''"},
                    Malformed{"tp0", "axis 'tp' has '0'"},
                    Malformed{"tp-4", "axis 'tp' has '-4'"},
                    Malformed{"tp+4", "axis 'tp' has '+4'"},
                    Malformed{"tp4x", "axis 'tp' has '4x'"},
                    Malformed{"tp4 ", "axis 'tp' has '4 '"},
                    Malformed{" tp4", "' tp4' names no parallel axis"},
                    Malformed{"tp4,5", "axis 'tp' has '4,5'"},
                    Malformed{"tp1e3", "axis 'tp' has '1e3'"},
                    Malformed{"tp0x8", "axis 'tp' has '0x8'"},
                    Malformed{"tp99999999999999999999", "axis 'tp' has '99999999999999999999'"},
                    Malformed{"tpnan", "'tpnan' names no parallel axis"},
                    Malformed{"tp4.tp4", "axis 'tp' appears twice"},
                    Malformed{"tp4..pp2", "'' names no parallel axis"},
                    Malformed{"tp4.", "'' names no parallel axis"},
                    Malformed{".tp4", "'' names no parallel axis"},
                    Malformed{"tp4:2", "axis 'tp' has too many numbers"},
                    Malformed{"pp4:1:1:1", "axis 'pp' has too many numbers"},
                    Malformed{"pp4::2", "axis 'pp' has ''"},
                    Malformed{"pp4:", "axis 'pp' has ''"},
                    Malformed{"pp:3:2", "axis 'pp' has ''"},
                    Malformed{"pp4:0:2", "axis 'pp' has '0'"},
                    Malformed{"tp4@", "'@' is not a GPU count"},
                    Malformed{"tp4@0", "'@0' is not a GPU count"},
                    Malformed{"tp4@8@8", "'@8@8' is not a GPU count"},
                    Malformed{"tp4@eight", "'@eight' is not a GPU count"},
                    Malformed{"tp4@8.pp2", "'@8.pp2' is not a GPU count"}));

LayoutText text_of(const char* text) {
    return parse_layout(text).value();
}

TEST(SplitLayers, GivesFirstAndLastStageWhatIsAskedFor) {
    // 61 layers: 3 and 2 leave 56 for 14 stages, 4 each.
    Split expected(16, 4);
    expected.front() = 3;
    expected.back() = 2;
    EXPECT_EQ(split_layers(61, text_of("pp16:3:2")).value(), expected);
    EXPECT_EQ(describe_split(expected), "61 layers as 3 + 14x4 + 2");
}

TEST(SplitLayers, TakesTheFirstOrTheLastStageAlone) {
    // 10 layers: 4 first leave 6 for three stages; 1 last leaves 9 for three.
    EXPECT_EQ(split_layers(10, text_of("pp4:4")).value(), (Split{4, 2, 2, 2}));
    LayoutText text = text_of("pp4");
    text.last_stage_layers = 1;
    EXPECT_EQ(split_layers(10, text).value(), (Split{3, 3, 3, 1}));
}

TEST(SplitLayers, IsEvenWhereLayersDivide) {
    EXPECT_EQ(split_layers(94, text_of("pp2")).value(), (Split{47, 47}));
    EXPECT_EQ(split_layers(5, text_of("tp2")).value(), Split{5});
}

TEST(SplitLayers, IsTheMostEvenOneElse) {
    // A17. 61 on 8: 7 each, and one more on each of the first five; 61 on 4: 15 each, one more on the first.
    EXPECT_EQ(split_layers(61, text_of("pp8")).value(), (Split{8, 8, 8, 8, 8, 7, 7, 7}));
    EXPECT_EQ(split_layers(61, text_of("pp4")).value(), (Split{16, 15, 15, 15}));
    // 7 on 4: one each, and one more on each of the first three.
    EXPECT_EQ(split_layers(7, text_of("pp4")).value(), (Split{2, 2, 2, 1}));
}

TEST(SplitLayers, OfAnySizeHasEveryLayerOnceAndDiffersByOneAtMost) {
    for (std::uint32_t layers = 1; layers <= 40; ++layers) {
        for (std::uint32_t pp = 1; pp <= layers; ++pp) {
            LayoutText text;
            text.pp = pp;
            const auto split = split_layers(layers, text).value();
            ASSERT_EQ(split.size(), pp);
            ASSERT_EQ(std::accumulate(split.begin(), split.end(), 0U), layers);
            const auto [least, most] = std::minmax_element(split.begin(), split.end());
            ASSERT_LE(*most - *least, 1U);
            ASSERT_LE(split.back(), split.front());
        }
    }
}

TEST(SplitLayers, RefusesMoreStagesThanLayers) {
    const auto split = split_layers(4, text_of("pp5"));
    ASSERT_FALSE(split.has_value());
    EXPECT_EQ(split.error()[0].code, ErrorCode::kInfeasible);
    EXPECT_EQ(split.error()[0].message, "pp 5 leaves stages without a layer: the model has 4");
}

TEST(SplitLayers, RefusesWhatDoesNotDivideOverTheOtherStages) {
    for (const auto* text : {"pp16:3:3",   // 55 over 14.
                             "pp2:60:2",   // 62 of 61.
                             "pp2:50:10",  // 60 of 61, and no stage for the last.
                             "pp3:30:31",  // None left for the middle.
                             "pp1:30:31",  // Two ends of one stage.
                             "pp1:60"}) {  // One layer without a stage.
        const auto split = split_layers(61, text_of(text));
        ASSERT_FALSE(split.has_value()) << text;
        EXPECT_EQ(split.error()[0].rule, "pipeline-split") << text;
    }
}

TEST(SplitLayers, TakesALoneStageForBothEnds) {
    EXPECT_EQ(split_layers(61, text_of("pp1:61:61")).value(), (Split{61}));
    EXPECT_FALSE(split_layers(61, text_of("pp1:30:30")).has_value());
}

TEST(SplitLayers, TakesFirstAndLastThatAreAll) {
    EXPECT_EQ(split_layers(61, text_of("pp2:31:30")).value(), (Split{31, 30}));
    EXPECT_EQ(split_layers(61, text_of("pp1:61")).value(), Split{61});
}

TEST(DescribeSplit, GroupsEqualNeighbours) {
    EXPECT_EQ(describe_split({5}), "5 layers");
    EXPECT_EQ(describe_split({1}), "1 layer");
    EXPECT_EQ(describe_split({2, 2}), "4 layers as 2x2");
    EXPECT_EQ(describe_split({1, 2, 2, 1, 1}), "7 layers as 1 + 2x2 + 2x1");
}

TEST(LayoutToText, IsTheShortestThatMeansTheLayout) {
    const auto model = testing_models::shipped("deepseek-v3");
    const auto round = [&](const char* text, std::uint32_t gpus) {
        return to_text(make_train_layout(text_of(text), gpus, model).value());
    };
    EXPECT_EQ(round("tp1.pp16:3:2.ep16", 256), "pp16:3:2.ep16");
    EXPECT_EQ(round("pp8:7:6.ep16", 128), "pp8:7:6.ep16");
    EXPECT_EQ(round("tp1", 4), "tp1");
    EXPECT_EQ(round("tp4.cp2.ep8.etp1", 8), "tp4.cp2.ep8");
    EXPECT_EQ(round("tp2.etp2.ep4", 8), "tp2.ep4.etp2");
    // 61 as 15 + 15 + 16 + 15 is what plain pp4 means.
    EXPECT_EQ(round("pp4", 4), "pp4");
    // First alone: 13 leave 48 for three stages.
    EXPECT_EQ(round("pp4:13", 4), "pp4:13:16");
    EXPECT_EQ(round("fsdp64", 64), "fsdp64");
    EXPECT_EQ(round("dp4.fsdp16", 64), "fsdp16");
    EXPECT_EQ(round("fsdp8.ep8", 64), "ep8.fsdp8");
    EXPECT_EQ(round("fsdp1", 1), "fsdp1");
    GenerateLayout generate;
    EXPECT_EQ(to_text(generate), "tp1");
    generate.tp = 8;
    generate.dp = 4;
    generate.ep = 32;
    generate.gpus = 32;
    EXPECT_EQ(to_text(generate), "tp8.dp4.ep32");
}

TEST(LayoutToText, ParsesToTheSameLayout) {
    const auto model = testing_models::shrunken("deepseek-v3").model;
    std::mt19937 random{5};
    const auto any = [&](std::uint32_t most) {
        return std::uniform_int_distribution<std::uint32_t>{1, most}(random);
    };
    int trains = 0;
    int generates = 0;
    for (int round = 0; round < 1500; ++round) {
        LayoutText text;
        text.tp = any(4);
        text.cp = any(2);
        text.pp = any(4);
        text.ep = any(4);
        text.etp = any(2);
        if (any(2) == 1) {
            text.first_stage_layers = any(3);
        }
        if (any(2) == 1) {
            text.last_stage_layers = any(3);
        }
        const auto gpus = 24 * *text.pp;
        if (*text.tp != 3 && split_layers(model.layers(), text)) {
            if (const auto layout = make_train_layout(text, gpus, model)) {
                ++trains;
                ASSERT_EQ(make_train_layout(text_of(to_text(*layout).c_str()), gpus, model).value(), *layout)
                    << to_text(*layout);
            }
        }
        LayoutText generate;
        generate.tp = any(2) * 2;
        generate.pp = any(2);
        generate.ep = any(2) == 1 ? 1 : *generate.tp;
        if (const auto layout = make_generate_layout(generate, 16, model)) {
            ++generates;
            ASSERT_EQ(make_generate_layout(text_of(to_text(*layout).c_str()), 16, model).value(), *layout);
        }
    }
    EXPECT_GT(trains, 100);
    EXPECT_GT(generates, 100);
}

TEST(StageOfLayers, FollowsTheChunksOfALayoutString) {
    // Chunks of 1, 2, 0 and 1 layers over two stages: the third, empty, and the first lie on stage 0.
    TrainLayout layout;
    layout.pp = 2;
    layout.gpus = 2;
    layout.virtual_stages = 2;
    layout.stage_layers = {1, 3};
    layout.chunk_layers = {1, 2, 0, 1};
    EXPECT_EQ(stage_of_layers(layout), (std::vector<std::uint32_t>{0, 1, 1, 1}));
}

TEST(LayoutToText, LeavesOutWhatOnlyALayoutStringCanSay) {
    TrainLayout layout;
    layout.pp = 3;
    layout.gpus = 3;
    layout.stage_layers = {2, 5, 1};
    EXPECT_EQ(to_text(layout), "pp3:2:1");  // The middle follows from the ends.
    layout.pp = 4;
    layout.stage_layers = {2, 3, 2, 1};
    EXPECT_EQ(to_text(layout), "pp4");
    layout.stage_layers = {0, 4, 4, 0};
    EXPECT_EQ(to_text(layout), "pp4");
}

TEST(DescribeLayout, NamesAxesAboveOne) {
    TrainLayout train;
    EXPECT_EQ(describe(train), "TP1");
    train.tp = 4;
    train.pp = 8;
    train.ep = 16;
    EXPECT_EQ(describe(train), "TP4 x PP8 x EP16");
    GenerateLayout generate;
    generate.tp = 8;
    generate.dp = 16;
    EXPECT_EQ(describe(generate), "TP8 x DP16");
}

TEST(DescribeLayout, NamesReplicasOfFsdpBecauseNothingElseTellsThem) {
    TrainLayout train;
    train.fsdp = 8;
    EXPECT_EQ(describe(train), "FSDP8");
    train.dp = 2;
    EXPECT_EQ(describe(train), "FSDP8 x DP2");
    train.ep = 4;
    EXPECT_EQ(describe(train), "EP4 x FSDP8 x DP2");
    EXPECT_EQ(train.ranks_per_replica(), 32U);
}

TEST(TrainLayout, CountsTheRanksOfAStage) {
    TrainLayout layout;
    layout.gpus = 256;
    layout.pp = 16;
    EXPECT_EQ(layout.ranks_per_stage(), 16U);
}

}  // namespace
}  // namespace refit
