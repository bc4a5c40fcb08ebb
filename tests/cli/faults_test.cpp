// SPDX-License-Identifier: Apache-2.0
// What the program says to input that it cannot take, and that what it offers instead works.
#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../model/io/scratch.hpp"
#include "program.hpp"

namespace refit::testing_cli {
namespace {

using Words = std::vector<std::string>;

/// A refusal leaves stdout empty, and stderr within 100 columns but for commands to copy.
void expect_refused(const Outcome& outcome, int code) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("refit: ")) << outcome.err;
    for (const auto& line : lines_of(outcome.err)) {
        EXPECT_TRUE(line.size() <= 100 || line.starts_with("All of it:")) << line;
        EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
    }
}

struct CaseName {
    template <class Info>
    std::string operator()(const Info& info) const {
        return info.param.name;
    }
};

std::size_t faults_in(const std::string& text) {
    const auto lines = lines_of(text);
    return static_cast<std::size_t>(std::ranges::count_if(lines, [](const std::string& line) {
        return line.size() > 5 && std::isdigit(static_cast<unsigned char>(line[2])) != 0 &&
               line.substr(3, 2) == "  ";
    }));
}

struct Misspelling {
    const char* name;
    Words arguments;
    int code;
    Words expected;  ///< Each in stderr.
};

void PrintTo(const Misspelling& value, std::ostream* stream) {
    *stream << value.name;
}

class Misspelt : public testing::TestWithParam<Misspelling> {};

INSTANTIATE_TEST_SUITE_P(
    Words,
    Misspelt,
    testing::Values(
        Misspelling{"command", {"compar", "deepseek-v3-h100"}, 2, {"'compar'", "'compare'"}},
        Misspelling{"no_command", {}, 2, {"which command", "compare", "explain"}},
        Misspelling{"option", {"compare", "deepseek-v3-h100", "--modle", "x"}, 2, {"'--modle'", "'--model'"}},
        Misspelling{"option_with_value",
                    {"compare", "deepseek-v3-h100", "--tarin=tp2"},
                    2,
                    {"'--tarin'", "'--train'"}},
        Misspelling{"format", {"compare", "deepseek-v3-h100", "-o", "jsn"}, 2, {"'jsn'", "'json'"}},
        Misspelling{"set_without_value",
                    {"compare", "deepseek-v3-h100", "--set", "model"},
                    2,
                    {"FIELD=VALUE", "'model'"}},
        Misspelling{"empty_value", {"compare", "deepseek-v3-h100", "--train", ""}, 2, {"--train", "empty"}},
        Misspelling{"nothing_to_compare", {"compare"}, 2, {"which refit", "deepseek-v3-h100", "--model"}},
        Misspelling{
            "scenario", {"compare", "deepseek-v3-h10"}, 3, {"'deepseek-v3-h10'", "'deepseek-v3-h100'"}},
        Misspelling{"model",
                    {"compare", "deepseek-v3-h100", "--model", "kimi-k33"},
                    3,
                    {"'kimi-k33'", "'kimi-k3'", "--model kimi-k3\n"}},
        Misspelling{"hub_name",
                    {"compare", "deepseek-v3-h100", "--model", "deepseek-ai/DeepSeek-V4"},
                    3,
                    {"'deepseek-ai/DeepSeek-V3'", "--model deepseek-v3\n"}},
        Misspelling{"system",
                    {"compare", "deepseek-v3-h100", "--system", "h100"},
                    3,
                    {"'h100'", "'h100-nvl8'", "--system h100-nvl8\n"}},
        Misspelling{
            "engine", {"compare", "deepseek-v3-h100", "--engine", "nemo"}, 3, {"'nemo'", "'nemo-rl'"}},
        Misspelling{"key",
                    {"compare", "deepseek-v3-h100", "--set", "trian.gpus=8"},
                    3,
                    {"'trian.gpus'", "'train.gpus'"}},
        Misspelling{
            "method", {"compare", "deepseek-v3-h100", "--method", "reshrd"}, 3, {"'reshrd'", "'reshard'"}},
        Misspelling{"coverage",
                    {"compare", "deepseek-v3-h100", "--coverage", "fnn"},
                    3,
                    {"'fnn'", "'ffn'", "--coverage ffn\n"}},
        Misspelling{"axis", {"compare", "deepseek-v3-h100", "--train", "tq4"}, 3, {"tq4", "'tp'"}},
        Misspelling{"rules",
                    {"compare", "deepseek-v3-h100", "--set", "engine.rules=2026-10"},
                    3,
                    {"'2026-10'", "2026-11"}},
        Misspelling{"published",
                    {"compare", "deepseek-v3-h100", "--set", "published=post-dsv3-h100-brodcast"},
                    3,
                    {"'post-dsv3-h100-broadcast'"}}),
    CaseName{});

