// SPDX-License-Identifier: Apache-2.0
#include "compare_table.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include "cells.hpp"
#include "fabric_text.hpp"
#include "faults_text.hpp"
#include "options.hpp"
#include "refit/layout_check.hpp"
#include "refit/quantity.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIndent = 24;
/// Most routed experts in a layer of any model whose published times the constants were fitted to (Nemotron Ultra).
constexpr std::uint32_t kMostFittedExperts = 512;

std::string upper(std::string_view text) {
    std::string result{text};
    std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return result;
}

std::string plural(std::uint64_t count, const std::string& what) {
    return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

std::string parameter_count(std::uint64_t parameters) {
    const auto count = static_cast<double>(parameters);
    if (count >= 1e12) {
        return number_text("%.3f T", count / 1e12);
    }
    return count >= 1e9 ? number_text("%.2f B", count / 1e9) : number_text("%.1f M", count / 1e6);
}

/// Nodes that `gpus` GPUs lie in, where a job uses `used` of each NVLink domain.
std::string nodes_of(std::uint32_t gpus, std::uint32_t used, const System& system) {
    const auto nodes = [&](std::uint32_t count) { return (count + system.gpus_per_node - 1) / system.gpus_per_node; };
    return std::to_string(gpus / used * nodes(used) + nodes(gpus % used));
}

std::string system_line(const System& system, std::uint32_t used, const std::string& nodes) {
    const auto domain = used == system.gpus_per_domain
                            ? ""
                            : " (" + std::to_string(used) + " of " + std::to_string(system.gpus_per_domain) + ")";
    const auto nics = system.nics_per_gpu == 1 ? "NIC " : std::to_string(system.nics_per_gpu) + " NICs of ";
    return system.title + domain + ", " + nodes + " nodes, NVLink " +
           format_bandwidth(system.nvlink.value) + ", " + nics +
           number_text("%.4g Gbit/s", system.nic.value.bytes_per_second() * 8e-9) + " = " + format_bandwidth(system.nic.value) + " a GPU";
}

std::string systems_of(const Scenario& scenario) {
    const auto& cluster = scenario.cluster;
    const auto& train = cluster.train_system();
    const auto& generate = cluster.generate_system();
    const auto& placement = cluster.placement();
    const auto train_nodes = nodes_of(scenario.train.gpus, placement.train_gpus_per_domain, train);
    const auto generate_nodes = nodes_of(scenario.generate.gpus, placement.generate_gpus_per_domain, generate);
    if (train == generate) {
        return "  system     " + system_line(train, placement.train_gpus_per_domain, train_nodes + " + " + generate_nodes) + "\n";
    }
    return "  trained on " + system_line(train, placement.train_gpus_per_domain, train_nodes) + "\n  served on  " +
           system_line(generate, placement.generate_gpus_per_domain, generate_nodes) + "\n";
}

std::string header(const Scenario& scenario) {
    const auto& cluster = scenario.cluster;
    auto text = moved_line(scenario) + "\n";
    text += "  train      " + std::to_string(scenario.train.gpus) + " x " + cluster.train_system().gpu + "  " + describe(scenario.train) +
            ", " + describe_split(scenario.train.stage_layers) + "\n";
    text += "  generate   " + std::to_string(scenario.generate.gpus) + " x " + cluster.generate_system().gpu + "  " + describe(scenario.generate) +
            ", vLLM, not colocated\n";
    const auto fabric = fabric_text(cluster);
    return text + systems_of(scenario) + (fabric.empty() ? "" : "  fabric     " + wrap(fabric, kWidth, 13) + "\n");
}

std::string published_cell(const MethodReport& method) {
    if (!method.published) {
        return "-";
    }
    const auto& published = *method.published;
    if (published.seconds) {
        return number_text("%.1f s", published.seconds->value());
    }
    return seconds_number(*published.low) + "-" + seconds_number(*published.high) + " s";
}

std::string multiple(double ratio) { return ratio >= 999.5 ? number_text("%.0f", ratio) : number_text("%.1f", ratio); }

std::string row(const std::string& mark, const std::string& name, const std::string& predicted, const std::string& range,
                const std::string& published, const std::string& bound, const std::string& network, const std::string& memory) {
    return mark + left(name, 31) + right(predicted, 9) + " s  " + left(range, 15) + right(published, 10) + right(bound, 9) +
           right(network, 10) + right(memory, 10) + "\n";
}

std::string method_row(const MethodReport& method, const Report& report, const Scenario& scenario, bool is_best,
                       const std::string& own_name = {}) {
    const auto name = own_name.empty() ? title_of(method, scenario) : own_name;
    if (!method.refused.empty()) {
        return "  " + left(name, 31) + "  cannot run: " + std::to_string(method.refused.size()) + (method.refused.size() == 1 ? " fault" : " faults") + ", see below\n";
    }
    const auto peak = std::max(method.peak.train, method.peak.generation);
    return row(is_best ? "* " : "  ",
               name,
               seconds_number(method.seconds),
               "[" + right(seconds_number(std::max(method.low, Seconds{})), 4) + " - " + right(seconds_number(method.high), 4) + "]",
               published_cell(method),
               multiple(method.seconds / report.line_rate_bound.time),
               size_cell(method.network),
               method.simulated ? seconds_number(method.simulated->seconds) + " s" : size_cell(peak));
}

/// Of the methods that an engine runs.
const MethodReport* fastest(const Report& report) {
    const MethodReport* best = nullptr;
    const auto consider = [&](const MethodReport& method) {
        if (method.refused.empty() && method.is_calibrated && (best == nullptr || method.seconds < best->seconds)) {
            best = &method;
        }
    };
    std::ranges::for_each(report.methods, consider);
    if (report.hybrid_by_meaning) {
        consider(*report.hybrid_by_meaning);
    }
    return best;
}

/// Where methods were simulated, their times take the place of the memory.
std::string table(const Report& report, const Scenario& scenario) {
    const bool is_simulated = std::ranges::any_of(report.methods, [](const MethodReport& method) { return method.simulated.has_value(); });
    std::string text = "  " + left("method   (?: in no engine)", 31) + right("predicted", 11) + "  " + left("[80 % range]", 15) + right("published", 10) +
                       right("x bound", 9) + right("on NICs", 10) + right(is_simulated ? "simulated" : "+mem/GPU", 10) + "\n";
    const auto* best = fastest(report);
    for (const auto& method : report.methods) {
        text += method_row(method, report, scenario, &method == best);
        if (method.method == Method::kHybrid && report.hybrid_by_meaning) {
            text += method_row(*report.hybrid_by_meaning, report, scenario, &*report.hybrid_by_meaning == best, "reshard, coverage ffn");
        }
    }
    text += row("  ", "bound: no plan is faster", seconds_number(report.line_rate_bound.time), "", "", "1.0",
                size_cell(report.line_rate_bound.network_bytes), "");
    while (text.size() > 1 && text[text.size() - 2] == ' ') {
        text.erase(text.size() - 2, 1);
    }
    return text;
}

/// Seconds of a phase that is not hidden.
double phase_seconds(const MethodReport& method, const char* name) {
    double seconds = 0.0;
    for (const auto& phase : method.phases) {
        seconds += phase.name == name && !phase.is_hidden ? phase.seconds.value() : 0.0;
    }
    return seconds;
}

const Term* find_term(const MethodReport& method, std::string_view name) {
    const auto found = std::ranges::find(method.terms, name, &Term::name);
    return found == method.terms.end() ? nullptr : &*found;
}

double term_seconds(const MethodReport& method, std::string_view name) {
    const auto* term = find_term(method, name);
    return term == nullptr ? 0.0 : term->seconds.value();
}

/// "EP 4.0, PP 2.5, copies 1.8, 5,430 calls 1.8".
std::string gather_parts(const MethodReport& method) {
    struct Part {
        std::string name;
        double seconds;
    };
    std::vector<Part> parts{{"EP", term_seconds(method, "EP all-gather")},
                            {"PP", term_seconds(method, "pipeline broadcast")},
                            {"TP", term_seconds(method, "TP all-gather")},
                            {"copies", term_seconds(method, "device copies")}};
    if (const auto* calls = find_term(method, "collective calls")) {
        const auto count = calls->formula.substr(0, calls->formula.find(' '));
        parts.push_back({grouped(std::stoull(count)) + " calls", calls->seconds.value()});
    }
    std::ranges::stable_sort(parts, std::greater<>{}, &Part::seconds);
    std::string text;
    for (const auto& part : parts) {
        if (part.seconds >= 0.05) {
            text += (text.empty() ? "" : ", ") + part.name + " " + number_text("%.1f", part.seconds);
        }
    }
    return text;
}

double gather_chain(const MethodReport& method) {
    double seconds = 0.0;
    for (const auto& term : method.terms) {
        seconds += term.phase == "gather" ? term.seconds.value() : 0.0;
    }
    return seconds;
}

std::string tail_of(const MethodReport& method) {
    std::string text = " + fixed " + seconds_number(phase_seconds(method, "fixed"));
    const auto finalize = phase_seconds(method, "finalize");
    return finalize > 0.0 ? text + " + finalising " + seconds_number(finalize) : text;
}

/// Whether packs are gathered, sent and loaded one after another, so that nothing hides.
bool is_serial(const MethodReport& method) {
    return phase_seconds(method, "broadcast") > 0.0 && phase_seconds(method, "load") > 0.0;
}

std::string broadcast_breakdown(const MethodReport& method) {
    const auto chain = gather_chain(method);
    const auto sending = term_seconds(method, "weight broadcast");
    const auto loading = term_seconds(method, "loading");
    const auto parts = gather_parts(method);
    const auto gather = chain > 0.0 ? "gather " + seconds_number(chain) + (parts.empty() ? "" : " (" + parts + ")") : "no gather";
    if (is_serial(method)) {
        return gather + " + broadcast " + seconds_number(sending) + " + loading " + seconds_number(loading) + tail_of(method);
    }
    if (phase_seconds(method, "load") > 0.0) {
        return "loading " + seconds_number(loading) + " s hides " + gather + " and broadcast " + seconds_number(sending) + ";" + tail_of(method);
    }
    const auto shared = phase_seconds(method, "gather") + phase_seconds(method, "broadcast") - std::max(chain, sending);
    const auto lead = chain >= sending ? gather + " + broadcast " + seconds_number(shared)
                       : shared > 0.0 ? "broadcast " + seconds_number(sending) + " + " + gather + ", of it on the same NICs " + seconds_number(shared)
                                      : "broadcast " + seconds_number(sending) + "; " + gather + " hides behind it";
    const auto hidden = chain >= sending && sending - shared > 0.05 ? " (another " + seconds_number(sending - shared) + " hidden)" : "";
    return lead + hidden + tail_of(method) + "; loading " + seconds_number(loading) + " hidden";
}

std::string reshard_breakdown(const MethodReport& method, double bulk_fraction) {
    const auto rest = phase_seconds(method, "gather") + phase_seconds(method, "broadcast") + phase_seconds(method, "load");
    return "bulk, " + percent(bulk_fraction) + " of bytes: " + seconds_number(phase_seconds(method, "bulk")) + " s + the other " +
           percent(1.0 - bulk_fraction) + ", gathered and broadcast: " + seconds_number(rest) + tail_of(method);
}

std::string labelled(const std::string& label, const std::string& text) {
    return left("  " + label, kIndent) + wrap(text, kWidth, kIndent) + "\n";
}

std::string why(const MethodReport& slow, const MethodReport& fast) {
    std::string text = "Why: gather-and-broadcast sends " + format_bytes(slow.nic_per_trainer) + " through each trainer NIC";
    const auto& resource = slow.bottleneck.resource;
    if (resource == "loading") {
        text += ", but loading holds it up: each receiver takes in every tensor";
    } else if (resource == "collective-calls") {
        text += ", and its many collective calls take longest";
    } else if (resource == "nvlink") {
        text += ", but its gathers fill NVLink first";
    } else if (resource.starts_with("spine")) {
        text += ", and the uplinks of " + slow.bottleneck.where + " are busy longest";
    } else if (is_serial(slow)) {
        text += ", each pack gathered, sent and loaded before the next";
    } else if (phase_seconds(slow, "broadcast") > 0.0 && phase_seconds(slow, "gather") > 0.0) {
        text += ", gather and broadcast in turn on the same NICs";
    }
    text += "; reshard sends " + format_bytes(fast.nic_per_trainer) + ", and each bulk byte leaves the trainers once.";
    return wrap(text, kWidth, 0) + "\n";
}

/// Where the time of a reshard goes that is no faster: its largest parts, beside all of the baseline.
std::string why_not(const MethodReport& slow, const MethodReport& fast, double bulk_fraction) {
    struct Part {
        double seconds;
        std::string what;
    };
    const auto formula = [&](const char* name) {
        const auto* term = find_term(fast, name);
        auto text = term == nullptr ? std::string{} : term->formula;
        const auto colon = text.find(": ");
        text = colon == std::string::npos ? text : text.substr(colon + 2);
        const std::string_view replicas = "replicas ";
        const auto at = text.find(replicas);
        text = at == std::string::npos ? text : text.insert(at + replicas.size(), "among themselves ");
        return " (" + text + ")";
    };
    std::vector<Part> parts{
        {term_seconds(fast, "grouped experts"), "handling grouped expert parameters" + formula("grouped experts")},
        {term_seconds(fast, "bulk transfers"), "bulk transfers" + formula("bulk transfers")},
        {phase_seconds(fast, "gather") + phase_seconds(fast, "broadcast") + phase_seconds(fast, "load"),
         "gathering and broadcasting the other " + percent(1.0 - bulk_fraction)},
        {phase_seconds(fast, "finalize"), "finalising"}};
    std::ranges::stable_sort(parts, std::greater<>{}, &Part::seconds);
    std::string text = "Why: reshard takes " + seconds_number(parts[0].seconds) + " s for " + parts[0].what;
    if (parts[1].seconds > 0.05 * parts[0].seconds) {
        text += " and " + seconds_number(parts[1].seconds) + " s for " + parts[1].what;
    }
    text += "; gather-and-broadcast moves the whole model in " + seconds_number(slow.seconds.value() - phase_seconds(slow, "fixed")) +
            " s. Both pay the fixed " + seconds_number(phase_seconds(fast, "fixed")) + " s.";
    return wrap(text, kWidth, 0) + "\n";
}

std::string faster(double ratio) {
    return ratio >= 1.05 ? number_text("%.1fx faster", ratio) : ratio >= 0.95 ? "no faster" : number_text("%.1fx slower", 1.0 / ratio);
}

std::string verdict(const Report& report, const std::string& engine) {
    const auto* slow = report.find(Method::kGatherBroadcast);
    const auto* fast = report.find(Method::kHybrid);
    if (!report.speedup) {
        return {};
    }
    const auto& speedup = *report.speedup;
    const bool is_run = fast->is_calibrated || !slow->is_calibrated;
    std::string text = (is_run ? "Reshard is " : "Reshard, which " + engine + " does not have, would be ") + faster(speedup.ratio) + " [" + number_text("%.1f", speedup.low) + " - " + number_text("%.1f", speedup.high) + "]";
    if (slow->published && fast->published && slow->published->seconds && fast->published->seconds) {
        text += " (published: " + number_text("%.1f", *slow->published->seconds / *fast->published->seconds) + "x)";
    }
    const auto saved = slow->seconds - fast->seconds;
    text += speedup.ratio >= 1.05 ? std::string{is_run ? " and saves " : " and save "} + seconds_number(saved) + " s a refit." : ".";
    if (report.hybrid_by_meaning) {
        text += " NeMo RL's name rule catches " + percent(report.bulk_fraction) + " of the bytes; with coverage ffn (" +
                percent(report.ffn_fraction) + ") it is " + faster(slow->seconds / report.hybrid_by_meaning->seconds) + ".";
    }
    const auto reason = speedup.ratio >= 1.05 ? why(*slow, *fast) : why_not(*slow, *fast, report.bulk_fraction);
    return wrap(text, kWidth, 0) + "\n" + reason + "\n";
}

std::string trial_text(const Trial& trial) {
    const auto& field = trial.change.field;
    auto name = field.substr(field.rfind('.') + 1);
    std::string text = name + "=" + trial.change.value + " (" + trial.change.note + "): " + seconds_number(trial.before) + " -> " + seconds_number(trial.after) + " s";
    if (std::abs(trial.extra_bytes) >= 5'000'000) {
        const auto size = format_bytes(Bytes{static_cast<std::uint64_t>(std::abs(trial.extra_bytes))});
        text += std::string{", "} + (trial.extra_bytes > 0 ? "+" : "-") + size + " a generation GPU";
    }
    return text;
}

std::string breakdowns(const Report& report) {
    std::string text;
    if (const auto* slow = report.find(Method::kGatherBroadcast); slow != nullptr && slow->refused.empty()) {
        text += labelled("gather-and-broadcast", broadcast_breakdown(*slow));
    }
    if (const auto* fast = report.find(Method::kHybrid); fast != nullptr && fast->refused.empty()) {
        text += labelled("reshard", reshard_breakdown(*fast, report.bulk_fraction));
    }
    for (const auto& trial : report.trials) {
        const auto ratio = trial.after / trial.before;
        if (ratio < 0.99 || ratio > 1.01) {
            text += labelled(ratio < 1.0 ? "Try" : "What if", trial_text(trial));
        }
    }
    return text;
}

std::string worth(const Report& report, bool has_own_step) {
    std::string text;
    const auto* slow = report.find(Method::kGatherBroadcast);
    const auto* fast = report.find(Method::kHybrid);
    if (!report.speedup || report.speedup->ratio < 1.05) {
        return text;
    }
    for (const auto& step : report.steps) {
        const auto saved = (slow->seconds - fast->seconds) / step.step;
        const auto name = number_text("%.4g s", step.step.value());
        text += (text.empty() ? "saves " : ", ") + number_text("%.0f %%", saved * 100.0) + (text.empty() ? " of a " + name + " step" : " of " + name);
        if (has_own_step) {
            text += " (refit is " + number_text("%.0f %%", step.refit_share * 100.0) + " of it now; step at most " + number_text("%.2fx", step.speedup_at_most) + " faster)";
        }
    }
    return text.empty() ? "" : labelled("Worth", text + (has_own_step ? "" : " (or --step-time 90s)"));
}

bool serves_the_fit(const Report& report, const std::string& id) {
    return std::ranges::any_of(report.assumptions, [&](const Assumption& assumption) {
        return std::ranges::find(assumption.identified_by, id) != assumption.identified_by.end();
    });
}

std::string trust(const Report& report, const Scenario& scenario) {
    std::string errors;
    bool in_fit = false;
    bool counts_inferred = false;
    for (const auto& method : report.methods) {
        if (!method.published) {
            continue;
        }
        const auto& published = *method.published;
        const auto name = method.method == Method::kHybrid ? "reshard " : "broadcast ";
        const bool has_spread = published.low && published.low != published.high;
        const auto spread = has_spread ? seconds_number(*published.low) + "-" + seconds_number(*published.high) + " s" : "";
        errors += (errors.empty() ? "" : ", ") + std::string{name};
        errors += published.error == 0.0 ? "inside the published " + spread
                                         : number_text("%+.0f %%", published.error * 100.0) + " off the published " + (has_spread ? spread : "time");
        in_fit = in_fit || serves_the_fit(report, published.id);
        counts_inferred = counts_inferred || !published.inferred.empty();
    }
    std::string text;
    if (errors.empty()) {
        text = "nobody has published a time for this refit; constants from others";
    } else {
        text = errors + (in_fit ? "; these served the fit" : "");
        text += counts_inferred ? "; GPU counts inferred from layouts" : "";
    }
    const auto experts = scenario.model.experts();
    if (experts > kMostFittedExperts) {
        text += "; " + std::to_string(experts) + " experts are beyond the " + std::to_string(kMostFittedExperts) + " of the fit";
    }
    text += scenario.note.starts_with("Nobody") ? "; layouts chosen by Refit" : "";
    return labelled("Trust", text);
}

std::string refusals(const Report& report, const Scenario& scenario) {
    std::string text;
    for (const auto& method : report.methods) {
        for (const auto& fault : method.refused) {
            text += labelled("refused", title_of(method, scenario) + ": " + fault.message + "  [" + fault.rule + "]");
            text += fault.nearest ? labelled("", "try " + flag_for(*fault.nearest)) : "";
        }
    }
    return text;
}

/// A generation layout beside the present one that is sure to work: half the tensor parallelism, or twice.
std::string other_generation(const Scenario& scenario) {
    const auto memory = memory_of(scenario.cluster.generate_system(), scenario.dtype);
    for (const auto tp : {scenario.generate.tp / 2, scenario.generate.tp * 2}) {
        LayoutText text;
        text.tp = std::max(1U, tp);
        text.ep = scenario.generate.ep;
        const auto layout = make_generate_layout(text, scenario.generate.gpus, scenario.model, memory);
        if (layout && to_text(*layout) != to_text(scenario.generate)) {
            return to_text(*layout);
        }
    }
    return {};
}

std::string yours(const Scenario& scenario, const std::string& target) {
    const auto name = program_name();
    const auto line = [&](const std::string& start, const std::string& command, const std::string& what) {
        return start + left(name + " " + command, std::max<std::size_t>(56, name.size() + 1 + command.size() + 2)) + what + "\n";
    };
    std::string text = line("Yours:  ", "compare recipe.yaml --system " + scenario.cluster.train_system().name, "a NeMo RL recipe as it is");
    const auto other = other_generation(scenario);
    if (!other.empty() && !target.empty()) {
        text += line("        ", "compare " + target + " --generate " + other, "change anything; --help lists it");
    }
    return target.empty() ? text : text + line("        ", "explain " + target, "every term, formula and source");
}

}  // namespace

