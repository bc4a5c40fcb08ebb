// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options.hpp"
#include "refit/report.hpp"
#include "refit/result.hpp"

namespace refit::cli {

/// A refit that refit-exec ran, as its report says (data/schema/measured.json).
struct MeasuredRefit {
    std::string file;
    Method method = Method::kDirect;
    std::string scenario;
    std::string transport;
    std::string machine;
    Seconds seconds;  ///< Median.
    Seconds low;      ///< The shortest run.
    Seconds high;     ///< The longest.
    std::optional<Seconds>
        machine_predicted;  ///< By refit-exec, from what its probe measured of that machine.
    std::size_t runs = 0;
    std::uint64_t elements = 0;  ///< Verified.
    Bytes delivered;
    double bus_bandwidth = 0.0;  ///< Unit: B/s.
    std::vector<Phase> phases;   ///< Medians.
};

/// Every refit that the files give as measured. Errors: kIo; kInvalidInput for a file that is no such report.
[[nodiscard]] Result<std::vector<MeasuredRefit>> read_measured(const std::vector<std::string>& files);

/// Each measured refit beside the prediction for its method; at most 30 lines of 100 columns.
[[nodiscard]] std::string measured_table(const Report& report,
                                         const std::vector<MeasuredRefit>& measured,
                                         const std::string& scenario,
                                         bool is_markdown);
/// The same as JSON (data/schema/measured_comparison.json), or as CSV.
[[nodiscard]] std::string measured_json(const Report& report,
                                        const std::vector<MeasuredRefit>& measured,
                                        const std::string& scenario);
[[nodiscard]] std::string measured_csv(const Report& report, const std::vector<MeasuredRefit>& measured);

}  // namespace refit::cli
