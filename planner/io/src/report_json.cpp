// SPDX-License-Identifier: Apache-2.0
#include "refit/io/report_json.hpp"

#include <nlohmann/json.hpp>

#include "refit/io/faults_json.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

Json optional_seconds(const std::optional<Seconds>& time) { return time ? Json(time->value()) : Json(nullptr); }

/// NICs by rank of the job. Unit: B/s.
Json fabric_json(const FabricSettings& fabric) {
    Json nics = Json::object();
    for (const auto& [rank, rate] : fabric.nics) {
        nics[std::to_string(rank)] = rate ? Json(rate->bytes_per_second()) : Json("down");
    }
    return {{"domains_per_pod", fabric.domains_per_pod == 0 ? Json(nullptr) : Json(fabric.domains_per_pod)},
            {"oversubscription", fabric.oversubscription},
            {"rail_only", fabric.is_rail_only},
            {"nics", nics}};
}

/// What is chosen of the readings that published times leave open.
void add_readings(Json& options, const ReadingChoice& chosen) {
    if (chosen.finalize) {
        options["finalize"] = name_of(*chosen.finalize);
    }
    if (chosen.bulk_cost) {
        options["bulk_cost"] = name_of(*chosen.bulk_cost);
    }
    if (chosen.replica_ring) {
        options["replica_ring"] = name_of(*chosen.replica_ring);
    }
}

Json scenario_json(const Scenario& scenario) {
    const auto& cluster = scenario.cluster;
    const auto& placement = cluster.placement();
    Json json{{"name", scenario.name},
            {"note", scenario.note},
            {"model", scenario.model.id()},
            {"dtype", name_of(scenario.dtype)},
            {"train",
             {{"engine", scenario.train.is_fsdp() ? "fsdp" : "megatron"},
              {"gpus", scenario.train.gpus},
              {"layout", to_text(scenario.train)},
              {"stage_layers", scenario.train.stage_layers},
              {"dp", scenario.train.dp},
              {"edp", scenario.train.edp}}},
            {"generate",
             {{"engine", "vllm"},
              {"gpus", scenario.generate.gpus},
              {"layout", to_text(scenario.generate)},
              {"dtype", name_of(scenario.dtype)}}},
            {"system", {{"train", cluster.train_system().name}, {"generate", cluster.generate_system().name}}},
            {"placement",
             {{"train_gpus_per_domain", placement.train_gpus_per_domain},
              {"generate_gpus_per_domain", placement.generate_gpus_per_domain},
              {"generation_starts_new_domain", placement.generation_starts_new_domain}}},
            {"engine",
             {{"name", scenario.engine.name},
              {"version", scenario.engine.version},
              {"rules", scenario.rules.version},
              {"coverage", name_of(scenario.coverage)},
              {"options",
               {{"NRL_REFIT_NUM_STREAMS", scenario.engine.options.streams},
                {"NRL_REFIT_NUM_BUFFERS", scenario.engine.options.buffers},
                {"NRL_REFIT_BUFFER_MEMORY_RATIO", scenario.engine.options.buffer_memory_ratio},
                {"broadcast_root", name_of(scenario.engine.options.broadcast_root)},
                {"broadcast_group", name_of(scenario.engine.options.broadcast_group)},
                {"broadcast_senders", scenario.engine.options.broadcast_senders},
                {"broadcast_in_turns", scenario.engine.options.broadcast_in_turns},
                {"pack_overlap", name_of(scenario.engine.options.pack_overlap)},
                {"direct_overlap", name_of(scenario.engine.options.direct_overlap)},
                {"direct_source", name_of(scenario.engine.options.direct_source)},
                {"direct_loading", name_of(scenario.engine.options.direct_loading)},
                {"transfer_order", name_of(scenario.engine.options.transfer_order)},
                {"shadow_copy", scenario.engine.options.has_shadow_copy}}}}},
            {"published", scenario.published}};
    add_readings(json.at("engine").at("options"), scenario.engine.options.reading);
    if (!cluster.fabric().is_plain()) {
        json["fabric"] = fabric_json(cluster.fabric());
    }
    return json;
}

Json published_json(const std::optional<PublishedTime>& published) {
    Json list = Json::array();
    if (published) {
        list.push_back({{"id", published->id},
                        {"seconds", optional_seconds(published->seconds)},
                        {"seconds_min", optional_seconds(published->low)},
                        {"seconds_max", optional_seconds(published->high)},
                        {"error", published->error},
                        {"inferred", published->inferred}});
    }
    return list;
}

