// SPDX-License-Identifier: Apache-2.0
#include "refit/io/validation_json.hpp"

#include <optional>

#include <nlohmann/json.hpp>

namespace refit::io {
namespace {

using Json = nlohmann::json;

Json seconds_json(const std::optional<Seconds>& time) {
    return time ? Json(time->value()) : Json(nullptr);
}
Json text_json(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

Json row_json(const ValidationRow& row) {
    Json json{{"id", row.record.id},
              {"tier", text_json(row.record.tier)},
              {"engine", text_json(row.record.engine)},
              {"model", text_json(row.record.model)},
              {"published_seconds", seconds_json(row.record.seconds)},
              {"published_seconds_min", seconds_json(row.low)},
              {"published_seconds_max", seconds_json(row.high)},
              {"headline", row.record.is_headline},
              {"fitted", row.served_to_fit},
              {"inferred", row.record.inferred}};
    if (!row.prediction) {
        json["not_modelled"] = row.not_modelled;
        return json;
    }
    json.update({{"predicted_seconds", row.prediction->seconds.value()},
                 {"predicted_low", row.prediction->low.value()},
                 {"predicted_high", row.prediction->high.value()},
                 {"error", row.error ? Json(*row.error) : Json(nullptr)},
                 {"limited_by", row.prediction->limited_by},
                 {"configuration", row.configuration},
                 {"assumed", row.assumed}});
    return json;
}

Json summary_json(const ErrorSummary& summary) {
    return {{"rows", summary.rows},
            {"modelled", summary.modelled},
            {"configurations", summary.configurations},
            {"fitted", summary.served_to_fit},
            {"median_error", summary.modelled > 0 ? Json(summary.median_error) : Json(nullptr)},
            {"worst_error", summary.modelled > 0 ? Json(summary.worst_error) : Json(nullptr)},
            {"worst_id", text_json(summary.worst_id)},
            {"covered", summary.modelled > 0 ? Json(summary.covered) : Json(nullptr)},
            {"median_half_width", summary.modelled > 0 ? Json(summary.median_half_width) : Json(nullptr)}};
}

Json baseline_json(const Baseline& baseline) {
    return {{"name", baseline.name},
            {"formula", baseline.formula},
            {"rows", baseline.rows},
            {"median_error", baseline.median_error},
            {"worst_error", baseline.worst_error},
            {"model_median_error", baseline.model_median_error},
            {"model_worst_error", baseline.model_worst_error}};
}

Json decisions_json(const std::vector<Decision>& decisions) {
    Json list = Json::array();
    for (const auto& decision : decisions) {
        Json options = Json::array();
        for (const auto& option : decision.options) {
            options.push_back({{"id", option.id},
                               {"engine", option.engine},
                               {"published_seconds", option.published.value()},
                               {"predicted_seconds", option.predicted.value()}});
        }
        list.push_back({{"model", decision.model},
                        {"options", options},
                        {"chosen", decision.options[decision.chosen].id},
                        {"best", decision.options[decision.best].id},
                        {"regret", decision.regret}});
    }
    return list;
}

Json changes_json(const std::vector<FactorChange>& changes) {
    Json list = Json::array();
    for (const auto& change : changes) {
        list.push_back({{"from", change.from},
                        {"to", change.to},
                        {"factor", change.factor},
                        {"published_ratio", change.published},
                        {"predicted_ratio", change.predicted},
                        {"right_sign", change.has_right_sign()}});
    }
    return list;
}

}  // namespace

Json to_json(const Validation& validation) {
    Json records = Json::array();
    for (const auto& row : validation.rows) {
        records.push_back(row_json(row));
    }
    Json groups = Json::array();
    for (const auto& group : validation.groups) {
        groups.push_back(summary_json(group));
        groups.back().update({{"engine", group.engine}, {"tier", text_json(group.tier)}});
    }
    Json baselines = Json::array();
    for (const auto& baseline : validation.baselines) {
        baselines.push_back(baseline_json(baseline));
    }
    return {{"schema", "refit.validation"},
            {"schema_version", "1.0"},
            {"kind", validation.is_simulated ? "simulate" : "estimate"},
            {"records", records},
            {"summary",
             {{"records", validation.rows.size()},
              {"modelled", validation.modelled},
              {"not_modelled", validation.rows.size() - validation.modelled},
              {"all", summary_json(validation.all)},
              {"headlines", summary_json(validation.headlines)},
              {"groups", groups},
              {"baselines", baselines},
              {"decisions", decisions_json(validation.decisions)},
              {"factor_changes", changes_json(validation.changes)}}}};
}

}  // namespace refit::io
