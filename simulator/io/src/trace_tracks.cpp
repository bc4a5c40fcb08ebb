// SPDX-License-Identifier: Apache-2.0
#include "trace_tracks.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "refit/link_rates.hpp"

namespace refit::io {
namespace {

/// Where a task is drawn: the smallest unit that bars are made of. Sorted, items come together, by time
/// within.
struct Place {
    std::uint32_t lane = 0;  ///< Of the trace.
    std::uint32_t stage = 0;
    bool is_alone = false;  ///< Belongs to no item.
    std::uint32_t receiver = Bar::kNone;
    std::uint32_t unit = 0;  ///< The item, unless items are drawn as one.
    std::uint32_t item = 0;
    std::int64_t from = 0;
    std::uint32_t task = 0;
};

bool is_alone(Activity activity) {
    return activity == Activity::kControl || activity == Activity::kGrouping ||
           activity == Activity::kFinalising;
}

/// Bars that one after another fill a line: items of one stage.
struct Row {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::vector<std::size_t> items;  ///< Numbers of bars with level kItem or kWhole.
};

/// Puts [from, to] into the first line that is free from then on. Pre: calls come by ascending `from`.
std::size_t first_free(std::vector<std::int64_t>& ends, std::int64_t from, std::int64_t to) {
    const auto free = std::ranges::find_if(ends, [&](std::int64_t end) { return end <= from; });
    const auto index = static_cast<std::size_t>(free - ends.begin());
    if (free == ends.end()) {
        ends.push_back(to);
    }
    ends[index] = to;
    return index;
}

class Drawing {
public:
    Drawing(const Simulation& simulation, const Cluster& cluster)
        : simulation_{simulation},
          cluster_{cluster},
          limits_{task_limits(simulation)},
          is_critical_(simulation.graph.tasks.size()) {
        for (const auto& step : simulation.path) {
            is_critical_[step.task] = true;
        }
        for (std::uint32_t task = 0; task < simulation.graph.tasks.size(); ++task) {
            if (nanoseconds(simulation.run.end[task]) > nanoseconds(simulation.run.start[task])) {
                places_.push_back(place_of(task));
            }
        }
    }

    Tracks run(std::size_t most_bars, std::size_t most_hops) {
        fold_hops(most_hops);
        std::uint32_t shift = 0;
        sort_by(shift);
        while (count_bars(shift) > most_bars && shift < kMostShift) {
            if (result_.has_activities) {
                result_.has_activities = false;
            } else {
                sort_by(++shift);
            }
        }
        result_.bar_of_task.assign(simulation_.graph.tasks.size(), Bar::kNone);
        for (std::size_t first = 0; first < places_.size();) {
            const auto lane = places_[first].lane;
            const auto end = end_of(first, [&](const Place& place) { return place.lane == lane; });
            draw_lane(first, end, shift);
            first = end;
        }
        return std::move(result_);
    }

private:
    /// A lane that shows several of the graph's: "stage 3" > "transfers and replicas".
    std::uint32_t lane(const std::string& process, const std::string& name) {
        const auto known = std::ranges::find(result_.processes, process);
        const auto index = static_cast<std::uint32_t>(known - result_.processes.begin());
        if (known == result_.processes.end()) {
            result_.processes.push_back(process);
        }
        const std::pair key{index, name};
        const auto [found, is_new] = lanes_.try_emplace(key, static_cast<std::uint32_t>(names_.size()));
        if (is_new) {
            names_.push_back(key);
        }
        return found->second;
    }

    std::uint32_t lane_of(const std::string& name) {
        const auto comma = name.find(", ");
        if (comma != std::string::npos) {
            const auto what = name.substr(comma + 2);
            return lane(name.substr(0, comma), what == "replicas" || what == "transfers" ? "tensors" : what);
        }
        return lane(name.starts_with("broadcast") ? "broadcasts" : "job", name);
    }

