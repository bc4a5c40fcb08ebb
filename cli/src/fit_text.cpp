// SPDX-License-Identifier: Apache-2.0
#include "fit_text.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "cells.hpp"
#include "faults_text.hpp"
#include "refit/constant_table.hpp"
#include "refit/quantity.hpp"
#include "rows_text.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kWidth = 100;

std::string in_unit(double value, const Constant& constant) {
    return number_text("%.3g", value / unit_factor(constant.unit));
}

/// The constants that a log or the fit changed.
std::vector<const NamedConstant*> changed(const FitOutcome& outcome) {
    std::vector<const NamedConstant*> list;
    for (const auto& entry : constant_table()) {
        const auto& constant = outcome.constants.*entry.member;
        const bool is_fitted =
            outcome.calibration != nullptr &&
            std::ranges::find(outcome.calibration->fitted, entry.name) != outcome.calibration->fitted.end();
        if (is_fitted || (outcome.links != nullptr && constant.kind == "measured")) {
            list.push_back(&entry);
        }
    }
    return list;
}

std::string told_text(const FitOutcome& outcome, const std::string& name) {
    if (outcome.calibration == nullptr) {
        return "-";
    }
    const auto& fitted = outcome.calibration->fitted;
    const auto found = std::ranges::find(fitted, name);
    return found == fitted.end()
               ? "-"
               : number_text(
                     "%.0f %%",
                     100.0 *
                         outcome.calibration->from_refits[static_cast<std::size_t>(found - fitted.begin())]);
}

std::string identified_text(const Constant& constant) {
    const auto& ids = constant.identified_by;
    if (ids.empty()) {
        return "-";
    }
    const auto more = ids.size() > 1 ? " +" + std::to_string(ids.size() - 1) : "";
    const auto width = 22 - more.size();
    return (ids[0].size() <= width ? ids[0] : ids[0].substr(0, width - 2) + "..") + more;
}

std::string constants_table(const FitOutcome& outcome) {
    std::string text = left("constant", 30) + right("value", 7) + right("68 % interval", 16) +
                       "  unit   kind     " + right("told", 5) + "  identified by\n";
    for (const auto* entry : changed(outcome)) {
        const auto& constant = outcome.constants.*entry->member;
        text += left(entry->name, 30) + right(in_unit(constant.value, constant), 7) +
                right(in_unit(constant.low, constant) + " - " + in_unit(constant.high, constant), 16) + "  " +
                left(constant.unit, 5) + "  " + left(constant.kind, 8) +
                right(told_text(outcome, entry->name), 6) + "  " + identified_text(constant) + "\n";
    }
    return text;
}

double middle_of(std::vector<double> values) {
    std::ranges::sort(values);
    const auto half = values.size() / 2;
    return values.empty() ? 0.0 : (values[half] + values[(values.size() - 1) / 2]) / 2.0;
}

/// "median 4 %, worst -22 % (id)", and how well the ranges hold.
std::string left_out_text(const FitOutcome& outcome) {
    std::vector<double> errors;
    std::map<std::string, std::vector<double>> widths;
    double covered = 0.0;
    const CalibratedRefit* worst = nullptr;
    for (std::size_t i = 0; i < outcome.refits.size(); ++i) {
        const auto& refit = outcome.calibration->refits[i];
        const auto& prediction = refit.left_out;
        errors.push_back(std::abs(prediction.error));
        covered += is_covered(outcome.refits[i], prediction) ? 1.0 : 0.0;
        widths[outcome.refits[i].gpu].push_back((prediction.high - prediction.low) / prediction.seconds /
                                                2.0);
        worst =
            worst == nullptr || std::abs(prediction.error) > std::abs(worst->left_out.error) ? &refit : worst;
    }
    auto text = "A refit is off by " + number_text("%.1f %%", 100.0 * outcome.calibration->row_error) +
                " (one standard deviation). Left out one at a time: median " + number_text("%.1f %%", 100.0 * middle_of(errors)) +
                ", worst " + number_text("%+.0f %%", 100.0 * worst->left_out.error) + " (" +
                worst->ids.front() + "); the 80 % ranges hold " +
                number_text("%.0f %%", 100.0 * covered / static_cast<double>(errors.size())) + ", half-width";
    for (const auto& [gpu, values] : widths) {
        text += " " + number_text("%.0f %%", 100.0 * middle_of(values)) + " on " + gpu + ",";
    }
    text.back() = '.';
    return text;
}

