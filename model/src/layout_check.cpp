// SPDX-License-Identifier: Apache-2.0
#include "refit/layout_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace refit {
namespace {

/// What tensor parallelism must divide, once for each kind of unit.
struct DivisibleUnits {
    std::string name;
    std::string example;  ///< A tensor that has them.
    std::uint64_t count;
    bool is_key_value;
    bool is_expert;
};

/// All that a layout has to respect, gathered once: the search for a suggestion asks thousands of times.
struct ModelLimits {
    std::uint32_t layers = 0;
    std::uint32_t experts = 0;
    std::uint64_t vocabulary_rows = 0;
    std::uint64_t key_value_heads = 0;
    std::uint64_t fused_rows = 0;  ///< Of the trainers' qkv weight; 0 without one.
    std::vector<DivisibleUnits> units;

    explicit ModelLimits(const Inventory& model) : layers{model.layers()}, experts{model.experts()} {
        for (const auto& entry : model.payload()) {
            add(entry);
        }
    }

private:
    void add(const ParameterClass& entry) {
        const bool is_key_value = entry.sharding == Sharding::kKey || entry.sharding == Sharding::kValue;
        if (entry.sharding == Sharding::kVocabulary) {
            vocabulary_rows = entry.shape[0];
        }
        if (entry.sharding == Sharding::kQuery) {
            key_value_heads = entry.heads.key_value;
            fused_rows = entry.heads.query * entry.heads.rows_per_query_head +
                         2 * entry.heads.key_value * entry.heads.rows_per_key_value_head;
        }
        const bool is_known = std::ranges::any_of(units, [&](const auto& other) {
            return other.name == entry.units_name && other.count == entry.units;
        });
        if (entry.units > 0 && entry.sharding != Sharding::kReplicated && !is_known) {
            units.push_back({entry.units_name, entry.name, entry.units, is_key_value, entry.is_expert()});
        }
    }
};

std::string text_of(std::uint64_t value) { return std::to_string(value); }

class Checker {
public:
    explicit Checker(const char* side) : side_{side} {}

    void add(const char* axis, std::uint32_t value, const char* rule, std::string message) {
        faults_.push_back({ErrorCode::kInfeasible,
                           rule,
                           std::string{side_} + "." + axis + " = " + text_of(value) + ": " + std::move(message),
                           std::string{side_} + ".layout"});
    }

    /// Every unit that `tp` has to divide; a multiple of the KV heads will do too, which are then replicated
    /// (vLLM) or whose fused rows are cut (Megatron).
    void divide_units(const ModelLimits& model, std::uint32_t tp, std::uint32_t expert_tp) {
        for (const auto& unit : model.units) {
            const auto ways = unit.is_expert ? expert_tp : tp;
            if (unit.count % ways == 0 || (unit.is_key_value && ways % unit.count == 0)) {
                continue;
            }
            const bool is_width = unit.name.ends_with("width") || unit.name == "rows";
            add(unit.is_expert ? "etp" : "tp",
                ways,
                is_width ? "width" : "heads",
                (is_width ? unit.name + " " + text_of(unit.count) + " is" : text_of(unit.count) + " " + unit.name + " are") +
                    " not divisible by " + text_of(ways) + " (" + unit.example + ")");
        }
    }

