// SPDX-License-Identifier: Apache-2.0
#include "refit/compare.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "bottleneck.hpp"
#include "refit/constant_table.hpp"
#include "refit/estimate.hpp"
#include "refit/memory.hpp"
#include "refit/memory_advice.hpp"
#include "refit/methods.hpp"
#include "refit/quantity.hpp"
#include "refit/sensitivity.hpp"
#include "refit/simulate.hpp"
#include "refit/validate.hpp"
#include "refit/vllm.hpp"

namespace refit {
namespace {

/// Methods that the engine runs and whose costs published times determine.
bool is_calibrated(const Plan& plan, const Engine& engine) {
    const auto coverage = plan.coverage.kind();
    const bool has_its_coverage =
        plan.method != Method::kHybrid || (coverage != Coverage::kAll && coverage != Coverage::kPattern);
    const auto* path = engine.path_of(name_of(plan.method));
    return has_its_coverage && path != nullptr && path->is_calibrated;
}

double share(double part, Seconds whole) { return whole.value() > 0.0 ? std::min(1.0, part / whole.value()) : 0.0; }

/// Takes the uplinks of a pod where they are busy longer.
void raise_by_uplinks(Bottleneck& busiest, const Traffic& traffic, const Fabric& fabric, Seconds total) {
    const auto raise = [&](const char* resource, std::uint32_t pod, std::uint64_t bytes, double rate) {
        const auto busy = share(static_cast<double>(bytes) / rate, total);
        busiest = busy > busiest.share ? Bottleneck{resource, "pod " + std::to_string(pod), busy} : busiest;
    };
    for (std::uint32_t pod = 0; pod < traffic.pods().size(); ++pod) {
        raise("spine-up", pod, traffic.pods()[pod].up, fabric.spine().up[pod]);
        raise("spine-down", pod, traffic.pods()[pod].down, fabric.spine().down[pod]);
    }
}

}  // namespace

Bottleneck bottleneck_of(const PlanLoads& loads, const Setting& setting, const Estimate& estimate, const Cluster& cluster) {
    const auto& ports = loads.traffic.ports();
    const auto name_rank = [&](std::uint32_t rank) {
        return cluster.is_trainer(RankId{rank}) ? "trainer rank " + std::to_string(rank)
                                                : "generation rank " + std::to_string(rank - cluster.train_gpus());
    };
    const auto nic_rate = [&](std::uint32_t rank) {
        return (cluster.is_trainer(RankId{rank}) ? setting.train_nic : setting.generate_nic) * setting.constants.nic_efficiency.value *
               cluster.nic_share(RankId{rank});
    };
    const auto nic_busy = [&](std::uint32_t rank, std::uint64_t bytes) {
        return bytes > 0 ? share(static_cast<double>(bytes) / nic_rate(rank), estimate.total) : 0.0;
    };
    const auto name_nic = [&](std::uint32_t rank) {
        const auto nic = cluster.fabric().nics.find(rank);
        return name_rank(rank) +
               (nic == cluster.fabric().nics.end() || !nic->second ? "" : ", NIC at " + format_bandwidth(*nic->second));
    };
    const auto sender = loads.busiest_sender;
    const auto receiver = loads.busiest_receiver;
    Bottleneck busiest{"nic-out", name_nic(sender), nic_busy(sender, ports[sender].nic_out)};
    const Bottleneck in{"nic-in", name_nic(receiver), nic_busy(receiver, ports[receiver].nic_in)};
    busiest = in.share > busiest.share ? in : busiest;
    for (std::uint32_t rank = 0; rank < cluster.gpus(); ++rank) {
        const auto rate = (cluster.is_trainer(RankId{rank}) ? setting.train_nvlink : setting.generate_nvlink) * setting.constants.nvlink_efficiency.value;
        const auto busy = share(static_cast<double>(std::max(ports[rank].nvlink_out, ports[rank].nvlink_in)) / rate, estimate.total);
        busiest = busy > busiest.share ? Bottleneck{"nvlink", name_rank(rank), busy} : busiest;
    }
    if (!loads.traffic.pods().empty()) {
        raise_by_uplinks(busiest, loads.traffic, make_fabric(cluster, setting.constants.nic_efficiency.value, 1.0), estimate.total);
    }
    for (const auto& [name, resource] : {std::pair{"collective calls", "collective-calls"},
                                         std::pair{"loading", "loading"},
                                         std::pair{"device copies", "device-copies"},
                                         std::pair{"staging", "staging"},
                                         std::pair{"control", "fixed"},
                                         std::pair{"finalising experts", "finalize"}}) {
        double seconds = 0.0;
        for (const auto& term : estimate.terms) {
            seconds += term.name == name && !term.is_hidden ? term.seconds.value() : 0.0;
        }
        if (share(seconds, estimate.total) > busiest.share) {
            busiest = {resource, std::string{resource} == "loading" ? "each generation host" : "each host", share(seconds, estimate.total)};
        }
    }
    return busiest;
}

namespace {

Bytes mean_trainer_nic_out(const Traffic& traffic, const Cluster& cluster) {
    std::uint64_t sum = 0;
    for (std::uint32_t rank = 0; rank < cluster.train_gpus(); ++rank) {
        sum += traffic.ports()[rank].nic_out;
    }
    return Bytes{sum / cluster.active_trainers()};
}

const PublishedRecord* record_of(std::span<const PublishedRecord> records, const std::string& id) {
    const auto found = std::ranges::find(records, id, &PublishedRecord::id);
    return found == records.end() ? nullptr : &*found;
}

void widen(PublishedTime& time, const PublishedRecord& record) {
    const auto take_low = record.low ? record.low : record.seconds;
    const auto take_high = record.high ? record.high : record.seconds;
    if (take_low && take_high) {
        time.low = time.low ? std::min(*time.low, *take_low) : *take_low;
        time.high = time.high ? std::max(*time.high, *take_high) : *take_high;
    }
}

/// Error of a prediction beside the published spread; 0 where there is none.
double error_of(Seconds predicted, const PublishedTime& published) {
    return published.low && published.high ? error_beside(predicted, *published.low, *published.high) : 0.0;
}

std::optional<PublishedTime> published_time(const Scenario& scenario, Method method, Seconds predicted,
                                            std::span<const PublishedRecord> records) {
    const auto* path = scenario.engine.path_of(name_of(method));
    for (const auto& id : scenario.published) {
        const auto* record = record_of(records, id);
        if (record == nullptr || path == nullptr || record->engine != path->name) {
            continue;
        }
        PublishedTime time{id, record->seconds, {}, {}, 0.0, record->inferred};
        widen(time, *record);
        for (const auto& other : record->same_configuration_as) {
            if (const auto* same = record_of(records, other)) {
                widen(time, *same);
            }
        }
        time.error = error_of(predicted, time);
        return time;
    }
    return std::nullopt;
}

class Comparison {
public:
    Comparison(const Scenario& scenario, const CompareRequest& request, const Workload& workload)
        : scenario_{scenario}, request_{request}, workload_{workload}, setting_{make_setting(scenario, workload_)} {}

