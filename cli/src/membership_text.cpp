// SPDX-License-Identifier: Apache-2.0
#include "membership_text.hpp"

#include <nlohmann/json.hpp>

#include "cells.hpp"
#include "faults_text.hpp"
#include "refit/io/faults_json.hpp"
#include "rows_text.hpp"

namespace refit::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::array kWays{MembershipWay::kRebuild, MembershipWay::kShrinkAndGrow};

RangedTime first_refit(const MembershipMethod& method, const MembershipCost& cost) {
    return {method.after.seconds + cost.setup.value,
            method.after.low + cost.setup.low,
            method.after.high + cost.setup.high};
}

/// What the second way does here.
std::string way_text(MembershipWay way, const MembershipChange& change) {
    if (way == MembershipWay::kRebuild) {
        return "rebuild";
    }
    return change.new_replicas == 0 ? "shrink" : change.lost_replicas == 0 ? "grow" : "shrink, grow";
}

std::string ends_text(const RangedTime& time) {
    return seconds_number(time.low) + "-" + seconds_number(time.high);
}

std::string method_lines(const MembershipMethod& method, const MembershipChange& change) {
    const auto name = left(std::string{name_of(method.after.method)}, 17);
    if (!method.refused().empty()) {
        const auto* when = method.before.refused.empty() ? "cannot run after the change: " : "cannot run: ";
        return name + wrap(when + method.refused().front().message, 100, 17) + "\n";
    }
    std::string text;
    for (const auto way : kWays) {
        const auto& cost = method.costs[static_cast<std::size_t>(way)];
        const auto first = first_refit(method, cost);
        const bool is_first_line = way == MembershipWay::kRebuild;
        text += is_first_line ? name : std::string(17, ' ');
        text += left(way_text(way, change), 12) +
                right(is_first_line ? std::to_string(method.communicators) : "", 6);
        text += right(seconds_number(cost.change.value), 7) + right(ends_text(cost.change), 11);
        text += right(seconds_number(first.value), 8) + right(ends_text(first), 11);
        text += right(seconds_number(cost.lost().value), 7) +
                (way == method.cheaper() ? method.is_clear() ? " <<" : " < " : "   ");
        text += is_first_line ? right(seconds_number(method.after.seconds), 7) +
                                    right(seconds_number(method.before.seconds), 8)
                              : "";
        text.erase(text.find_last_not_of(' ') + 1);
        text += "\n";
    }
    return text;
}

std::string runs_text(const char* what, const std::vector<GpuRun>& runs) {
    std::string text;
    for (const auto& run : runs) {
        text += (text.empty() ? std::string{what} + " " : " and ") + describe(run);
    }
    return text;
}

std::string headline(const MembershipAnswer& answer) {
    const auto& change = answer.change;
    const auto lost = runs_text("lose", answer.lost);
    const auto gained = runs_text("gain", answer.gained);
    auto text =
        answer.scenario + ": " + lost + (lost.empty() || gained.empty() ? "" : ", ") + gained + "\n\n";
    text += "  now    " + right(grouped(change.replicas_before), 5) + " replicas of " +
            grouped(change.replica_gpus) + " GPUs, " + to_text(answer.layout) + "\n";
    text +=
        "  after  " + right(grouped(change.replicas_after()), 5) + ": " + grouped(change.lost_replicas) +
        " lost, " + grouped(change.new_replicas) + " new, " + to_text(change.after) +
        (change.idle_gpus > 0 ? "; " + grouped(change.idle_gpus) + " GPUs idle, in no whole replica" : "") +
        "\n";
    return text;
}

std::string notes(const MembershipAnswer& answer) {
    const auto measured = grouped(answer.gpus_least) + " to " + grouped(answer.gpus_most) + " GPUs";
    const auto gpus = answer.train_gpus + std::max(answer.layout.gpus, answer.change.after.gpus);
    std::string text =
        "Lost is the change and what connections add to the first refit; < loses less, << by more than the "
        "ranges. Comms: "
        "communicators of a generator, one made after the other; low ends: all at once. Measured: shrink and "
        "grow of one "
        "communicator, " +
        measured + ". Assumed: rebuild, and that several take as many times as long (docs/membership.md).";
    if (gpus < answer.gpus_least || gpus > answer.gpus_most) {
        text += " This job, with " + grouped(gpus) + " GPUs, lies outside what was measured.";
    }
    return wrap(text, 100, 0) + "\n";
}

std::string membership_table(const MembershipAnswer& answer) {
    auto text = headline(answer) + "\n";
    text +=
        "                              comms  change (s)        first refit (s)     lost     later  before\n";
    for (const auto& method : answer.methods) {
        text += method_lines(method, answer.change);
    }
    return text + "\n" + notes(answer);
}