std::string title_of(const MethodReport& method, const Scenario& scenario) {
    const std::string mark = method.is_calibrated ? "" : " ?";
    switch (method.method) {
        case Method::kGatherBroadcast:
            return "gather-and-broadcast" + mark;
        case Method::kDirect:
            return "all weights, direct" + mark;
        case Method::kStriped:
            return "all weights, striped" + mark;
        case Method::kM2n:
            return "all weights, NCCL M2N" + mark;
        case Method::kOptimal:
            return "all weights, optimal" + mark;
        case Method::kHybrid:
            break;
    }
    return "reshard, " + scenario.engine.title + " (hybrid)" + mark;
}

std::string moved_line(const Scenario& scenario) {
    const auto payload = scenario.model.payload_totals();
    Bytes bytes;
    std::uint64_t tensors = 0;
    for (const auto& entry : scenario.payload()) {
        bytes += entry.bytes();
        tensors += entry.tensors();
    }
    const auto dtype = upper(name_of(scenario.dtype)) + (scenario.dtype == Dtype::kFp8 ? " with scales" : "");
    const auto text = scenario.model.title() + "  " + parameter_count(payload.parameters) + " parameters, " +
                      dtype + ", " + format_bytes(bytes) + " in " + plural(tensors, "tensor");
    return text + (scenario.model.totals(ModelPart::kMtp).tensors > 0 ? " (MTP left out)" : "");
}

std::string compare_table(const Report& report, const Scenario& scenario, const std::string& target, bool has_own_step) {
    std::string text = header(scenario) + "\n" + table(report, scenario) + "\n";
    text += verdict(report, scenario.engine.title) + refusals(report, scenario) + breakdowns(report) + worth(report, has_own_step) +
            trust(report, scenario);
    return text + "\n" + yours(scenario, target);
}

}  // namespace refit::cli
