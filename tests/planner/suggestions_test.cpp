// SPDX-License-Identifier: Apache-2.0
// What is offered for bad layouts, as `refit check` offers it: by the layout and by the methods.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/methods.hpp"

namespace refit {
namespace {

using Texts = std::vector<std::string>;

std::string described(const io::ScenarioDraft& draft, const Faults& faults) {
    std::string text;
    for (const auto& [name, field] : draft.fields()) {
        text += name + " = " + field.text + "\n";
    }
    for (const auto& fault : faults) {
        text += fault.message + " [" + fault.rule + "]" +
                (fault.nearest ? " -> " + fault.nearest->field + " = " + fault.nearest->value : "") + "\n";
    }
    return text;
}

/// All that `refit check` tells of a draft: what is wrong with it, else what the engine's two methods refuse.
Faults check(const io::ScenarioDraft& draft, const io::Library& library) {
    const auto scenario = io::resolve(draft, library);
    if (!scenario) {
        return scenario.error();
    }
    const auto workload = Workload::make(*scenario);
    Faults faults;
    for (const auto method : {Method::kGatherBroadcast, Method::kHybrid}) {
        static_cast<void>(take(make_plan(method, *scenario, workload), faults));
    }
    return faults;
}

class RandomDrafts {
public:
    explicit RandomDrafts(std::uint32_t seed) : random_{seed} {}

    io::ScenarioDraft next() {
        draft_ = {};
        set("model",
            any_of({"deepseek-v3",
                    "kimi-k2",
                    "kimi-k3",
                    "qwen3-235b-a22b",
                    "qwen3-30b-a3b",
                    "qwen3.8-2.4t-a95b",
                    "nemotron-3-nano-30b-a3b",
                    "nemotron-3-ultra-550b-a55b",
                    "llama-3.1-70b",
                    "qwen3-32b"}));
        set("system", any_of({"h100-nvl8", "h200-nvl8", "b200-nvl8", "gb200-nvl72"}));
        set("engine.coverage", "ffn");
        for (const std::string side : {"train", "generate"}) {
            // A third of them are sound in many cases, so that later checks have their turn.
            const bool is_train = side == "train";
            const auto sound =
                is_train ? any_of({"tp2.pp4.ep8.etp2", "tp4.etp2.ep16", "tp4.pp2.ep32", "tp2.pp8.ep8.etp4"})
                         : any_of({"tp32", "tp16", "tp64.ep64", "tp8.pp2", "tp8.ep16"});
            set(side + ".layout",
                (below(3) == 0 ? sound : layout()) + (below(6) == 0 ? any_of({"@8", "@48", "@512"}) : ""));
            if (below(3) == 0) {
                set(side + ".gpus", "1024");
            } else if (below(10) > 0) {
                set(side + ".gpus",
                    any_of({"1", "2", "6", "8", "16", "24", "32", "64", "96", "128", "256", "500", "1024"}));
            }
        }
        if (below(8) == 0) {
            set("generate.dtype", "fp8");
        }
        if (below(6) == 0) {
            set("train.pipeline.first", std::to_string(1 + below(40)));
        }
        if (below(6) == 0) {
            set("train.pipeline.last", std::to_string(1 + below(40)));
        }
        if (below(8) == 0) {
            set("train.pipeline.layout",
                any_of({"Et*20|t*20|t*21L", "E|(tt|)*30tmL", "tt|tt", "Et*24|t*24L", "E(t", "Et*94L"}));
        }
        if (below(8) == 0) {
            set("train.virtual_pipeline", std::to_string(1 + below(4)));
        }
        if (below(6) == 0) {
            set("dtype", any_of({"fp8", "fp16"}));
        }
        if (below(8) == 0) {
            set("train.fp8_param", any_of({"true", "false"}));
            set("train.fp8_recipe", any_of({"blockwise", "delayed"}));
        }
        return draft_;
    }

private:
    std::size_t below(std::size_t count) {
        return std::uniform_int_distribution<std::size_t>{0, count - 1}(random_);
    }
    std::string any_of(const Texts& texts) { return texts[below(texts.size())]; }

