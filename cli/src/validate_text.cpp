// SPDX-License-Identifier: Apache-2.0
#include "validate_text.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "cells.hpp"
#include "faults_text.hpp"
#include "rows_text.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kIdWidth = 30;

std::string signed_percent(double share) {
    const auto rounded = std::round(share * 100.0);
    return rounded == 0.0 ? "0 %" : number_text("%+.0f %%", rounded);
}
std::string whole_percent(double share) {
    return number_text("%.0f %%", share * 100.0);
}

/// "2.39 - 2.83", or one figure.
std::string range_text(Seconds low, Seconds high) {
    return low == high ? seconds_number(low) : seconds_number(low) + " - " + seconds_number(high);
}

std::string published_text(const ValidationRow& row) {
    return row.low ? range_text(*row.low, *row.high) : "-";
}
std::string error_text(const ValidationRow& row) {
    return row.error ? signed_percent(*row.error) : "-";
}

std::string shortened(const std::string& id, std::size_t width) {
    return id.size() <= width ? id : id.substr(0, width - 2) + "..";
}

std::string kind_text(const Validation& validation) {
    return validation.is_simulated ? "the simulation" : "the closed form";
}

std::string record_line(const ValidationRow& row) {
    const auto& prediction = *row.prediction;
    return left(shortened(row.record.id, kIdWidth), kIdWidth) + "  " +
           left(shortened(row.record.tier, 4), 4) + right(published_text(row), 12) +
           right(seconds_number(prediction.seconds), 10) +
           right("[" + range_text(prediction.low, prediction.high) + "]", 15) + right(error_text(row), 7) +
           "  " + prediction.limited_by + "\n";
}

std::string records_table(const Validation& validation) {
    if (validation.modelled == 0) {
        return "";
    }
    auto text = left("seconds, by " + kind_text(validation), kIdWidth) +
                "  tier   published predicted   [80 % range]  error  limited by\n";
    for (const auto& row : validation.rows) {
        text += row.prediction ? record_line(row) : "";
    }
    return text + "\n";
}

std::string summary_line(const std::string& name, const std::string& tier, const ErrorSummary& summary) {
    const bool has_any = summary.modelled > 0;
    return left(shortened(name, 20), 20) + " " + left(tier, 4) + right(std::to_string(summary.rows), 5) +
           right(std::to_string(summary.modelled), 9) + right(std::to_string(summary.served_to_fit), 7) +
           right(has_any ? whole_percent(summary.median_error) : "-", 7) +
           right(has_any ? signed_percent(summary.worst_error) : "-", 7) +
           right(has_any ? whole_percent(summary.covered) : "-", 8) +
           right(has_any ? whole_percent(summary.median_half_width) : "-", 11) +
           (has_any ? "  " + shortened(summary.worst_id, 19) : std::string{}) + "\n";
}

/// Each group with its name and tier, then the headline figures and all rows.
std::vector<std::pair<std::pair<std::string, std::string>, ErrorSummary>> summaries(
    const Validation& validation) {
    std::vector<std::pair<std::pair<std::string, std::string>, ErrorSummary>> list;
    for (const auto& group : validation.groups) {
        list.emplace_back(std::pair{group.engine, group.tier}, group);
    }
    if (validation.headlines.rows > 0) {
        list.emplace_back(std::pair{std::string{"headline figures"}, std::string{}}, validation.headlines);
    }
    list.emplace_back(std::pair{std::string{"all"}, std::string{}}, validation.all);
    return list;
}

std::string summaries_table(const Validation& validation) {
    std::string text = left("absolute errors", 20) +
                       " tier  rows modelled fitted median  worst covered half-width  worst record\n";
    for (const auto& [name, summary] : summaries(validation)) {
        text += summary_line(name.first, name.second, summary);
    }
    return text + "\n";
}

std::string baseline_text(const Baseline& baseline) {
    return "By size alone, " + baseline.name + " (" + baseline.formula + "), " +
           std::to_string(baseline.rows) + " reshard rows: median " + whole_percent(baseline.median_error) +
           ", worst " + signed_percent(baseline.worst_error) +
           "; Refit on them: " + whole_percent(baseline.model_median_error) + " and " +
           signed_percent(baseline.model_worst_error) + ".";
}

std::string baselines_text(const Validation& validation) {
    std::string text;
    for (const auto& baseline : validation.baselines) {
        text += wrap(baseline_text(baseline), kWidth, 0) + "\n";
    }
    return text.empty() ? text : text + "\n";
}

/// Ids of what is not modelled by reason, in the order of the records.
std::vector<std::pair<std::string, std::vector<std::string>>> by_reason(const Validation& validation) {
    std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
    for (const auto& row : validation.rows) {
        if (row.prediction) {
            continue;
        }
        const auto same =
            std::ranges::find(reasons, row.not_modelled, [](const auto& entry) { return entry.first; });
        if (same == reasons.end()) {
            reasons.push_back({row.not_modelled, {row.record.id}});
        } else {
            same->second.push_back(row.record.id);
        }
    }
    return reasons;
}

std::string with_commas(const std::vector<std::string>& ids) {
    std::string text;
    for (const auto& id : ids) {
        text += (text.empty() ? "" : ", ") + id;
    }
    return text;
}

std::string count_text(std::size_t count) {
    return std::to_string(count) + (count == 1 ? " record" : " records");
}

