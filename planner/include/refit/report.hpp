// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refit/bound.hpp"
#include "refit/plan.hpp"
#include "refit/result.hpp"
#include "refit/scenario.hpp"
#include "refit/units.hpp"

namespace refit {

/// Where a report's times come from.
enum class ReportKind : std::uint8_t {
    kEstimate,  ///< The closed form.
    kSimulate,  ///< Event by event.
};

/// "estimate", "simulate".
[[nodiscard]] std::string_view name_of(ReportKind kind) noexcept;

/// A part of the refit's time with the formula that gives it.
struct Term {
    std::string name;        ///< "broadcast".
    std::string phase;       ///< Phase it belongs to: "gather", "broadcast", "bulk" …
    Seconds seconds;
    std::string formula;     ///< With values: "1.342 TB / 311 GB/s".
    std::vector<std::string> constants;  ///< Names of the engine constants in it.
    bool is_hidden = false;  ///< Runs beside longer work and adds nothing.
    bool operator==(const Term&) const = default;
};

/// A stretch of the refit, in order. Those that are not hidden sum to the total.
struct Phase {
    std::string name;
    Seconds seconds;
    bool is_hidden = false;
    bool operator==(const Phase&) const = default;
};

/// The resource that is busy for the largest share of the time.
struct Bottleneck {
    std::string resource;  ///< "nic-out", "nic-in", "nvlink", "spine-up", "spine-down", "collective-calls", "loading",
                           ///< "device-copies", "fixed".
    std::string where;     ///< "trainer rank 17", "pod 2".
    double share = 0.0;    ///< Of the refit's time. Range: 0 to 1.
    bool operator==(const Bottleneck&) const = default;
};

/// A publicly reported time of the same refit.
struct PublishedTime {
    std::string id;
    std::optional<Seconds> seconds;
    std::optional<Seconds> low;   ///< Published spread, over all records of the same configuration.
    std::optional<Seconds> high;
    double error = 0.0;           ///< Of the prediction: 0 inside the spread, else relative to its nearer end.
    std::vector<std::string> inferred;  ///< Fields that were derived, not published.
    bool operator==(const PublishedTime&) const = default;
};

/// Extra memory that a refit needs on one GPU, at its worst moment.
struct PeakBytes {
    Bytes train;
    Bytes generation;
    bool operator==(const PeakBytes&) const = default;
};

/// Times of the same plan, run event by event.
struct SimulatedTimes {
    Seconds seconds;   ///< From the call until the last receiver is ready.
    Seconds transfer;  ///< The transfers alone on their links.
    bool operator==(const SimulatedTimes&) const = default;
};

/// An end of a closed form's range, taken along to another prediction of the same time: in proportion.
[[nodiscard]] constexpr Seconds taken_along(Seconds end, Seconds closed_form, Seconds predicted) {
    return Seconds{end.value() * (predicted / closed_form)};
}

/// What one method would do, or why it cannot run.
/// What one constant does to a predicted time, all others at their values.
struct Sensitivity {
    std::string constant;    ///< "nic_efficiency".
    Seconds at_low;          ///< The time with the constant at the lower end of its 68 % interval.
    Seconds at_high;         ///< At the upper end.
    double elasticity = 0.0; ///< Relative change of the time by that of the constant, about its value.

    /// How far the time moves over the interval. Unit: s.
    [[nodiscard]] double span() const noexcept {
        return at_low > at_high ? (at_low - at_high).value() : (at_high - at_low).value();
    }
};

/// Invariant: `refused` is not empty and no time is given, or the other way round.
struct MethodReport {
    Method method = Method::kGatherBroadcast;
    ReportKind kind = ReportKind::kEstimate;
    bool is_calibrated = false;  ///< An engine implements it and published times determine its costs.
    Seconds seconds;             ///< From the call until the last receiver is ready.
    Seconds low;
    Seconds high;
    Seconds transfer;            ///< The transfers alone on their links.
    Bytes logical;
    Bytes network;
    Bytes nvlink;
    Bytes nic_per_trainer;       ///< Mean of what a trainer's NICs send.
    PeakBytes peak;
    Bottleneck bottleneck;
    std::vector<Phase> phases;
    std::vector<Term> terms;
    std::vector<Sensitivity> sensitivities;   ///< The constant that moves the estimate most first.
    std::optional<SimulatedTimes> simulated;  ///< Where that was asked for.
    std::optional<PublishedTime> published;   ///< Its error is that of the simulated time, where there is one.
    Faults refused;
};

/// The ratio of two methods' times.
struct Speedup {
    Method of = Method::kHybrid;
    Method over = Method::kGatherBroadcast;
    double ratio = 1.0;
    double low = 1.0;
    double high = 1.0;
};

/// A change of one setting and what it would do to the hybrid refit.
struct Trial {
    Suggestion change;
    Seconds before;
    Seconds after;
    std::int64_t extra_bytes = 0;  ///< Change of peak memory on a generation GPU.
};

/// What the refit is worth within a training step.
struct StepWorth {
    Seconds step;               ///< Length of a step that refits by gather-broadcast.
    double refit_share = 0.0;   ///< Of it, by gather-broadcast.
    double speedup_at_most = 1.0;  ///< Of the step, by going over to hybrid, if nothing hides the refit.
};

/// A number the prediction rests on.
struct Assumption {
    std::string name;
    double value = 0.0;
    std::string unit;
    double low = 0.0;
    double high = 0.0;
    std::string source;
    std::string kind;  ///< "measured", "vendor", "fitted", "assumed" or "inferred".
    std::vector<std::string> identified_by;
};

/// Methods side by side for one scenario.
struct Report {
    std::vector<MethodReport> methods;
    /// Hybrid with the bulk parameters taken by meaning, where the scenario's name rule catches under half the bytes.
    std::optional<MethodReport> hybrid_by_meaning;
    Bound bound;            ///< At the rates that software reaches.
    Bound line_rate_bound;  ///< At line rate.
    double bulk_fraction = 0.0;      ///< Of the bytes, by the scenario's coverage.
    double ffn_fraction = 0.0;       ///< Of the bytes, by meaning.
    std::optional<Speedup> speedup;  ///< Where both methods run.
    std::vector<Trial> trials;
    std::vector<StepWorth> steps;
    std::vector<Assumption> assumptions;
    Faults warnings;  ///< What a run would come to grief on though the engine takes it: memory, packs that disagree.

    [[nodiscard]] const MethodReport* find(Method method) const noexcept;
};

}  // namespace refit
