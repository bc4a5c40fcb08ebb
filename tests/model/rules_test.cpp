// SPDX-License-Identifier: Apache-2.0
#include "refit/rules.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "refit/io/rules_json.hpp"

namespace refit {
namespace {

RuleSet shipped_rules(const std::string& name) {
    return io::read_rules(std::filesystem::path{REFIT_DATA_DIR} / "rules" / (name + ".json")).value();
}

SettingFacts plain() {
    return {{"generate.colocated", "false"},   {"generate.engine", "vllm"},   {"generate.enable_eplb", "false"},
            {"generate.real_quant", "false"},  {"generate.is_mx", "false"},   {"generate.dtype", "bf16"},
            {"generate.tp", "8"},              {"generate.ep", "1"},          {"generate.pp", "1"},
            {"train.engine", "megatron"},      {"train.dtensor", "false"},    {"train.etp", "1"},
            {"train.pipeline.layout", ""},     {"train.virtual_pipeline", "1"}, {"train.account_for_embedding", "false"},
            {"train.account_for_loss", "false"}, {"train.fp8_param", "false"}, {"train.fp8_recipe", ""},
            {"dtype", "bf16"}};
}

std::vector<std::string> broken(const RuleSet& rules, std::initializer_list<std::pair<std::string, std::string>> changes) {
    auto facts = plain();
    for (const auto& [fact, value] : changes) {
        facts[fact] = value;
    }
    std::vector<std::string> ids;
    for (const auto& fault : violations(rules, facts)) {
        ids.push_back(fault.rule);
    }
    return ids;
}

using Ids = std::vector<std::string>;

TEST(SupportRules, ThePublishedLayoutsPassBothVersions) {
    EXPECT_EQ(broken(shipped_rules("nemo-rl@2026-08"), {}), Ids{});
    EXPECT_EQ(broken(shipped_rules("nemo-rl@2026-11"), {}), Ids{});
}

TEST(SupportRules, AllOfThemAreToldAtOnce) {
    EXPECT_EQ(broken(shipped_rules("nemo-rl@2026-08"),
                     {{"generate.colocated", "true"}, {"train.etp", "2"}, {"generate.pp", "2"}, {"train.virtual_pipeline", "2"}}),
              (Ids{"colocated", "train-etp", "virtual-pipeline", "generate-pp"}));
}

TEST(SupportRules, GenerationEpIsOneOrTpInAugustAndFreeInNovember) {
    EXPECT_EQ(broken(shipped_rules("nemo-rl@2026-08"), {{"generate.ep", "8"}}), Ids{});
    EXPECT_EQ(broken(shipped_rules("nemo-rl@2026-08"), {{"generate.ep", "16"}}), Ids{"generate-ep"});
    EXPECT_EQ(broken(shipped_rules("nemo-rl@2026-11"), {{"generate.ep", "16"}}), Ids{});
}

TEST(SupportRules, Fp8HangsOnWhereTheWeightsAreQuantised) {
    const auto rules = shipped_rules("nemo-rl@2026-08");
    // BF16 storage to blockwise FP8: rule 16. To MXFP8: allowed. FP8 storage: blockwise only, and not to MXFP8.
    EXPECT_EQ(broken(rules, {{"generate.dtype", "fp8"}}), Ids{"bf16-to-fp8"});
    EXPECT_EQ(broken(rules, {{"generate.dtype", "fp8"}, {"generate.is_mx", "true"}}), Ids{});
    EXPECT_EQ(broken(rules, {{"generate.dtype", "fp8"}, {"train.fp8_param", "true"}, {"train.fp8_recipe", "blockwise"}}), Ids{});
    EXPECT_EQ(broken(rules, {{"generate.dtype", "fp8"}, {"train.fp8_param", "true"}, {"train.fp8_recipe", "tensorwise"}, {"generate.is_mx", "true"}}),
              (Ids{"fp8-to-mxfp8", "fp8-recipe"}));
    EXPECT_EQ(broken(rules, {{"train.fp8_param", "true"}}), Ids{"fp8-storage"});
    EXPECT_EQ(broken(rules, {{"generate.dtype", "fp8"}, {"generate.is_mx", "true"}, {"dtype", "fp16"}}), Ids{"mxfp8-source"});
}

TEST(SupportRules, SglangIsToldAndItsSuggestionPasses) {
    auto facts = plain();
    facts["generate.engine"] = "sglang";
    for (const auto* name : {"nemo-rl@2026-08", "nemo-rl@2026-11"}) {
        const auto faults = violations(shipped_rules(name), facts);
        ASSERT_EQ(faults.size(), 1U);
        EXPECT_NE(faults[0].message.find(name), std::string::npos);
        auto mended = facts;
        mended[faults[0].nearest->field] = faults[0].nearest->value;
        EXPECT_TRUE(violations(shipped_rules(name), mended).empty());
    }
}

TEST(SupportRules, EverySuggestionMendsItsOwnRule) {
    for (const auto* name : {"nemo-rl@2026-08", "nemo-rl@2026-11"}) {
        const auto rules = shipped_rules(name);
        for (const auto& rule : rules.rules) {
            auto facts = plain();
            for (const auto& [fact, value] : rule.when) {
                facts[fact] = value;
            }
            facts[rule.fact] = "something else";
            const auto faults = violations(rules, facts);
            const auto fault = std::ranges::find(faults, rule.id, &Fault::rule);
            ASSERT_NE(fault, faults.end()) << rule.id;
            facts[fault->nearest->field] = fault->nearest->value;
            const auto after = violations(rules, facts);
            EXPECT_EQ(std::ranges::find(after, rule.id, &Fault::rule), after.end()) << rule.id;
        }
    }
}

TEST(SupportRules, NumbersAreThoseOfTheReferenceAndUnique) {
    // check_nccl_reshard_refit_support has 19 conditions.
    const auto rules = shipped_rules("nemo-rl@2026-08").rules;
    ASSERT_EQ(rules.size(), 19U);
    for (std::size_t i = 0; i < rules.size(); ++i) {
        EXPECT_EQ(rules[i].number, i + 1);
    }
}

}  // namespace
}  // namespace refit
