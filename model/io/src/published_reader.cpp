// SPDX-License-Identifier: Apache-2.0
#include "refit/io/published_reader.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "lower_case.hpp"
#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kMostCount = 1U << 20U;

/// Reads members of one object and collects the faults.
class MemberReader {
public:
    MemberReader(const Json& object, std::string place, Faults& faults)
        : object_{object}, place_{std::move(place)}, faults_{faults} {}

    /// The member, or null where it is absent or null.
    [[nodiscard]] const Json* find(const char* key) const {
        const auto found = object_.find(key);
        return found == object_.end() || found->is_null() ? nullptr : &*found;
    }

    void refuse(const char* key, const std::string& expected) const {
        const auto* value = find(key);
        const auto said = value == nullptr ? std::string{"missing"} : value->dump(-1, ' ', true);
        const auto shown = said.size() > 60 ? said.substr(0, 57) + "..." : said;
        faults_.push_back({ErrorCode::kInvalidInput,
                           "record-member",
                           "'" + std::string{key} + "' must be " + expected + ", and is " + shown,
                           place_ + "/" + key});
    }

    [[nodiscard]] std::string text(const char* key, const std::string& fallback = {}) const {
        const auto* value = find(key);
        if (value != nullptr && !value->is_string()) {
            refuse(key, "a text");
            return fallback;
        }
        return value == nullptr ? fallback : value->get<std::string>();
    }

    [[nodiscard]] std::optional<double> positive(const char* key) const {
        const auto* value = find(key);
        if (value == nullptr) {
            return std::nullopt;
        }
        const auto number = value->is_number() ? value->get<double>() : 0.0;
        if (!(number > 0.0) || !std::isfinite(number)) {
            refuse(key, "a number above 0");
            return std::nullopt;
        }
        return number;
    }

    [[nodiscard]] std::optional<std::uint32_t> count(const char* key) const {
        const auto* value = find(key);
        if (value == nullptr) {
            return std::nullopt;
        }
        const auto number = whole(*value);
        if (!number) {
            refuse(key, "a whole number from 1 to " + std::to_string(kMostCount));
        }
        return number;
    }

    /// A whole number from 1 to `kMostCount`, or nothing.
    [[nodiscard]] static std::optional<std::uint32_t> whole(const Json& value) {
        const auto number = value.is_number() ? value.get<double>() : 0.0;
        const bool is_whole = number >= 1.0 && number <= kMostCount && number == std::floor(number);
        return is_whole ? std::optional{static_cast<std::uint32_t>(number)} : std::nullopt;
    }

    [[nodiscard]] bool flag(const char* key) const {
        const auto* value = find(key);
        if (value != nullptr && !value->is_boolean()) {
            refuse(key, "true or false");
            return false;
        }
        return value != nullptr && value->get<bool>();
    }

    [[nodiscard]] std::vector<std::string> texts(const char* key) const {
        std::vector<std::string> texts;
        const auto* value = find(key);
        if (value == nullptr) {
            return texts;
        }
        if (!value->is_array()) {
            refuse(key, "a list of texts");
            return texts;
        }
        for (const auto& item : *value) {
            if (!item.is_string()) {
                refuse(key, "a list of texts");
                return {};
            }
            texts.push_back(item.get<std::string>());
        }
        return texts;
    }

    /// The member's own members, or none.
    [[nodiscard]] std::optional<MemberReader> object(const char* key) const {
        const auto* value = find(key);
        if (value != nullptr && !value->is_object()) {
            refuse(key, "an object");
            return std::nullopt;
        }
        return value == nullptr
                   ? std::nullopt
                   : std::optional<MemberReader>{std::in_place, *value, place_ + "/" + key, faults_};
    }

    [[nodiscard]] auto items() const { return object_.items(); }

private:
    const Json& object_;
    std::string place_;
    Faults& faults_;
};

/// The count that a member of a layout stands for, or null. `engines` side by side are read beside the layout.
std::optional<std::uint32_t>* axis_of(LayoutText& layout, PublishedSide& side, std::optional<std::uint32_t>& engines, const std::string& name) {
    const std::map<std::string, std::optional<std::uint32_t>*> axes{
        {"tp", &layout.tp},
        {"cp", &layout.cp},
        {"pp", &layout.pp},
        {"dp", &layout.dp},
        {"ep", &layout.ep},
        {"etp", &layout.etp},
        {"fsdp", &layout.fsdp},
        {"fsdp2", &layout.fsdp},
        {"hsdp", &layout.fsdp},
        {"fsdp_size", &layout.fsdp},
        {"dp_shard", &layout.fsdp},
        {"first_stage_layers", &layout.first_stage_layers},
        {"last_stage_layers", &layout.last_stage_layers},
        {"last_pp_layers", &layout.last_stage_layers},
        {"vpp", &side.virtual_stages},
        {"dp_attn", &side.attention_groups},
        {"engines", &engines},
        {"replicas", &engines}};
    const auto found = axes.find(name);
    return found == axes.end() ? nullptr : found->second;
}

/// Members that follow from the others, or that move no weights.
bool says_nothing_of_weights(const std::string& name) {
    return name == "edp" || name == "sp" || name == "sequence_parallel" || name == "dp_replicate";
}

