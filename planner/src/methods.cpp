// SPDX-License-Identifier: Apache-2.0
#include "refit/methods.hpp"

#include <array>
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

Suggestion nearest_generation(const Scenario& scenario, LayoutText text) {
    const auto layout = make_generate_layout(text, scenario.generate.gpus, scenario.model);
    const auto value = layout ? to_text(*layout) : layout.error().front().nearest.value_or(Suggestion{}).value;
    return {"generate.layout", value, ""};
}

/// What NeMo RL's reshard path does not take. Source: NeMo RL nccl_reshard_utils.py,
/// check_nccl_reshard_refit_support, and its guide of 2026-11.
Faults check_reshard(const Scenario& scenario, const Workload& workload) {
    Faults faults;
    const auto rules = "[" + scenario.engine.name + " rules " + scenario.rules + "]";
    const auto refuse = [&](const char* rule, std::string message, Suggestion nearest) {
        faults.push_back({ErrorCode::kInfeasible, rule, std::move(message) + " " + rules, nearest.field, nearest});
    };
    LayoutText text;
    text.tp = scenario.generate.tp;
    if (scenario.generate.pp != 1) {
        text.ep = scenario.generate.ep;
        refuse("reshard-generate-pp",
               "reshard needs generation pp 1, not " + std::to_string(scenario.generate.pp),
               nearest_generation(scenario, text));
    }
    const auto ep = scenario.generate.ep;
    if (scenario.rules == "2026-08" && ep != 1 && ep != scenario.generate.tp) {
        text.ep = scenario.generate.tp;
        refuse("reshard-generate-ep",
               "reshard needs generation ep 1 or ep = tp = " + std::to_string(scenario.generate.tp) + ", not " +
                   std::to_string(ep),
               nearest_generation(scenario, text));
    }
    if (scenario.train.etp != 1) {
        auto layout = scenario.train;
        layout.etp = 1;
        refuse("reshard-train-etp",
               "reshard to vLLM needs training expert tensor parallelism 1, not " + std::to_string(scenario.train.etp),
               {"train.layout", to_text(layout), ""});
    }
    if (select(workload, scenario.coverage, true).empty()) {
        refuse("reshard-no-bulk",
               "coverage " + std::string{name_of(scenario.coverage)} + " selects no parameter of this model for the bulk path",
               {"engine.coverage", "ffn", ""});
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