    [[nodiscard]] Faults& faults() noexcept { return faults_; }

private:
    const char* side_;
    Faults faults_;
};

/// The trainers' fused qkv rows are cut evenly where TP exceeds the KV heads, so the rows must divide.
void check_fused_rows(const ModelLimits& model, std::uint32_t tp, Checker& checker) {
    if (model.fused_rows > 0 && model.key_value_heads % tp != 0 && model.fused_rows % tp != 0) {
        checker.add("tp", tp, "heads", text_of(model.fused_rows) + " fused qkv rows are not divisible by " + text_of(tp));
    }
}

void check_pipeline(const LayoutText& text, const ModelLimits& model, Checker& checker, TrainLayout& layout) {
    auto split = split_layers(model.layers, text);
    if (split) {
        layout.stage_layers = std::move(*split);
        return;
    }
    for (auto& fault : split.error()) {
        checker.add("pp", layout.pp, fault.rule.c_str(), std::move(fault.message));
    }
}

std::pair<TrainLayout, Faults> examine_train(const LayoutText& text, std::uint32_t gpus, const ModelLimits& model) {
    Checker checker{"train"};
    TrainLayout layout;
    layout.gpus = gpus;
    layout.tp = text.tp.value_or(1);
    layout.cp = text.cp.value_or(1);
    layout.pp = text.pp.value_or(1);
    layout.ep = text.ep.value_or(1);
    layout.etp = text.etp.value_or(1);
    const std::uint64_t dense = std::uint64_t{layout.tp} * layout.cp * layout.pp;
    const std::uint64_t expert = std::uint64_t{layout.etp} * layout.ep * layout.pp;
    const auto product = text_of(gpus) + " GPUs / (tp " + text_of(layout.tp) +
                         (layout.cp > 1 ? " x cp " + text_of(layout.cp) : "") + " x pp " + text_of(layout.pp) + " = " +
                         text_of(dense) + ")";
    if (dense > gpus || gpus % dense != 0) {
        checker.add("tp", layout.tp, "layout-product", product + " is not whole");
    } else if (layout.dp = static_cast<std::uint32_t>(gpus / dense); text.dp && *text.dp != layout.dp) {
        checker.add("dp", *text.dp, "layout-product", product + " is " + text_of(layout.dp));
    }
    if (model.experts > 0 && (expert > gpus || gpus % expert != 0)) {
        checker.add("ep",
                    layout.ep,
                    "layout-product",
                    text_of(gpus) + " GPUs / (" + (layout.etp > 1 ? "etp " + text_of(layout.etp) + " x " : "") + "ep " +
                        text_of(layout.ep) + " x pp " +
                        text_of(layout.pp) + " = " + text_of(expert) + ") is not whole");
    } else {
        layout.edp = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, gpus / expert));
    }
    if (model.experts == 0 && (layout.ep > 1 || layout.etp > 1)) {
        checker.add("ep", layout.ep, "experts", "the model has no experts to spread");
    } else if (model.experts > 0 && model.experts % layout.ep != 0) {
        checker.add("ep", layout.ep, "experts", text_of(model.experts) + " experts are not divisible by " + text_of(layout.ep));
    }
    checker.divide_units(model, layout.tp, layout.etp);
    check_fused_rows(model, layout.tp, checker);
    check_pipeline(text, model, checker, layout);
    return {layout, std::move(checker.faults())};
}

void check_generate_experts(const ModelLimits& model, const GenerateLayout& layout, Checker& checker) {
    if (layout.ep == 1) {
        return;
    }
    if (model.experts == 0) {
        checker.add("ep", layout.ep, "experts", "the model has no experts to spread");
        return;
    }
    if (layout.ep > model.experts) {
        checker.add("ep", layout.ep, "experts", "there are only " + text_of(model.experts) + " experts");
    }
    const std::uint64_t ranks = std::uint64_t{layout.tp} * layout.dp;
    const bool spans_engines = layout.pp == 1 && layout.ep % layout.tp == 0 && ranks % layout.ep == 0;
    if (layout.ep != layout.tp && !spans_engines) {
        checker.add("ep",
                    layout.ep,
                    "generate-ep",
                    "vLLM spreads experts over whole tensor-parallel groups: ep must be 1, tp, or without pp a multiple of tp that divides tp x dp = " +
                        text_of(ranks));
    }
}

