// SPDX-License-Identifier: Apache-2.0
#include "records_text.hpp"

#include <vector>

#include "cells.hpp"
#include "refit/quantity.hpp"

namespace refit::cli {
namespace {

using Row = std::vector<std::string>;

std::string precise(double value) { return number_text("%.9g", value); }

std::string joined(const Row& row, const std::string& begin, const std::string& between, const std::string& end) {
    std::string text = begin;
    for (std::size_t i = 0; i < row.size(); ++i) {
        text += (i == 0 ? "" : between) + row[i];
    }
    return text + end + "\n";
}

}  // namespace

std::string report_csv(const Report& report) {
    auto text = joined({"method", "calibrated", "refused", "seconds", "seconds_low", "seconds_high", "transfer_seconds",
                        "bound_seconds", "bound_line_rate_seconds", "published_seconds", "published_error", "logical_bytes",
                        "network_bytes", "nvlink_bytes", "peak_train_bytes", "peak_generation_bytes",
                        "simulated_seconds", "simulated_transfer_seconds"},
                       "", ",", "");
    for (const auto& method : report.methods) {
        Row row{std::string{name_of(method.method)}, method.is_calibrated ? "true" : "false"};
        if (!method.refused.empty()) {
            row.push_back(method.refused.front().rule);
            row.resize(18);
            text += joined(row, "", ",", "");
            continue;
        }
        const bool has_published = method.published && method.published->seconds;
        const Row values{"",
                         precise(method.seconds.value()),
                         precise(method.low.value()),
                         precise(method.high.value()),
                         precise(method.transfer.value()),
                         precise(report.bound.time.value()),
                         precise(report.line_rate_bound.time.value()),
                         has_published ? precise(method.published->seconds->value()) : "",
                         method.published ? precise(method.published->error) : "",
                         std::to_string(method.logical.count()),
                         std::to_string(method.network.count()),
                         std::to_string(method.nvlink.count()),
                         std::to_string(method.peak.train.count()),
                         std::to_string(method.peak.generation.count()),
                         method.simulated ? precise(method.simulated->seconds.value()) : "",
                         method.simulated ? precise(method.simulated->transfer.value()) : ""};
        row.insert(row.end(), values.begin(), values.end());
        text += joined(row, "", ",", "");
    }
    return text;
}

std::string report_markdown(const Report& report) {
    auto text = joined({"method", "predicted, s", "80 % range, s", "simulated, s", "published, s", "error", "on NICs", "on NVLink"}, "| ", " | ", " |");
    text += "|---|---:|---:|---:|---:|---:|---:|---:|\n";
    for (const auto& method : report.methods) {
        const std::string name{name_of(method.method)};
        if (!method.refused.empty()) {
            text += joined({name, "refused: " + method.refused.front().rule, "", "", "", "", "", ""}, "| ", " | ", " |");
            continue;
        }
        const bool has_published = method.published && method.published->seconds;
        text += joined({name + (method.is_calibrated ? "" : " ?"),
                        seconds_number(method.seconds),
                        seconds_number(method.low) + " - " + seconds_number(method.high),
                        method.simulated ? seconds_number(method.simulated->seconds) : "-",
                        has_published ? seconds_number(*method.published->seconds) : "-",
                        method.published ? number_text("%+.0f %%", method.published->error * 100.0) : "-",
                        format_bytes(method.network),
                        format_bytes(method.nvlink)},
                       "| ", " | ", " |");
    }
    return text;
}

}  // namespace refit::cli
