// SPDX-License-Identifier: Apache-2.0
#include "refit/io/trace.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "refit/link_rates.hpp"
#include "trace_tracks.hpp"

namespace refit::io {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16U;

std::string json_text(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
        }
        result += c;
    }
    return result + "\"";
}

/// Microseconds with three decimals, exactly.
std::string microseconds(std::int64_t nanoseconds) {
    char text[48];
    std::snprintf(text,
                  sizeof text,
                  "%lld.%03lld",
                  static_cast<long long>(nanoseconds / 1000),
                  static_cast<long long>(nanoseconds % 1000));
    return text;
}

std::string number(const char* format, double value) {
    char text[48];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

const char* item_name(std::uint32_t activities) {
    for (std::size_t i = 0; i < kActivities; ++i) {
        if ((activities >> i & 1U) != 0) {
            const auto activity = static_cast<Activity>(i);
            const auto phase = phase_of(activity);
            return activity == Activity::kRelay ? "message" : phase == "bulk" ? "tensor" : "pack";
        }
    }
    return "item";
}

std::string activities_of(const Bar& bar) {
    if (bar.is_drain) {
        return "last receiver";
    }
    std::string text;
    for (std::size_t i = 0; i < kActivities; ++i) {
        if ((bar.activities >> i & 1U) != 0) {
            text += (text.empty() ? "" : " + ") + std::string{name_of(static_cast<Activity>(i))};
        }
    }
    return text;
}

bool is_without_item(const Bar& bar) {
    const auto bit = [](Activity activity) { return 1U << static_cast<std::uint32_t>(activity); };
    return (bar.activities &
            ~(bit(Activity::kControl) | bit(Activity::kGrouping) | bit(Activity::kFinalising))) == 0;
}

class Writer {
public:
    Writer(const Simulation& simulation,
           const Cluster& cluster,
           const TextSink& sink,
           const TraceOptions& options)
        : simulation_{simulation},
          graph_{simulation.graph},
          cluster_{cluster},
          sink_{sink},
          options_{options},
          tracks_{Tracks::make(simulation, cluster, options.most_slices, options.most_hops)} {}

    TraceSize run() {
        size_.merged = tracks_.merged;
        size_.has_activities = tracks_.has_activities;
        put("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"seconds\":" +
            number("%.9g", simulation_.seconds()) + ",\"tasks\":" + std::to_string(graph_.tasks.size()) +
            ",\"items in a slice, at most\":" + std::to_string(tracks_.merged) + "},\"traceEvents\":[");
        add_names();
        for (const auto& bar : tracks_.bars) {
            add_bar(bar);
        }
        add_path_arrows();
        add_relay_arrows();
        add_counters();
        put("\n]}\n");
        flush();
        size_.is_whole = goes_on_;
        return size_;
    }

private:
    void put(std::string_view text) {
        if (!goes_on_) {
            return;
        }
        piece_ += text;
        if (piece_.size() >= kPiece) {
            flush();
        }
    }

    void flush() {
        goes_on_ = goes_on_ && sink_(piece_);
        piece_.clear();
    }

    void put_event(const std::string& members) {
        put(has_events_ ? ",\n{" : "\n{");
        put(members);
        put("}");
        has_events_ = true;
    }

    [[nodiscard]] std::uint32_t links_process() const {
        return static_cast<std::uint32_t>(tracks_.processes.size()) + 1;
    }

    void add_name(const char* what, std::uint32_t process, std::uint32_t thread, const std::string& name) {
        put_event(std::string{"\"ph\":\"M\",\"name\":\""} + what + "\",\"pid\":" + std::to_string(process) +
                  ",\"tid\":" + std::to_string(thread) + ",\"args\":{\"name\":" + json_text(name) + "}");
    }

    void add_names() {
        for (std::uint32_t i = 0; i < tracks_.processes.size(); ++i) {
            add_name("process_name", i + 1, 0, tracks_.processes[i]);
        }
        add_name("process_name", links_process(), 0, "links");
        for (std::uint32_t i = 0; i < tracks_.tracks.size(); ++i) {
            add_name("thread_name", tracks_.tracks[i].process + 1, i + 1, tracks_.tracks[i].name);
        }
    }

    [[nodiscard]] std::string place(std::uint32_t track, std::int64_t at) const {
        return "\"pid\":" + std::to_string(tracks_.tracks[track].process + 1) +
               ",\"tid\":" + std::to_string(track + 1) + ",\"ts\":" + microseconds(at);
    }

    [[nodiscard]] std::string items_of(const Bar& bar) const {
        const bool is_one = bar.first_item == bar.last_item;
        auto text =
            item_name(bar.activities) + std::string{is_one ? " " : "s "} + std::to_string(bar.first_item);
        text += is_one ? "" : "-" + std::to_string(bar.last_item);
        if (bar.receiver == Bar::kNone) {
            return text;
        }
        text = bar.messages == 1 ? text : std::to_string(bar.messages) + " messages";
        if (bar.receiver == Bar::kSeveral) {
            return text;
        }
        switch (tracks_.hops) {
            case HopFold::kNone:
            case HopFold::kByRank:
                return text + " to " + describe_ranks({RankId{bar.receiver}}, cluster_);
            case HopFold::kByDomain:
                return text + " to domain " + std::to_string(bar.receiver);
            case HopFold::kBySender:
                break;
        }
        return text;
    }

    [[nodiscard]] std::string name_of_bar(const Bar& bar) const {
        switch (bar.level) {
            case Bar::Level::kStage:
                return "plan stage " + std::to_string(bar.stage);
            case Bar::Level::kItem:
                return items_of(bar);
            case Bar::Level::kWhole:
                if (bar.receiver != Bar::kNone || (bar.activities & (bar.activities - 1)) != 0) {
                    return items_of(bar);
                }
                return activities_of(bar) + (is_without_item(bar) ? "" : ", " + items_of(bar));
            case Bar::Level::kActivity:
                break;
        }
        return activities_of(bar);
    }

    [[nodiscard]] std::string limit_name(std::uint32_t limit) {
        if (limit == RateSegment::kOwnCap) {
            return "host or cap";
        }
        if (limit_names_.size() <= limit) {
            limit_names_.resize(graph_.links.size());
        }
        if (limit_names_[limit].empty()) {
            limit_names_[limit] = describe_link(graph_, limit, cluster_);
        }
        return limit_names_[limit];
    }

    void add_bar(const Bar& bar) {
        ++size_.slices;
        auto text = "\"ph\":\"X\",\"name\":" + json_text(name_of_bar(bar)) + "," +
                    place(bar.track, bar.from) + ",\"dur\":" + microseconds(bar.to - bar.from) +
                    ",\"args\":{";
        if (bar.bytes > 0.0) {
            text += "\"bytes\":" + number("%.0f", bar.bytes) +
                    ",\"GB/s\":" + number("%.6g", bar.bytes / static_cast<double>(bar.to - bar.from)) + ",";
        }
        if (bar.level == Bar::Level::kActivity || bar.level == Bar::Level::kWhole) {
            text += "\"limited by\":" + json_text(limit_name(bar.limit)) + ",";
        }
        put_event(text + "\"tasks\":" + std::to_string(bar.tasks) +
                  ",\"critical path\":" + (bar.is_critical ? "true" : "false") + "}");
    }

    /// From the end of one task to the start of another, where they are drawn on different tracks.
    void add_arrow(std::uint32_t before, std::uint32_t after, double until, const std::string& name) {
        const auto from = tracks_.bar_of_task[before];
        const auto to = tracks_.bar_of_task[after];
        if (from == Bar::kNone || to == Bar::kNone || tracks_.bars[from].track == tracks_.bars[to].track) {
            return;
        }
        const auto leaves =
            std::max(tracks_.bars[from].from, std::min(nanoseconds(until), tracks_.bars[from].to) - 1);
        const auto arrives = nanoseconds(simulation_.run.start[after]);
        const auto id = std::to_string(++size_.arrows);
        const auto common = "\"name\":" + json_text(name) + ",\"cat\":\"waits\",\"id\":" + id + ",";
        put_event("\"ph\":\"s\"," + common + place(tracks_.bars[from].track, leaves));
        put_event("\"ph\":\"f\",\"bp\":\"e\"," + common +
                  place(tracks_.bars[to].track, std::max(leaves, arrives)));
    }

    void add_path_arrows() {
        for (std::size_t i = 1; i < simulation_.path.size(); ++i) {
            const auto before = simulation_.path[i - 1].task;
            const auto after = simulation_.path[i].task;
            add_arrow(before,
                      after,
                      simulation_.run.end[before],
                      std::string{name_of(graph_.tasks[after].activity)} + " waits for " +
                          std::string{name_of(graph_.tasks[before].activity)});
        }
    }

    /// From hop to hop of a message, once for each pair of bars: where the first chunk is passed on.
    void add_relay_arrows() {
        std::set<std::pair<std::uint32_t, std::uint32_t>> drawn;
        for (std::uint32_t task = 0; task < graph_.tasks.size(); ++task) {
            if (graph_.tasks[task].activity != Activity::kRelay) {
                continue;
            }
            for (const auto before : graph_.network.after(task)) {
                const bool is_hop =
                    graph_.tasks[before].activity == Activity::kRelay && size_.arrows < options_.most_slices;
                const std::pair bars{tracks_.bar_of_task[before], tracks_.bar_of_task[task]};
                if (is_hop && bars.first != bars.second && drawn.insert(bars).second) {
                    add_arrow(before, task, simulation_.run.end[before], "relay");
                }
            }
        }
    }

    void add_counter(const std::string& name, std::vector<RatePoint> course) {
        if (course.size() > options_.most_points) {
            const auto means = binned(course, simulation_.seconds(), options_.most_points);
            course.clear();
            for (std::size_t i = 0; i < means.size(); ++i) {
                course.push_back(
                    {simulation_.seconds() * static_cast<double>(i) / static_cast<double>(means.size()),
                     means[i]});
            }
            course.push_back({simulation_.seconds(), 0.0});
        }
        for (std::size_t i = 0; i < course.size(); ++i) {
            // Of changes within a nanosecond the last holds.
            if (i + 1 < course.size() && nanoseconds(course[i].at) == nanoseconds(course[i + 1].at)) {
                continue;
            }
            ++size_.points;
            put_event("\"ph\":\"C\",\"name\":" + json_text(name) + ",\"pid\":" +
                      std::to_string(links_process()) + ",\"ts\":" + microseconds(nanoseconds(course[i].at)) +
                      ",\"args\":{\"GB/s\":" + number("%.9g", course[i].rate / 1e9) + "}");
        }
    }

    void add_counters() {
        const LinkRates rates{simulation_};
        if (simulation_.links.size() <= options_.most_links) {
            // The same ranks have other links in another section of the refit: one counter.
            std::map<std::string, std::vector<LinkUse>> named;
            std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> in_section;
            for (const auto& usage : simulation_.links) {
                auto name = describe_link(graph_, usage.link, cluster_);
                const auto count = ++in_section[{name, graph_.links[usage.link].section}];
                name += count > 1 ? " (" + std::to_string(count) + ")" : "";
                named[name].push_back({usage.link, 1.0});
            }
            for (const auto& [name, uses] : named) {
                add_counter(name, rates.course(uses));
            }
            return;
        }
        for (const auto port :
             {Port::kNicOut, Port::kNicIn, Port::kNvlinkOut, Port::kNvlinkIn, Port::kCopy}) {
            for (const bool is_trainer : {true, false}) {
                std::vector<LinkUse> uses;
                for (const auto& usage : simulation_.links) {
                    const auto& members = graph_.ranks_of(usage.link);
                    if (graph_.links[usage.link].port == port &&
                        cluster_.is_trainer(members.front()) == is_trainer) {
                        uses.push_back({usage.link, static_cast<double>(members.size())});
                    }
                }
                if (!uses.empty()) {
                    add_counter(std::string{name_of(port)} +
                                    (is_trainer ? ", sum of trainers" : ", sum of generators"),
                                rates.course(uses));
                }
            }
        }
    }

    const Simulation& simulation_;
    const TaskGraph& graph_;
    const Cluster& cluster_;
    const TextSink& sink_;
    const TraceOptions& options_;
    Tracks tracks_;
    TraceSize size_;
    std::string piece_;
    std::vector<std::string> limit_names_;
    bool goes_on_ = true;
    bool has_events_ = false;
};

}  // namespace

TraceSize write_trace(const Simulation& simulation,
                      const Cluster& cluster,
                      const TextSink& sink,
                      const TraceOptions& options) {
    return Writer{simulation, cluster, sink, options}.run();
}

}  // namespace refit::io
