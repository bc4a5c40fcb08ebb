// SPDX-License-Identifier: Apache-2.0
#include "refit/io/hugging_face.hpp"

#include <string>

#include <gtest/gtest.h>

#include "scratch.hpp"

namespace refit::io {
namespace {

class HuggingFaceConfig : public testing_io::Scratch {};

TEST_F(HuggingFaceConfig, JoinsNestedKeysByDots) {
    const auto facts = read_config(write("config.json", R"({"a": {"b": {"c": 3}}, "d": "e", "f": true})"));
    ASSERT_TRUE(facts.has_value());
    Faults faults;
    EXPECT_EQ(facts->positive("a.b.c", faults), 3U);
    EXPECT_EQ(facts->text_or("d", "", faults), "e");
    EXPECT_TRUE(facts->flag_or("f", false, faults));
    EXPECT_TRUE(faults.empty());
    EXPECT_EQ(facts->origin(), path("config.json").string());
}

TEST_F(HuggingFaceConfig, KeepsListsOfNumbersOrTextsAndAnEmptyOneAsNumbers) {
    const auto facts =
        read_config(write("config.json", R"({"n": [1, 2], "t": ["a"], "e": [], "mixed": [1, "a"]})"));
    ASSERT_TRUE(facts.has_value());
    Faults faults;
    EXPECT_EQ(facts->numbers("n", faults), (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(facts->texts("t", faults), (std::vector<std::string>{"a"}));
    EXPECT_TRUE(facts->numbers("e", faults).empty());
    EXPECT_TRUE(faults.empty());
    EXPECT_FALSE(facts->has("mixed"));
}

TEST_F(HuggingFaceConfig, TakesNullForAbsentUnlessAskedForNull) {
    const auto facts = read_config(write("config.json", R"({"q_lora_rank": null})"));
    ASSERT_TRUE(facts.has_value());
    EXPECT_FALSE(facts->has("q_lora_rank"));
    Faults faults;
    EXPECT_EQ(facts->positive_or_null("q_lora_rank", faults), 0U);
    EXPECT_TRUE(faults.empty());
}

TEST_F(HuggingFaceConfig, TakesNoFractionForAWholeNumber) {
    const auto facts = read_config(write("config.json", R"({"hidden_size": 7168.0})"));
    ASSERT_TRUE(facts.has_value());
    Faults faults;
    (void)facts->positive("hidden_size", faults);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults.front().rule, "field-type");
}

TEST_F(HuggingFaceConfig, IsRefusedWhereItIsNoObject) {
    for (const auto* text : {"[]", "3", "\"deepseek_v3\"", "null"}) {
        const auto facts = read_config(write("config.json", text));
        ASSERT_FALSE(facts.has_value()) << text;
        EXPECT_EQ(facts.error().front().rule, "config-shape");
        EXPECT_EQ(facts.error().front().where, path("config.json").string());
    }
}

TEST_F(HuggingFaceConfig, PassesOnWhatIsWrongWithTheFile) {
    EXPECT_EQ(read_config(path("none.json")).error().front().code, ErrorCode::kIo);
    EXPECT_EQ(read_config(path(".")).error().front().code, ErrorCode::kIo);
    EXPECT_EQ(read_config(write("cut.json", R"({"hidden_size": )")).error().front().rule, "json-syntax");
    EXPECT_EQ(read_config(write("deep.json", std::string(100, '['))).error().front().rule, "json-depth");
}

}  // namespace
}  // namespace refit::io
