// SPDX-License-Identifier: Apache-2.0
#include "simulate_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "cells.hpp"
#include "compare_table.hpp"
#include "faults_text.hpp"
#include "options.hpp"
#include "refit/quantity.hpp"
#include "simulate_timeline.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kLabel = 22;
constexpr std::size_t kMostLinks = 6;
constexpr std::size_t kLeastLinks = 4;
constexpr double kWorthALine = 0.1;  ///< Share of capacity, of a link beyond the first few.
constexpr double kSmall = 0.02;      ///< Share of the time.
constexpr std::size_t kMostWaits = 3;
constexpr std::size_t kWaitGroups = 7;
/// Below it the closed form and the simulation count as agreeing.
constexpr double kAgree = 0.10;

std::string labelled(const std::string& label, const std::string& text) {
    return left("  " + label, kLabel) + wrap(text, kWidth, kLabel) + "\n";
}

std::string whole_percent(double share) {
    return number_text("%.0f %%", share * 100.0);
}

std::string header(const ShownSimulation& shown) {
    const auto& scenario = shown.scenario;
    const auto& cluster = scenario.cluster;
    auto text = moved_line(scenario) + "\n";
    const auto system = cluster.train_system() == cluster.generate_system()
                            ? cluster.train_system().title
                            : cluster.train_system().title + " to " + cluster.generate_system().title;
    text += wrap("  " + std::to_string(scenario.train.gpus) + " x " + cluster.train_system().gpu + " " +
                     describe(scenario.train) + " to " + std::to_string(scenario.generate.gpus) + " x " +
                     cluster.generate_system().gpu + " " + describe(scenario.generate) + ", " + system +
                     "; by " + title_of(shown.estimate, scenario),
                 kWidth,
                 2);
    return text + "\n\n";
}

std::string published_text(const PublishedTime& published, double seconds) {
    const auto low = published.low       ? published.low->value()
                     : published.seconds ? published.seconds->value()
                                         : 0.0;
    const auto high = published.high      ? published.high->value()
                      : published.seconds ? published.seconds->value()
                                          : 0.0;
    auto text = published.seconds ? number_text("%.3g s", published.seconds->value()) : "";
    if (low < high) {
        text += std::string{published.seconds ? "  (" : ""} + seconds_number(low) + "-" +
                seconds_number(high) + (published.seconds ? ")" : " s");
    }
    const auto off = std::abs(published.error);
    if (off == 0.0) {
        return text + (low < high ? "; the simulation lies inside" : "");
    }
    return text + "; the simulation is " + (off < 0.005 ? "less than 1 %" : whole_percent(off)) +
           (seconds < low ? " below" : " above");
}

std::string answer(const ShownSimulation& shown) {
    const auto seconds = shown.simulation.seconds();
    const auto& estimate = shown.estimate;
    const auto off = seconds / estimate.seconds.value() - 1.0;
    const auto differs = std::abs(off) < 0.005 ? std::string{"the simulation gives the same"}
                                               : "the simulation is " + whole_percent(std::abs(off)) +
                                                     (off < 0.0 ? " shorter" : " longer");
    auto text = labelled("simulated", seconds_number(seconds) + " s");
    text += labelled("closed form",
                     seconds_number(estimate.seconds) + " s  [" +
                         seconds_number(std::max(estimate.low, Seconds{})) + " - " +
                         seconds_number(estimate.high) + "]; " + differs);
    if (estimate.published) {
        text += labelled("published", published_text(*estimate.published, seconds));
    }
    if (shown.jitter) {
        const auto& [jitter, times] = *shown.jitter;
        text += labelled("jitter " + whole_percent(jitter.links),
                         seconds_number(times.quantile(0.5)) + " s  in the middle of " + grouped(jitter.samples) +
                             " samples, 95 % below " + seconds_number(times.quantile(0.95)) + " s (seed " +
                             std::to_string(jitter.seed) + ")");
    }
    text += labelled("links alone",
                     seconds_number(shown.simulation.transfer_seconds) +
                         " s  without any host, copy or fixed cost (closed form " +
                         seconds_number(estimate.transfer) + " s)");
    return text +
           labelled(
               "bound",
               seconds_number(shown.report.line_rate_bound.time) + " s  at line rate; no plan is faster") +
           "\n";
}