OrderedJson json_of(const RangedTime& time) {
    return {{"seconds", time.value.value()},
            {"seconds_low", time.low.value()},
            {"seconds_high", time.high.value()}};
}

OrderedJson json_of(const MethodReport& report) {
    return json_of(RangedTime{report.seconds, report.low, report.high});
}

OrderedJson json_of(const MembershipMethod& method) {
    OrderedJson entry{{"method", name_of(method.after.method)}, {"communicators", method.communicators}};
    if (!method.refused().empty()) {
        entry["refused"] = io::to_json(method.refused());
        return entry;
    }
    entry["before"] = json_of(method.before);
    entry["later"] = json_of(method.after);
    for (const auto way : kWays) {
        const auto& cost = method.costs[static_cast<std::size_t>(way)];
        entry["ways"].push_back({{"way", name_of(way)},
                                 {"change", json_of(cost.change)},
                                 {"first_refit", json_of(first_refit(method, cost))},
                                 {"lost", json_of(cost.lost())}});
    }
    entry["cheaper"] = name_of(method.cheaper());
    entry["is_clear"] = method.is_clear();
    return entry;
}

OrderedJson json_of(const std::vector<GpuRun>& runs) {
    auto list = OrderedJson::array();
    for (const auto& run : runs) {
        list.push_back({{"gpus", run.gpus}, {"nodes", run.nodes}});
    }
    return list;
}

std::string membership_json(const MembershipAnswer& answer) {
    const auto& change = answer.change;
    OrderedJson json{{"schema", "refit.membership"},
                     {"schema_version", "1.0"},
                     {"scenario", answer.scenario},
                     {"lose", json_of(answer.lost)},
                     {"gain", json_of(answer.gained)},
                     {"replica_gpus", change.replica_gpus},
                     {"replicas_before", change.replicas_before},
                     {"replicas_lost", change.lost_replicas},
                     {"replicas_new", change.new_replicas},
                     {"replicas_after", change.replicas_after()},
                     {"idle_gpus", change.idle_gpus},
                     {"layout_before", to_text(answer.layout)},
                     {"layout_after", to_text(change.after)},
                     {"measured_gpus_least", answer.gpus_least},
                     {"measured_gpus_most", answer.gpus_most},
                     {"methods", OrderedJson::array()}};
    for (const auto& method : answer.methods) {
        json["methods"].push_back(json_of(method));
    }
    return json.dump(1) + "\n";
}

std::string exact(Seconds time) {
    return number_text("%.6g", time.value());
}

std::string membership_rows(const MembershipAnswer& answer, Format format) {
    std::vector<Row> rows;
    for (const auto& method : answer.methods) {
        const std::string name{name_of(method.after.method)};
        const auto count = std::to_string(method.communicators);
        if (!method.refused().empty()) {
            rows.push_back(
                {name, "", count, "", "", "", "", "", "", "", "", "", method.refused().front().message});
            continue;
        }
        for (const auto way : kWays) {
            const auto& cost = method.costs[static_cast<std::size_t>(way)];
            const auto first = first_refit(method, cost);
            rows.push_back({name,
                            name_of(way),
                            count,
                            exact(cost.change.value),
                            exact(cost.change.low),
                            exact(cost.change.high),
                            exact(first.value),
                            exact(first.low),
                            exact(first.high),
                            exact(cost.lost().value),
                            exact(method.after.seconds),
                            exact(method.before.seconds),
                            ""});
        }
    }
    return rows_text(format,
                     {"method",
                      "way",
                      "communicators",
                      "change_s",
                      "change_low_s",
                      "change_high_s",
                      "first_refit_s",
                      "first_refit_low_s",
                      "first_refit_high_s",
                      "lost_s",
                      "later_refit_s",
                      "refit_before_s",
                      "refused"},
                     rows);
}

}  // namespace

MembershipWay MembershipMethod::cheaper() const {
    return costs[0].lost().value < costs[1].lost().value ? MembershipWay::kRebuild
                                                         : MembershipWay::kShrinkAndGrow;
}

bool MembershipMethod::is_clear() const {
    const auto less = static_cast<std::size_t>(cheaper());
    return costs[less].lost().high < costs[1 - less].lost().low;
}

std::string membership_text(const MembershipAnswer& answer, Format format) {
    switch (format) {
        case Format::kJson:
            return membership_json(answer);
        case Format::kCsv:
        case Format::kMarkdown:
            return membership_rows(answer, format);
        case Format::kTable:
            break;
    }
    return membership_table(answer);
}

}  // namespace refit::cli
