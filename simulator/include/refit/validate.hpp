// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "refit/decision.hpp"
#include "refit/published.hpp"
#include "refit/scenario.hpp"

namespace refit {

/// A published record with the refit that it timed, or why there is no model of that.
struct ValidationCase {
    PublishedRecord record;
    std::optional<Scenario> scenario;
    std::string not_modelled;          ///< Why there is no scenario.
    std::vector<std::string> assumed;  ///< What the record does not say.
};

/// What Refit says of a record.
struct Prediction {
    Seconds seconds;
    Seconds low;  ///< The range: what the published times leave open (docs/cost_model.md).
    Seconds high;
    std::string
        limited_by;  ///< "nic-out", "loading" …; of a simulation, what most of its critical path does.
};

/// A record beside its prediction.
struct ValidationRow {
    PublishedRecord record;
    /// The record's times; where it is modelled, over all records that mean the same refit by the same
    /// engine.
    std::optional<Seconds> low;
    std::optional<Seconds> high;
    std::optional<Prediction> prediction;  ///< Nothing: see `not_modelled`.
    std::optional<double> error;           ///< 0 inside the published range, else relative to its nearer end.
    std::string not_modelled;
    std::vector<std::string> assumed;
    std::size_t configuration = 0;  ///< Rows of one refit have one number, from 0.
    Bytes payload;                  ///< Bytes of the weights that move, once each.
    bool served_to_fit = false;     ///< It, or another record of the same refit, determined constants.
};

/// Errors and ranges of some rows.
struct ErrorSummary {
    std::string engine;
    std::string tier;          ///< Empty: all.
    std::size_t rows = 0;      ///< With a published time.
    std::size_t modelled = 0;  ///< Of them; the others count for nothing below.
    std::size_t configurations = 0;
    double median_error = 0.0;  ///< Absolute.
    double worst_error = 0.0;   ///< Signed, of the largest absolute one.
    std::string worst_id;
    double covered = 0.0;            ///< Share of rows whose published range meets the predicted one.
    double median_half_width = 0.0;  ///< Of the predicted ranges, relative to the prediction.
    std::size_t served_to_fit = 0;
};

/// A prediction from the bytes of the weights alone, on the reshard rows where it says anything.
struct Baseline {
    std::string name;
    std::string formula;
    std::size_t rows = 0;
    double median_error = 0.0;
    double worst_error = 0.0;
    double model_median_error = 0.0;  ///< Refit's, on the same rows.
    double model_worst_error = 0.0;
};

/// Every record beside its prediction, and what that says of the model.
struct Validation {
    bool is_simulated = false;
    std::vector<ValidationRow> rows;   ///< As the cases came.
    std::vector<ErrorSummary> groups;  ///< By engine and tier; those with modelled rows.
    ErrorSummary headlines;
    ErrorSummary all;
    std::vector<Baseline> baselines;
    std::vector<Decision> decisions;    ///< What choosing by prediction costs.
    std::vector<FactorChange> changes;  ///< Whether predictions rise where published times do.
    std::size_t modelled = 0;
};

struct ValidateOptions {
    bool is_simulated = false;  ///< Predict event by event, not by the closed form.
    std::function<void(const std::string& id, double done)> progress;
};

/// Predicts every case that has a scenario. The method is that of the engine's path by the
/// record's name. A simulated prediction takes the closed form's range,
/// in proportion. `anchors`: records of a calculator by size, for a baseline; may be empty.
[[nodiscard]] Validation validate(std::span<const ValidationCase> cases,
                                  std::span<const PublishedRecord> anchors,
                                  const ValidateOptions& options = {});

/// 0 from `low` to `high`, else relative to the nearer of them. Pre: 0 < low <= high.
[[nodiscard]] double error_beside(Seconds predicted, Seconds low, Seconds high);

}  // namespace refit
