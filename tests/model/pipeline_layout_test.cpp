// SPDX-License-Identifier: Apache-2.0
#include "refit/pipeline_layout.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace refit {
namespace {

using Chunks = std::vector<std::uint32_t>;

Chunks chunks_of(const std::string& text, std::uint32_t stages, std::uint32_t layers) {
    const auto chunks = read_pipeline_layout(text, stages, layers);
    EXPECT_TRUE(chunks.has_value()) << text << ": " << (chunks ? "" : chunks.error().front().message);
    return chunks.value_or(Chunks{});
}

Faults faults_of(const std::string& text, std::uint32_t stages, std::uint32_t layers) {
    auto chunks = read_pipeline_layout(text, stages, layers);
    return chunks ? Faults{} : std::move(chunks.error());
}

bool mentions(const Faults& faults, const std::string& text) {
    return std::ranges::any_of(
        faults, [&](const auto& fault) { return fault.message.find(text) != std::string::npos; });
}

TEST(PipelineLayout, CountsTheDecoderLayersOfEachChunk) {
    EXPECT_EQ(chunks_of("Et*24|t*24L", 2, 48), (Chunks{24, 24}));
    EXPECT_EQ(chunks_of("EtL", 1, 1), (Chunks{1}));
    EXPECT_EQ(chunks_of("Ett|tL", 2, 3), (Chunks{2, 1}));
}

TEST(PipelineLayout, WritesBracketsOut) {
    // 30 times "tt|" and a last stage with the loss alone; the embedding has one of its own: 32 stages.
    auto expected = Chunks(32, 2);
    expected.front() = 0;
    expected.back() = 0;
    EXPECT_EQ(chunks_of("E|(tt|)*30L", 16, 60), expected);
    // DeepSeek-V3 as Megatron's documentation lays it out: 3 + 29 · 2 layers, MTP and loss in stages of their
    // own.
    expected = Chunks(32, 2);
    expected[0] = 3;
    expected[30] = 0;
    expected[31] = 0;
    EXPECT_EQ(chunks_of("Ettt|(tt|)*29,m|L", 16, 61), expected);
    // "Ett|ttt|tt||tL".
    EXPECT_EQ(chunks_of("E(t*2|t)*2t|*2tL", 5, 8), (Chunks{2, 3, 2, 0, 1}));
}

TEST(PipelineLayout, TakesBarsAndRepetitionsAsMegatronDoes) {
    EXPECT_EQ(chunks_of("Et|*3L", 4, 1), (Chunks{1, 0, 0, 0}));  // The bar is repeated.
    EXPECT_EQ(chunks_of("Et*0t|tL", 2, 2), (Chunks{1, 1}));
    EXPECT_EQ(chunks_of("E,tt,|,tt,L", 2, 4), (Chunks{2, 2}));  // Commas are for the eye.
}

TEST(PipelineLayout, ReadsAListOfLists) {
    EXPECT_EQ(chunks_of("[[embedding, decoder], [decoder, decoder, loss]]", 2, 3), (Chunks{1, 2}));
    EXPECT_EQ(chunks_of("[['Embedding'],[\"decoder\",\n decoder],[],[mtp, loss]]", 2, 2),
              (Chunks{0, 2, 0, 0}));
    EXPECT_TRUE(mentions(faults_of("[[embedding], [encoder, loss]]", 2, 0), "'encoder' is none of"));
    EXPECT_TRUE(mentions(faults_of("[embedding, loss]", 1, 0), "not a list of lists"));
    EXPECT_TRUE(mentions(faults_of("[[embedding]x[loss]]", 1, 0), "not a list of lists"));
}

TEST(PipelineLayout, RefusesAnotherGrammarWithTheNearestThatWorks) {
    for (const auto& [text, part] : {std::pair{"Ex*4L", "'x' at character 2 is no layer"},
                                     std::pair{"Et*L", "'*' at character 3 has no number"},
                                     std::pair{"E(t|*4L", "has no end"},
                                     std::pair{"E()*4L", "has no end or nothing in it"},
                                     std::pair{"E(tt|)tL", "are not repeated"},
                                     std::pair{"E((t)*2|)*2L", "brackets stand in brackets"},
                                     std::pair{"Et)*2L", "')' at character 3 closes nothing"},
                                     std::pair{"Et*4*2L", "'*' at character 5 is no layer"},
                                     std::pair{"Et*99999999999999999999999L", "is too long"},
                                     std::pair{"E(t*9999|)*9999L", "is too long"},
                                     std::pair{"Et*60000t*60000L", "more than 65536"},
                                     std::pair{"e t", "'e' at character 1"}}) {
        const auto faults = faults_of(text, 2, 9);
        ASSERT_EQ(faults.size(), 1U) << text;
        EXPECT_EQ(faults[0].code, ErrorCode::kInvalidInput);
        EXPECT_EQ(faults[0].rule, "layout-string");
        EXPECT_TRUE(mentions(faults, part)) << faults[0].message;
        // Nine layers over two stages.
        EXPECT_EQ(faults[0].nearest.value(), (Suggestion{"train.pipeline.layout", "Et*5|t*4L", ""}));
    }
}

TEST(PipelineLayout, TellsAllThatMegatronRefusesAtOnce) {
    const auto faults = faults_of("tt|Et|t", 2, 5);
    ASSERT_EQ(faults.size(), 4U);
    EXPECT_EQ(faults[0].message, "train.pipeline.layout: 3 stages between bars are no multiple of pp 2");
    EXPECT_EQ(faults[1].message, "train.pipeline.layout: 4 decoder layers, but the model has 5");
    EXPECT_TRUE(mentions(faults, "the embedding (E) must stand once, first in the first stage"));
    EXPECT_TRUE(mentions(faults, "the loss (L) must stand once, last in the last stage"));
    for (const auto& fault : faults) {
        EXPECT_EQ(fault.code, ErrorCode::kInfeasible);
        // Three chunks of 2, 1, 1 are nearest to four, the missing layer goes to the empty one.
        EXPECT_EQ(fault.nearest.value().value, "Et*2|(t|)*2tL");
    }
}

TEST(PipelineLayout, RefusesMtpLayersWhereMegatronDoes) {
    EXPECT_EQ(chunks_of("Et|tm*2L", 2, 2), (Chunks{1, 1}));
    for (const auto* text : {"Emt|tL", "Et|m|mtL", "Et|t|mtL|L", "Em|t|t|L"}) {
        EXPECT_FALSE(faults_of(text, 2, 2).empty()) << text;
    }
    EXPECT_TRUE(mentions(faults_of("Et|m|t|mL", 2, 2), "MTP layers (m) must stand together"));
    EXPECT_EQ(faults_of("Et|m|t|mL", 2, 2)[0].nearest.value().value, "Et||t|m*2L");
}

TEST(PipelineLayout, OffersTheChunksThatAreNearest) {
    // One layer too many leaves the fullest; too few go to the emptiest.
    EXPECT_EQ(faults_of("Et*3|t*4|t*4L", 3, 10)[0].nearest.value().value, "Et*3|t*4|t*3L");
    EXPECT_EQ(faults_of("Et*3|t*4|t*4L", 3, 13)[0].nearest.value().value, "Et*5|t*4|t*4L");
    // Five chunks over three stages are nearer to six than to three.
    EXPECT_EQ(faults_of("Et|t|t|t|tL", 3, 5)[0].nearest.value().value, "Et|(t|)*4L");
}

TEST(PipelineLayout, OffersNoStringThatWouldBeTooLong) {
    EXPECT_EQ(faults_of("EtL", 1U << 20U, 61)[0].nearest.value(), (Suggestion{"train.pipeline.layout", "", ""}));
    EXPECT_TRUE(read_pipeline_layout(faults_of("EtL", 1U << 14U, 61)[0].nearest.value().value, 1U << 14U, 61).has_value());
    EXPECT_FALSE(faults_of("", 1, 1).empty());
}

TEST(PipelineLayoutText, IsReadAsTheSameChunks) {
    EXPECT_EQ(pipeline_layout_text(Chunks{3, 4, 4, 2}), "Et*3|(t*4|)*2t*2L");
    EXPECT_EQ(pipeline_layout_text(Chunks{1}, 1), "EtmL");
    EXPECT_EQ(pipeline_layout_text(Chunks{0, 1, 0}, 2), "E|t|m*2L");
    std::mt19937 random{3};
    const auto below = [&](std::uint32_t count) {
        return std::uniform_int_distribution<std::uint32_t>{0, count - 1}(random);
    };
    for (int round = 0; round < 500; ++round) {
        const auto stages = 1 + below(5);
        Chunks chunks(stages * (1 + below(3)));
        std::ranges::generate(chunks, [&] { return below(4); });
        const auto layers = std::accumulate(chunks.begin(), chunks.end(), 0U);
        ASSERT_EQ(chunks_of(pipeline_layout_text(chunks, below(3)), stages, layers), chunks);
    }
}

TEST(PipelineLayout, OffersForRandomTextWhatItTakes) {
    std::mt19937 random{8};
    const auto below = [&](std::size_t count) {
        return std::uniform_int_distribution<std::size_t>{0, count - 1}(random);
    };
    const std::string letters = "Ettttttm|||L*()23,x";
    for (int round = 0; round < 2000; ++round) {
        std::string text(below(30), ' ');
        std::ranges::generate(text, [&] { return letters[below(letters.size())]; });
        const auto stages = static_cast<std::uint32_t>(1 + below(4));
        const auto layers = static_cast<std::uint32_t>(below(20));
        for (const auto& fault : faults_of(text, stages, layers)) {
            EXPECT_TRUE(read_pipeline_layout(fault.nearest.value().value, stages, layers).has_value())
                << text;
        }
    }
}

}  // namespace
}  // namespace refit