TEST_P(Misspelt, WordIsNamedWithTheNearest) {
    const auto& [name, arguments, code, expected] = GetParam();
    const auto outcome = run_refit(arguments);
    expect_refused(outcome, code);
    for (const auto& text : expected) {
        EXPECT_NE(outcome.err.find(text), std::string::npos) << "no \"" << text << "\" in\n" << outcome.err;
    }
}

TEST(Faults, AreAllToldAtOnce) {
    const auto outcome = run_refit({"compare",
                                    "deepseek-v3-h100",
                                    "--method",
                                    "reshrd",
                                    "--step-time",
                                    "60",
                                    "--system",
                                    "h100",
                                    "--coverage",
                                    "fnn",
                                    "--set",
                                    "system.nic=400",
                                    "--set",
                                    "a.b=1",
                                    "--train",
                                    "tq4"});
    expect_refused(outcome, 3);
    EXPECT_EQ(faults_in(outcome.err), 7U) << outcome.err;
}

TEST(Faults, ShowColourOnATerminalOnlyWhereItIsWanted) {
    if (!has_terminals()) {
        GTEST_SKIP() << "this machine gives no pseudo-terminals";
    }
    Setting setting;
    setting.on_terminal = true;
    setting.environment = {{"TERM", "xterm"}};
    const Words arguments{"compare", "deepseek-v3-h10"};
    EXPECT_NE(run_refit(arguments, setting).out.find('\033'), std::string::npos);
    EXPECT_EQ(run_refit({"compare", "deepseek-v3-h10", "--no-color"}, setting).out.find('\033'),
              std::string::npos);
    setting.environment = {{"TERM", "dumb"}};
    EXPECT_EQ(run_refit(arguments, setting).out.find('\033'), std::string::npos);
    setting.environment = {{"TERM", "xterm"}, {"NO_COLOR", "1"}};
    EXPECT_EQ(run_refit(arguments, setting).out.find('\033'), std::string::npos);
    setting.environment = {{"TERM", "xterm"}, {"NO_COLOR", ""}};
    EXPECT_NE(run_refit(arguments, setting).out.find('\033'), std::string::npos);
}

struct Refusal {
    const char* name;
    Words arguments;  ///< After "compare".
    int code;
    Words rules;  ///< "[heads]": each of these, in stderr.
};

void PrintTo(const Refusal& value, std::ostream* stream) {
    *stream << value.name;
}

class Refused : public testing::TestWithParam<Refusal> {};

INSTANTIATE_TEST_SUITE_P(
    Settings,
    Refused,
    testing::Values(
        Refusal{"train_product",
                {"deepseek-v3-h100", "--train", "tp3.pp16.ep16"},
                4,
                {"[layout-product]", "[heads]", "[width]"}},
        Refusal{"generate_product",
                {"deepseek-v3-h100", "--generate", "tp24"},
                4,
                {"[layout-product]", "[heads]", "[width]"}},
        Refusal{"both_sides",
                {"deepseek-v3-h100", "--train", "pp7.ep5", "--generate", "tp48"},
                4,
                {"[layout-product]", "[experts]", "[heads]"}},
        Refusal{"with_dtype",
                {"deepseek-v3-h100", "--train", "tp3.pp16.ep16", "--generate-dtype", "fp8"},
                4,
                {"[layout-product]", "[dtype-pair]"}},
        Refusal{"dtype_alone", {"deepseek-v3-h100", "--generate-dtype", "fp8"}, 4, {"[dtype-pair]"}},
        Refusal{"train_dtype", {"deepseek-v3-h100", "--dtype", "fp8"}, 4, {"[fp8-block]"}},
        Refusal{"fp8_model", {"kimi-k3-h100", "--dtype", "fp8"}, 5, {"[fp8-model]"}},
        Refusal{"gpus_of_both",
                {"deepseek-v3-h100", "--train-gpus", "250", "--gen-gpus", "500"},
                4,
                {"[layout-product]"}},
        Refusal{"dp_in_flag", {"deepseek-v3-h100", "--generate", "tp32.dp9"}, 4, {"[layout-product]"}},
        Refusal{"experts_over_groups", {"kimi-k3-h100", "--generate", "tp16.ep24"}, 4, {"[generate-ep]"}},
        Refusal{"pipeline",
                {"deepseek-v3-h100", "--set", "train.pipeline.first=30", "--set", "train.pipeline.last=20"},
                4,
                {"[pipeline-split]"}},
        Refusal{"kv_heads", {"qwen3-235b-h100", "--generate", "tp6", "--gen-gpus", "96"}, 4, {"[heads]"}},
        Refusal{"frameworks",
                {"deepseek-v3-h100", "--set", "train.engine=ddp", "--set", "generate.engine=sglang"},
                4,
                {"[unknown-value]"}},
        Refusal{"names",
                {"deepseek-v3-h100", "--model", "deepsek-v3", "--system", "h100", "--coverage", "fnn"},
                3,
                {"[unknown-model]", "[unknown-system]", "[unknown-coverage]"}},
        Refusal{"nothing_but_a_model", {"--model", "qwen3-30b-a3b"}, 3, {"[missing-field]"}},
        Refusal{"odd_characters",
                {"deepseek-v3-h100", "--set", "name=it's $HOME", "--system", "h100", "--coverage", "fnn"},
                3,
                {"[unknown-system]"}},
        Refusal{"rates",
                {"deepseek-v3-h100", "--set", "system.nic=400gb/s", "--set", "system.nvlink=450"},
                3,
                {"[unit-case]", "[unit-missing]"}},
        Refusal{"placement",
                {"deepseek-v3-h100", "--set", "placement.gpus_used_per_domain=72"},
                3,
                {"[number-range]"}}),
    CaseName{});