/// Who takes the time of an activity that no link limits.
std::string host_of(Activity activity) {
    switch (activity) {
        case Activity::kControl:
            return "hosts of all ranks";
        case Activity::kGrouping:
        case Activity::kCalls:
        case Activity::kStaging:
            return "host of trainers";
        case Activity::kLoading:
        case Activity::kPosting:
        case Activity::kUnpacking:
        case Activity::kFinalising:
            return "host of generators";
        case Activity::kCopies:
            return "copy engine of trainers";
        case Activity::kWeightBroadcast:
            return "hops on to the last receiver";
        default:
            return "a cap of its own rate";
    }
}

std::string port_of(const Simulation& simulation, std::uint32_t link, const Cluster& cluster) {
    const auto port = simulation.graph.links[link].port;
    if (port == Port::kUplink || port == Port::kDownlink) {
        return std::string{name_of(port)} + "s of pods";
    }
    const bool is_trainer = cluster.is_trainer(simulation.graph.ranks_of(link).front());
    return std::string{name_of(simulation.graph.links[link].port)} + " of " +
           (is_trainer ? "trainers" : "generators");
}

/// Hosts and copies that keep a NIC from others are slowed where others use it.
std::string limit_of(const Simulation& simulation, const PathStep& step, const Cluster& cluster) {
    const auto activity = simulation.graph.tasks[step.task].activity;
    if (step.limit == RateSegment::kOwnCap) {
        return host_of(activity);
    }
    const auto port = simulation.graph.links[step.limit].port;
    if (is_on_links(activity) || port == Port::kHost || port == Port::kCopy) {
        return port_of(simulation, step.limit, cluster);
    }
    return std::string{activity == Activity::kCopies ? "copies" : "host"} + " of trainers, its " +
           std::string{name_of(port)} + " shared";
}

std::string path_text(const ShownSimulation& shown) {
    const auto& simulation = shown.simulation;
    std::string text = left("Where the time goes", 26) + right("seconds", 9) + right("share", 8) +
                       right("busy", 9) + "   limited by\n";
    std::string hidden;
    for (const auto& part : path_parts(simulation, shown.scenario.cluster)) {
        const auto share = part.seconds / simulation.seconds();
        const auto busy = simulation.busy[static_cast<std::size_t>(part.activity)];
        const std::string name{name_of(part.activity)};
        if (share >= kSmall) {
            text += left("  " + name, 26) + right(seconds_number(part.seconds), 9) +
                    right(whole_percent(share), 8) + right(seconds_number(busy), 9) + "   " + part.limit +
                    "\n";
        } else if (busy >= 0.005 * simulation.seconds()) {
            hidden += (hidden.empty() ? "" : ", ") + name + " " + seconds_number(busy) + " s";
        }
    }
    return text +
           (hidden.empty() ? "" : "  " + wrap("small, or hidden behind these: " + hidden, kWidth, 4) + "\n") +
           "\n";
}

std::string links_text(const ShownSimulation& shown) {
    std::string text = left("Links (the busiest of each kind)", 36) + right("bytes a rank", 13) +
                       right("busy", 10) + right("of capacity", 13) + "   whose\n";
    std::size_t rows = 0;
    for (const auto& use : port_uses(shown.simulation, shown.scenario.cluster)) {
        if (++rows > kMostLinks || (rows > kLeastLinks && use.share < kWorthALine)) {
            break;
        }
        text += left("  " + use.name, 36) +
                right(size_cell(Bytes{static_cast<std::uint64_t>(std::llround(use.bytes))}), 13) +
                right(seconds_number(use.busy_seconds) + " s", 10) + right(whole_percent(use.share), 13) +
                "   " + use.busiest + "\n";
    }
    return text + "\n";
}

/// What the lanes of a group did, in the mean.
struct GroupWait {
    std::string name;
    double busy = 0.0;
    double waits = 0.0;
    std::array<double, kActivities> waited{};
};

