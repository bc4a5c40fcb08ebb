// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/scene.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "refit/gui/commands.hpp"
#include "refit/gui/course.hpp"
#include "refit/gui/history.hpp"
#include "refit/gui/sankey.hpp"
#include "refit/gui/theme.hpp"
#include "refit/gui/worker.hpp"

namespace refit::gui {
namespace {

TEST(Theme, KeepsTextAboveFourAndAHalfAndMarksAboveThreeToOne) {
    for (const auto theme : {Theme::kLight, Theme::kDark}) {
        for (const auto surface : {Ink::kBackground, Ink::kPanel}) {
            for (const auto text : {Ink::kText, Ink::kMuted}) {
                EXPECT_GE(contrast(colour_of(theme, text), colour_of(theme, surface)), 4.5);
            }
        }
        for (auto ink = static_cast<int>(kFirstMark); ink <= static_cast<int>(kLastInk); ++ink) {
            EXPECT_GE(contrast(colour_of(theme, static_cast<Ink>(ink)), colour_of(theme, Ink::kBackground)), 3.0) << "ink " << ink;
        }
    }
}

TEST(Theme, ContrastOfBlackAndWhiteIsTwentyOne) {
    // (1 + 0.05) / (0 + 0.05) = 21.
    EXPECT_NEAR(contrast({0, 0, 0}, {255, 255, 255}), 21.0, 1e-12);
    EXPECT_EQ(text_on({255, 255, 255}), (Rgb{0, 0, 0}));
}

TEST(Theme, BackgroundsAreClearlyDarkAndClearlyLight) {
    const auto luma = [](Rgb c) { return 0.299 * c.red + 0.587 * c.green + 0.114 * c.blue; };
    EXPECT_LT(luma(colour_of(Theme::kDark, Ink::kBackground)), 60.0);
    EXPECT_GT(luma(colour_of(Theme::kLight, Ink::kBackground)), 180.0);
}

TEST(Theme, TheScalesRunOneWayInLightness) {
    for (int i = 1; i <= 40; ++i) {
        const auto before = (i - 1) / 40.0;
        const auto after = i / 40.0;
        EXPECT_LT(luminance(heat_of(Theme::kDark, before)), luminance(heat_of(Theme::kDark, after)) + 1e-9);
        EXPECT_GT(luminance(heat_of(Theme::kLight, before)) + 1e-9, luminance(heat_of(Theme::kLight, after)));
    }
}

TEST(TimeScale, GoesThereAndBackWithinHalfAPixelAtEveryZoom) {
    for (const auto& window : {TimeWindow{0.0, 42e-3}, TimeWindow{10e-3, 10.1e-3}, TimeWindow{1.0, 13.9}}) {
        const TimeScale scale{window, 196.0, 1000.0};
        for (double x = 196.0; x <= 1196.0; x += 12.5) {
            EXPECT_NEAR(scale.x_of(scale.time_at(x)), x, 0.5);
        }
    }
}

TEST(TimeWindow, ZoomsAboutATimeAndStaysInside) {
    // Half of 0 to 8 about 2: 2 stays a quarter along, so 1 to 5.
    EXPECT_EQ(zoomed({0.0, 8.0}, 2.0, 0.5, 8.0), (TimeWindow{1.0, 5.0}));
    EXPECT_EQ(zoomed({1.0, 5.0}, 2.0, 100.0, 8.0), (TimeWindow{0.0, 8.0}));
    EXPECT_EQ(panned({1.0, 5.0}, -1.0, 8.0), (TimeWindow{0.0, 4.0}));
    EXPECT_EQ(panned({1.0, 5.0}, 2.0, 8.0), (TimeWindow{4.0, 8.0}));
}

TEST(RoundTicks, AreRoundAndInside) {
    EXPECT_EQ(round_ticks(0.0, 10.0, 4), (std::vector<double>{0.0, 2.0, 4.0, 6.0, 8.0, 10.0}));
    for (const auto tick : round_ticks(0.31, 0.77, 5)) {
        EXPECT_GE(tick, 0.31);
        EXPECT_LE(tick, 0.77);
    }
}

TEST(Scene, HitsTheTopmostElementThatCoversThePoint) {
    Scene scene;
    const auto below = scene.add(RectMark{{0.0, 0.0, 100.0, 100.0}, {Ink::kNic}});
    const auto above = scene.add(RectMark{{50.0, 50.0, 100.0, 100.0}, {Ink::kNvlink}});
    scene.elements = {{{Target::Kind::kGroup, Grouping::kRank, 1, 0}, "above", {50.0, 50.0, 100.0, 100.0}, {above}},
                      {{Target::Kind::kGroup, Grouping::kRank, 2, 0}, "below", {0.0, 0.0, 100.0, 100.0}, {below}}};
    EXPECT_EQ(scene.hit({75.0, 75.0}), 0U);
    EXPECT_EQ(scene.hit({25.0, 25.0}), 1U);
    EXPECT_FALSE(scene.hit({125.0, 25.0}));
}

TEST(Scene, FindsTheCellOfAGrid) {
    Scene scene;
    scene.add(HeatMark{{10.0, 10.0, 40.0, 20.0}, 2, 4, std::vector<float>(8, 0.5F), Target::Kind::kPair, Grouping::kNode});
    EXPECT_EQ(scene.target_at({45.0, 25.0}), (Target{Target::Kind::kPair, Grouping::kNode, 1, 3}));
    EXPECT_FALSE(scene.target_at({5.0, 5.0}).is_set());
}

TEST(Ribbon, CoversItsMiddleAndNotBeside) {
    const RibbonMark ribbon{{0.0, 0.0, 10.0, 20.0}, {110.0, 100.0, 10.0, 20.0}, {Ink::kNic}};
    // Halfway along, an S curve is halfway down: 50 to 70.
    const auto [top, bottom] = edges_at(ribbon, 60.0);
    EXPECT_NEAR(top, 50.0, 0.01);
    EXPECT_NEAR(bottom, 70.0, 0.01);
    EXPECT_TRUE(covers(ribbon, {60.0, 60.0}));
    EXPECT_FALSE(covers(ribbon, {60.0, 20.0}));
}

TEST(Sankey, SidesAndBandsSumToTheMatrix) {
    // Three groups: 0 sends 5 by NIC to 1 and 7 by NVLink to itself, 2 sends 1 by NIC to 1.
    GroupMatrix matrix{3, std::vector<PairFlow>(9)};
    matrix.cells[1] = {5, 0, 1};
    matrix.cells[0] = {0, 7, 2};
    matrix.cells[7] = {1, 0, 1};
    const auto sankey = make_sankey(matrix, 2, {0.0, 0.0, 400.0, 300.0}, 10.0);
    ASSERT_EQ(sankey.senders.size(), 2U);
    EXPECT_EQ(sankey.senders[0].bytes, 12U);
    EXPECT_EQ(sankey.senders[1].bytes, 1U);
    EXPECT_EQ(sankey.receivers[0].bytes + sankey.receivers[1].bytes, 13U);
    ASSERT_EQ(sankey.bands.size(), 2U);
    EXPECT_EQ(sankey.bands.back().bytes, 7U) << "the largest lies on top";
    EXPECT_EQ(sankey.other_bands, 1U);
    EXPECT_EQ(sankey.other_bytes, 1U);
    EXPECT_EQ(sankey.senders[1].other, 1U);
    EXPECT_EQ(sankey.senders[0].other, 0U);
    for (const auto& node : sankey.senders) {
        EXPECT_GE(node.frame.y, 0.0);
        EXPECT_LE(node.frame.bottom(), 300.0 + 1e-9);
    }
}

TEST(Commands, HaveUniqueIdsAndKeysAndAreFoundByTheirWords) {
    std::set<std::string_view> ids;
    std::set<std::string> keys;
    for (const auto& command : commands()) {
        EXPECT_TRUE(ids.insert(command.id).second) << command.id;
        EXPECT_FALSE(command.text.empty());
        for (const auto& key : keys_of(command)) {
            EXPECT_TRUE(keys.insert(key).second) << key;
        }
        const auto found = search_commands(command.text);
        EXPECT_TRUE(std::any_of(found.begin(), found.end(), [&](const Command& one) { return one.id == command.id; })) << command.text;
    }
    EXPECT_EQ(search_commands("").size(), commands().size());
    EXPECT_TRUE(search_commands("no such command").empty());
}

TEST(History, GoesBackAndForthAndMergesTheMovesOfASlider) {
    History<int> history{0};
    history.push(1);
    history.push(2, "slide");
    history.push(3, "slide");
    history.push(4, "slide");
    history.seal();
    history.push(5, "slide");
    EXPECT_EQ(history.present(), 5);
    history.undo();
    EXPECT_EQ(history.present(), 4);
    history.undo();
    EXPECT_EQ(history.present(), 1);
    history.undo();
    EXPECT_FALSE(history.can_undo());
    EXPECT_EQ(history.present(), 0);
    history.redo();
    EXPECT_EQ(history.present(), 1);
    history.push(9);
    EXPECT_FALSE(history.can_redo()) << "a new step ends what could be redone";
}

TEST(Worker, RunsTheLatestOfAThousandJobsAndTellsTheOthersThatTheyAreStale) {
    std::atomic<int> last{-1};
    std::atomic<int> finished{0};
    {
        Worker worker;
        for (int i = 0; i < 1000; ++i) {
            worker.post([&, i](const Worker::IsStale& is_stale) {
                for (int k = 0; k < 20 && !is_stale(); ++k) {
                    std::this_thread::yield();
                }
                if (!is_stale()) {
                    last = i;
                    ++finished;
                }
            });
        }
        worker.finish();
        EXPECT_EQ(last, 999);
        EXPECT_GE(finished, 1);
        worker.post([&](const Worker::IsStale& is_stale) {
            while (!is_stale()) {
                std::this_thread::yield();
            }
        });
        worker.cancel();
        worker.finish();
    }
    EXPECT_EQ(last, 999);
}

TEST(Worker, EndsWhileAJobRuns) {
    std::atomic<bool> has_begun{false};
    Worker worker;
    worker.post([&](const Worker::IsStale& is_stale) {
        has_begun = true;
        while (!is_stale()) {
            std::this_thread::yield();
        }
    });
    while (!has_begun) {
        std::this_thread::yield();
    }
}

}  // namespace
}  // namespace refit::gui
