// SPDX-License-Identifier: Apache-2.0
#include "explain_text.hpp"

#include <algorithm>

#include "cells.hpp"
#include "compare_table.hpp"
#include "faults_text.hpp"
#include "refit/quantity.hpp"
#include "refit/suggest.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kWidth = 100;

std::string term_line(const Term& term) {
    const auto seconds = (term.is_hidden ? "(" : " ") + seconds_number(term.seconds) + (term.is_hidden ? ")" : " ");
    const auto line = "    " + left(term.phase, 11) + left(term.name, 20) + right(seconds, 9) + "  ";
    return line + "= " + wrap(term.formula, kWidth, line.size() + 2) + "\n";
}

/// How many of the constants that move a time are named.
constexpr std::size_t kNamedConstants = 4;

std::string sensitivity_text(const MethodReport& method) {
    std::string text;
    for (std::size_t i = 0; i < std::min(kNamedConstants, method.sensitivities.size()); ++i) {
        const auto& one = method.sensitivities[i];
        const auto from = std::min(one.at_low, one.at_high);
        const auto to = std::max(one.at_low, one.at_high);
        text += (i > 0 ? ", " : "") + one.constant + " (" + seconds_number(from) + " - " + seconds_number(to) + "; +1 %: " +
                number_text("%+.2f %%", one.elasticity) + ")";
    }
    return text.empty() ? "" : "    moved most by " + wrap(text, kWidth, 18) + "\n";
}

std::string method_text(const MethodReport& method, const Report& report, const Scenario& scenario) {
    std::string text = title_of(method, scenario) + "\n";
    if (!method.refused.empty()) {
        for (const auto& fault : method.refused) {
            text += "    cannot run: " + wrap(fault.message + " [" + fault.rule + "]", kWidth, 16) + "\n";
        }
        return text + "\n";
    }
    text += "    predicted " + seconds_number(method.seconds) + " s [" + seconds_number(method.low) + " - " +
            seconds_number(method.high) + "], the links alone " + seconds_number(method.transfer) + " s, bound " +
            seconds_number(report.bound.time) + " s\n";
    text += "    logical " + format_bytes(method.logical) + ", over NICs " + format_bytes(method.network) + ", over NVLink " +
            format_bytes(method.nvlink) + "\n";
    text += "    busiest: " + method.bottleneck.resource + " of " + method.bottleneck.where + ", " +
            number_text("%.0f %%", method.bottleneck.share * 100.0) + " of the time\n";
    text += "    extra memory: trainer " + format_bytes(method.peak.train) + ", generator " + format_bytes(method.peak.generation) + "\n";
    for (const auto& term : method.terms) {
        text += term_line(term);
    }
    return text + sensitivity_text(method) + "\n";
}

std::string bound_text(const Report& report) {
    const auto line = [](const char* name, const Bound& bound) {
        return "    " + left(name, 22) + right(seconds_number(bound.time), 9) + " s  " + std::string{name_of(bound.kind)} + " at " + bound.where + "\n";
    };
    return "Bound: no plan can be faster\n" + line("at effective rates", report.bound) + line("at line rates", report.line_rate_bound) +
           "    domain-ingress: bytes wanted in a domain / its NICs; source-egress: bytes held only in some\n"
           "    domains / their NICs; gpu- and port-ingress: bytes wanted / NICs and NVLinks; gpu-egress: bytes\n"
           "    held only by some GPUs / their NICs and NVLinks; local-: the same where only NVLink serves;\n"
           "    copy-volume: one copy a receiving domain / all NICs\n" +
           (std::string{name_of(report.bound.kind)}.starts_with("pod") ? "    pod-: the same with pods for domains and uplinks for NICs\n\n" : "\n");
}

std::string value_text(double value, const std::string& unit) {
    if (unit == "s") {
        return value > 0.0 ? format_seconds(Seconds{value}) : "0 s";
    }
    if (unit == "B/s") {
        return format_bandwidth(Bandwidth::bytes_per_second(value));
    }
    if (unit == "B") {
        return format_bytes(Bytes{static_cast<std::uint64_t>(value)});
    }
    if (unit == "s/B") {
        return number_text("%.3g ms/GB", value * 1e12);
    }
    return number_text("%.3g", value) + (unit == "1" ? "" : " " + unit);
}

std::string assumption_text(const Assumption& entry) {
    std::string text = "    " + left(entry.name, 31) + right(value_text(entry.value, entry.unit), 11) + "  [" +
                       value_text(entry.low, entry.unit) + " - " + value_text(entry.high, entry.unit) + "]  " + entry.kind + "\n";
    text += "        " + wrap(entry.source, kWidth, 8) + "\n";
    if (!entry.identified_by.empty()) {
        text += "        " + wrap("identified by " + join_names(entry.identified_by), kWidth, 8) + "\n";
    }
    return text;
}

}  // namespace

std::string explain_text(const Report& report, const Scenario& scenario) {
    std::string text = scenario.name + ": where the time goes. Seconds; in brackets: hidden beside longer work.\n\n";
    for (const auto& method : report.methods) {
        text += method_text(method, report, scenario);
    }
    if (report.hybrid_by_meaning) {
        text += "With coverage ffn: " + method_text(*report.hybrid_by_meaning, report, scenario);
    }
    text += bound_text(report) + "Constants, each with its 68 % interval, kind and source\n";
    for (const auto& entry : report.assumptions) {
        text += assumption_text(entry);
    }
    return text;
}

}  // namespace refit::cli
