// SPDX-License-Identifier: Apache-2.0
#include "refit/io/hugging_face.hpp"

#include <cmath>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

std::optional<Facts::Value> list_of(const Json& list) {
    if (std::ranges::all_of(list, [](const Json& item) { return item.is_number_integer(); })) {
        return list.get<std::vector<std::int64_t>>();
    }
    if (std::ranges::all_of(list, [](const Json& item) { return item.is_string(); })) {
        return list.get<std::vector<std::string>>();
    }
    return std::nullopt;
}

std::optional<Facts::Value> scalar_of(const Json& value) {
    if (value.is_boolean()) {
        return value.get<bool>();
    }
    if (value.is_number_integer()) {
        return value.get<std::int64_t>();
    }
    if (value.is_number()) {
        return value.get<double>();
    }
    if (value.is_string()) {
        return value.get<std::string>();
    }
    return value.is_array() ? list_of(value) : std::nullopt;
}

void flatten(const Json& object, const std::string& prefix, Facts& facts) {
    for (const auto& [key, value] : object.items()) {
        if (value.is_object()) {
            flatten(value, prefix + key + ".", facts);
        } else if (value.is_null()) {
            facts.set_null(prefix + key);
        } else if (auto scalar = scalar_of(value)) {
            facts.set(prefix + key, std::move(*scalar));
        }
    }
}

}  // namespace

Result<Facts> read_config(const std::filesystem::path& file) {
    const auto json = read_json(file);
    if (!json) {
        return Failure{json.error()};
    }
    if (!json->is_object()) {
        return fail(ErrorCode::kInvalidInput, "config-shape", "a model config must be a JSON object", file.string());
    }
    Facts facts{file.string()};
    flatten(*json, "", facts);
    return facts;
}

}  // namespace refit::io
