// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/answer.hpp"

#include <algorithm>
#include <clocale>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "refit/gui/history.hpp"
#include "refit/gui/sankey.hpp"
#include "refit/gui/table.hpp"
#include "refit/methods.hpp"
#include "refit/traffic.hpp"
#include "small.hpp"

namespace refit::gui {
namespace {

ViewState looking_at(View view) {
    ViewState state;
    state.view = view;
    return state;
}

/// The grid of pairs; the key of colours is one of one row.
const HeatMark* grid_of(const Scene& scene) {
    for (const auto& mark : scene.marks) {
        if (const auto* heat = std::get_if<HeatMark>(&mark); heat != nullptr && heat->rows > 1) {
            return heat;
        }
    }
    return nullptr;
}

// Four trainers send a quarter of 65536 x 65536 x 2 bytes to one generator each; the generators' ring then carries
// three quarters over each of its four hops.
constexpr std::uint64_t kQuarter = 65536ULL * 65536ULL * 2 / 4;

TEST(FlowTable, HoldsWhatTheTeachingCaseSends) {
    const auto& answer = small_answer();
    const auto matrix = aggregate(*answer.a.flows, answer.by(Grouping::kRank), 4, Direction::kAll);
    for (std::uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ(matrix.at(i, 4 + i), (PairFlow{kQuarter, 0, 1}));
    }
    EXPECT_EQ(matrix.total().nic, 4 * kQuarter);
    EXPECT_EQ(matrix.total().nvlink, 4 * 3 * kQuarter);
    const auto grid = aggregate_bytes(*answer.a.flows, answer.by(Grouping::kRank), 4, Direction::kAll);
    for (std::uint32_t from = 0; from < 8; ++from) {
        EXPECT_EQ(grid.sent[from], matrix.row(from));
        for (std::uint32_t to = 0; to < 8; ++to) {
            EXPECT_EQ(grid.bytes[from * 8 + to], matrix.at(from, to).bytes()) << from << " to " << to;
        }
    }
    EXPECT_EQ(aggregate(*answer.a.flows, answer.by(Grouping::kSide), 4, Direction::kTrainToGenerate).total().bytes(), 4 * kQuarter);
    EXPECT_EQ(aggregate(*answer.a.flows, answer.by(Grouping::kSide), 4, Direction::kAmongTrainers).total().bytes(), 0U);
}

// Sixteen rows of stages and a tensor need more than a small window has: what is given up is the tensor that nobody
// chose, not the rows.
TEST(Layout, OfASmallWindowKeepsItsRowsAndTheTensorThatIsChosen) {
    const auto texts = [](const Scene& scene) {
        std::set<std::string> all;
        for (const auto& mark : scene.marks) {
            if (const auto* text = std::get_if<TextMark>(&mark)) {
                all.insert(text->text);
            }
        }
        return all;
    };
    auto state = looking_at(View::kLayout);
    const auto small = make_scene(large_answer(), state, 355.0, 335.0);
    double least = 1000.0;
    for (const auto& element : small.elements) {
        least = std::min(least, element.target.kind == Target::Kind::kGroup ? element.frame.height : least);
    }
    EXPECT_GE(least, 5.0);
    EXPECT_TRUE(texts(small).contains("stage 0") && texts(small).contains("stage 14"));
    EXPECT_TRUE(texts(small).contains("A larger view also shows a tensor"));
    EXPECT_FALSE(texts(make_scene(large_answer(), state, 1280.0, 800.0)).contains("A larger view also shows a tensor"));
    state.tensor = 0;
    EXPECT_FALSE(texts(make_scene(large_answer(), state, 355.0, 335.0)).contains("A larger view also shows a tensor"));
}

TEST(Result, IsToldWithEverLess) {
    const auto texts = result_texts(small_answer());
    ASSERT_EQ(texts.size(), 3U);
    EXPECT_EQ(texts[0], texts[1].substr(0, texts[1].find("  |  ")) + "  |  8.59 GB on NICs, 25.8 GB on NVLink" + texts[1].substr(texts[1].find("  |  ")));
    EXPECT_EQ(texts[1].find("bound"), texts[1].find("  |  ") + 5);
    EXPECT_EQ(texts[2].find("bound"), std::string::npos);
    EXPECT_NE(texts[2].find("B: gather-and-broadcast"), std::string::npos);
}

// A cell's colour goes with the square root of its bytes, so its square is its share of the largest cell.
TEST(FlowTable, OfMoreGroupsThanHaveWordsIsAGridOfEveryPairsBytes) {
    const auto answer = answer_of(question_of("deepseek-v3-h100", Method::kDirect));
    auto state = looking_at(View::kMatrix);
    state.grouping = Grouping::kRank;
    state.direction = Direction::kTrainToGenerate;
    const auto matrix = aggregate(*answer->a.flows, answer->by(Grouping::kRank), 256, state.direction);
    std::uint64_t most = 0;
    for (const auto& cell : matrix.cells) {
        most = std::max(most, cell.bytes());
    }
    for (const auto view : {View::kMatrix, View::kFlows}) {
        state.view = view;
        const auto scene = make_scene(*answer, state, 1280.0, 800.0);
        const auto* heat = grid_of(scene);
        ASSERT_NE(heat, nullptr);
        ASSERT_EQ(heat->shares.size(), matrix.cells.size());
        for (std::size_t i = 0; i < matrix.cells.size(); ++i) {
            const auto share = static_cast<double>(heat->shares[i]);
            const auto bytes = static_cast<double>(matrix.cells[i].bytes());
            ASSERT_NEAR(share < 0.0 ? 0.0 : share * share, bytes / static_cast<double>(most), 1e-5) << i;
            ASSERT_EQ(share < 0.0, matrix.cells[i].bytes() == 0) << i;
        }
    }
}

TEST(FlowTable, SumsToThePlannersBytesForEveryMethodGroupingAndPicture) {
    const auto question = question_of("deepseek-v3-h100");
    const auto scenario = io::resolve(question.draft, library()).value();
    const auto workload = Workload::make(scenario);
    const auto groups = all_groups(scenario);
    for (const auto method : {Method::kGatherBroadcast, Method::kHybrid, Method::kStriped, Method::kOptimal}) {
        const auto plan = make_plan(method, scenario, workload).value();
        const auto planned = traffic(plan, scenario.cluster);
        const auto flows = make_flows(plan, workload, scenario.cluster);
        for (const auto& one : groups) {
            const auto matrix = aggregate(flows, one, 256, Direction::kAll);
            EXPECT_EQ(matrix.total().nic, planned.network_bytes()) << name_of(method);
            EXPECT_EQ(matrix.total().nvlink, planned.nvlink_bytes()) << name_of(method);
            if (one.grouping() == Grouping::kRank) {
                for (const std::uint32_t rank : {0U, 17U, 255U, 256U, 511U}) {
                    EXPECT_EQ(matrix.row(rank).nic, planned.ports()[rank].nic_out);
                    EXPECT_EQ(matrix.column(rank).nvlink, planned.ports()[rank].nvlink_in);
                }
            }
            const auto sankey = make_sankey(matrix, 40, {0.0, 0.0, 1000.0, 700.0}, 14.0);
            std::uint64_t sent = 0;
            std::uint64_t received = 0;
            std::uint64_t drawn = sankey.other_bytes;
            for (const auto& node : sankey.senders) {
                sent += node.bytes;
            }
            for (const auto& node : sankey.receivers) {
                received += node.bytes;
            }
            for (const auto& band : sankey.bands) {
                drawn += band.bytes;
            }
            EXPECT_EQ(sent, matrix.total().bytes());
            EXPECT_EQ(received, matrix.total().bytes());
            EXPECT_EQ(drawn, matrix.total().bytes());
        }
    }
}

TEST(Groups, FollowStagesEnginesAndDomains) {
    const auto& answer = large_answer();
    EXPECT_EQ(answer.by(Grouping::kStage).count(), 16U + 8U);  // PP16, DP8
    EXPECT_EQ(answer.by(Grouping::kDomain).count(), 64U);      // 512 / 8
    EXPECT_EQ(answer.by(Grouping::kStage).name(17), "engine 1");
    EXPECT_EQ(answer.by(Grouping::kStage).of_rank(256 + 33), 17U);
    EXPECT_EQ(finest(answer.groups, 26), Grouping::kStage);
    EXPECT_EQ(short_rank(257, 256), "G1");
}

TEST(Filter, ReadsItsGrammarAndKeepsWhatFits) {
    const auto& answer = large_answer();
    const auto kept = [&](const char* text) {
        const auto filter = parse_filter(text).value();
        const auto mask = flow_mask(filter, *answer.a.flows, answer.workload, answer.groups);
        return aggregate(*answer.a.flows, answer.by(Grouping::kRank), 256, Direction::kAll, mask);
    };
    const auto all = kept("");
    EXPECT_EQ(kept("link:nic").total().nvlink, 0U);
    EXPECT_EQ(kept("link:nic").total().nic, all.total().nic);
    EXPECT_EQ(kept("link:nvlink").total().nvlink, all.total().nvlink);
    EXPECT_EQ(kept("cross:side").total().bytes(), aggregate(*answer.a.flows, answer.by(Grouping::kSide), 256, Direction::kTrainToGenerate).total().bytes());
    // In H100 domains of 8, whatever crosses a domain goes by NIC.
    EXPECT_EQ(kept("cross:domain").total(), kept("link:nic").total());
    const auto rank = kept("rank:300").total();
    auto expected = all.row(300);
    expected += all.column(300);
    EXPECT_EQ(rank, expected);
    const auto experts = kept("tensor:*experts*").total().bytes();
    EXPECT_GT(experts, 0U);
    EXPECT_LT(experts, all.total().bytes());
    EXPECT_EQ(kept("tensor:*experts* rank:300 bytes>1TB").total().bytes(), 0U);
}

TEST(Filter, SaysWhatIsWrong) {
    for (const auto& [text, words] : std::initializer_list<std::pair<const char*, const char*>>{
             {"ranc:3", "did you mean 'rank'"}, {"rank:x", "no number or range"}, {"rank:5-2", "no number or range"},
             {"link:pcie", "nic and nvlink"}, {"bytes>12", "unit"}, {"dtype:bf61", "bf61"}, {"cross:node", "domain and side"}, {"tensor:", "tensor: what"}}) {
        const auto filter = parse_filter(text);
        ASSERT_FALSE(filter) << text;
        EXPECT_NE(filter.error().front().message.find(words), std::string::npos) << filter.error().front().message;
    }
    EXPECT_TRUE(fits("*q_proj*", "self_attn.Q_PROJ.weight"));
    EXPECT_FALSE(fits("q_proj", "self_attn.q_proj"));
    EXPECT_TRUE(fits("a?c*", "abcd"));
}

TEST(Views, EveryViewHasElementsInsideItsFrame) {
    for (const auto view : kViews) {
        for (const auto& [width, height] : {std::pair{1280.0, 800.0}, std::pair{640.0, 420.0}}) {
            const auto scene = make_scene(small_answer(), looking_at(view), width, height);
            EXPECT_FALSE(scene.elements.empty()) << name_of(view);
            EXPECT_FALSE(scene.title.empty());
            for (const auto& element : scene.elements) {
                EXPECT_FALSE(element.name.empty());
                EXPECT_GE(element.frame.x, -1.0) << element.name;
                EXPECT_LE(element.frame.right(), width + 1.0) << element.name;
                EXPECT_LE(element.frame.bottom(), height + 1.0) << name_of(view) << ": " << element.name;
            }
        }
    }
}

// Of 34.4 TB, trainers send generators 1.3 TB: at one scale 128 bands of less than a pixel.
TEST(Views, WhatTrainersSendGeneratorsIsNoHairlineBesideWhatReplicasShare) {
    for (const auto direction : {Direction::kAll, Direction::kTrainToGenerate}) {
        auto state = looking_at(View::kFlows);
        state.direction = direction;
        const auto scene = make_scene(large_answer(), state, 1280.0, 800.0);
        const Target pair{Target::Kind::kPair, Grouping::kStage, 3, 16 + 5};
        const auto band = scene.find(pair);
        ASSERT_TRUE(band);
        const auto& mark = std::get<RibbonMark>(scene.marks[scene.elements[*band].marks.front()]);
        EXPECT_GT(mark.from.height, 1.5);
        EXPECT_GT(mark.to.x - mark.from.right(), 150.0);
    }
}

// Beside a second view, and in a small window: parts below each other, at scales of their own.
TEST(Views, PartsOfFlowsHaveTheirOwnScalesInNarrowViewsToo) {
    for (const auto& [width, height] : {std::pair{460.0, 600.0}, std::pair{380.0, 420.0}}) {
        const auto scene = make_scene(large_answer(), looking_at(View::kFlows), width, height);
        const auto band = scene.find({Target::Kind::kPair, Grouping::kStage, 3, 16 + 5});
        ASSERT_TRUE(band);
        const auto& mark = std::get<RibbonMark>(scene.marks[scene.elements[*band].marks.front()]);
        // 11.3 GB of 1.34 TB is 1/118 of the bars of a part, but 1/3040 of those of all at one scale.
        EXPECT_GT(mark.from.height, height / 3.0 / 300.0);
        EXPECT_GT(mark.to.x - mark.from.right(), width * 0.4);
        const auto among = scene.find({Target::Kind::kPair, Grouping::kStage, 3, 4});
        ASSERT_TRUE(among);
        EXPECT_LT(scene.elements[*among].frame.bottom(), scene.elements[*band].frame.y + 1.0);
    }
}

TEST(Views, KeyOfColoursStaysInsideANarrowTimeline) {
    for (const auto width : {320.0, 460.0, 760.0, 1280.0}) {
        const auto scene = make_scene(large_answer(), looking_at(View::kTimeline), width, 700.0);
        std::size_t words = 0;
        for (const auto& mark : scene.marks) {
            const auto* text = std::get_if<TextMark>(&mark);
            if (text != nullptr && (text->text == "pipeline broadcast" || text->text == "waits" || text->text == "unpacking")) {
                EXPECT_LE(text->frame.right(), width) << text->text;
                EXPECT_LT(text->frame.bottom(), scene.time_area->y + 1.0) << text->text;
                ++words;
            }
        }
        EXPECT_EQ(words, 3U) << width;
    }
}

TEST(Views, AMessageBreaksIntoLinesAndTellsHowMuchItLeavesOut) {
    const std::string words = "the layout tp3 cuts 128 attention heads unevenly, which no engine can run; tp2 and tp4 divide them";
    const auto scene = make_message("This cannot be computed", {words, words}, 300.0, 800.0);
    std::string all;
    for (const auto& mark : scene.marks) {
        const auto* text = std::get_if<TextMark>(&mark);
        ASSERT_NE(text, nullptr);
        EXPECT_LT(text->text.size(), 45U) << text->text;
        all += text->text + " ";
    }
    EXPECT_NE(all.find(words + " " + words), std::string::npos) << all;
    const auto many = make_message("Wrong", std::vector<std::string>(100, "one"), 300.0, 400.0);
    EXPECT_EQ(std::get<TextMark>(many.marks.back()).text, "and 87 lines more");  // (400 - 80) / 22: 14 lines, one of them this.
    EXPECT_LE(std::get<TextMark>(many.marks.back()).frame.bottom(), 400.0);
}

TEST(Views, ATableLeavesOutColumnsRatherThanCutNumbers) {
    const auto scene = make_scene(large_answer(), looking_at(View::kTable), 356.0, 500.0);
    bool tells = false;
    for (const auto& mark : scene.marks) {
        if (const auto* text = std::get_if<TextMark>(&mark)) {
            tells = tells || text->text.find("more column") != std::string::npos;
            if (text->text.ends_with(" TB") || text->text.ends_with(" GB")) {
                // A letter of DejaVu Sans is about 0.6 of its size wide.
                EXPECT_LE(0.6 * text->size * static_cast<double>(text->text.size()), text->frame.width + 4.0) << text->text;
            }
        }
    }
    EXPECT_TRUE(tells);
}

TEST(Views, LabelsOfAMeshAllHaveTheirBytes) {
    const auto scene = make_scene(large_answer(), looking_at(View::kLayout), 1280.0, 800.0);
    std::size_t labels = 0;
    for (const auto& mark : scene.marks) {
        const auto* text = std::get_if<TextMark>(&mark);
        labels += text != nullptr && text->text.starts_with("stage ") && text->text.ends_with(" GB") ? 1U : 0U;
    }
    EXPECT_EQ(labels, 16U);
}

TEST(Views, ThePairOfAMatrixIsTheSameElementInTheFlows) {
    auto state = looking_at(View::kMatrix);
    state.grouping = Grouping::kRank;
    const Target pair{Target::Kind::kPair, Grouping::kRank, 1, 5};
    const auto matrix = make_scene(small_answer(), state, 1280.0, 800.0);
    const auto cell = matrix.find(pair);
    ASSERT_TRUE(cell);
    EXPECT_EQ(matrix.target_at(matrix.elements[*cell].frame.centre()), pair);
    state.view = View::kFlows;
    EXPECT_TRUE(make_scene(small_answer(), state, 1280.0, 800.0).find(pair));
    EXPECT_EQ(id_of(pair), "pair:rank:1>5");
    state.selection = pair;
    const auto detail = details_of(small_answer(), state);
    EXPECT_EQ(detail.title, "T1 → G1");
    EXPECT_EQ(detail.lines.front().second, "2.147 GB  (2,147,483,648 B)");
}

TEST(Table, CarriesExactNumbersWhateverTheLocale) {
    std::setlocale(LC_ALL, "de_DE.UTF-8");
    const auto csv = to_csv(make_table(small_answer(), looking_at(View::kTable), Listing::kMethods));
    std::setlocale(LC_ALL, "C");
    EXPECT_NE(csv.find("method,predicted seconds"), std::string::npos);
    EXPECT_NE(csv.find(",0.2"), std::string::npos);
    auto state = looking_at(View::kTable);
    state.grouping = Grouping::kRank;
    const auto table = make_table(small_answer(), state, Listing::kPairs);
    ASSERT_EQ(table.rows.size(), 8U);
    EXPECT_EQ(table.rows.front().cells[3].exact, std::to_string(3 * kQuarter));
    const auto one_row = to_tsv(table, {table.rows.front().target});
    EXPECT_EQ(std::count(one_row.begin(), one_row.end(), '\n'), 2) << one_row;
    for (const auto listing : kListings) {
        const auto one = make_table(small_answer(), looking_at(View::kTable), listing);
        EXPECT_FALSE(one.rows.empty()) << title_of(listing);
        for (const auto& row : one.rows) {
            EXPECT_EQ(row.cells.size(), one.columns.size());
        }
    }
}

TEST(Differences, VanishForOneThingAndNegateWhenSwapped) {
    const auto& answer = large_answer();
    EXPECT_TRUE(differences(answer.a, answer.a, true).empty());
    const auto there = differences(answer.a, answer.b, true);
    const auto back = differences(answer.b, answer.a, true);
    ASSERT_EQ(there.size(), back.size());
    ASSERT_FALSE(there.empty());
    for (std::size_t i = 0; i < there.size(); ++i) {
        EXPECT_EQ(there[i].value, -back[i].value);
        EXPECT_EQ(there[i].a, back[i].b);
    }
    EXPECT_TRUE(differences(answer.a, with_pinned(answer, answer)->b, true).empty());
}

TEST(Differences, AreAllThatTheCompareViewListsIfAsked) {
    const auto same = with_pinned(large_answer(), large_answer());
    auto state = looking_at(View::kCompare);
    const auto has = [&](const Answer& answer, const std::string& words) {
        const auto scene = make_scene(answer, state, 1280.0, 800.0);
        return std::ranges::any_of(scene.marks, [&](const Mark& mark) {
            const auto* text = std::get_if<TextMark>(&mark);
            return text != nullptr && text->text == words;
        });
    };
    EXPECT_TRUE(has(*same, "on NVLink"));
    state.shows_only_differences = true;
    EXPECT_FALSE(has(*same, "on NVLink"));
    EXPECT_TRUE(has(*same, "A and B do not differ in any of it"));
    EXPECT_TRUE(has(large_answer(), "on NVLink"));
}

TEST(Details, GiveConstantsInTheUnitThatSuitsThem) {
    bool has_microseconds = false;
    for (const auto& [name, value] : details_of(large_answer(), looking_at(View::kFlows)).lines) {
        EXPECT_EQ(value.find("0.000"), std::string::npos) << name << ": " << value;
        has_microseconds = has_microseconds || value.starts_with("248 us");
    }
    EXPECT_TRUE(has_microseconds);
}

TEST(Answer, ShowsARefusedMethodWithItsReason) {
    const auto made = answer_of(question_of("reshard-one-domain", Method::kM2n));
    EXPECT_TRUE(made->a.is_refused());
    EXPECT_EQ(make_scene(*made, looking_at(View::kFlows), 800.0, 600.0).title, "all weights, NCCL M2N cannot run here");
    for (const auto view : kViews) {
        EXPECT_FALSE(make_scene(*made, looking_at(view), 800.0, 600.0).marks.empty());
    }
}

TEST(Answer, CancelsAndSaysSo) {
    int asked = 0;
    const auto made = answer(question_of("deepseek-v3-h100"), library(), {[&] { return ++asked > 3; }, {}});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().front().rule, "cancelled");
}

TEST(Answer, OfManyFlowsGivesThemBeforeItHasSimulated) {
    std::vector<std::shared_ptr<const Answer>> first;
    const auto made = answer(question_of("kimi-k3-gb200", Method::kDirect), library(),
                             {{}, {}, [&](std::shared_ptr<const Answer> one) { first.push_back(std::move(one)); }}).value();
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(first[0]->a.flows, made->a.flows);
    EXPECT_FALSE(first[0]->a.report.simulated);
    EXPECT_EQ(first[0]->a.report.seconds, made->a.report.seconds);
    EXPECT_TRUE(made->a.report.simulated && made->b.report.simulated);
    for (const auto view : kViews) {
        EXPECT_FALSE(make_scene(*first[0], looking_at(view), 800.0, 600.0).marks.empty()) << name_of(view);
    }
    // Few flows are simulated before anybody could look.
    const auto small = answer(question_of("reshard-one-domain"), library(), {{}, {}, [](const std::shared_ptr<const Answer>&) { FAIL(); }});
    EXPECT_TRUE(small);
}

TEST(Answer, ProvesAPlanFromAFileAndTellsOfItsOwnBytes) {
    auto question = question_of("reshard-one-domain", Method::kDirect);
    auto plan = *answer_of(question)->a.plan;
    question.plan = std::make_shared<const Plan>(plan);
    EXPECT_EQ(answer_of(question)->a.report.nvlink, answer_of(question_of("reshard-one-domain", Method::kDirect))->a.report.nvlink);
    for (auto* column : {&plan.blocks[0].source, &plan.blocks[0].destination, &plan.blocks[0].box}) {
        column->pop_back();
    }
    question.plan = std::make_shared<const Plan>(plan);
    const auto wrong = answer(question, library());
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().front().rule, "missing");
}

