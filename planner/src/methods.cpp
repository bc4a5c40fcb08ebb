// SPDX-License-Identifier: Apache-2.0
#include "refit/methods.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "refit/broadcast_roots.hpp"
#include "plan_builder.hpp"
#include "refit/layout_check.hpp"
#include "refit/m2n_relays.hpp"
#include "refit/optimal.hpp"
#include "refit/suggest.hpp"
#include "refit/traffic.hpp"

namespace refit {
namespace {

constexpr std::array kMethods{Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped, Method::kM2n, Method::kOptimal};

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

/// The nearest layout that keeps the rules: they speak of single axes, but only whole layouts can be offered.
std::optional<FoundLayout> nearest_layout(const Scenario& scenario, const std::string& side) {
    if (side == "train") {
        auto text = parse_layout(to_text(scenario.train)).value();
        text.fsdp.reset();  // Where rules refuse a layout of FSDP, one of Megatron is wanted.
        return nearest_train_layout(
            text, scenario.train.gpus, scenario.model, memory_of(scenario.cluster.train_system(), scenario.dtype));
    }
    const auto keeps_rules = [&](const GenerateLayout& layout) {
        auto facts = scenario.facts;
        facts.insert_or_assign("generate.tp", std::to_string(layout.tp));
        facts.insert_or_assign("generate.pp", std::to_string(layout.pp));
        facts.insert_or_assign("generate.ep", std::to_string(layout.ep));
        const auto left = violations(scenario.rules, facts);
        return std::ranges::none_of(left, [](const Fault& fault) { return fault.where == "generate.pp" || fault.where == "generate.ep"; });
    };
    const auto text = parse_layout(to_text(scenario.generate)).value();
    return nearest_generate_layout(text,
                                   scenario.generate.gpus,
                                   scenario.model,
                                   memory_of(scenario.cluster.generate_system(), scenario.dtype),
                                   keeps_rules);
}

/// Offers a layout for the faults of a side's axes. Its GPUs stand behind it where the scenario has them there; else
/// more of them are a fault of their own.
void suggest_layout(const Scenario& scenario, const std::string& side, Faults& faults) {
    const auto is_axis = [&](const Fault& fault) {
        return (fault.where == "train.engine" && side == "train" && scenario.train.is_fsdp()) || fault.where == side + ".etp" || fault.where == side + ".pp" || fault.where == side + ".ep";
    };
    if (std::ranges::none_of(faults, is_axis)) {
        return;
    }
    const auto found = nearest_layout(scenario, side);
    const auto written = scenario.facts.find(side + ".layout");
    const bool has_count = written != scenario.facts.end() && written->second.find('@') != std::string::npos;
    for (auto& fault : faults) {
        if (is_axis(fault)) {
            fault.nearest = found ? std::optional{Suggestion{side + ".layout", found->layout, ""}} : std::nullopt;
            if (found && has_count) {
                fault.nearest->value += "@" + std::to_string(found->gpus);
            }
        }
    }
    const auto gpus = side == "train" ? scenario.train.gpus : scenario.generate.gpus;
    if (found && found->gpus != gpus && !has_count) {
        faults.push_back({ErrorCode::kInfeasible,
                          "gpu-memory",
                          side + ".gpus = " + std::to_string(gpus) + ": no layout on so few keeps the rules and has room for the weights",
                          side + ".gpus",
                          Suggestion{side + ".gpus", std::to_string(found->gpus), ""}});
    }
}

/// Packs can be dealt over no more roots than there are ranks to be one.
std::optional<Fault> senders_fault(const Scenario& scenario, Method method) {
    const auto most = most_senders(scenario);
    const auto senders = scenario.engine.options.broadcast_senders;
    const bool broadcasts = method == Method::kGatherBroadcast || method == Method::kHybrid;
    if (!broadcasts || senders <= most) {
        return std::nullopt;
    }
    const std::string field = "engine.options.broadcast_senders";
    const bool is_by_stage = scenario.engine.options.broadcast_root == BroadcastRoot::kEachStage;
    return Fault{ErrorCode::kInfeasible,
                 "broadcast-senders",
                 field + " = " + std::to_string(senders) + ": there are " + std::to_string(most) +
                     (is_by_stage ? " trainers in a pipeline stage" : " trainers"),
                 field,
                 Suggestion{field, std::to_string(most), ""}};
}

/// Each generator needs a trainer of its own, which gathered everything.
std::optional<Fault> pairs_fault(const Scenario& scenario, Method method) {
    const bool broadcasts = method == Method::kGatherBroadcast || method == Method::kHybrid;
    const auto& options = scenario.engine.options;
    if (!broadcasts || options.broadcast_group != BroadcastGroup::kPairs) {
        return std::nullopt;
    }
    if (options.broadcast_root == BroadcastRoot::kEachStage) {
        const std::string field = "engine.options.broadcast_root";
        return Fault{ErrorCode::kInfeasible,
                     "broadcast-pairs",
                     field + " = each-pp-stage: pairs need trainers that gather all parameters",
                     field,
                     Suggestion{field, "trainer-0", ""}};
    }
    const auto gatherers = gatherers_of(scenario);
    const auto trainers = gatherers.is_plain ? 0 : gatherers.roots.front().size();
    std::uint32_t generators = 0;
    for (const auto rank : survivors(scenario.cluster.losses(), scenario.cluster.gpus())) {
        generators += rank < scenario.train.gpus ? 0 : 1;
    }
    if (generators > trainers) {
        const std::string field = "engine.options.broadcast_group";
        return Fault{ErrorCode::kInfeasible,
                     "broadcast-pairs",
                     field + " = pairs: " + std::to_string(generators) + " generators, but only " +
                         std::to_string(trainers) + " trainers to pair them with",
                     field,
                     Suggestion{field, "all", ""}};
    }
    return std::nullopt;
}

/// What the engine's reshard path does not take.
Faults check_reshard(const Scenario& scenario, const Workload& workload) {
    auto faults = violations(scenario.rules, scenario.facts);
    suggest_layout(scenario, "train", faults);
    suggest_layout(scenario, "generate", faults);
    if (scenario.generate.expert_placement == ExpertPlacement::kRoundRobin) {
        faults.push_back({ErrorCode::kInfeasible,
                          "expert-placement",
                          "generate.expert_placement = round_robin: reshard takes a rank's experts for neighbours; NeMo RL does not "
                          "check this, and would write wrong experts",
                          "generate.expert_placement",
                          Suggestion{"generate.expert_placement", "linear", ""}});
    }
    if (select(workload, scenario.coverage, true).empty()) {
        faults.push_back({ErrorCode::kInfeasible,
                          "no-bulk-parameter",
                          "coverage " + name_of(scenario.coverage) +
                              " selects no parameter of this model for the bulk path [" + scenario.rules.name() + " rule 23]",
                          "engine.coverage",
                          Suggestion{"engine.coverage", "ffn", ""}});
    }
    return faults;
}

/// Everything in one stage of relayed messages.
void add_relay_stage(Plan& plan, const Workload& workload, RelayTable relays) {
    auto& stage = plan.stages.emplace_back();
    stage.kind = StageKind::kRelay;
    stage.relays = std::move(relays);
    for (const auto& entry : workload.classes()) {
        stage.payload += entry.parameter.bytes();
        stage.expert_parameters += entry.parameter.is_expert() ? entry.logical_tensors() : 0;
        stage.other_parameters += entry.parameter.is_ffn || entry.parameter.is_expert() ? 0 : entry.logical_tensors();
    }
}

/// `slices` may be null: they are then made here.
void add_optimal(Plan& plan, const Workload& workload, const SliceTable* slices, const Cluster& cluster, const SideRates& rates) {
    const Fabric fabric{cluster, rates};
    add_relay_stage(plan, workload,
                    slices != nullptr ? optimal_relays(*slices, fabric)
                                      : optimal_relays(SliceTable::make(workload, cluster.train_gpus()), fabric));
}

std::string rank_name(const Cluster& cluster, RankId rank) {
    return cluster.is_trainer(rank) ? "trainer " + std::to_string(rank.index())
                                    : "generator " + std::to_string(rank.index() - cluster.train_gpus());
}

/// A plan goes only over NICs that reach each other. Every domain has one that works, so rails alone keep them apart.
Result<Plan> reachable(Plan plan, const Cluster& cluster) {
    const auto hop = unreachable_hop(plan, cluster);
    if (!hop) {
        return plan;
    }
    const auto domain = [&](RankId rank) { return std::to_string(cluster.domain_of(rank).index()); };
    return fail(Faults{{ErrorCode::kInfeasible,
                        "no-path",
                        "fabric.rail_only = true: " + std::string{name_of(plan.method)} + " sends from " +
                            rank_name(cluster, hop->source) + " to " + rank_name(cluster, hop->destination) +
                            ", but no rail has a working NIC in both of NVLink domains " + domain(hop->source) +
                            " and " + domain(hop->destination),
                        "fabric.rail_only",
                        Suggestion{"fabric.rail_only", "false", ""}}});
}

/// `slices` may be null.
Result<Plan> plan_of(Method method, const Scenario& scenario, const Workload& workload, const SliceTable* slices) {
    Plan plan;
    plan.method = method;
    plan.coverage = method == Method::kHybrid ? scenario.coverage : Coverage::kAll;
    const auto everything = select(workload, Coverage::kAll, true);
    const auto order = scenario.engine.options.transfer_order;
    if (auto fault = senders_fault(scenario, method)) {
        return fail(Faults{std::move(*fault)});
    }
    if (auto fault = pairs_fault(scenario, method)) {
        return fail(Faults{std::move(*fault)});
    }
    switch (method) {
        case Method::kGatherBroadcast:
            add_gather_broadcast(plan, scenario, workload, everything);
            break;
        case Method::kDirect:
            if (scenario.engine.options.direct_source == DirectSource::kGathered) {
                add_gather(plan, scenario, workload, everything);
            }
            add_transfers(plan, scenario.cluster, workload, everything, Spread::kEveryReplica, order);
            break;
        case Method::kStriped:
            add_transfers(plan, scenario.cluster, workload, everything, Spread::kStripes, order);
            break;
        case Method::kM2n: {
            auto relays = m2n_relays(scenario, workload);
            if (!relays) {
                return fail(std::move(relays.error()));
            }
            add_relay_stage(plan, workload, std::move(*relays));
            break;
        }
        case Method::kOptimal: {
            const auto& constants = scenario.engine.constants;
            add_optimal(plan,
                        workload,
                        slices,
                        scenario.cluster,
                        port_rates(scenario.cluster, constants.nic_efficiency.value, constants.nvlink_efficiency.value));
            break;
        }
        case Method::kHybrid: {
            auto faults = check_reshard(scenario, workload);
            if (!faults.empty()) {
                return fail(std::move(faults));
            }
            add_transfers(plan, scenario.cluster, workload, select(workload, scenario.coverage, true), Spread::kStripes, order);
            add_gather_broadcast(plan, scenario, workload, select(workload, scenario.coverage, false));
            break;
        }
    }
    return reachable(std::move(plan), scenario.cluster);
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
        case Method::kM2n:
            return "m2n";
        case Method::kOptimal:
            return "optimal";
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
    return plan_of(method, scenario, workload, nullptr);
}

Result<Plan> make_plan(Method method, const Scenario& scenario, const Workload& workload, const SliceTable& slices) {
    return plan_of(method, scenario, workload, &slices);
}

Result<Plan> make_plan(Method method, const Cluster& cluster, const SideRates& rates, const Workload& workload) {
    Plan plan;
    plan.method = method;
    plan.coverage = Coverage::kAll;
    const auto everything = select(workload, Coverage::kAll, true);
    switch (method) {
        case Method::kGatherBroadcast:
            add_plain_gather_broadcast(plan, cluster, workload, everything);
            break;
        case Method::kDirect:
            add_transfers(plan, cluster, workload, everything, Spread::kEveryReplica);
            break;
        case Method::kStriped:
            add_transfers(plan, cluster, workload, everything, Spread::kStripes);
            break;
        case Method::kOptimal:
            add_optimal(plan, workload, nullptr, cluster, rates);
            break;
        case Method::kM2n:
            return fail(ErrorCode::kUnsupported,
                        "m2n-plans-calls",
                        "method m2n plans single calls, which m2n_plan takes as they are");
        case Method::kHybrid:
            return fail(ErrorCode::kUnsupported,
                        "hybrid-needs-names",
                        "method hybrid tells bulk parameters by their names and place in a model, which plain tensors do "
                        "not have; striped is what it does with bulk parameters");
    }
    return reachable(std::move(plan), cluster);
}

}  // namespace refit
