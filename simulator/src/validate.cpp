// SPDX-License-Identifier: Apache-2.0
#include "refit/validate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "bottleneck.hpp"
#include "refit/decisions.hpp"
#include "refit/estimate.hpp"
#include "refit/loads.hpp"
#include "refit/methods.hpp"
#include "refit/simulate.hpp"
#include "size_baselines.hpp"
#include "validate_left_out.hpp"

namespace refit {
namespace {

/// What a refit counts of which layouts or hardware are assumed.
constexpr double kTierBWeight = 0.25;

/// What the engine of a record runs; the path's method is one, or there is none.
const EnginePath* path_of(const ValidationCase& one) {
    return one.scenario ? one.scenario->engine.find_path(one.record.engine) : nullptr;
}

/// Whether two cases mean one refit: the same model, layouts, machines, engine and settings.
bool is_same_refit(const ValidationCase& a, const ValidationCase& b) {
    if (a.record.engine != b.record.engine) {
        return false;
    }
    const auto& x = *a.scenario;
    const auto& y = *b.scenario;
    return x.model.id() == y.model.id() && x.dtype == y.dtype && x.train == y.train &&
           x.generate == y.generate && x.cluster.train_system() == y.cluster.train_system() &&
           x.cluster.generate_system() == y.cluster.generate_system() &&
           x.cluster.placement() == y.cluster.placement() && x.engine == y.engine && x.coverage == y.coverage;
}

std::string joined(const Faults& faults) {
    std::string text;
    for (const auto& fault : faults) {
        text += (text.empty() ? "" : "; ") + fault.message;
    }
    return text;
}

/// The activity that holds most of a simulation's critical path.
std::string longest_activity(const Simulation& simulation) {
    const auto* const longest = std::ranges::max_element(simulation.critical);
    return std::string{name_of(static_cast<Activity>(longest - simulation.critical.begin()))};
}

/// What a plan loads, for predictions with other constants.
struct Modelled {
    PlanLoads loads;
    Setting setting;
};

Result<Prediction> predict(const Scenario& scenario,
                           const EnginePath& path,
                           const Workload& workload,
                           bool is_simulated,
                           Modelled& modelled) {
    const auto method = parse_method(path.method);
    if (!method) {
        return Failure{method.error()};
    }
    const auto plan = make_plan(*method, scenario, workload);
    if (!plan) {
        return Failure{plan.error()};
    }
    modelled = {make_loads(*plan, scenario.cluster), make_setting(scenario, workload)};
    const auto& [loads, setting] = modelled;
    const auto estimated = estimate(loads, setting);
    const auto range = estimate_range(loads, setting, path.is_calibrated);
    if (!is_simulated) {
        return Prediction{estimated.total,
                          range.low,
                          range.high,
                          bottleneck_of(loads, setting, estimated, scenario.cluster).resource};
    }
    const auto simulation = simulate(*plan, workload, scenario);
    if (!simulation) {
        return Failure{simulation.error()};
    }
    const Seconds seconds{simulation->seconds()};
    return Prediction{seconds,
                      taken_along(range.low, estimated.total, seconds),
                      taken_along(range.high, estimated.total, seconds),
                      longest_activity(*simulation)};
}

/// The published ends of one record: a single figure is both.
void set_published(ValidationRow& row) {
    row.low = row.record.low ? row.record.low : row.record.seconds;
    row.high = row.record.high ? row.record.high : row.record.seconds;
    if (!row.low || !row.high) {
        row.low = row.low ? row.low : row.high;
        row.high = row.high ? row.high : row.low;
    }
}

class Validator {
public:
    Validator(std::span<const ValidationCase> cases, const ValidateOptions& options)
        : cases_{cases}, options_{options} {}

    std::vector<ValidationRow> run() {
        for (std::size_t i = 0; i < cases_.size(); ++i) {
            if (options_.progress) {
                options_.progress(cases_[i].record.id,
                                  static_cast<double>(i) / static_cast<double>(cases_.size()));
            }
            add(i);
        }
        share_ranges();
        for (auto& row : rows_) {
            if (row.prediction && row.low) {
                row.error = error_beside(row.prediction->seconds, *row.low, *row.high);
            }
        }
        return std::move(rows_);
    }