    Report run() {
        tell("bounds", 0.0);
        const auto slices = SliceTable::make(workload_, scenario_.cluster.train_gpus());
        add_bounds(slices);
        add_fractions();
        const auto count = static_cast<double>(request_.methods.size());
        for (std::size_t i = 0; i < request_.methods.size(); ++i) {
            tell(name_of(request_.methods[i]), (1.0 + static_cast<double>(i)) / (count + 2.0));
            add_method(request_.methods[i], slices);
        }
        add_rest(count);
        return std::move(report_);
    }

    Report run(const Plan& plan) {
        tell("bounds", 0.0);
        add_bounds(SliceTable::make(workload_, scenario_.cluster.train_gpus()));
        add_fractions();
        tell(name_of(plan.method), 1.0 / 3.0);
        add_plan(plan);
        add_rest(1.0);
        return std::move(report_);
    }

private:
    void add_rest(double count) {
        add_speedup();
        tell("what to try", (1.0 + count) / (count + 2.0));
        if (const auto* hybrid = report_.find(Method::kHybrid); hybrid != nullptr && hybrid->refused.empty()) {
            add_coverage_trial(*hybrid);
            add_streams_trial();
            add_placement_trial(*hybrid);
        }
        add_steps();
        add_assumptions();
    }

    void tell(std::string_view what, double done) const {
        if (request_.progress) {
            request_.progress(what, done);
        }
    }

