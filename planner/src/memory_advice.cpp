// SPDX-License-Identifier: Apache-2.0
#include "refit/memory_advice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "plan_builder.hpp"
#include "refit/broadcast_roots.hpp"
#include "refit/quantity.hpp"

namespace refit {
namespace {

constexpr const char* kRatioField = "engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO";
constexpr std::uint32_t kSteps = 10'000;  // a ratio in steps of 0.0001

double ratio_of(std::uint32_t step) {
    return static_cast<double>(step) / kSteps;
}

std::string ratio_text(double ratio, int digits = 4) {
    std::string text(24, '\0');
    text.resize(static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.*f", digits, ratio)));
    return text;
}

ClassIndices classes_in_packs(const Plan& plan) {
    ClassIndices classes;
    for (const auto& stage : plan.stages) {
        for (const auto& collective : stage.collectives) {
            if (collective.role == CollectiveRole::kWeightBroadcast) {
                classes.insert(classes.end(), collective.parameters.begin(), collective.parameters.end());
            }
        }
    }
    std::ranges::sort(classes);
    const auto repeated =
        std::unique(classes.begin(), classes.end());  // clang 14 cannot take ranges that return one
    classes.erase(repeated, classes.end());
    return classes;
}

/// A GPU with its weights and the worst moment of a plan.
MemoryDemand demand_of(std::string where, Bytes capacity, Bytes weights, Bytes extra) {
    return {std::move(where), capacity, {weights}, extra, 1};
}

class PackAdviser {
public:
    PackAdviser(const Plan& plan, const Scenario& scenario, const Workload& workload)
        : plan_{plan},
          scenario_{scenario},
          workload_{workload},
          tried_{scenario},
          classes_{classes_in_packs(plan)},
          weights_{weight_bytes(workload)} {}

    std::optional<PackSizes> run() {
        if (classes_.empty()) {
            return std::nullopt;
        }
        PackSizes sizes;
        sizes.train_target = target(scenario_.engine, true);
        sizes.generate_target = target(scenario_.engine, false);
        for (const auto index : classes_) {
            sizes.largest_tensor =
                std::max(sizes.largest_tensor, workload_.classes()[index].parameter.tensor_bytes());
        }
        sizes.agree = agree(sizes.train_target, sizes.generate_target);
        sizes.smallest_ratio = first_step(1, [&](std::uint32_t step) {
            const auto& engine = at(step).engine;
            return std::min(target(engine, true), target(engine, false)) >= sizes.largest_tensor;
        });
        sizes.largest_ratio = largest_fitting();
        if (!sizes.agree) {
            const auto now = static_cast<std::uint32_t>(
                                 std::floor(scenario_.engine.options.buffer_memory_ratio * kSteps)) +
                             1;
            sizes.agreeing_ratio = first_step(now, [&](std::uint32_t step) {
                const auto& engine = at(step).engine;
                return target(engine, true) == target(engine, false);
            });
            if (sizes.agreeing_ratio &&
                !fits(static_cast<std::uint32_t>(std::lround(*sizes.agreeing_ratio * kSteps)))) {
                sizes.agreeing_ratio.reset();
            }
        }
        return sizes;
    }

    /// Whether both sides close the same packs.
    [[nodiscard]] bool agree(Bytes train, Bytes generate) const {
        if (train == generate) {
            return true;
        }
        const auto runs = export_order(workload_, classes_);
        return make_packs(runs, train.count()) == make_packs(runs, generate.count());
    }

private:
    [[nodiscard]] Bytes target(const Engine& engine, bool is_train) const {
        const auto& cluster = scenario_.cluster;
        return pack_target(engine,
                           (is_train ? cluster.train_system() : cluster.generate_system()).gpu_memory.value);
    }
    /// The scenario with another ratio.
    const Scenario& at(std::uint32_t step) {
        tried_.engine.options.buffer_memory_ratio = ratio_of(step);
        return tried_;
    }

    bool fits(std::uint32_t step) {
        const auto peak = peak_bytes(plan_, at(step), workload_);
        return peak.train + weights_.train <= scenario_.cluster.train_system().gpu_memory.value &&
               peak.generation + weights_.generation <= scenario_.cluster.generate_system().gpu_memory.value;
    }

    /// The first step from `first` on that will do, where all after it do too.
    template <class Predicate>
    static std::optional<double> first_step(std::uint32_t first, const Predicate& will_do) {
        if (first >= kSteps || !will_do(kSteps - 1)) {
            return std::nullopt;
        }
        auto last = kSteps - 1;
        while (first < last) {
            const auto middle = first + (last - first) / 2;
            if (will_do(middle)) {
                last = middle;
            } else {
                first = middle + 1;
            }
        }
        return ratio_of(last);
    }

    /// Tried at the ratio that comes out, since overshoot makes memory grow unevenly.
    std::optional<double> largest_fitting() {
        if (!fits(1)) {
            return std::nullopt;
        }
        std::uint32_t good = 1;
        for (auto bad = kSteps; bad - good > 1;) {
            const auto middle = good + (bad - good) / 2;
            (fits(middle) ? good : bad) = middle;
        }
        return ratio_of(good);
    }

    const Plan& plan_;
    const Scenario& scenario_;
    const Workload& workload_;
    Scenario tried_;
    ClassIndices classes_;
    PeakBytes weights_;
};

/// The ratio for one side alone, in few digits, with which it closes the same packs as the other.
std::string ratio_for(const PackAdviser& adviser, Bytes target, const System& system) {
    for (int digits = 4; digits < 12; ++digits) {
        const auto text = ratio_text(target.as_double() / system.gpu_memory.value.as_double(), digits);
        const Bytes tried{static_cast<std::uint64_t>(system.gpu_memory.value.as_double() * std::stod(text))};
        if (adviser.agree(target, tried)) {
            return text;
        }
    }
    return {};
}

Fault disagreement(const PackAdviser& adviser, const PackSizes& sizes, const Scenario& scenario) {
    const bool is_train_smaller = sizes.train_target < sizes.generate_target;
    const auto& cluster = scenario.cluster;
    const auto ratio = ratio_for(adviser,
                                 std::min(sizes.train_target, sizes.generate_target),
                                 is_train_smaller ? cluster.generate_system() : cluster.train_system());
    Fault fault{
        ErrorCode::kInfeasible,
        "pack-sizes-differ",
        "trainers pack " + format_bytes(sizes.train_target) + " and generators expect " +
            format_bytes(sizes.generate_target) +
            ", each by its own GPU's memory: NeMo RL then waits for ever; NRL_REFIT_BUFFER_MEMORY_RATIO=" +
            ratio + " on the " + (is_train_smaller ? "generators" : "trainers") + " alone cures it",
        kRatioField};
    if (sizes.agreeing_ratio) {
        fault.nearest = Suggestion{kRatioField, ratio_text(*sizes.agreeing_ratio), "for both sides"};
    }
    return fault;
}

}  // namespace

Bytes MemoryDemand::needed() const {
    return std::accumulate(resident.begin(), resident.end(), buffer * buffers, std::plus{});
}

std::optional<Bytes> MemoryDemand::largest_buffer() const {
    const auto held = std::accumulate(resident.begin(), resident.end(), Bytes{}, std::plus{});
    if (held > capacity) {
        return std::nullopt;
    }
    return Bytes{(capacity - held).count() / std::max<std::uint64_t>(buffers, 1)};
}

Fault overflow_fault(const MemoryDemand& demand) {
    const auto most = demand.largest_buffer();
    const auto held = std::accumulate(demand.resident.begin(), demand.resident.end(), Bytes{}, std::plus{});
    const auto added =
        (demand.buffers == 1 ? "" : std::to_string(demand.buffers) + " x ") + format_bytes(demand.buffer);
    return {ErrorCode::kInfeasible,
            "memory-overflow",
            "each " + demand.where + " needs " + format_bytes(demand.needed()) + " of its " +
                format_bytes(demand.capacity) + ": " + format_bytes(held) + " are taken and the refit adds " +
                added + "; " +
                (most ? "at most " + format_bytes(*most) + (demand.buffers == 1 ? " fit" : " each fit")
                      : "nothing fits"),
            demand.where};
}

PeakBytes weight_bytes(const Workload& workload) {
    std::vector<std::uint64_t> held(std::size_t{workload.train_stages()} * workload.trainers_per_stage(), 0);
    for (const auto& entry : workload.classes()) {
        for (const auto& slice : entry.slices) {
            for (const auto& shard : entry.source.shards()) {
                for (const auto member : shard.members) {
                    held[slice.train_stage * workload.trainers_per_stage() + member] +=
                        slice.is_copy ? 0 : shard.elements() * entry.element_bytes() * slice.layers;
                }
            }
        }
    }
    const auto wanted = workload.generator_bytes();
    return {Bytes{held.empty() ? 0 : std::ranges::max(held)},
            Bytes{wanted.empty() ? 0 : std::ranges::max(wanted)}};
}

std::optional<PackSizes> pack_sizes(const Plan& plan, const Scenario& scenario, const Workload& workload) {
    return PackAdviser{plan, scenario, workload}.run();
}

Faults memory_warnings(const Plan& plan, const Scenario& scenario, const Workload& workload) {
    Faults warnings;
    const auto peak = peak_bytes(plan, scenario, workload);
    const auto weights = weight_bytes(workload);
    const auto& cluster = scenario.cluster;
    const auto train =
        demand_of("training GPU", cluster.train_system().gpu_memory.value, weights.train, peak.train);
    const auto generation = demand_of(
        "generation GPU", cluster.generate_system().gpu_memory.value, weights.generation, peak.generation);
    for (const auto& demand : {train, generation}) {
        if (!demand.fits()) {
            warnings.push_back(overflow_fault(demand));
        }
    }
    if (cluster.train_system().gpu_memory.value == cluster.generate_system().gpu_memory.value) {
        return warnings;
    }
    PackAdviser adviser{plan, scenario, workload};
    const auto sizes = adviser.run();
    if (sizes && !sizes->agree) {
        warnings.push_back(disagreement(adviser, *sizes, scenario));
    }
    return warnings;
}

}  // namespace refit