    /// The refits that were modelled and timed, by their configuration's number. Pre: `run` has given `rows`.
    [[nodiscard]] std::map<std::size_t, TimedRefit> timed(std::span<const ValidationRow> rows) {
        std::map<std::size_t, TimedRefit> refits;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto& row = rows[i];
            const auto modelled = modelled_.find(row.configuration);
            if (modelled == modelled_.end() || !row.prediction || !row.low) {
                continue;
            }
            auto& refit = refits[row.configuration];
            if (refit.ids.empty()) {
                refit.engine = row.record.engine;
                refit.constants_of = cases_[i].scenario->engine.name;
                refit.model = cases_[i].scenario->model.id();
                refit.gpu = cases_[i].scenario->cluster.generate_system().gpu;
                refit.layouts = describe(cases_[i].scenario->train) + " -> " + describe(cases_[i].scenario->generate);
                refit.loads = std::move(modelled->second.loads);
                refit.setting = std::move(modelled->second.setting);
                refit.low = *row.low;
                refit.high = *row.high;
                refit.weight = kTierBWeight;
            }
            refit.ids.push_back(row.record.id);
            refit.weight = row.record.tier == "B" ? refit.weight : 1.0;
        }
        return refits;
    }

private:
    void add(std::size_t index) {
        const auto& one = cases_[index];
        ValidationRow row;
        row.record = one.record;
        row.assumed = one.assumed;
        row.served_to_fit = one.record.served_to_fit;
        set_published(row);
        const auto* path = path_of(one);
        if (path == nullptr) {
            row.not_modelled = one.scenario ? "the engine of the scenario has no path of this name" : one.not_modelled;
            row.configuration = configurations_++;
            rows_.push_back(std::move(row));
            return;
        }
        const auto like = std::ranges::find_if(
            firsts_, [&](std::size_t first) { return is_same_refit(cases_[first], one); });
        if (like != firsts_.end()) {
            const auto& first = rows_[*like];
            row.prediction = first.prediction;
            row.not_modelled = first.not_modelled;
            row.configuration = first.configuration;
            row.payload = first.payload;
            row.gpu = first.gpu;
        } else {
            firsts_.push_back(index);
            row.configuration = configurations_++;
            const auto workload = Workload::make(*one.scenario);
            row.payload = workload.payload_bytes();
            row.gpu = one.scenario->cluster.generate_system().gpu;
            Modelled modelled;
            auto prediction = predict(*one.scenario, *path, workload, options_.is_simulated, modelled);
            if (prediction) {
                modelled_.emplace(row.configuration, std::move(modelled));
                row.prediction = std::move(*prediction);
            } else {
                row.not_modelled = joined(prediction.error());
            }
        }
        rows_.push_back(std::move(row));
    }

    /// Rows of one refit get the range over all of them, and have all served to fit where one has.
    void share_ranges() {
        std::map<std::size_t, ValidationRow> shared;
        for (const auto& row : rows_) {
            const auto [at, is_new] = shared.emplace(row.configuration, row);
            auto& all = at->second;
            all.served_to_fit = all.served_to_fit || row.served_to_fit;
            if (!is_new && row.low) {
                all.low = all.low ? std::min(*all.low, *row.low) : *row.low;
                all.high = all.high ? std::max(*all.high, *row.high) : *row.high;
            }
        }
        for (auto& row : rows_) {
            const auto& all = shared.at(row.configuration);
            row.low = all.low;
            row.high = all.high;
            row.served_to_fit = all.served_to_fit;
        }
    }