std::string wait_text(const GroupWait& group) {
    std::vector<std::pair<double, std::string>> causes;
    for (std::size_t i = 0; i < kActivities; ++i) {
        if (group.waited[i] > 0.05 * group.waits) {
            causes.emplace_back(group.waited[i], std::string{name_of(static_cast<Activity>(i))});
        }
    }
    std::ranges::stable_sort(causes, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text = "waits " + seconds_number(group.waits) + " s for ";
    for (std::size_t i = 0; i < std::min<std::size_t>(3, causes.size()); ++i) {
        text += (i == 0 ? "" : ", ") + causes[i].second +
                (causes.size() > 1 ? " " + seconds_number(causes[i].first) : "");
    }
    return text;
}

std::string waits_text(const ShownSimulation& shown) {
    const auto& simulation = shown.simulation;
    std::vector<GroupWait> groups;
    for (const auto& folded : fold_lanes(simulation, kWaitGroups)) {
        auto& group = groups.emplace_back();
        group.name = folded.name;
        const auto count = static_cast<double>(folded.lanes.size());
        for (const auto lane : folded.lanes) {
            const auto& usage = simulation.lanes[lane];
            group.busy += usage.busy_seconds / count;
            for (std::size_t i = 0; i < kActivities; ++i) {
                group.waited[i] += usage.waited[i] / count;
                group.waits += usage.waited[i] / count;
            }
        }
    }
    std::ranges::stable_sort(groups, std::greater{}, &GroupWait::waits);
    std::string text;
    for (std::size_t i = 0; i < std::min(kMostWaits, groups.size()); ++i) {
        if (groups[i].waits >= 0.01 * simulation.seconds()) {
            text += left("  " + groups[i].name, 30) +
                    left("busy " + seconds_number(groups[i].busy) + " s", 13) +
                    wrap(wait_text(groups[i]), kWidth, 45) + "\n";
        }
    }
    return text.empty() ? text : "Who waits for what, from the start to its last work\n" + text + "\n";
}

/// The least that a task takes however fast the links between ranks are.
double least_seconds(const Simulation& simulation, std::uint32_t task) {
    const auto& network = simulation.graph.network;
    const auto& flow = network.flow(task);
    auto rate = flow.rate_cap;
    for (const auto& use : network.uses(task)) {
        const auto port = simulation.graph.links[use.link].port;
        if (port == Port::kCopy || port == Port::kHost) {
            rate = std::min(rate, network.rate(use.link) / use.per_byte);
        }
    }
    return std::isfinite(rate) ? flow.bytes / rate : 0.0;
}

/// Hosts and copies on the critical path follow each other whatever the links do, so their time is a bound.
std::string change_text(const ShownSimulation& shown) {
    const auto& simulation = shown.simulation;
    double stays = 0.0;
    for (const auto& step : simulation.path) {
        if (!is_on_links(simulation.graph.tasks[step.task].activity)) {
            stays += std::min(step.to - step.from, least_seconds(simulation, step.task));
        }
    }
    const auto total = simulation.seconds();
    return labelled("Change",
                    "unlimited links: still " + seconds_number(stays) +
                        " s (hosts, copies); no software cost: " +
                        seconds_number(std::min(total, simulation.transfer_seconds)) + " s");
}

std::string trial_text(const ShownSimulation& shown) {
    if (!shown.streams) {
        return {};
    }
    const auto now = shown.scenario.engine.options.streams;
    return labelled("Try",
                    "NRL_REFIT_NUM_STREAMS=" + std::to_string(shown.streams->streams) + " (now " +
                        std::to_string(now) + "): " + seconds_number(shown.simulation.seconds()) + " -> " +
                        seconds_number(shown.streams->seconds) + " s, simulated");
}

/// In words which activity makes the difference between the closed form and the simulation.
std::string difference_text(const ShownSimulation& shown) {
    const auto off = shown.simulation.seconds() - shown.estimate.seconds.value();
    if (std::abs(off) <= kAgree * shown.estimate.seconds.value()) {
        return {};
    }
    auto pairs = phase_pairs(shown.simulation, shown.estimate);
    const auto gap = [&](const PhasePair& pair) {
        return (pair.seconds - pair.estimate) * (off < 0.0 ? -1.0 : 1.0);
    };
    const auto most = *std::ranges::max_element(pairs, {}, gap);
    std::string activities;
    for (const auto& part : path_parts(shown.simulation, shown.scenario.cluster)) {
        if (part.seconds > 0.0 && phase_of(part.activity) == most.name &&
            part.seconds >= 0.1 * most.seconds) {
            activities += (activities.empty() ? "" : ", ") + std::string{name_of(part.activity)} + " " +
                          seconds_number(part.seconds);
        }
    }
    return labelled("Differs",
                    "most in the phase '" + most.name + "': " + seconds_number(most.seconds) +
                        " s on the simulated path" + (activities.empty() ? "" : " (" + activities + ")") +
                        ", " + seconds_number(most.estimate) + " s in the closed form");
}

std::string next_text(const ShownSimulation& shown) {
    if (shown.target.empty()) {
        return {};
    }
    const auto line = [](const std::string& start, const std::string& command, const std::string& what) {
        const auto whole = start + left(program_name() + " " + command, 62);
        return whole + (whole.size() + 2 + what.size() <= kWidth ? "  " + what : "") + "\n";
    };
    const auto method = shown.estimate.method == Method::kHybrid
                            ? ""
                            : " --method " + std::string{name_of(shown.estimate.method)};
    return line("Next:  ",
                "simulate " + shown.target + method + " --trace out.json",
                "every task; ui.perfetto.dev") +
           line("       ", "explain " + shown.target, "the closed form, term by term");
}

}  // namespace

