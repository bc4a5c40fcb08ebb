// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "refit/quantity.hpp"
#include "refit/wrap.hpp"

namespace refit::exec {
namespace {

using Json = nlohmann::json;

Json spread_json(const Spread& spread) {
    return {{"min", spread.min.value()},
            {"median", spread.median.value()},
            {"p95", spread.p95.value()},
            {"max", spread.max.value()}};
}

std::string hexadecimal(std::uint64_t value) {
    char digits[24];
    std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(value));
    return digits;
}

/// Stages that ran: those that serve several are named by the first.
template <class Use>
void for_each_stage(const Measured& measured, Use&& use) {
    const auto& stages = measured.measurement.stages;
    for (std::size_t i = 0; i < stages.size(); ++i) {
        if (stages[i].max > Seconds{}) {
            use(i, phase_of(measured.file.plan.stages[i]), stages[i]);
        }
    }
}

Json ranks_json(const Measured& measured) {
    Json ranks = Json::array();
    for (std::size_t i = 0; i < measured.measurement.ranks.size(); ++i) {
        const auto& times = measured.measurement.ranks[i];
        const auto& record = measured.measurement.records[i];
        Json phases = Json::array();
        for_each_stage(measured, [&](std::size_t stage, const std::string& name, const Spread&) {
            phases.push_back({{"name", name}, {"stage", stage}, {"seconds", times.stages[stage].value()}});
        });
        ranks.push_back({{"rank", times.rank},
                         {"seconds", times.seconds.value()},
                         {"phases", phases},
                         {"sent_bytes", record.sent},
                         {"received_bytes", record.received},
                         {"elements", record.elements},
                         {"checksum", hexadecimal(record.checksum)}});
    }
    return ranks;
}

std::string line(const char* name, const std::string& value, bool is_markdown) {
    if (is_markdown) {
        return std::string{"| "} + name + " | " + value + " |\n";
    }
    std::string text = std::string{"  "} + name;
    text.resize(std::max<std::size_t>(text.size(), 24), ' ');
    return text + " " + wrap(value, 100, text.size() + 1) + "\n";
}

std::string times_text(const Spread& spread) {
    return "median " + format_seconds(spread.median) + ", min " + format_seconds(spread.min) + ", p95 " +
           format_seconds(spread.p95);
}

/// Lists too long for a line end in how many there are.
std::string without_text(const Losses& losses) {
    constexpr std::size_t kMost = 60;
    const auto listed = [](const std::vector<std::uint32_t>& ranks) {
        auto text = ranks_text(ranks);
        const auto count = std::to_string(ranks.size());
        if (text.size() > kMost / 2) {
            text = text.substr(0, text.rfind(',', kMost / 2)) + ",… (" + count + ")";
        }
        return (ranks.size() == 1 ? "rank " : "ranks ") + text;
    };
    return listed(losses.lost) + (losses.idle.empty() ? "" : "; idle, of replicas that lost one: " + listed(losses.idle));
}

std::string gigabytes_per_second(double rate) {
    return rate > 0 ? format_bandwidth(Bandwidth::bytes_per_second(rate)) : "nothing to move";
}

}  // namespace

Rates rates_of(const Measured& measured) {
    Rates rates;
    std::uint64_t most_wanted = 0;
    for (const auto bytes : measured.file.workload.generator_bytes()) {
        rates.delivered += Bytes{bytes};
        most_wanted = std::max(most_wanted, bytes);
    }
    std::uint64_t busiest = 0;
    for (const auto& record : measured.measurement.records) {
        busiest = std::max({busiest, record.sent, record.received});
    }
    rates.busiest = Bytes{busiest};
    if (const auto seconds = measured.measurement.seconds.median.value(); seconds > 0) {
        rates.algorithm = static_cast<double>(most_wanted) / seconds;
        rates.bus = static_cast<double>(busiest) / seconds;
    }
    return rates;
}

std::string phase_of(const PlanStage& stage) {
    switch (stage.kind) {
        case StageKind::kGather:
            return "gather";
        case StageKind::kBroadcast:
            return "broadcast";
        case StageKind::kRelay:
            return "transfer";
        case StageKind::kTransfer:
            break;
    }
    return "bulk";
}

