// SPDX-License-Identifier: Apache-2.0
#include "refit/io/engine_writer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "refit/constant_table.hpp"
#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::ordered_json;

/// A number that reads as it was rounded: six digits, no noise of a unit's conversion.
Json figure(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    const auto number = std::strtod(text, nullptr);
    const auto whole = static_cast<std::int64_t>(number);
    return static_cast<double>(whole) == number ? Json(whole) : Json(number);
}

void replace(Json& entry, const Constant& constant) {
    const auto unit = unit_factor(constant.unit);
    entry["value"] = figure(constant.value / unit);
    entry["low"] = figure(constant.low / unit);
    entry["high"] = figure(constant.high / unit);
    entry["kind"] = constant.kind;
    entry["source"] = constant.source;
    entry["identified_by"] = constant.identified_by;
}

const char* name_of(Constant EngineConstants::*member) {
    return std::ranges::find(constant_table(), member, &NamedConstant::member)->name;
}

}  // namespace

Result<std::string> engine_text(const std::filesystem::path& file, const EngineConstants& constants) {
    // Read strictly first: the ordered form below takes a key that an object has twice.
    const auto checked = read_json(file);
    if (!checked) {
        return Failure{checked.error()};
    }
    const auto text = read_text(file);
    if (!text) {
        return Failure{text.error()};
    }
    auto json = Json::parse(*text);
    for (const auto& entry : constant_table()) {
        if (json.at("constants").contains(entry.name)) {
            replace(json["constants"][entry.name], constants.*entry.member);
        }
    }
    json.erase("correlations");
    if (!constants.correlations.empty()) {
        auto list = Json::array();
        for (const auto& pair : constants.correlations) {
            list.push_back(
                {{"between", {name_of(pair.first), name_of(pair.second)}}, {"value", figure(pair.value)}});
        }
        json["correlations"] = std::move(list);
    }
    return json.dump(1) + "\n";
}

}  // namespace refit::io
