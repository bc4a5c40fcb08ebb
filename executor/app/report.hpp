// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "refit/exec/measure.hpp"
#include "refit/io/plan_file.hpp"

namespace refit::exec {

/// A plan that was measured.
struct Measured {
    const io::PlanFile& file;
    const Measurement& measurement;
    std::string transport;
    std::string machine;
    std::uint32_t waves = 0;
    std::optional<Seconds> predicted{};  ///< At the speed that the machine had when it was probed.
    double slowdown = 1.0;               ///< How many times as long a copy took as it did then.
    std::optional<Connecting> connecting{};
};

/// What was moved, and how fast.
struct Rates {
    Bytes delivered;       ///< What generators want, all together.
    Bytes busiest;         ///< What the rank that sends or receives most does.
    double algorithm = 0;  ///< What the busiest generator wants, over the median. Unit: B/s.
    double bus = 0;        ///< What the busiest rank sends or receives, over the median. Unit: B/s.
};
[[nodiscard]] Rates rates_of(const Measured& measured);

/// Name of a stage of a plan in a report: the phase of a prediction that it is.
[[nodiscard]] std::string phase_of(const PlanStage& stage);

/// The report (data/schema/measured.json): a refit.report whose only method is of kind "measured".
[[nodiscard]] nlohmann::json report_json(const Measured& measured);
/// At most 30 lines of 100 columns; with `is_markdown` as tables of Markdown.
[[nodiscard]] std::string report_text(const Measured& measured, bool is_markdown);

}  // namespace refit::exec