    void add_bounds(const SliceTable& slices) {
        const auto& constants = scenario_.engine.constants;
        const auto bound = [&](double nic, double nvlink) {
            return lower_bound(slices, make_fabric(scenario_.cluster, nic, nvlink));
        };
        report_.bound = bound(constants.nic_efficiency.value, constants.nvlink_efficiency.value);
        report_.line_rate_bound = bound(1.0, 1.0);
    }

    void add_fractions() {
        const auto fraction = [&](const Coverage& coverage) {
            Bytes bytes;
            for (const auto& entry : workload_.classes()) {
                bytes += is_bulk(entry.parameter, coverage) ? entry.parameter.bytes() : Bytes{};
            }
            return bytes.as_double() / workload_.payload_bytes().as_double();
        };
        report_.bulk_fraction = fraction(scenario_.coverage);
        report_.ffn_fraction = fraction(Coverage::kFfn);
    }

    void add_method(Method method, const SliceTable& slices) {
        auto plan = make_plan(method, scenario_, workload_, slices);
        if (!plan) {
            MethodReport entry;
            entry.method = method;
            entry.refused = std::move(plan.error());
            report_.methods.push_back(std::move(entry));
            return;
        }
        add_plan(*plan);
    }

    void add_plan(const Plan& plan) {
        auto loads = make_loads(plan, scenario_.cluster);
        auto entry = report_of(plan, loads);
        entry.published = published_time(scenario_, plan.method, entry.seconds, request_.published);
        if (const auto times = simulated_times(plan)) {
            set_simulated(entry, *times);
        }
        report_.methods.push_back(std::move(entry));
        add_warnings(plan);
        if (plan.method == Method::kHybrid) {
            hybrid_loads_ = std::move(loads);
            region_ = largest_region(plan, workload_);
        } else if (plan.method == Method::kGatherBroadcast) {
            broadcast_loads_ = std::move(loads);
        }
    }

    [[nodiscard]] std::optional<SimulatedTimes> simulated_times(const Plan& plan) const {
        if (!request_.has_simulation) {
            return std::nullopt;
        }
        SimulateOptions options;
        options.is_cancelled = request_.is_cancelled;
        const auto run = simulate(plan, workload_, scenario_, options);
        return run ? std::optional{SimulatedTimes{Seconds{run->seconds()}, Seconds{run->transfer_seconds}}} : std::nullopt;
    }

    /// Each once, though several methods may meet it.
    void add_warnings(const Plan& plan) {
        for (auto& warning : memory_warnings(plan, scenario_, workload_)) {
            warning.message.insert(0, std::string{name_of(plan.method)} + ": ");
            const auto is_known = [&](const Fault& known) { return known.rule == warning.rule && known.where == warning.where; };
            if (std::ranges::none_of(report_.warnings, is_known)) {
                report_.warnings.push_back(std::move(warning));
            }
        }
    }

    [[nodiscard]] MethodReport report_of(const Plan& plan, const PlanLoads& loads) const {
        MethodReport entry;
        entry.method = plan.method;
        auto estimated = estimate(loads, setting_);
        entry.is_calibrated = is_calibrated(plan, scenario_.engine);
        entry.seconds = estimated.total;
        const auto range = estimate_range(loads, setting_, entry.is_calibrated);
        entry.low = range.low;
        entry.high = range.high;
        entry.transfer = estimated.transfer;
        entry.logical = logical_bytes(plan, workload_);
        entry.network = Bytes{loads.traffic.network_bytes()};
        entry.nvlink = Bytes{loads.traffic.nvlink_bytes()};
        entry.nic_per_trainer = mean_trainer_nic_out(loads.traffic, scenario_.cluster);
        entry.peak = peak_bytes(plan, scenario_, workload_);
        entry.bottleneck = bottleneck_of(loads, setting_, estimated, scenario_.cluster);
        entry.phases = std::move(estimated.phases);
        entry.terms = std::move(estimated.terms);
        entry.sensitivities = sensitivities(loads, setting_);
        return entry;
    }