    std::string layout() {
        auto text = "tp" + any_of({"1", "2", "3", "4", "5", "8", "12", "16", "32", "64"});
        for (const auto& [axis, sizes] :
             std::map<std::string, Texts>{{"pp", {"2", "3", "4", "8", "16", "70", "4:5:6", "8:1"}},
                                          {"ep", {"2", "6", "8", "16", "32", "64", "600"}},
                                          {"etp", {"2", "7"}},
                                          {"cp", {"2", "3"}},
                                          {"dp", {"2", "5", "8"}}}) {
            const bool is_common = axis == "pp" || axis == "ep";
            if (below(is_common ? 2 : 6) == 0) {
                text += "." + axis + any_of(sizes);
            }
        }
        return text;
    }

    void set(const std::string& name, const std::string& text) {
        const auto precedence = below(2) == 0 ? io::Precedence::kFile : io::Precedence::kFlag;
        draft_.set(name, {text, io::DraftField::Kind::kText, precedence, name});
    }

    std::mt19937 random_;
    io::ScenarioDraft draft_;
};

bool tells(const Faults& faults, const Fault& fault) {
    return std::ranges::any_of(faults, [&](const Fault& other) { return other.message == fault.message; });
}

/// Whether the suggestion is for the layout or the GPUs of a side where both are suggested: then they go
/// together.
bool is_half_of_a_pair(const Suggestion& suggestion, const Faults& faults) {
    const auto side = suggestion.field.substr(0, suggestion.field.find('.'));
    const auto is_suggested = [&](const std::string& field) {
        return std::ranges::any_of(
            faults, [&](const Fault& fault) { return fault.nearest && fault.nearest->field == field; });
    };
    const bool is_either = suggestion.field == side + ".layout" || suggestion.field == side + ".gpus";
    return is_either && is_suggested(side + ".layout") && is_suggested(side + ".gpus");
}

/// Follows every suggestion, and again those of what is told then: the methods look at a layout only once it
/// is sound. Returns the draft; each round takes away all that was told, and two rounds are enough.
io::ScenarioDraft mended(io::ScenarioDraft draft, const io::Library& library) {
    for (int round = 0; round < 2; ++round) {
        for (const auto& fault : check(draft, library)) {
            EXPECT_TRUE(fault.nearest.has_value()) << described(draft, {fault});
            if (fault.nearest) {
                draft.apply(*fault.nearest);
            }
        }
    }
    return draft;
}

// Done when: 500 random bad layouts each get suggestions that pass `check`.
TEST(Suggestions, OfFiveHundredRandomBadLayoutsPassTheCheck) {
    const auto library = shipped_library();
    RandomDrafts drafts{2026};
    int bad = 0;
    std::map<std::string, int> rules;
    std::set<std::string> models;
    while (bad < 500 && !HasFailure()) {
        const auto draft = drafts.next();
        const auto faults = check(draft, library);
        if (faults.empty()) {
            continue;
        }
        ++bad;
        models.insert(draft.find("model")->text);
        for (const auto& fault : faults) {
            ++rules[fault.rule];
            ASSERT_TRUE(fault.nearest.has_value()) << described(draft, faults);
            auto changed = draft;
            changed.apply(*fault.nearest);
            if (!is_half_of_a_pair(*fault.nearest, faults)) {
                ASSERT_FALSE(tells(check(changed, library), fault)) << described(draft, {fault});
            }
        }
        const auto cured = mended(draft, library);
        const auto left = check(cured, library);
        ASSERT_TRUE(left.empty()) << described(draft, faults) << "became\n" << described(cured, left);
    }
    EXPECT_EQ(bad, 500);
    EXPECT_EQ(models.size(), 10U);
    for (const auto* rule : {"gpu-memory",
                             "heads",
                             "width",
                             "experts",
                             "layout-product",
                             "missing-field",
                             "pipeline-split",
                             "pipeline-stages",
                             "generate-ep",
                             "generate-axis",
                             "fp8-block",
                             "fp8-model",
                             "fp8-recipe",
                             "train-dtype",
                             "dtype-pair",
                             "layout-string",
                             "virtual-pipeline",
                             "train-etp"}) {
        EXPECT_GE(rules[rule], 1) << rule;
    }
}

}  // namespace
}  // namespace refit