/// The words behind "try" on each line that offers flags.
Words suggested_flags(const std::string& text) {
    Words flags;
    for (const auto& line : lines_of(text)) {
        const auto begin = line.find("try    --");
        if (begin != std::string::npos) {
            const auto flag = line.substr(begin + 7);
            flags.push_back(flag.substr(0, flag.find("   (")));
        }
    }
    return flags;
}

std::string whole_command(const std::string& text) {
    constexpr std::string_view kLead = "All of it:  ";
    for (const auto& line : lines_of(text)) {
        if (line.starts_with(kLead)) {
            return line.substr(kLead.size());
        }
    }
    return {};
}

TEST_P(Refused, SettingIsRefusedWithEveryRule) {
    auto arguments = GetParam().arguments;
    arguments.insert(arguments.begin(), "compare");
    const auto outcome = run_refit(arguments);
    expect_refused(outcome, GetParam().code);
    for (const auto& rule : GetParam().rules) {
        EXPECT_NE(outcome.err.find(rule), std::string::npos) << outcome.err;
    }
}

TEST_P(Refused, SettingIsAcceptedWithWhatIsOffered) {
    Setting setting;
    setting.environment = {{"REFIT_CALLED_AS", "'" REFIT_PROGRAM "'"}};
    auto arguments = GetParam().arguments;
    arguments.insert(arguments.begin(), "compare");
    const auto outcome = run_refit(arguments, setting);
    const auto flags = suggested_flags(outcome.err);
    ASSERT_FALSE(flags.empty()) << outcome.err;
    // A later flag overrides an earlier one, so the offers go behind what was asked; a shell takes them as
    // printed.
    std::string offered;
    for (const auto& flag : flags) {
        offered += " " + flag;
    }
    Words shell{"sh", "-c", "\"$@\"" + offered, "sh", REFIT_PROGRAM};
    shell.insert(shell.end(), arguments.begin(), arguments.end());
    const auto mended = run_program(shell, setting);
    EXPECT_EQ(mended.code, 0) << offered << "\n" << mended.err;

    const auto command = whole_command(outcome.err);
    EXPECT_EQ(command.empty(), flags.size() < 2) << outcome.err;
    if (!command.empty()) {
        const auto whole = run_program({"sh", "-c", command}, setting);
        EXPECT_EQ(whole.code, 0) << command << "\n" << whole.err;
        EXPECT_EQ(whole.out, mended.out);
    }
}

// 61 layers less 30 do not divide over 9 stages. The scenario's own last stage gives way to the new layout,
// but the first stage that was asked for must not be forgotten.
TEST(Faults, KeepAStageThatWasAskedForBesideANewLayout) {
    const auto outcome = run_refit(
        {"compare", "deepseek-v3-h100", "--set", "train.pipeline.first=30", "--train", "tp2.pp10.ep2@100"});
    expect_refused(outcome, 4);
    EXPECT_NE(outcome.err.find("[pipeline-split]"), std::string::npos) << outcome.err;
    const auto flags = suggested_flags(outcome.err);
    ASSERT_EQ(flags.size(), 1U) << outcome.err;
    EXPECT_TRUE(flags.front().starts_with("--set train.pipeline.first=")) << flags.front();
    EXPECT_EQ(compare_json({"deepseek-v3-h100", "--train", "tp2.pp10.ep2@100", "--set", flags.front().substr(6)})
                  .at("scenario")
                  .at("train")
                  .at("stage_layers")
                  .size(),
              10U);
}