std::pair<GenerateLayout, Faults> examine_generate(const LayoutText& text, std::uint32_t gpus, const ModelLimits& model) {
    Checker checker{"generate"};
    GenerateLayout layout;
    layout.gpus = gpus;
    layout.tp = text.tp.value_or(1);
    layout.pp = text.pp.value_or(1);
    layout.ep = text.ep.value_or(1);
    for (const auto& [axis, value] : {std::pair{"cp", text.cp}, std::pair{"etp", text.etp}}) {
        if (value.value_or(1) != 1) {
            checker.add(axis, *value, "generate-axis", "generation has no such axis");
        }
    }
    if (text.first_stage_layers) {
        checker.add("pp", layout.pp, "generate-axis", "vLLM splits layers evenly; first and last stage cannot be given");
    }
    const std::uint64_t engine = std::uint64_t{layout.tp} * layout.pp;
    const auto product = text_of(gpus) + " GPUs / (tp " + text_of(layout.tp) + " x pp " + text_of(layout.pp) + " = " +
                         text_of(engine) + ")";
    if (engine > gpus || gpus % engine != 0) {
        checker.add("tp", layout.tp, "layout-product", product + " is not whole");
    } else if (layout.dp = static_cast<std::uint32_t>(gpus / engine); text.dp && *text.dp != layout.dp) {
        checker.add("dp", *text.dp, "layout-product", product + " is " + text_of(layout.dp));
    }
    if (layout.pp > model.layers) {
        checker.add("pp", layout.pp, "pipeline-stages", "the model has only " + text_of(model.layers) + " layers");
    }
    check_generate_experts(model, layout, checker);
    checker.divide_units(model, layout.tp, layout.ep > 1 ? 1 : layout.tp);
    if ((model.vocabulary_rows + 63) / 64 * 64 % layout.tp != 0) {
        checker.add("tp", layout.tp, "width", "the vocabulary, padded to a multiple of 64, is not divisible by it");
    }
    return {layout, std::move(checker.faults())};
}

std::vector<std::uint32_t> divisors(std::uint32_t number) {
    std::vector<std::uint32_t> divisors;
    for (std::uint32_t i = 1; std::uint64_t{i} * i <= number; ++i) {
        if (number % i == 0) {
            divisors.push_back(i);
            if (i != number / i) {
                divisors.push_back(number / i);
            }
        }
    }
    std::ranges::sort(divisors);
    return divisors;
}

/// How far a size is from the wanted one: a change counts, and its factor.
double distance(std::uint32_t size, std::uint32_t wanted) {
    return size == wanted ? 0.0 : 1.0 + std::abs(std::log2(static_cast<double>(size) / wanted));
}

using Candidates = std::vector<std::pair<double, LayoutText>>;

Candidates train_candidates(const LayoutText& wanted, std::uint32_t gpus, const ModelLimits& model) {
    Candidates candidates;
    const auto sizes = divisors(gpus);
    const auto ep_sizes = divisors(std::max(model.experts, 1U));
    std::vector<std::uint32_t> cp_sizes{1};
    if (wanted.cp.value_or(1) > 1) {
        cp_sizes.push_back(*wanted.cp);
    }
    for (const auto tp : sizes) {
        for (const auto pp : sizes) {
            for (const auto cp : cp_sizes) {
                if (gpus % (std::uint64_t{tp} * pp * cp) != 0) {
                    continue;
                }
                for (const auto ep : ep_sizes) {
                    LayoutText text;
                    text.tp = tp;
                    text.cp = cp;
                    text.pp = pp;
                    text.ep = ep;
                    auto score = distance(tp, wanted.tp.value_or(1)) + distance(cp, wanted.cp.value_or(1)) +
                                 distance(pp, wanted.pp.value_or(1)) + distance(ep, wanted.ep.value_or(1));
                    candidates.emplace_back(score + 0.5, text);
                    if (pp == wanted.pp.value_or(1) && (wanted.first_stage_layers || wanted.last_stage_layers)) {
                        text.first_stage_layers = wanted.first_stage_layers;
                        text.last_stage_layers = wanted.last_stage_layers;
                        candidates.emplace_back(score, text);
                    }
                }
            }
        }
    }
    return candidates;
}

Candidates generate_candidates(const LayoutText& wanted, std::uint32_t gpus) {
    Candidates candidates;
    const auto sizes = divisors(gpus);
    for (const auto tp : sizes) {
        for (const auto pp : sizes) {
            if (gpus % (std::uint64_t{tp} * pp) != 0) {
                continue;
            }
            for (const auto ep : sizes) {
                if (ep != 1 && ep % tp != 0) {
                    continue;
                }
                LayoutText text;
                text.tp = tp;
                text.pp = pp;
                text.ep = ep;
                candidates.emplace_back(distance(tp, wanted.tp.value_or(1)) + distance(pp, wanted.pp.value_or(1)) +
                                            distance(ep, wanted.ep.value_or(1)),
                                        text);
            }
        }
    }
    return candidates;
}