/// What is no axis, or no count, becomes unplaced: the record alone is refused, not the file.
std::optional<LayoutText> read_layout(const MemberReader& record, const char* key, PublishedSide& side) {
    const auto members = record.object(key);
    if (!members) {
        return std::nullopt;
    }
    LayoutText layout;
    std::optional<std::uint32_t> engines;
    for (const auto& [member, value] : members->items()) {
        const auto name = lower_case(member);
        if (value.is_null() || says_nothing_of_weights(name)) {
            continue;
        }
        auto* axis = axis_of(layout, side, engines, name);
        if (axis == &layout.fsdp && value.is_boolean()) {
            const auto over = name == "hsdp" ? ShardsOver::kSome : ShardsOver::kAll;
            side.shards = value.get<bool>() ? over : side.shards;
        } else if (axis != nullptr && MemberReader::whole(value)) {
            *axis = MemberReader::whole(value);
        } else {
            side.unplaced.push_back(axis == nullptr ? member : member + " " + value.dump(-1, ' ', true).substr(0, 40));
        }
    }
    if (engines) {
        layout.dp = layout.dp.value_or(1) * *engines;  // inference engines side by side, each with a copy
    }
    return layout;
}

PublishedSide read_side(const MemberReader& record, const char* gpus, const char* layout) {
    PublishedSide side;
    side.gpus = record.count(gpus);
    side.layout = read_layout(record, layout, side);
    if (const auto assumed = record.object("assumed")) {
        PublishedSide ours;
        side.assumed_layout = read_layout(*assumed, layout, ours);
    }
    return side;
}

void read_hardware(const MemberReader& record, PublishedRecord& result) {
    const auto hardware = record.object("hardware");
    if (!hardware) {
        return;
    }
    result.gpu = hardware->text("gpu");
    result.domain = hardware->count("nvlink_domain");
    if (const auto rate = hardware->positive("nic_gbps_per_gpu")) {
        result.nic = Bandwidth::gigabits_per_second(*rate);
    }
}

void read_times(const MemberReader& record, PublishedRecord& result) {
    const auto time = [&](const char* key) {
        const auto seconds = record.positive(key);
        return seconds ? std::optional{Seconds{*seconds}} : std::nullopt;
    };
    result.seconds = time("seconds");
    result.low = time("seconds_min");
    result.high = time("seconds_max");
    if (result.low && result.high && *result.high < *result.low) {
        record.refuse("seconds_min", "at most 'seconds_max'");
    }
}

PublishedRecord read_record(const MemberReader& record) {
    PublishedRecord result;
    result.id = record.text("id");
    if (result.id.empty()) {
        record.refuse("id", "a text");
    }
    result.source = record.text("source_title");
    result.engine = record.text("engine");
    read_times(record, result);
    result.inferred = record.texts("inferred");
    result.same_configuration_as = record.texts("same_configuration_as");
    result.date = record.text("date");
    result.tier = record.text("tier");
    result.model = record.text("model");
    if (const auto billions = record.positive("total_params_B")) {
        result.parameters = *billions * 1e9;
    }
    result.weights = record.text("class", "full");
    result.train_dtype = record.text("dtype_src");
    result.generate_dtype = record.text("dtype_dst");
    result.train = read_side(record, "train_gpus", "train_layout");
    result.generate = read_side(record, "gen_gpus", "gen_layout");
    read_hardware(record, result);
    if (const auto gigabytes = record.positive("bytes_GB")) {
        result.bytes = Bytes{static_cast<std::uint64_t>(std::llround(std::min(*gigabytes, 1e9) * 1e9))};
    }
    if (const auto extra = record.object("extra"); extra && extra->find("streams") != nullptr) {
        result.streams = extra->count("streams");
    }
    result.is_headline = record.text("confidence") == "headline figure";
    result.is_size_anchor = record.text("stat") == "envelope low/high" && result.bytes.has_value();
    result.served_to_fit = record.flag("fitted");
    return result;
}

Faults faults_of_header(const Json& json, const std::string& origin) {
    Faults faults;
    const auto refuse = [&](const char* rule, std::string message) {
        faults.push_back({ErrorCode::kInvalidInput, rule, std::move(message), origin});
    };
    if (!json.is_object() || !json.contains("records") || !json.at("records").is_array()) {
        refuse("schema", "\"records\" must be a list of objects");
        return faults;
    }
    if (json.contains("schema") && json.at("schema") != "refit.published-timings") {
        refuse("schema", "\"schema\" must be \"refit.published-timings\"");
    }
    if (json.contains("schema_version")) {
        const auto& version = json.at("schema_version");
        if (!version.is_string() || !version.get_ref<const std::string&>().starts_with("1.")) {
            refuse("schema-version",
                   "\"schema_version\" is " + version.dump(-1, ' ', true) +
                       "; this program reads \"1.1\" and other minor versions");
        }
    }
    return faults;
}

}  // namespace

Result<std::vector<PublishedRecord>> published_from_json(const Json& json, const std::string& origin) {
    auto faults = faults_of_header(json, origin);
    std::vector<PublishedRecord> records;
    std::map<std::string, std::string> places;
    const auto& list = json.is_object() ? json.value("records", Json::array()) : Json::array();
    for (std::size_t i = 0; list.is_array() && i < list.size(); ++i) {
        const auto place = origin + ": /records/" + std::to_string(i);
        if (!list[i].is_object()) {
            faults.push_back({ErrorCode::kInvalidInput, "schema", "a record must be an object", place});
            continue;
        }
        records.push_back(read_record({list[i], place, faults}));
        const auto& id = records.back().id;
        const auto [first, is_new] = places.emplace(id, place);
        if (!is_new && !id.empty()) {
            faults.push_back({ErrorCode::kInvalidInput,
                              "record-twice",
                              "the id '" + id + "' is there twice; first at " + first->second,
                              place + "/id"});
        }
    }
    return faults.empty() ? Result<std::vector<PublishedRecord>>{std::move(records)}
                          : fail(std::move(faults));
}

Result<std::vector<PublishedRecord>> read_published_records(const std::filesystem::path& file) {
    const auto json = read_json(file);
    return json ? published_from_json(*json, file.string())
                : Result<std::vector<PublishedRecord>>{Failure{json.error()}};
}

}  // namespace refit::io