TEST(Answer, NamesTheCommandOfWhatIsOnScreen) {
    auto question = question_of("deepseek-v3-h100");
    set_field(question.draft, "train.layout", "tp2.pp16.ep16");
    set_field(question.draft, "system.nic", "800Gbit/s");
    EXPECT_EQ(command_of(question), "refit compare deepseek-v3-h100 --set system.nic=800Gbit/s --train tp2.pp16.ep16 --method hybrid,gather-broadcast");
    set_field(question.draft, "system.nic", "");
    set_field(question.draft, "train.layout", "pp16.ep16");
    EXPECT_EQ(command_of(question), "refit compare deepseek-v3-h100 --method hybrid,gather-broadcast");
}

TEST(Edits, FiftyRandomOnesAndFiftyUndosLeadBackToTheSameFile) {
    const auto first = question_of("deepseek-v3-h100").draft;
    History<io::ScenarioDraft> history{first};
    std::string last;
    std::mt19937 random{7};
    const auto& fields = edit_fields();
    for (int i = 0; i < 50; ++i) {
        auto draft = history.present();
        const auto& field = fields[random() % fields.size()];
        set_field(draft, field.field, random() % 4 == 0 ? std::string{} : field.example + std::to_string(random() % 5));
        history.push(draft);
        last = scenario_text(draft);
        // What is written reads back as the same texts.
        const auto file = testing::TempDir() + "refit_gui_edit.json";
        std::ofstream{file} << scenario_text(draft);
        auto read = open_any(file, {}, library());
        ASSERT_TRUE(read);
        EXPECT_EQ(scenario_text(read->question.draft), scenario_text(draft));
    }
    while (history.can_undo()) {
        history.undo();
    }
    EXPECT_EQ(scenario_text(history.present()), scenario_text(first));
    while (history.can_redo()) {
        history.redo();
    }
    EXPECT_EQ(scenario_text(history.present()), last);
}

