// SPDX-License-Identifier: Apache-2.0
#include "refit/io/calibration_json.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "refit/constant_table.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

Json constant_json(const NamedConstant& entry, const Constant& constant, const Calibration* calibration) {
    Json json{{"name", entry.name},
              {"value", constant.value},
              {"low", constant.low},
              {"high", constant.high},
              {"unit", entry.unit},
              {"kind", constant.kind},
              {"source", constant.source},
              {"identified_by", constant.identified_by},
              {"from_refits", nullptr},
              {"prior", nullptr}};
    if (constant.prior) {
        json["prior"] = {{"value", constant.prior->value}, {"spread", constant.prior->spread}};
    }
    if (calibration != nullptr) {
        const auto found = std::ranges::find(calibration->fitted, entry.name);
        if (found != calibration->fitted.end()) {
            json["from_refits"] =
                calibration->from_refits[static_cast<std::size_t>(found - calibration->fitted.begin())];
        }
    }
    return json;
}

Json refit_json(const CalibratedRefit& refit) {
    return {{"ids", refit.ids},
            {"seconds", refit.seconds.value()},
            {"error", refit.error},
            {"left_out_seconds", refit.left_out.seconds.value()},
            {"left_out_low", refit.left_out.low.value()},
            {"left_out_high", refit.left_out.high.value()},
            {"left_out_error", refit.left_out.error}};
}

Json reading_json(const LinkReading& reading) {
    const bool tells = !reading.constant.empty();
    return {{"test", reading.test},
            {"where", reading.where},
            {"ranks", reading.ranks},
            {"hosts", reading.hosts},
            {"bytes_per_second", reading.fit.rate},
            {"latency_seconds", reading.fit.latency},
            {"constant", tells ? Json(reading.constant) : Json(nullptr)},
            {"efficiency", tells ? Json(reading.efficiency) : Json(nullptr)},
            {"passed_over", tells ? Json(nullptr) : Json(reading.passed_over)}};
}

}  // namespace

Json to_json(const Engine& engine,
             const EngineConstants& constants,
             const Calibration* calibration,
             const LinkConstants* links) {
    Json json{{"schema", "refit.fit"},
              {"schema_version", "1.1"},
              {"engine", {{"name", engine.name}, {"version", engine.version}}},
              {"row_error", nullptr},
              {"constants", Json::array()},
              {"refits", Json::array()},
              {"alike", Json::array()},
              {"worth_timing", Json::array()},
              {"links", Json::array()}};
    for (const auto& entry : constant_table()) {
        if (!(constants.*entry.member).source.empty()) {
            json["constants"].push_back(constant_json(entry, constants.*entry.member, calibration));
        }
    }
    if (calibration != nullptr) {
        json["row_error"] = calibration->row_error;
        for (const auto& refit : calibration->refits) {
            json["refits"].push_back(refit_json(refit));
        }
        for (const auto& pair : calibration->alike) {
            json["alike"].push_back(
                {{"between", {pair.first, pair.second}}, {"correlation", pair.correlation}});
        }
        for (const auto& stage : calibration->worth_timing) {
            json["worth_timing"].push_back({{"refit", stage.refit},
                                            {"stage", stage.stage},
                                            {"constant", stage.constant},
                                            {"narrowing", stage.narrowing},
                                            {"bits", stage.bits}});
        }
    }
    if (links != nullptr) {
        for (const auto& reading : links->readings) {
            json["links"].push_back(reading_json(reading));
        }
    }
    return json;
}

}  // namespace refit::io
