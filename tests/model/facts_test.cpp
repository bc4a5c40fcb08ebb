// SPDX-License-Identifier: Apache-2.0
#include "refit/facts.hpp"

#include <string>

#include <gtest/gtest.h>

namespace refit {
namespace {

Facts sample() {
    Facts facts{"config.json"};
    facts.set("hidden_size", std::int64_t{7168});
    facts.set("zero", std::int64_t{0});
    facts.set("negative", std::int64_t{-1});
    facts.set("large", std::int64_t{2147483648});
    facts.set("real", 0.5);
    facts.set("tied", true);
    facts.set("model_type", std::string{"deepseek_v3"});
    facts.set("kinds", std::vector<std::string>{"mamba", "moe"});
    facts.set("layers", std::vector<std::int64_t>{1, 2});
    return facts;
}

TEST(Facts, KeepTheLastValueOfAKey) {
    auto facts = sample();
    facts.set("hidden_size", std::int64_t{1});
    Faults faults;
    EXPECT_EQ(facts.positive("hidden_size", faults), 1U);
    EXPECT_TRUE(faults.empty());
    EXPECT_TRUE(facts.has("hidden_size"));
    EXPECT_FALSE(facts.has("hidden"));
    EXPECT_EQ(facts.origin(), "config.json");
}

TEST(Facts, NameAMissingFieldItsFileAndTheNearestName) {
    Faults faults;
    EXPECT_EQ(sample().positive("hiden_size", faults), 1U);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults.front().code, ErrorCode::kInvalidInput);
    EXPECT_EQ(faults.front().rule, "missing-field");
    EXPECT_EQ(faults.front().message, "'hiden_size' is missing; the nearest name there is 'hidden_size'");
    EXPECT_EQ(faults.front().where, "config.json");
}

TEST(Facts, TellNullFromAMissingField) {
    auto facts = sample();
    facts.set_null("q_lora_rank");
    Faults faults;
    EXPECT_EQ(facts.positive_or_null("q_lora_rank", faults), 0U);
    EXPECT_EQ(facts.positive_or_null("hidden_size", faults), 7168U);
    EXPECT_FALSE(facts.has("q_lora_rank"));
    EXPECT_TRUE(faults.empty());
    (void)facts.positive_or_null("kv_lora_rank", faults);
    (void)facts.positive_or_null("zero", faults);
    EXPECT_EQ(faults.size(), 2U);
}

TEST(Facts, KeepTheLastOfNullAndAValue) {
    auto facts = sample();
    facts.set_null("rank");
    facts.set("rank", std::int64_t{3});
    facts.set_null("hidden_size");
    Faults faults;
    EXPECT_EQ(facts.positive_or_null("rank", faults), 3U);
    EXPECT_EQ(facts.positive_or_null("hidden_size", faults), 0U);
    EXPECT_FALSE(facts.has("hidden_size"));
    EXPECT_TRUE(faults.empty());
}

TEST(Facts, NameNoNearestFieldWhereThereIsNone) {
    Faults faults;
    (void)Facts{"empty.json"}.positive("hidden_size", faults);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults.front().message, "'hidden_size' is missing");
}

TEST(Facts, CollectFaultsOfSeveralFields) {
    const auto facts = sample();
    Faults faults;
    (void)facts.positive("zero", faults);
    (void)facts.positive("negative", faults);
    (void)facts.positive("large", faults);
    (void)facts.positive("absent", faults);
    (void)facts.positive("real", faults);
    EXPECT_EQ(faults.size(), 5U);
}

TEST(Facts, RefuseANumberOutOfRangeWithItsValue) {
    Faults faults;
    EXPECT_EQ(sample().positive("negative", faults), 1U);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults.front().rule, "field-range");
    EXPECT_EQ(faults.front().message, "'negative' is -1, but must lie in 1 to 2^31 - 1");
    EXPECT_EQ(sample().natural_or("large", 7, faults), 7U);
    EXPECT_EQ(faults.size(), 2U);
}

TEST(Facts, TakeTheFallbackOnlyWhereAFieldIsAbsent) {
    const auto facts = sample();
    Faults faults;
    EXPECT_EQ(facts.natural_or("absent", 5, faults), 5U);
    EXPECT_EQ(facts.natural_or("zero", 5, faults), 0U);
    EXPECT_FALSE(facts.flag_or("absent", false, faults));
    EXPECT_TRUE(facts.flag_or("tied", false, faults));
    EXPECT_EQ(facts.text_or("absent", "none", faults), "none");
    EXPECT_EQ(facts.text_or("model_type", "none", faults), "deepseek_v3");
    EXPECT_TRUE(faults.empty());
}

TEST(Facts, RefuseAValueOfAnotherType) {
    const auto facts = sample();
    Faults faults;
    (void)facts.natural_or("model_type", 0, faults);
    (void)facts.flag_or("hidden_size", false, faults);
    (void)facts.text_or("tied", "", faults);
    (void)facts.texts("layers", faults);
    (void)facts.numbers("kinds", faults);
    ASSERT_EQ(faults.size(), 5U);
    for (const auto& fault : faults) {
        EXPECT_EQ(fault.rule, "field-type");
    }
    EXPECT_EQ(faults.at(3).message, "'layers' must be a list of texts");
}

TEST(Facts, GiveListsOfTextsAndOfNumbers) {
    Faults faults;
    EXPECT_EQ(sample().texts("kinds", faults), (std::vector<std::string>{"mamba", "moe"}));
    EXPECT_EQ(sample().numbers("layers", faults), (std::vector<std::int64_t>{1, 2}));
    EXPECT_TRUE(faults.empty());
    EXPECT_TRUE(sample().numbers("absent", faults).empty());
    EXPECT_EQ(faults.size(), 1U);
}

}  // namespace
}  // namespace refit