std::vector<PathPart> path_parts(const Simulation& simulation, const Cluster& cluster) {
    std::array<std::map<std::string, double>, kActivities> limits;
    for (const auto& step : simulation.path) {
        const auto activity = simulation.graph.tasks[step.task].activity;
        const auto limit = limit_of(simulation, step, cluster);
        limits[static_cast<std::size_t>(activity)][limit] += step.to - step.from;
    }
    std::vector<PathPart> parts;
    for (std::size_t i = 0; i < kActivities; ++i) {
        if (simulation.busy[i] > 0.0) {
            const auto most =
                std::ranges::max_element(limits[i], {}, [](const auto& entry) { return entry.second; });
            auto& part = parts.emplace_back(PathPart{static_cast<Activity>(i), simulation.critical[i], ""});
            if (most != limits[i].end()) {
                const auto share = most->second / simulation.critical[i];
                part.limit = most->first + (share < 0.95 ? ", " + whole_percent(share) : "");
            }
        }
    }
    std::ranges::stable_sort(parts, std::greater{}, &PathPart::seconds);
    return parts;
}

std::vector<PortUse> port_uses(const Simulation& simulation, const Cluster& cluster) {
    // Sections of a refit follow each other and have links of their own, so what a rank's port does is their
    // sum.
    struct RankUse {
        double bytes = 0.0;
        double busy = 0.0;
        double share = 0.0;
    };
    std::map<std::string, std::map<RankId, RankUse>> by_port;
    for (const auto& usage : simulation.links) {
        for (const auto rank : simulation.graph.ranks_of(usage.link)) {
            auto& use = by_port[port_of(simulation, usage.link, cluster)][rank];
            use.bytes += usage.bytes;
            use.busy += usage.busy_seconds;
            use.share += usage.share;
        }
    }
    std::vector<PortUse> uses;
    for (const auto& [name, ranks] : by_port) {
        const auto& most =
            std::ranges::max_element(ranks, {}, [](const auto& entry) { return entry.second.share; })->second;
        std::vector<RankId> alike;
        for (const auto& [rank, use] : ranks) {
            if (use.share >= most.share * (1.0 - 1e-6)) {
                alike.push_back(rank);
            }
        }
        const bool is_pods = name.ends_with("s of pods");
        uses.push_back(
            {name,
             is_pods ? "that of " + describe_ranks({alike.front()}, cluster) : describe_ranks(alike, cluster),
             most.bytes,
             most.busy,
             most.share});
    }
    std::ranges::stable_sort(uses, std::greater{}, &PortUse::share);
    return uses;
}

std::vector<PhasePair> phase_pairs(const Simulation& simulation, const MethodReport& estimate) {
    std::vector<PhasePair> pairs;
    for (const char* name : {"fixed", "bulk", "gather", "broadcast", "load", "finalize"}) {
        auto& pair = pairs.emplace_back(PhasePair{name, 0.0, 0.0});
        for (std::size_t i = 0; i < kActivities; ++i) {
            pair.seconds += phase_of(static_cast<Activity>(i)) == name ? simulation.critical[i] : 0.0;
        }
        for (const auto& phase : estimate.phases) {
            pair.estimate += phase.name == name && !phase.is_hidden ? phase.seconds.value() : 0.0;
        }
    }
    return pairs;
}

std::string simulate_table(const ShownSimulation& shown) {
    return header(shown) + answer(shown) + path_text(shown) +
           timeline_text(shown.simulation, shown.scenario.cluster) + "\n" + links_text(shown) +
           waits_text(shown) + change_text(shown) + trial_text(shown) + difference_text(shown) + "\n" +
           next_text(shown);
}

}  // namespace refit::cli