TEST(Open, TellsFileAndPlaceOfEveryFault) {
    const auto fault_of = [](const std::string& name, const std::string& content) {
        const auto file = testing::TempDir() + name;
        std::ofstream{file} << content;
        auto opened = open_any(file, question_of("reshard-one-domain"), library());
        if (opened) {
            auto made = answer(opened->question, library());
            EXPECT_FALSE(made) << name;
            std::string all;
            for (const auto& line : made ? std::vector<std::string>{} : lines_of(made.error())) {
                all += line + " | ";
            }
            return all;
        }
        return opened.error().front().message + " | " + opened.error().front().where;
    };
    EXPECT_NE(fault_of("cut.json", R"({"schema": "refit.scenario", "tr)").find("cut.json:1:"), std::string::npos);
    EXPECT_NE(fault_of("newer.json", R"({"schema": "refit.scenario", "schema_version": "9.0"})").find("9.0"), std::string::npos);
    EXPECT_NE(fault_of("heads.json", R"({"schema":"refit.scenario","schema_version":"1.0","model":"qwen3-32b","train":{"gpus":12,"layout":"tp3"},"generate":{"gpus":8,"layout":"tp4"},"system":"h100-nvl8"})").find("3"), std::string::npos);
    EXPECT_NE(fault_of("nan.json", R"({"schema":"refit.scenario","schema_version":"1.0","model":"deepseek-v3","system":{"name":"h100-nvl8","nic":"NaN"}})").find("NaN"), std::string::npos);
    EXPECT_NE(fault_of("report.json", R"({"schema":"refit.report","methods":[{"method":"hybrid","kind":"measured","seconds":-1}]})").find("/methods/0/seconds"), std::string::npos);
    EXPECT_NE(fault_of("plan.json", R"({"schema":"refit.plan","schema_version":"1.0"})").find("plan.json"), std::string::npos);
    EXPECT_FALSE(open_any("no-such-scenario", {}, library()));
}

TEST(Open, TakesPlansMeasurementsAndModels) {
    const auto current = question_of("reshard-one-domain");
    const auto plan_file = testing::TempDir() + "small-plan.json";
    std::ofstream{plan_file} << plan_text(small_answer());
    const auto plan = open_any(plan_file, {}, library()).value();
    EXPECT_EQ(plan.what, "plan");
    EXPECT_EQ(answer_of(plan.question)->a.flows->bytes, small_answer().a.flows->bytes);
    // It brings its scenario with what was changed of it, which can be taken back.
    auto changed = question_of("reshard-one-domain");
    set_field(changed.draft, "system.nvlink", "900GB/s");
    std::ofstream{plan_file} << plan_text(*answer_of(changed));
    auto carried = open_any(plan_file, question_of("deepseek-v3-h100"), library()).value().question;
    EXPECT_EQ(answer_of(carried)->a.report.seconds, answer_of(changed)->a.report.seconds);
    EXPECT_NE(command_of(carried).find("refit compare reshard-one-domain --set system.nvlink=900GB/s"), std::string::npos) << command_of(carried);
    set_field(carried.draft, "system.nvlink", "");
    EXPECT_EQ(answer_of(carried)->a.report.seconds, small_answer().a.report.seconds);
    const auto report_file = testing::TempDir() + "measured.json";
    std::ofstream{report_file} << R"({"schema":"refit.report","schema_version":"1.0","methods":[{"method":"hybrid","kind":"measured","seconds":0.3}]})";
    const auto report = open_any(report_file, current, library()).value();
    EXPECT_EQ(report.what, "measurement");
    EXPECT_EQ(report.measured.at(Method::kHybrid).seconds, Seconds{0.3});
    const std::filesystem::path folder = testing::TempDir() + "hugging-face";
    std::filesystem::create_directories(folder);
    std::filesystem::copy_file(REFIT_DATA_DIR "/models/qwen3-32b.json", folder / "config.json", std::filesystem::copy_options::overwrite_existing);
    auto model = open_any(folder.string(), question_of("deepseek-v3-h100"), library()).value();
    EXPECT_EQ(model.what, "model");
    set_field(model.question.draft, "train.layout", "tp8");
    set_field(model.question.draft, "train.pipeline.first", "");
    model.question.draft.erase("train.pipeline.first");
    model.question.draft.erase("train.pipeline.last");
    set_field(model.question.draft, "generate.layout", "tp8");
    EXPECT_EQ(answer_of(model.question)->scenario.model.title(), io::resolve(model.question.draft, library()).value().model.title());
}

}  // namespace
}  // namespace refit::gui