    /// The ratio over all readings left open, each taken for both methods; the model's error counts for each, independently.
    void add_speedup() {
        if (!hybrid_loads_ || !broadcast_loads_) {
            return;
        }
        const auto ratio = [&](const Reading& reading) {
            return estimate(*broadcast_loads_, setting_, reading).total / estimate(*hybrid_loads_, setting_, reading).total;
        };
        Speedup speedup;
        speedup.ratio = ratio(setting_.options.reading.usual());
        speedup.low = speedup.ratio;
        speedup.high = speedup.ratio;
        for (const auto& reading : setting_.options.reading.all()) {
            speedup.low = std::min(speedup.low, ratio(reading));
            speedup.high = std::max(speedup.high, ratio(reading));
        }
        const auto& slow = *report_.find(Method::kGatherBroadcast);
        const auto& fast = *report_.find(Method::kHybrid);
        if (!fast.is_calibrated || !slow.is_calibrated) {
            // Borrowed costs are as uncertain as the ranges say.
            speedup.low = std::min(speedup.low, slow.low / fast.high);
            speedup.high = std::max(speedup.high, slow.high / fast.low);
            report_.speedup = speedup;
            return;
        }
        const auto error = std::exp(kEightyPercent * std::sqrt(2.0) * setting_.constants.model_error.value);
        speedup.low /= error;
        speedup.high *= error;
        report_.speedup = speedup;
    }

    /// The fewest streams that come within 1 % of what any number of streams gives.
    void add_streams_trial() {
        const auto at = [&](std::uint32_t streams) {
            auto setting = setting_;
            setting.options.streams = streams;
            return estimate(*hybrid_loads_, setting).total;
        };
        const auto now = setting_.options.streams;
        const auto most = std::max(now, scenario_.train.pp);
        const auto best = at(most);
        auto streams = now;
        while (streams < most && at(streams) > best * 1.01) {
            ++streams;
        }
        if (streams > now) {
            report_.trials.push_back({{"engine.options.NRL_REFIT_NUM_STREAMS", std::to_string(streams), "now " + std::to_string(now)},
                                      at(now),
                                      at(streams),
                                      static_cast<std::int64_t>((region_ * (streams - now)).count())});
        }
    }

    /// NeMo RL's name rule misses experts that are named w1, w2, w3.
    void add_coverage_trial(const MethodReport& hybrid) {
        if (scenario_.coverage != Coverage::kNemoRlNames || report_.bulk_fraction >= 0.5 ||
            report_.ffn_fraction <= report_.bulk_fraction) {
            return;
        }
        auto changed = scenario_;
        changed.coverage = Coverage::kFfn;
        const auto plan = make_plan(Method::kHybrid, changed, workload_);
        if (plan) {
            report_.hybrid_by_meaning = report_of(*plan, make_loads(*plan, scenario_.cluster));
            add_trial(hybrid, *report_.hybrid_by_meaning, {"engine.coverage", "ffn", "now nemo-rl-names"});
        }
    }

    void add_trial(const MethodReport& before, const MethodReport& after, Suggestion change) {
        const auto extra = static_cast<std::int64_t>(after.peak.generation.count()) -
                           static_cast<std::int64_t>(before.peak.generation.count());
        report_.trials.push_back({std::move(change), before.seconds, after.seconds, extra});
    }

    void add_placement_trial(const MethodReport& hybrid) {
        const auto& cluster = scenario_.cluster;
        const auto whole = std::min(cluster.train_system().gpus_per_domain, cluster.generate_system().gpus_per_domain);
        const auto used = cluster.placement().train_gpus_per_domain;
        if (used >= whole) {
            return;
        }
        auto changed = scenario_;
        auto placement = cluster.placement();
        placement.train_gpus_per_domain = whole;
        placement.generate_gpus_per_domain = whole;
        changed.cluster = Cluster{cluster.train_system(), cluster.generate_system(), cluster.train_gpus(), cluster.generate_gpus(), placement, cluster.fabric()}.without(cluster.losses());
        const auto plan = make_plan(Method::kHybrid, changed, workload_);
        if (plan) {
            const auto after = report_of(*plan, make_loads(*plan, changed.cluster));
            add_trial(hybrid, after, {"placement.gpus_used_per_domain", std::to_string(whole), "now " + std::to_string(used)});
        }
    }