    /// A hop's two links tell who sends to whom where each rank is a class of its own.
    [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> ends_of_hop(std::uint32_t task) const {
        std::pair ends{Bar::kNone, Bar::kNone};
        const auto uses = simulation_.graph.network.uses(task);
        if (uses.size() != 2 || simulation_.graph.tasks[task].activity != Activity::kRelay) {
            return ends;
        }
        for (const auto& use : uses) {
            const auto& owner = simulation_.graph.links[use.link];
            const bool is_out = owner.port == Port::kNicOut || owner.port == Port::kNvlinkOut;
            (is_out ? ends.first : ends.second) = simulation_.graph.ranks_of(use.link).front().index();
        }
        return ends;
    }

    [[nodiscard]] std::string rank_name(std::uint32_t rank) const {
        return describe_ranks({RankId{rank}}, cluster_);
    }

    Place place_of(std::uint32_t task) {
        const auto& entry = simulation_.graph.tasks[task];
        Place place;
        const auto [sender, receiver] = ends_of_hop(task);
        if (sender != Bar::kNone && receiver != Bar::kNone) {
            const auto domain = cluster_.domain_of(RankId{sender}).index();
            place.lane = lane("domain " + std::to_string(domain), rank_name(sender) + " sends");
            place.receiver = receiver;
        } else {
            const auto [known, is_new] = graph_lanes_.try_emplace(entry.lane, 0);
            if (is_new) {
                known->second = lane_of(simulation_.graph.lanes[entry.lane].name);
            }
            place.lane = known->second;
        }
        if (entry.activity == Activity::kRelay && place.receiver == Bar::kNone) {
            place.receiver = Bar::kSeveral;
        }
        place.stage = entry.stage;
        place.is_alone = is_alone(entry.activity);
        place.unit = entry.item;
        place.item = entry.item;
        place.from = nanoseconds(simulation_.run.start[task]);
        place.task = task;
        return place;
    }

    /// Takes the hops of a rank together, to the same rank, else to the same domain, else all, until few
    /// enough remain.
    void fold_hops(std::size_t most) {
        for (const auto fold : {HopFold::kNone, HopFold::kByRank, HopFold::kByDomain, HopFold::kBySender}) {
            std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> bars;
            for (const auto& place : places_) {
                if (place.receiver != Bar::kNone && bars.size() <= most) {
                    bars.emplace(
                        place.lane, receiver_of(place, fold), fold == HopFold::kNone ? place.item : 0);
                }
            }
            result_.hops = fold;
            if (bars.size() <= most) {
                break;
            }
        }
        for (auto& place : places_) {
            if (place.receiver != Bar::kNone) {
                place.receiver = receiver_of(place, result_.hops);
                place.unit = result_.hops == HopFold::kNone ? place.item : 0;
            }
        }
    }

    [[nodiscard]] std::uint32_t receiver_of(const Place& place, HopFold fold) const {
        if (place.receiver == Bar::kSeveral || fold == HopFold::kNone || fold == HopFold::kByRank) {
            return place.receiver;
        }
        return fold == HopFold::kByDomain ? cluster_.domain_of(RankId{place.receiver}).index() : 0;
    }

    static auto key_of(const Place& place, std::uint32_t shift) {
        return std::tuple{place.lane, place.stage, place.is_alone, place.receiver, place.unit >> shift};
    }

    void sort_by(std::uint32_t shift) {
        std::ranges::sort(places_, {}, [&](const Place& place) {
            return std::tuple_cat(key_of(place, shift), std::tuple{place.from, place.task});
        });
    }

    template <class Same>
    [[nodiscard]] std::size_t end_of(std::size_t first, const Same& is_same) const {
        while (first < places_.size() && is_same(places_[first])) {
            ++first;
        }
        return first;
    }

    /// At most: a bar for each item, and with activities one for each change of them.
    [[nodiscard]] std::size_t count_bars(std::uint32_t shift) const {
        std::size_t bars = 0;
        for (std::size_t i = 0; i < places_.size(); ++i) {
            const bool is_new = i == 0 || key_of(places_[i], shift) != key_of(places_[i - 1], shift);
            const bool has_own = result_.has_activities && (is_new || activity(i) != activity(i - 1));
            bars += (is_new ? 1U : 0U) + (has_own ? 1U : 0U);
        }
        return bars;
    }

    [[nodiscard]] Activity activity(std::size_t place) const {
        return simulation_.graph.tasks[places_[place].task].activity;
    }
    [[nodiscard]] std::int64_t end_of_task(std::uint32_t task) const {
        return nanoseconds(simulation_.run.end[task]);
    }

    void draw_lane(std::size_t first, std::size_t end, std::uint32_t shift) {
        std::vector<Row> rows;
        while (first < end) {
            const auto stage = places_[first].stage;
            const auto last = end_of(first, [&](const Place& place) {
                return place.lane == places_[first].lane && place.stage == stage;
            });
            add_rows(rows, first, last, shift);
            first = last;
        }
        std::ranges::stable_sort(rows, {}, &Row::from);
        std::vector<std::int64_t> ends;
        std::vector<std::vector<const Row*>> tracks;
        for (const auto& row : rows) {
            const auto track = first_free(ends, row.from, row.to);
            tracks.resize(std::max(tracks.size(), track + 1));
            tracks[track].push_back(&row);
        }
        const auto& [process, name] = names_[places_[end - 1].lane];
        for (std::size_t i = 0; i < tracks.size(); ++i) {
            result_.tracks.push_back({process, i == 0 ? name : name + " (" + std::to_string(i + 1) + ")"});
            for (const auto* row : tracks[i]) {
                finish_row(*row);
            }
        }
    }

    /// Items of a stage, on as many rows as overlap.
    void add_rows(std::vector<Row>& rows, std::size_t first, std::size_t last, std::uint32_t shift) {
        drawn_.clear();
        std::vector<std::size_t> items;
        while (first < last) {
            const auto key = key_of(places_[first], shift);
            const auto end = end_of(first, [&](const Place& place) { return key_of(place, shift) == key; });
            items.push_back(drawn_.size());
            add_item(first, end);
            first = end;
        }
        std::ranges::stable_sort(items, {}, [&](std::size_t item) { return drawn_[item].front().from; });
        std::vector<std::int64_t> ends;
        const auto before = rows.size();
        for (const auto item : items) {
            const auto& bar = drawn_[item].front();
            const auto row = before + first_free(ends, bar.from, bar.to);
            if (row == rows.size()) {
                rows.push_back({bar.from, bar.to, {}});
            }
            rows[row].to = std::max(rows[row].to, bar.to);
            rows[row].items.push_back(kept_.size());
            kept_.push_back(std::move(drawn_[item]));
            kept_tasks_.push_back(std::move(tasks_of_[item]));
        }
        tasks_of_.clear();
    }

    /// An item's bar, then those of its activities.
    void add_item(std::size_t first, std::size_t end) {
        std::vector<Bar> inner;
        std::vector<std::pair<std::uint32_t, std::size_t>> tasks;
        for (auto i = first; i < end; ++i) {
            const auto bar = bar_of(places_[i]);
            const bool is_joined = !inner.empty() && (!result_.has_activities || bar.from < inner.back().to ||
                                                      bar.activities == bit(Activity::kRelay));
            if (is_joined) {
                join(inner.back(), bar);
            } else {
                inner.push_back(bar);
            }
            tasks.emplace_back(places_[i].task, inner.size() - 1);
        }
        if (inner.front().receiver != Bar::kNone) {
            inner.front().messages = messages_in(first, end);
        }
        std::vector<Bar> bars;
        if (inner.size() > 1) {
            auto outer = inner.front();
            outer.level = Bar::Level::kItem;
            for (std::size_t i = 1; i < inner.size(); ++i) {
                join(outer, inner[i]);
            }
            bars.push_back(outer);
        } else {
            inner.front().level = Bar::Level::kWhole;
        }
        for (auto& [task, index] : tasks) {
            index += bars.size();
        }
        bars.insert(bars.end(), inner.begin(), inner.end());
        drawn_.push_back(std::move(bars));
        tasks_of_.push_back(std::move(tasks));
    }

    [[nodiscard]] std::uint32_t messages_in(std::size_t first, std::size_t end) const {
        std::set<std::uint32_t> messages;
        for (auto i = first; i < end; ++i) {
            messages.insert(places_[i].item);
        }
        return static_cast<std::uint32_t>(messages.size());
    }

    static std::uint32_t bit(Activity activity) { return 1U << static_cast<std::uint32_t>(activity); }

    [[nodiscard]] Bar bar_of(const Place& place) const {
        const auto& entry = simulation_.graph.tasks[place.task];
        Bar bar;
        bar.from = place.from;
        bar.to = end_of_task(place.task);
        bar.activities = bit(entry.activity);
        bar.stage = entry.stage;
        bar.first_item = entry.item;
        bar.last_item = entry.item;
        bar.receiver = place.receiver;
        bar.limit = limits_[place.task];
        bar.tasks = 1;
        bar.bytes = entry.bytes;
        bar.is_critical = is_critical_[place.task];
        bar.is_drain = entry.activity == Activity::kWeightBroadcast && entry.bytes == 0.0;
        return bar;
    }

    static void join(Bar& bar, const Bar& other) {
        if (other.to - other.from > bar.to - bar.from) {
            bar.limit = other.limit;
        }
        bar.to = std::max(bar.to, other.to);
        bar.activities |= other.activities;
        bar.first_item = std::min(bar.first_item, other.first_item);
        bar.last_item = std::max(bar.last_item, other.last_item);
        bar.tasks += other.tasks;
        bar.bytes += other.bytes;
        bar.is_critical = bar.is_critical || other.is_critical;
        bar.is_drain = bar.is_drain && other.is_drain;
    }

    /// The row's bars onto the last track: the stage's around its items', unless they stand alone.
    void finish_row(const Row& row) {
        const auto track = static_cast<std::uint32_t>(result_.tracks.size() - 1);
        const auto& first = kept_[row.items.front()].front();
        const bool has_stage = first.receiver == Bar::kNone && row.items.size() > 1;
        if (has_stage) {
            auto stage = first;
            for (std::size_t i = 1; i < row.items.size(); ++i) {
                join(stage, kept_[row.items[i]].front());
            }
            stage.level = Bar::Level::kStage;
            stage.track = track;
            result_.bars.push_back(stage);
        }
        for (const auto item : row.items) {
            const auto before = static_cast<std::uint32_t>(result_.bars.size());
            for (auto& bar : kept_[item]) {
                bar.track = track;
                result_.merged =
                    std::max(result_.merged,
                             bar.receiver != Bar::kNone ? bar.messages : bar.last_item - bar.first_item + 1);
                result_.bars.push_back(bar);
            }
            for (const auto& [task, index] : kept_tasks_[item]) {
                result_.bar_of_task[task] = before + static_cast<std::uint32_t>(index);
            }
        }
    }

    static constexpr std::uint32_t kMostShift = 31;
    using ItemTasks =
        std::vector<std::pair<std::uint32_t, std::size_t>>;  ///< Task, and which of the item's bars.

    const Simulation& simulation_;
    const Cluster& cluster_;
    std::vector<std::uint32_t> limits_;
    std::vector<bool> is_critical_;
    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> lanes_;
    std::vector<std::pair<std::uint32_t, std::string>> names_;  ///< By lane: process and name.
    std::map<std::uint32_t, std::uint32_t> graph_lanes_;
    std::vector<Place> places_;
    std::vector<std::vector<Bar>> drawn_;  ///< By item of the stage at hand.
    std::vector<ItemTasks> tasks_of_;
    std::vector<std::vector<Bar>> kept_;  ///< By item of all rows.
    std::vector<ItemTasks> kept_tasks_;
    Tracks result_;
};

}  // namespace

std::int64_t nanoseconds(double seconds) {
    return std::llround(seconds * 1e9);
}

Tracks Tracks::make(const Simulation& simulation,
                    const Cluster& cluster,
                    std::size_t most_bars,
                    std::size_t most_hops) {
    return Drawing{simulation, cluster}.run(most_bars, most_hops);
}

}  // namespace refit::io