/// The nearest candidate that `examine` finds no fault with, as text.
template <class Examine>
std::optional<std::string> nearest_valid(Candidates candidates, const Examine& examine) {
    std::ranges::stable_sort(candidates, {}, &std::pair<double, LayoutText>::first);
    for (const auto& [score, text] : candidates) {
        const auto [layout, faults] = examine(text);
        if (faults.empty()) {
            return to_text(layout);
        }
    }
    return std::nullopt;
}

void suggest(Faults& faults, const char* field, const std::optional<std::string>& layout) {
    for (auto& fault : faults) {
        if (layout) {
            fault.nearest = Suggestion{field, *layout, "the nearest layout that works on these GPUs"};
        }
    }
}

}  // namespace

Result<TrainLayout> make_train_layout(const LayoutText& text, std::uint32_t gpus, const Inventory& model) {
    const ModelLimits limits{model};
    auto [layout, faults] = examine_train(text, gpus, limits);
    if (faults.empty()) {
        return layout;
    }
    suggest(faults, "train.layout", nearest_valid(train_candidates(text, gpus, limits), [&](const LayoutText& candidate) {
                return examine_train(candidate, gpus, limits);
            }));
    return fail(std::move(faults));
}

Result<GenerateLayout> make_generate_layout(const LayoutText& text, std::uint32_t gpus, const Inventory& model) {
    const ModelLimits limits{model};
    auto [layout, faults] = examine_generate(text, gpus, limits);
    if (faults.empty()) {
        return layout;
    }
    suggest(faults, "generate.layout", nearest_valid(generate_candidates(text, gpus), [&](const LayoutText& candidate) {
                return examine_generate(candidate, gpus, limits);
            }));
    return fail(std::move(faults));
}

namespace {

/// Projections whose part of the cut dimension is no multiple of a block: by kind of unit, with an example.
std::vector<const ParameterClass*> cut_blocks(const GenerateLayout& layout, const Inventory& model) {
    constexpr std::uint64_t kBlock = 128;
    std::vector<const ParameterClass*> cut;
    for (const auto& entry : model.classes()) {
        const bool is_projection = entry.part == ModelPart::kText && entry.shape.size() == 2 && !entry.units_name.empty() &&
                                   entry.sharding != Sharding::kReplicated && entry.sharding != Sharding::kVocabulary;
        const auto ways = entry.is_expert() && layout.ep > 1 ? 1 : layout.tp;
        const auto extent = is_projection ? entry.shape[entry.sharding == Sharding::kRow ? 1 : 0] : 0;
        const bool is_key_value = entry.sharding == Sharding::kKey || entry.sharding == Sharding::kValue;
        const auto parts = is_key_value ? std::min<std::uint64_t>(ways, entry.heads.key_value) : ways;
        const bool is_known = std::ranges::any_of(cut, [&](const auto* other) { return other->units_name == entry.units_name; });
        if (is_projection && !is_known && extent / parts % kBlock != 0) {
            cut.push_back(&entry);
        }
    }
    return cut;
}

}  // namespace

Faults check_fp8_blocks(const GenerateLayout& layout, const Inventory& model) {
    const auto cut = cut_blocks(layout, model);
    if (cut.empty()) {
        return {};
    }
    LayoutText wanted;
    wanted.tp = layout.tp;
    wanted.pp = layout.pp;
    wanted.ep = layout.ep;
    const ModelLimits limits{model};
    const auto nearest = nearest_valid(generate_candidates(wanted, layout.gpus), [&](const LayoutText& candidate) {
        auto examined = examine_generate(candidate, layout.gpus, limits);
        if (examined.second.empty() && !cut_blocks(examined.first, model).empty()) {
            examined.second.push_back({ErrorCode::kInfeasible, "fp8-block", "", ""});
        }
        return examined;
    });
    Faults faults;
    for (const auto* entry : cut) {
        const auto extent = entry->shape[entry->sharding == Sharding::kRow ? 1 : 0];
        faults.push_back({ErrorCode::kInfeasible,
                          "fp8-block",
                          "generate.tp = " + text_of(layout.tp) + ": " + text_of(extent) + " / " + text_of(layout.tp) + " = " +
                              text_of(extent / layout.tp) + ", but an FP8 block is 128 wide (" + entry->name + ")",
                          "generate.layout"});
    }
    suggest(faults, "generate.layout", nearest);
    return faults;
}

}  // namespace refit