namespace {

Json phases_json(const Measured& measured) {
    Json phases = Json::array();
    for_each_stage(measured, [&](std::size_t stage, const std::string& name, const Spread& spread) {
        auto phase = spread_json(spread);
        phase["name"] = name;
        phase["stage"] = stage;
        phase["seconds"] = spread.median.value();
        phases.push_back(std::move(phase));
    });
    return phases;
}

Json communicators_json(const Connecting& connecting) {
    Json communicators{{"way", connecting.shrunk > 0 ? "shrink" : "rebuild"},
                       {"seconds", connecting.seconds.value()},
                       {"made", connecting.made},
                       {"shrunk", connecting.shrunk}};
    if (!connecting.note.empty()) {
        communicators["note"] = connecting.note;
    }
    return communicators;
}

Json method_json(const Measured& measured) {
    const auto& measurement = measured.measurement;
    const auto rates = rates_of(measured);
    Json runs = Json::array();
    for (const auto run : measurement.runs) {
        runs.push_back(run.value());
    }
    Json method{
        {"method", name_of(measured.file.plan.method)},
        {"kind", "measured"},
        {"transport", measured.transport},
        {"seconds", measurement.seconds.median.value()},
        {"seconds_low", measurement.seconds.min.value()},
        {"seconds_high", measurement.seconds.max.value()},
        {"seconds_p95", measurement.seconds.p95.value()},
        {"runs", runs},
        {"phases", phases_json(measured)},
        {"verified", true},
        {"elements", measurement.elements},
        {"waves", measured.waves},
        {"delivered_bytes", rates.delivered.count()},
        {"algorithm_bandwidth", rates.algorithm},
        {"bus_bandwidth", rates.bus},
        {"plan_digest", hexadecimal(measurement.records.empty() ? 0 : measurement.records.front().digest)},
        {"ranks", ranks_json(measured)}};
    const auto& losses = measured.file.workload.losses();
    if (!losses.lost.empty()) {
        method["lost_ranks"] = losses.lost;
        method["idle_ranks"] = losses.idle;
    }
    if (const auto& connecting = measured.connecting) {
        method["communicators"] = communicators_json(*connecting);
    }
    if (measured.predicted) {
        method["predicted_seconds"] = (*measured.predicted * measured.slowdown).value();
        method["slowdown"] = measured.slowdown;
    }
    return method;
}

}  // namespace

Json report_json(const Measured& measured) {
    Json scenario = measured.file.scenario;
    scenario["name"] = measured.file.name;
    Json report{{"schema", "refit.report"},
                {"schema_version", "1.0"},
                {"scenario", scenario},
                {"machine", measured.machine},
                {"methods", Json::array({method_json(measured)})}};
    if (!measured.file.changes.empty()) {
        report["changes"] = measured.file.changes;
    }
    return report;
}

std::string report_text(const Measured& measured, bool is_markdown) {
    const auto& measurement = measured.measurement;
    const auto rates = rates_of(measured);
    const auto& losses = measured.file.workload.losses();
    const auto ranks = std::to_string(measured.file.gpus() - losses.absent().size());
    std::string text = measured.file.name + ", " + std::string{name_of(measured.file.plan.method)} + ": " +
                       ranks + " ranks by " + measured.transport + ", every element verified\n\n";
    text += is_markdown ? "| what | measured |\n|---|---|\n" : "";
    text +=
        line("refit",
             times_text(measurement.seconds) + ", of " + std::to_string(measurement.runs.size()) + " runs",
             is_markdown);
    if (!losses.lost.empty()) {
        text += line("without", without_text(losses), is_markdown);
    }
    if (measured.predicted) {
        const auto predicted = *measured.predicted * measured.slowdown;
        char times[96];
        std::snprintf(times,
                      sizeof(times),
                      ", of which it took %.2f times; copies take %.2f times as long as when probed",
                      measured.measurement.seconds.median / predicted,
                      measured.slowdown);
        text += line("predicted", format_seconds(predicted) + times, is_markdown);
    }
    for_each_stage(measured, [&](std::size_t stage, const std::string& name, const Spread& spread) {
        if (stage < 8) {
            text += line(("stage " + std::to_string(stage + 1) + ": " + name).c_str(),
                         times_text(spread),
                         is_markdown);
        }
    });
    text += line("delivered",
                 format_bytes(rates.delivered) + " in " + std::to_string(measured.waves) + " waves",
                 is_markdown);
    text += line("algorithm bandwidth",
                 gigabytes_per_second(rates.algorithm) + " to the generator that wants most",
                 is_markdown);
    text += line("bus bandwidth", gigabytes_per_second(rates.bus) + " at the busiest rank", is_markdown);
    text += line("compared",
                 std::to_string(measurement.elements) + " elements, " +
                     std::to_string(measurement.records.size()) + " records of ranks",
                 is_markdown);
    if (const auto& connecting = measured.connecting) {
        const bool has_shrunk = connecting->shrunk > 0;
        text += line("communicators",
                     std::string{has_shrunk ? "shrunk" : "made"} + " in " + format_seconds(connecting->seconds) + ": " +
                         (has_shrunk ? std::to_string(connecting->shrunk) + " of rank 0's shrunk, " : "") +
                         std::to_string(connecting->made) + " made anew",
                     is_markdown);
        text += connecting->note.empty() ? "" : line("not shrunk", connecting->note, is_markdown);
    }
    text += line("machine", measured.machine, is_markdown);
    return text;
}

}  // namespace refit::exec
