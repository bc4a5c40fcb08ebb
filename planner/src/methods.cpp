// SPDX-License-Identifier: Apache-2.0
#include "refit/methods.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan_builder.hpp"
#include "refit/layout_check.hpp"
#include "refit/suggest.hpp"

namespace refit {
namespace {

constexpr std::array kMethods{Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped};

/// The indices of the classes that go by the bulk path, or of the others.
ClassIndices select(const Workload& workload, Coverage coverage, bool wanted) {
    ClassIndices indices;
    for (std::uint32_t i = 0; i < workload.classes().size(); ++i) {
        if (is_bulk(workload.classes()[i].parameter, coverage) == wanted) {
            indices.push_back(i);
        }
    }
    return indices;
}

/// What `make` takes for a layout: itself, or else the nearest, with the GPUs behind it where it needs more.
template <class Layout>
std::optional<Suggestion> nearest_to(const char* field, const std::string& text, const Result<Layout>& made) {
    if (made) {
        return Suggestion{field, text, ""};
    }
    auto nearest = made.error().front().nearest;
    if (const auto& more = made.error().back().nearest; nearest && more && more->field != field) {
        nearest->value += "@" + more->value;
    }
    return nearest;
}

/// The nearest layout that keeps a rule: rules speak of single axes, but only whole layouts can be offered.
std::optional<Suggestion> nearest_layout(const Scenario& scenario, const Suggestion& rule) {
    if (rule.field == "train.etp") {
        auto layout = scenario.train;
        layout.etp = 1;
        const auto text = to_text(layout);
        const auto memory = memory_of(scenario.cluster.train_system(), scenario.dtype);
        return nearest_to("train.layout", text, make_train_layout(parse_layout(text).value(), layout.gpus, scenario.model, memory));
    }
    auto layout = scenario.generate;
    layout.pp = rule.field == "generate.pp" ? 1 : layout.pp;
    layout.ep = rule.field == "generate.ep" ? static_cast<std::uint32_t>(std::stoul(rule.value)) : layout.ep;
    layout.dp = 1;  // It follows from the rest.
    const auto text = to_text(layout);
    const auto memory = memory_of(scenario.cluster.generate_system(), scenario.dtype);
    const auto made = make_generate_layout(parse_layout(text).value(), layout.gpus, scenario.model, memory);
    return nearest_to("generate.layout", made ? to_text(*made) : text, made);
}

/// What the engine's reshard path does not take.
Faults check_reshard(const Scenario& scenario, const Workload& workload) {
    auto faults = violations(scenario.rules, scenario.facts);
    for (auto& fault : faults) {
        const bool is_axis = fault.where == "train.etp" || fault.where == "generate.ep" || fault.where == "generate.pp";
        if (is_axis && fault.nearest) {
            fault.nearest = nearest_layout(scenario, *fault.nearest);
        }
    }
    if (select(workload, scenario.coverage, true).empty()) {
        faults.push_back({ErrorCode::kInfeasible,
                          "no-bulk-parameter",
                          "coverage " + std::string{name_of(scenario.coverage)} +
                              " selects no parameter of this model for the bulk path [" + scenario.rules.name() + " rule 23]",
                          "engine.coverage",
                          Suggestion{"engine.coverage", "ffn", ""}});
    }
    return faults;
}

}  // namespace

std::string_view name_of(Method method) noexcept {
    switch (method) {
        case Method::kHybrid:
            return "hybrid";
        case Method::kDirect:
            return "direct";
        case Method::kStriped:
            return "striped";
        case Method::kGatherBroadcast:
            break;
    }
    return "gather-broadcast";
}

Result<Method> parse_method(std::string_view text) {
    std::vector<std::string> names;
    for (const auto method : kMethods) {
        if (name_of(method) == text || (method == Method::kHybrid && text == "reshard")) {
            return method;
        }
        names.emplace_back(name_of(method));
    }
    const auto known = join_names(names);
    names.emplace_back("reshard");
    return fail(ErrorCode::kInvalidInput,
                "unknown-method",
                "unknown method '" + std::string{text} + "'; the nearest is '" + nearest_name(text, names) +
                    "' (known: " + known + "; reshard means hybrid)");
}

Result<Plan> make_plan(Method method, const Scenario& scenario, const Workload& workload) {
    Plan plan;
    plan.method = method;
    plan.coverage = method == Method::kHybrid ? scenario.coverage : Coverage::kAll;
    const auto everything = select(workload, Coverage::kAll, true);
    switch (method) {
        case Method::kGatherBroadcast:
            add_gather_broadcast(plan, scenario, workload, everything);
            break;
        case Method::kDirect:
            add_transfers(plan, scenario, workload, everything, Spread::kEveryReplica);
            break;
        case Method::kStriped:
            add_transfers(plan, scenario, workload, everything, Spread::kStripes);
            break;
        case Method::kHybrid: {
            auto faults = check_reshard(scenario, workload);
            if (!faults.empty()) {
                return fail(std::move(faults));
            }
            add_transfers(plan, scenario, workload, select(workload, scenario.coverage, true), Spread::kStripes);
            add_gather_broadcast(plan, scenario, workload, select(workload, scenario.coverage, false));
            break;
        }
    }
    return plan;
}

}  // namespace refit
