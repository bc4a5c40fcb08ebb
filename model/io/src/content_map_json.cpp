// SPDX-License-Identifier: Apache-2.0
#include "refit/io/content_map_json.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "refit/content_map.hpp"
#include "refit/dtensor.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;
using Shape = std::vector<std::uint64_t>;

constexpr std::uint64_t kMostElements = 1U << 24U;

/// A list of whole numbers, of at most kMostElements in product.
std::optional<Shape> shape_of(const Json& json) {
    if (!json.is_array() || json.size() > Box::kMostAxes) {
        return std::nullopt;
    }
    Shape shape;
    std::uint64_t product = 1;
    for (const auto& extent : json) {
        if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > kMostElements) {
            return std::nullopt;
        }
        shape.push_back(extent.get<std::uint64_t>());
        product *= std::max<std::uint64_t>(1, shape.back());
        if (product > kMostElements) {
            return std::nullopt;
        }
    }
    return shape.empty() ? std::nullopt : std::optional{std::move(shape)};
}

Result<std::vector<LocalTensor>> malformed(std::string message) {
    return fail(ErrorCode::kInvalidInput, "record-shape", std::move(message));
}

struct Answer {
    Result<std::vector<LocalTensor>> tensors;
    std::vector<Shape> inputs;
};

Answer answer_dtensor(const Json& record) {
    const auto shape = shape_of(record.at("logical_shape"));
    const auto mesh = shape_of(record.value("mesh", Json{}));
    if (!shape || !mesh) {
        return {malformed("'logical_shape' and 'mesh' must be lists of up to five sizes"), {}};
    }
    std::vector<DtensorPlacement> placements;
    for (const auto& text : record.value("placements", Json::array())) {
        const auto placement = parse_placement(text.is_string() ? text.get<std::string>() : text.dump());
        if (!placement) {
            return {Failure{placement.error()}, {}};
        }
        placements.push_back(*placement);
    }
    return {dtensor_map(*shape, *mesh, placements), {*shape}};
}

Answer answer_framework(const Json& record) {
    ContentQuestion question;
    const auto config = record.value("config", Json::object());
    const auto inputs = record.value("inputs", Json::array());
    if (!record.value("framework", Json{}).is_string() || !record.value("kind", Json{}).is_string() || !config.is_object() || !inputs.is_array()) {
        return {malformed("a record needs 'framework', 'kind', 'config' and 'inputs'"), {}};
    }
    question.framework = record.at("framework").get<std::string>();
    question.kind = record.at("kind").get<std::string>();
    for (const auto& [name, value] : config.items()) {
        if (value.is_boolean()) {
            question.numbers[name] = value.get<bool>() ? 1 : 0;
        } else if (value.is_number_integer()) {
            question.numbers[name] = value.get<std::int64_t>();
        } else if (value.is_string()) {
            question.texts[name] = value.get<std::string>();
        }
    }
    for (const auto& input : inputs) {
        auto shape = shape_of(input.is_object() ? input.value("shape", Json{}) : Json{});
        if (!shape) {
            return {malformed("every input needs a 'shape' of up to five sizes"), {}};
        }
        question.inputs.push_back(std::move(*shape));
    }
    return {content_map(question), question.inputs};
}

Json runs_json(const LocalTensor& tensor, const std::vector<Shape>& inputs, bool names_input) {
    Json runs = Json::array();
    for (const auto& run : tensor.runs(inputs)) {
        runs.push_back(names_input ? Json{run.input, run.start, run.count} : Json{run.start, run.count});
    }
    return runs;
}

Json answered(Json record) {
    const bool is_dtensor = record.contains("logical_shape");
    const auto [tensors, inputs] = is_dtensor ? answer_dtensor(record) : answer_framework(record);
    record["ranks"] = Json::array();
    record.erase("refused");
    if (!tensors) {
        record["refused"] = tensors.error().front().rule;
        return record;
    }
    for (std::size_t rank = 0; rank < tensors->size(); ++rank) {
        const auto& tensor = (*tensors)[rank];
        record["ranks"].push_back({{"rank", rank}, {"local_shape", tensor.shape()}, {"runs", runs_json(tensor, inputs, !is_dtensor)}});
    }
    return record;
}

}  // namespace

Result<Json> answer_content_maps(const Json& records) {
    if (records.is_object() && records.contains("records")) {
        return answer_content_maps(records.at("records"));
    }
    if (records.is_object()) {
        return answered(records);
    }
    if (!records.is_array() || records.empty() || !records.front().is_object()) {
        return fail(ErrorCode::kInvalidInput, "record-shape", "there is no record: give an object, a list of objects, or an object with 'records'");
    }
    Json list = Json::array();
    for (const auto& record : records) {
        list.push_back(answered(record));
    }
    return list;
}

}  // namespace refit::io