std::string not_modelled_text(const Validation& validation) {
    const auto reasons = by_reason(validation);
    if (reasons.empty()) {
        return "";
    }
    auto text = "Not modelled, " + count_text(validation.rows.size() - validation.modelled) + ":\n";
    for (const auto& [reason, ids] : reasons) {
        text += "  " + right(std::to_string(ids.size()), 2) + "  " + wrap(reason, kWidth, 6) + "\n      " +
                wrap(with_commas(ids), kWidth, 6) + "\n";
    }
    return text;
}

Row markdown_row(const ValidationRow& row) {
    const auto& prediction = *row.prediction;
    return {"`" + row.record.id + "`",
            row.record.model,
            row.record.gpu.empty() ? "-" : row.record.gpu,
            row.record.tier,
            published_text(row),
            seconds_number(prediction.seconds),
            range_text(prediction.low, prediction.high),
            error_text(row),
            prediction.limited_by};
}

template <class Wanted>
std::string markdown_records(const Validation& validation, Wanted wanted) {
    std::vector<Row> rows;
    for (const auto& row : validation.rows) {
        if (row.prediction && wanted(row)) {
            rows.push_back(markdown_row(row));
        }
    }
    return rows.empty() ? ""
                        : markdown({"record",
                                    "model",
                                    "GPU",
                                    "tier",
                                    "published, s",
                                    "predicted, s",
                                    "80 % range, s",
                                    "error",
                                    "limited by"},
                                   rows) +
                              "\n";
}

std::string markdown_summaries(const Validation& validation) {
    std::vector<Row> rows;
    for (const auto& [name, summary] : summaries(validation)) {
        const bool has_any = summary.modelled > 0;
        rows.push_back({name.first,
                        name.second,
                        std::to_string(summary.rows),
                        std::to_string(summary.modelled),
                        std::to_string(summary.served_to_fit),
                        has_any ? whole_percent(summary.median_error) : "-",
                        has_any ? signed_percent(summary.worst_error) : "-",
                        has_any ? whole_percent(summary.covered) : "-",
                        has_any ? whole_percent(summary.median_half_width) : "-"});
    }
    return markdown({"engine",
                     "tier",
                     "rows",
                     "modelled",
                     "fitted",
                     "median error",
                     "worst",
                     "covered",
                     "half-width"},
                    rows) +
           "\n";
}

/// What choosing by prediction costs, and how often a change of one thing goes the predicted way.
std::string choices_text(const Validation& validation) {
    std::string text;
    if (!validation.decisions.empty()) {
        const auto worst = std::ranges::max_element(validation.decisions, {}, &Decision::regret);
        text = "Choosing by prediction, " + std::to_string(validation.decisions.size()) +
               " refits that were timed in several ways: at most " + whole_percent(worst->regret) +
               " slower than the best" + (worst->regret > 0.0 ? " (" + worst->options[worst->chosen].id + ")" : "") + ".";
    }
    if (!validation.changes.empty()) {
        const auto right = std::ranges::count_if(validation.changes, &FactorChange::has_right_sign);
        text += (text.empty() ? "" : " ") + std::string{"Changes of one thing: "} + std::to_string(right) + " of " +
                std::to_string(validation.changes.size()) + " go the predicted way.";
    }
    return text;
}

}  // namespace

std::string validation_table(const Validation& validation) {
    const auto choices = choices_text(validation);
    return records_table(validation) + summaries_table(validation) + baselines_text(validation) +
           (choices.empty() ? "" : wrap(choices, kWidth, 0) + "\n\n") + not_modelled_text(validation);
}

std::string validation_markdown(const Validation& validation) {
    auto text =
        markdown_records(validation, [](const ValidationRow& row) { return row.record.is_headline; }) +
        markdown_summaries(validation);
    for (const auto& baseline : validation.baselines) {
        text += "- " + wrap(baseline_text(baseline), 120, 2) + "\n";
    }
    const auto choices = choices_text(validation);
    text += choices.empty() ? "" : "- " + wrap(choices, 120, 2) + "\n";
    text += std::string{validation.baselines.empty() && choices.empty() ? "" : "\n"} + "### Every record, by " +
            kind_text(validation) + "\n\n";
    text += markdown_records(validation, [](const ValidationRow&) { return true; });
    text += "### Not modelled\n\n";
    std::vector<Row> rows;
    for (const auto& [reason, ids] : by_reason(validation)) {
        rows.push_back({std::to_string(ids.size()), reason, with_commas(ids)});
    }
    return text + (rows.empty() ? "None.\n" : markdown({"records", "why", "which"}, rows));
}

std::string validation_csv(const Validation& validation) {
    const auto precise = [](double value) { return number_text("%.9g", value); };
    const auto time = [&](const std::optional<Seconds>& seconds) {
        return seconds ? precise(seconds->value()) : "";
    };
    std::vector<Row> rows;
    for (const auto& row : validation.rows) {
        const auto& prediction = row.prediction;
        rows.push_back({row.record.id,
                        row.record.tier,
                        row.record.engine,
                        prediction ? precise(prediction->seconds.value()) : "",
                        prediction ? precise(prediction->low.value()) : "",
                        prediction ? precise(prediction->high.value()) : "",
                        time(row.record.seconds),
                        time(row.low),
                        time(row.high),
                        row.error ? precise(*row.error) : "",
                        prediction ? prediction->limited_by : "",
                        row.served_to_fit ? "true" : "false",
                        row.not_modelled});
    }
    return csv({"id",
                "tier",
                "engine",
                "predicted_seconds",
                "predicted_low",
                "predicted_high",
                "published_seconds",
                "published_seconds_min",
                "published_seconds_max",
                "error",
                "limited_by",
                "fitted",
                "not_modelled"},
               rows);
}

}  // namespace refit::cli