std::string advice_text(const Calibration& calibration) {
    std::string text;
    for (const auto& pair : calibration.alike) {
        text += (text.empty() ? "Hard to tell apart: " : "; ") + pair.first + " and " + pair.second +
                number_text(" (%+.2f)", pair.correlation);
    }
    text += text.empty() ? "" : ".\n";
    std::string worth;
    for (const auto& stage : calibration.worth_timing) {
        if (&stage - calibration.worth_timing.data() < 4) {
            worth += (worth.empty() ? "Most worth timing to 5 %: " : "; ") + stage.stage + " of " +
                     stage.refit + " (" + stage.constant + " to " +
                     number_text("%.0f %%", 100.0 * stage.narrowing) + " of its width)";
        }
    }
    return text + (worth.empty() ? "" : wrap(worth + ".", kWidth, 0) + "\n");
}

std::string links_table(const LinkConstants& links) {
    std::string text = left("nccl-tests", 34) + right("GPUs", 6) + right("hosts", 7) + right("rate", 13) +
                       right("latency", 10) + "  tells\n";
    for (const auto& reading : links.readings) {
        const auto where = reading.where.size() <= 33
                               ? reading.where
                               : ".." + reading.where.substr(reading.where.size() - 31);
        text += left(where, 34) + right(std::to_string(reading.ranks), 6) +
                right(std::to_string(reading.hosts), 7) +
                right(format_bandwidth(Bandwidth::bytes_per_second(reading.fit.rate)), 13) +
                right(reading.fit.latency > 0.0 ? format_seconds(Seconds{reading.fit.latency}) : "-", 10) +
                "  " +
                (reading.constant.empty() ? "nothing"
                                          : reading.constant + number_text(" %.2f", reading.efficiency)) +
                "\n";
        text += reading.passed_over.empty() ? "" : "    " + wrap(reading.passed_over, kWidth, 4) + "\n";
    }
    return text;
}

}  // namespace

std::string fit_table(const FitOutcome& outcome) {
    auto text = outcome.engine.title + " " + outcome.engine.version;
    if (outcome.calibration != nullptr) {
        text += ", " + std::to_string(outcome.calibration->fitted.size()) + " constants fitted to " +
                std::to_string(outcome.refits.size()) + (outcome.refits.size() == 1 ? " refit" : " refits");
    }
    text += "\n\n";
    if (outcome.links != nullptr) {
        text += links_table(*outcome.links) + "\n";
    }
    text += constants_table(outcome);
    if (outcome.calibration != nullptr) {
        text += "\n" + wrap(left_out_text(outcome), kWidth, 0) + "\n" + advice_text(*outcome.calibration);
    }
    return text;
}

std::string fit_rows(const FitOutcome& outcome, Format format) {
    std::vector<Row> rows;
    for (const auto* entry : changed(outcome)) {
        const auto& constant = outcome.constants.*entry->member;
        std::string ids;
        for (const auto& id : constant.identified_by) {
            ids += (ids.empty() ? "" : " ") + id;
        }
        rows.push_back({entry->name,
                        in_unit(constant.value, constant),
                        in_unit(constant.low, constant),
                        in_unit(constant.high, constant),
                        constant.unit,
                        constant.kind,
                        told_text(outcome, entry->name),
                        ids});
    }
    return rows_text(format,
                     {"constant", "value", "low", "high", "unit", "kind", "told by refits", "identified by"},
                     rows);
}

}  // namespace refit::cli