    void add_steps() {
        const auto* slow = report_.find(Method::kGatherBroadcast);
        const auto* fast = report_.find(Method::kHybrid);
        if (slow == nullptr || fast == nullptr || !slow->refused.empty() || !fast->refused.empty()) {
            return;
        }
        const auto saved = slow->seconds - fast->seconds;
        for (const auto step : request_.steps) {
            const bool fits = step > slow->seconds;
            report_.steps.push_back({step, share(slow->seconds.value(), step), fits ? step / (step - saved) : 1.0});
        }
    }

    template <class T, class Get>
    void assume(const std::string& name, const Figure<T>& figure, const char* unit, Get get) {
        report_.assumptions.push_back({name, get(figure.value), unit, get(figure.low), get(figure.high), figure.source, figure.kind, {}});
    }

    void assume_system(const std::string& side, const System& system) {
        const auto rate = [](Bandwidth value) { return value.bytes_per_second(); };
        assume(side + ".nic", system.nic, "B/s", rate);
        assume(side + ".nvlink", system.nvlink, "B/s", rate);
        assume(side + ".hbm_copy", system.hbm_copy, "B/s", rate);
        assume(side + ".gpu_memory", system.gpu_memory, "B", [](Bytes value) { return value.as_double(); });
    }

    void assume(const char* name, const Constant& constant, const char* unit) {
        if (constant.source.empty()) {
            return;  // the engine has no such cost
        }
        const auto kind = constant.kind == "fitted" || constant.kind == "measured" ? constant.kind : "assumed";
        report_.assumptions.push_back({name, constant.value, unit, constant.low, constant.high, constant.source, kind, constant.identified_by});
    }

    void add_assumptions() {
        assume_system("train", scenario_.cluster.train_system());
        assume_system("generate", scenario_.cluster.generate_system());
        for (const auto& entry : constant_table()) {
            assume(entry.name, scenario_.engine.constants.*entry.member, entry.unit);
        }
        const auto used = static_cast<double>(scenario_.cluster.placement().train_gpus_per_domain);
        report_.assumptions.push_back({"placement.gpus_used_per_domain", used, "GPUs", used, used, "scenario, or the largest multiple of 16 in a domain", "assumed", {}});
        if (const auto& fabric = scenario_.cluster.fabric(); fabric.has_spine()) {
            const double pod = fabric.domains_per_pod;
            report_.assumptions.push_back({"fabric.oversubscription", fabric.oversubscription, "1", fabric.oversubscription, fabric.oversubscription, "scenario", "assumed", {}});
            report_.assumptions.push_back({"fabric.domains_per_pod", pod, "domains", pod, pod, "scenario", "assumed", {}});
        }
    }

    const Scenario& scenario_;
    const CompareRequest& request_;
    const Workload& workload_;
    Setting setting_;
    Report report_;
    std::optional<PlanLoads> hybrid_loads_;
    std::optional<PlanLoads> broadcast_loads_;
    Bytes region_;
};

}  // namespace

Report compare(const Scenario& scenario, const CompareRequest& request) {
    const auto workload = Workload::make(scenario);
    return Comparison{scenario, request, workload}.run();
}

Report report_on(const Plan& plan, const Scenario& scenario, const Workload& workload, const CompareRequest& request) {
    return Comparison{scenario, request, workload}.run(plan);
}

void set_simulated(MethodReport& entry, const SimulatedTimes& times) {
    entry.simulated = times;
    entry.kind = ReportKind::kSimulate;
    if (entry.published) {
        entry.published->error = error_of(times.seconds, *entry.published);
    }
}

}  // namespace refit