TEST(Faults, AskForTheUnitOfAStep) {
    const auto outcome = run_refit({"compare", "deepseek-v3-h100", "--step-time", "120"});
    expect_refused(outcome, 3);
    EXPECT_NE(outcome.err.find("--step-time 120s"), std::string::npos) << outcome.err;
}

TEST(Faults, OfAMethodAreToldBesideTheOthers) {
    const auto outcome = run_refit({"compare", "deepseek-v3-h100", "--generate", "tp32.pp2", "-o", "json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const auto report = nlohmann::json::parse(outcome.out);
    const auto hybrid = method_of(report, "hybrid");
    EXPECT_FALSE(hybrid.at("refused").front().at("code").get<std::string>().empty());
    EXPECT_FALSE(hybrid.contains("seconds"));
    EXPECT_TRUE(report.at("speedup").is_null());
    EXPECT_EQ(
        run_refit({"compare", "deepseek-v3-h100", "--generate", "tp32.pp2", "--method", "reshard"}).code, 4);
    const auto field = hybrid.at("refused").front().at("nearest");
    EXPECT_EQ(field.at("field"), "generate.layout");
    const auto mended = compare_json(
        {"deepseek-v3-h100", "--generate", field.at("value").get<std::string>(), "--method", "reshard"});
    EXPECT_TRUE(method_of(mended, "hybrid").at("refused").is_null());
}

class ScenarioFile : public testing_io::Scratch {
protected:
    /// Expects exit 3, the place in the file, and the word, in stderr.
    void expect_fault(const std::string& text, const std::string& place, const std::string& word) {
        static_cast<void>(write("s.json", text));
        Setting setting;
        setting.folder = path("");
        const auto outcome = run_refit({"compare", "s.json"}, setting);
        expect_refused(outcome, 3);
        EXPECT_NE(outcome.err.find("s.json:" + place), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
    }
    static std::string scenario(const std::string& schema,
                                const std::string& version,
                                const std::string& gpus) {
        return R"({"schema": ")" + schema + R"(", "schema_version": ")" + version + R"(", "name": "own",
 "model": "qwen3-30b-a3b", "train": {"gpus": )" +
               gpus + R"(, "layout": "pp2.ep8"},
 "generate": {"gpus": 16, "layout": "tp2"}, "system": "h100-nvl8"})";
    }
};

TEST_F(ScenarioFile, OfOnesOwnIsCompared) {
    const auto file = write("own.json", scenario("refit.scenario", "1.7", "32"));
    const auto report = compare_json({file.string()});
    EXPECT_EQ(report.at("scenario").at("name"), "own");
    EXPECT_EQ(report.at("scenario").at("train").at("gpus"), 32);
    EXPECT_EQ(report.at("scenario").at("generate").at("layout"), "tp2.dp8");
}

TEST_F(ScenarioFile, IsRefusedWithThePlaceOfTheFault) {
    const auto whole = scenario("refit.scenario", "1.0", "32");
    expect_fault(whole.substr(0, whole.size() - 30), "3:", "truncated");
    expect_fault("", "1:1", "truncated");
    expect_fault(scenario("refit.scenaro", "1.0", "32"), " /schema", "refit.scenario");
    expect_fault(scenario("refit.scenario", "2.0", "32"), " /schema_version", "\"2.0\"");
    expect_fault(scenario("refit.scenario", "1.0", "NaN"), "2:46", "not valid JSON");
    expect_fault(scenario("refit.scenario", "1.0", "1e999"), "2:46", "out of range");
    expect_fault(scenario("refit.scenario", "1.0", "2.5"), " /train/gpus", "'2.5'");
    expect_fault(scenario("refit.scenario", "1.0", "0"), " /train/gpus", "'0'");
    expect_fault(scenario("refit.scenario", "1.0", "[32]"), " /train/gpus", "single value");
    expect_fault(
        scenario("refit.scenario", "1.0", R"(32, "layot": "tp2")"), " /train/layot", "'train.layout'");
    expect_fault("[1]", " /", "JSON object");
}

}  // namespace
}  // namespace refit::testing_cli
