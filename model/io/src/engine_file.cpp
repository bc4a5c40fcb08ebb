// SPDX-License-Identifier: Apache-2.0
#include "engine_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine_options.hpp"
#include "figures.hpp"
#include "refit/io/scenario_draft.hpp"
#include "refit/suggest.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

EngineConstants constants_from(const Json& json, const std::string& origin, Faults& faults) {
    FigureReader reader{json, origin, faults, "/constants"};
    EngineConstants constants{
        .nic_efficiency = reader.efficiency("nic_efficiency"),
        .nvlink_efficiency = reader.efficiency("nvlink_efficiency"),
        .call_cost = reader.cost("call_cost"),
        .tensor_cost = reader.cost("tensor_cost"),
        .tensor_cost_per_expert = reader.cost("tensor_cost_per_expert"),
        .fixed_cost = reader.cost("fixed_cost"),
        .fixed_cost_per_gpu = reader.cost("fixed_cost_per_gpu"),
        .bulk_parameter_cost = reader.cost("bulk_parameter_cost"),
        .bulk_parameter_cost_floor = reader.cost("bulk_parameter_cost_floor"),
        .finalize_per_expert = reader.cost("finalize_per_expert"),
        .finalize_slow_allgather_factor = reader.has("finalize_slow_allgather_factor")
                                              ? reader.efficiency("finalize_slow_allgather_factor")
                                              : Constant{.value = 1.0,
                                                         .low = 1.0,
                                                         .high = 1.0,
                                                         .unit = "1",
                                                         .source = "",
                                                         .kind = "",
                                                         .identified_by = {}},
        .finalize_per_local_byte = reader.cost("finalize_per_local_byte"),
        .staging_cost_per_byte = reader.cost("staging_cost_per_byte"),
        .staging_tensor_cost = reader.cost("staging_tensor_cost"),
        .load_cost_per_byte = reader.cost("load_cost_per_byte"),
        .nic_sharing = reader.constant("nic_sharing"),
        .ring_nics = reader.constant("ring_nics"),
        .ring_hop_cost = reader.constant("ring_hop_cost"),
        .model_error = reader.constant("model_error")};
    reader.refuse_unknown();
    return constants;
}

class EngineFile {
public:
    EngineFile(const Json& json, const std::string& origin) : json_{json}, origin_{origin} {}

    Result<Engine> run() {
        FigureReader reader{json_, origin_, faults_};
        engine_.name = reader.text("name");
        engine_.title = reader.text("title");
        engine_.version = reader.text("version");
        engine_.constants = constants_from(json_.value("constants", Json::object()), origin_, faults_);
        read_options();
        if (reader.has("settings")) {
            settings_ = settings_in(json_.at("settings"), "/settings");
        }
        engine_.options = with(engine_.options, settings_, "/settings");
        read_paths();
        reader.refuse_unknown({"schema", "schema_version", "constants", "options", "settings", "paths"});
        return faults_.empty() ? Result<Engine>{std::move(engine_)} : fail(std::move(faults_));
    }

private:
    using Settings = std::map<std::string, std::string>;

    void refuse(const std::string& pointer, const char* rule, std::string message) {
        faults_.push_back({ErrorCode::kInvalidInput, rule, std::move(message), origin_ + ": " + pointer});
    }

    void read_options() {
        const auto options = json_.value("options", Json::object());
        FigureReader reader{options, origin_, faults_, "/options"};
        const auto count = [&](const char* key) {
            return static_cast<std::uint32_t>(reader.option(key, 1.0, 64.0));
        };
        engine_.options.streams = count("NRL_REFIT_NUM_STREAMS");
        engine_.options.buffers = count("NRL_REFIT_NUM_BUFFERS");
        engine_.options.buffer_memory_ratio = reader.option("NRL_REFIT_BUFFER_MEMORY_RATIO", 0.0001, 0.5);
        engine_.pack_cap = reader.bytes("pack_cap").value;
        reader.refuse_unknown();
    }

    /// Variants of the engine by name, each a text.
    Settings settings_in(const Json& json, const std::string& pointer) {
        Settings settings;
        if (!json.is_object()) {
            refuse(pointer, "field-type", "'settings' must be an object of texts");
            return settings;
        }
        for (const auto& [name, value] : json.items()) {
            const auto unknown = check_field_name("engine.options." + name);
            if (unknown) {
                refuse(pointer + "/" + name, "unknown-key", unknown->message);
            } else if (!value.is_string()) {
                refuse(pointer + "/" + name, "field-type", "'" + name + "' must be a text");
            } else {
                settings.emplace(name, value.get<std::string>());
            }
        }
        return settings;
    }

    EngineOptions with(EngineOptions options, const Settings& settings, const std::string& pointer) {
        ScenarioDraft draft;
        for (const auto& [name, value] : settings) {
            draft.set(
                "engine.options." + name,
                {value, DraftField::Kind::kText, Precedence::kFile, origin_ + ": " + pointer + "/" + name});
        }
        read_engine_variants(draft, options, faults_);
        return options;
    }

    void read_paths() {
        const auto paths = json_.value("paths", Json::object());
        if (!paths.is_object()) {
            refuse("/paths", "field-type", "'paths' must be an object");
            return;
        }
        for (const auto& [name, json] : paths.items()) {
            const auto pointer = "/paths/" + name;
            FigureReader reader{json, origin_, faults_, pointer};
            EnginePath path;
            path.name = name;
            path.method = reader.text("method");
            static_cast<void>(reader.text("source"));
            if (reader.has("calibrated")) {
                path.is_calibrated = json.at("calibrated") == true;
            }
            if (reader.has("settings")) {
                path.settings = settings_in(json.at("settings"), pointer + "/settings");
            }
            path.options = with(engine_.options, path.settings, pointer + "/settings");
            reader.refuse_unknown({"settings", "calibrated"});
            engine_.paths.push_back(std::move(path));
        }
    }

    const Json& json_;
    const std::string& origin_;
    Engine engine_;
    Settings settings_;
    Faults faults_;
};

}  // namespace

Result<Engine> engine_from_json(const Json& json, const std::string& origin) {
    return EngineFile{json, origin}.run();
}

}  // namespace refit::io
