// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "refit/io/library.hpp"
#include "refit/io/scenario_draft.hpp"
#include "refit/result.hpp"
#include "refit/validate.hpp"

namespace refit::io {

/// The refits that a report (data/schema/report.json) gives as measured: entries of "methods" of kind
/// "measured", with their scenario. `seconds_low` and `seconds_high` are the range that was seen. The record
/// of each is named after the file and the method, and is of tier A. Errors: kIo, kInvalidInput for what is
/// no report, a report without a measured refit of gather-broadcast or hybrid, times that are no positive
/// numbers; those of the scenario.
[[nodiscard]] Result<std::vector<ValidationCase>> read_measured_report(const std::filesystem::path& file,
                                                                       const Library& library);

/// The scenario that a report says it was measured with, as a draft: a report of refit-exec has the fields of its plan.
/// Empty where it says nothing. Errors: kIo, kInvalidInput for what is no JSON.
[[nodiscard]] Result<ScenarioDraft> read_measured_scenario(const std::filesystem::path& file);

}  // namespace refit::io