    std::span<const ValidationCase> cases_;
    const ValidateOptions& options_;
    std::vector<ValidationRow> rows_;
    std::vector<std::size_t> firsts_;  ///< The first case of each refit that has a scenario.
    std::map<std::size_t, Modelled> modelled_;  ///< By configuration.
    std::size_t configurations_ = 0;
};

bool meets(const ValidationRow& row, const Prediction& prediction) {
    return prediction.low <= *row.high && *row.low <= prediction.high;
}

double half_width(const Prediction& prediction) {
    return (prediction.high - prediction.low) / prediction.seconds / 2.0;
}

/// Pre: at least one row, each modelled and timed.
LeftOutSummary left_out_of(const std::vector<const ValidationRow*>& rows) {
    LeftOutSummary summary;
    std::vector<double> errors;
    std::vector<double> half_widths;
    for (const auto* row : rows) {
        errors.push_back(std::abs(*row->left_out_error));
        half_widths.push_back(half_width(*row->left_out));
        summary.covered += meets(*row, *row->left_out) ? 1.0 : 0.0;
        if (summary.worst_id.empty() || errors.back() > std::abs(summary.worst_error)) {
            summary.worst_error = *row->left_out_error;
            summary.worst_id = row->record.id;
        }
    }
    summary.covered /= static_cast<double>(rows.size());
    summary.median_error = median(std::move(errors));
    summary.median_half_width = median(std::move(half_widths));
    return summary;
}

ErrorSummary summary_of(const std::vector<const ValidationRow*>& rows) {
    ErrorSummary summary;
    std::vector<const ValidationRow*> modelled;
    std::vector<double> errors;
    std::vector<double> half_widths;
    std::vector<std::size_t> configurations;
    for (const auto* row : rows) {
        ++summary.rows;
        if (!row->error) {
            continue;
        }
        ++summary.modelled;
        modelled.push_back(row);
        const auto& prediction = *row->prediction;
        errors.push_back(std::abs(*row->error));
        if (summary.worst_id.empty() || std::abs(*row->error) > std::abs(summary.worst_error)) {
            summary.worst_error = *row->error;
            summary.worst_id = row->record.id;
        }
        summary.covered += meets(*row, prediction) ? 1.0 : 0.0;
        half_widths.push_back(half_width(prediction));
        configurations.push_back(row->configuration);
        summary.served_to_fit += row->served_to_fit ? 1U : 0U;
    }
    if (summary.modelled > 0) {
        summary.covered /= static_cast<double>(summary.modelled);
        summary.median_error = median(std::move(errors));
        summary.median_half_width = median(std::move(half_widths));
        summary.left_out = left_out_of(modelled);
    }
    std::ranges::sort(configurations);
    configurations.erase(std::unique(configurations.begin(), configurations.end()), configurations.end());
    summary.configurations = configurations.size();
    return summary;
}

template <class Wanted>
ErrorSummary summary_where(const std::vector<ValidationRow>& rows, Wanted wanted) {
    std::vector<const ValidationRow*> chosen;
    for (const auto& row : rows) {
        if (row.low && wanted(row)) {
            chosen.push_back(&row);
        }
    }
    return summary_of(chosen);
}

/// One summary an engine and tier, in the order of their first rows.
std::vector<ErrorSummary> grouped(const std::vector<ValidationRow>& rows) {
    std::vector<std::pair<std::string, std::string>> groups;
    for (const auto& row : rows) {
        const std::pair group{row.record.engine, row.record.tier};
        if (row.error && std::ranges::find(groups, group) == groups.end()) {
            groups.push_back(group);
        }
    }
    std::vector<ErrorSummary> summaries;
    for (const auto& [engine, tier] : groups) {
        summaries.push_back(summary_where(rows, [&, engine = engine, tier = tier](const ValidationRow& row) {
            return row.record.engine == engine && row.record.tier == tier;
        }));
        summaries.back().engine = engine;
        summaries.back().tier = tier;
    }
    return summaries;
}

/// One summary a GPU of the generators, in alphabetical order.
std::vector<ErrorSummary> grouped_by_gpu(const std::vector<ValidationRow>& rows) {
    std::set<std::string> gpus;
    for (const auto& row : rows) {
        if (row.error) {
            gpus.insert(row.gpu);
        }
    }
    std::vector<ErrorSummary> summaries;
    for (const auto& gpu : gpus) {
        summaries.push_back(summary_where(rows, [&](const ValidationRow& row) { return row.gpu == gpu; }));
        summaries.back().engine = gpu;
    }
    return summaries;
}

}  // namespace

std::vector<TimedRefit> timed_refits(std::span<const ValidationCase> cases) {
    const ValidateOptions options;
    Validator validator{cases, options};
    const auto rows = validator.run();
    std::vector<TimedRefit> refits;
    for (auto& [configuration, refit] : validator.timed(rows)) {
        refits.push_back(std::move(refit));
    }
    return refits;
}

double error_beside(Seconds predicted, Seconds low, Seconds high) {
    if (predicted >= low && predicted <= high) {
        return 0.0;
    }
    return predicted / (predicted < low ? low : high) - 1.0;
}

Validation validate(std::span<const ValidationCase> cases,
                    std::span<const PublishedRecord> anchors,
                    const ValidateOptions& options) {
    Validation result;
    result.is_simulated = options.is_simulated;
    Validator validator{cases, options};
    result.rows = validator.run();
    const auto timed = validator.timed(result.rows);
    auto fitted = timed_refits(options.fitted);
    if (options.fitted.empty()) {
        for (const auto& row : result.rows) {
            const auto refit = timed.find(row.configuration);
            if (row.served_to_fit && refit != timed.end() && refit->second.ids.front() == row.record.id) {
                fitted.push_back(refit->second);
            }
        }
    }
    set_left_out(result.rows, timed, fitted);
    result.groups = grouped(result.rows);
    result.gpus = grouped_by_gpu(result.rows);
    result.headlines = summary_where(result.rows, [](const ValidationRow& row) {
        return row.record.is_headline && !row.record.engine.empty();
    });
    result.all = summary_where(result.rows, [](const ValidationRow&) { return true; });
    result.baselines = size_baselines(result.rows, anchors);
    result.decisions = decisions(cases, result.rows);
    result.changes = factor_changes(cases, result.rows);
    for (const auto& row : result.rows) {
        result.modelled += row.prediction ? 1U : 0U;
    }
    return result;
}

}  // namespace refit