Json method_json(const MethodReport& method, const Report& report) {
    Json json{{"method", name_of(method.method)}, {"kind", name_of(method.kind)}, {"calibrated", method.is_calibrated}};
    if (!method.refused.empty()) {
        json["refused"] = to_json(method.refused);
        return json;
    }
    Json phases = Json::array();
    for (const auto& phase : method.phases) {
        phases.push_back({{"name", phase.name}, {"seconds", phase.seconds.value()}, {"hidden", phase.is_hidden}});
    }
    Json sensitivities = Json::array();
    for (const auto& one : method.sensitivities) {
        sensitivities.push_back({{"constant", one.constant},
                                 {"seconds_at_low", one.at_low.value()},
                                 {"seconds_at_high", one.at_high.value()},
                                 {"elasticity", one.elasticity}});
    }
    Json terms = Json::array();
    for (const auto& term : method.terms) {
        terms.push_back({{"name", term.name},
                         {"phase", term.phase},
                         {"seconds", term.seconds.value()},
                         {"formula", term.formula},
                         {"constants", term.constants},
                         {"hidden", term.is_hidden}});
    }
    const auto seconds = method.simulated ? method.simulated->seconds : method.seconds;
    json.update({{"seconds", seconds.value()},
                 {"seconds_low", taken_along(method.low, method.seconds, seconds).value()},
                 {"seconds_high", taken_along(method.high, method.seconds, seconds).value()},
                 {"estimate_seconds", method.seconds.value()},
                 {"transfer_seconds", (method.simulated ? method.simulated->transfer : method.transfer).value()},
                 {"bound_seconds", report.bound.time.value()},
                 {"bound_line_rate_seconds", report.line_rate_bound.time.value()},
                 {"logical_bytes", method.logical.count()},
                 {"network_bytes", method.network.count()},
                 {"nvlink_bytes", method.nvlink.count()},
                 {"nic_bytes_per_trainer", method.nic_per_trainer.count()},
                 {"peak_extra_bytes",
                  {{"train", method.peak.train.count()}, {"generation", method.peak.generation.count()}}},
                 {"bottleneck",
                  {{"resource", method.bottleneck.resource},
                   {"where", method.bottleneck.where},
                   {"share", method.bottleneck.share}}},
                 {"phases", phases},
                 {"terms", terms},
                 {"sensitivity", sensitivities},
                 {"published", published_json(method.published)},
                 {"refused", nullptr}});
    return json;
}

Json bound_json(const Bound& bound) {
    return {{"seconds", bound.time.value()},
            {"kind", name_of(bound.kind)},
            {"where", bound.where},
            {"network_bytes", bound.network_bytes.count()}};
}

Json trials_json(const Report& report) {
    Json list = Json::array();
    for (const auto& trial : report.trials) {
        list.push_back({{"change", trial.change.field + "=" + trial.change.value},
                        {"note", trial.change.note},
                        {"seconds_before", trial.before.value()},
                        {"seconds", trial.after.value()},
                        {"extra_bytes", trial.extra_bytes}});
    }
    return list;
}

Json steps_json(const Report& report) {
    Json list = Json::array();
    for (const auto& step : report.steps) {
        list.push_back({{"seconds", step.step.value()},
                        {"refit_share", step.refit_share},
                        {"step_speedup_at_most", step.speedup_at_most}});
    }
    return list;
}

Json assumptions_json(const Report& report) {
    Json list = Json::array();
    for (const auto& entry : report.assumptions) {
        list.push_back({{"name", entry.name},
                        {"value", entry.value},
                        {"unit", entry.unit},
                        {"low", entry.low},
                        {"high", entry.high},
                        {"source", entry.source},
                        {"kind", entry.kind},
                        {"identified_by", entry.identified_by}});
    }
    return list;
}

}  // namespace

Json to_json(const Report& report, const Scenario& scenario) {
    const auto payload = scenario.model.payload_totals();
    const auto mtp = scenario.model.totals(ModelPart::kMtp);
    Bytes weight_bytes;
    std::uint64_t tensors = 0;
    for (const auto& entry : scenario.payload()) {
        weight_bytes += entry.bytes();
        tensors += entry.tensors();
    }
    Json methods = Json::array();
    for (const auto& method : report.methods) {
        methods.push_back(method_json(method, report));
    }
    Json json{{"schema", "refit.report"},
              {"schema_version", "1.0"},
              {"scenario", scenario_json(scenario)},
              {"model",
               {{"id", scenario.model.id()},
                {"parameters", payload.parameters},
                {"mtp_parameters", mtp.parameters},
                {"tensors", tensors},
                {"weight_bytes", weight_bytes.count()},
                {"bulk_fraction", report.bulk_fraction},
                {"ffn_fraction", report.ffn_fraction}}},
              {"methods", methods},
              {"hybrid_coverage_ffn", nullptr},
              {"bound", {{"effective", bound_json(report.bound)}, {"line_rate", bound_json(report.line_rate_bound)}}},
              {"speedup", nullptr},
              {"try", trials_json(report)},
              {"step", nullptr},
              {"steps", steps_json(report)},
              {"assumptions", assumptions_json(report)},
              {"warnings", to_json(report.warnings)}};
    if (!report.steps.empty()) {
        json["step"] = json["steps"].front();
    }
    if (report.hybrid_by_meaning) {
        json["hybrid_coverage_ffn"] = method_json(*report.hybrid_by_meaning, report);
    }
    if (report.speedup) {
        json["speedup"] = {{"of", name_of(report.speedup->of)},
                           {"over", name_of(report.speedup->over)},
                           {"ratio", report.speedup->ratio},
                           {"low", report.speedup->low},
                           {"high", report.speedup->high}};
    }
    return json;
}

}  // namespace refit::io
