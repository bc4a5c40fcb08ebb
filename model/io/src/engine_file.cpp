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
#include "refit/constant_table.hpp"
#include "refit/io/scenario_draft.hpp"
#include "refit/suggest.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

EngineConstants constants_from(const Json& json, const std::string& origin, Faults& faults) {
    FigureReader reader{json, origin, faults, "/constants"};
    EngineConstants constants;
    for (const auto& entry : constant_table()) {
        if (entry.is_required || reader.has(entry.name)) {
            constants.*entry.member = entry.is_share ? reader.efficiency(entry.name) : reader.constant(entry.name);
        } else {
            // A cost that the engine does not have is none; of a rate it takes all.
            auto& absent = constants.*entry.member;
            absent = reader.cost(entry.name);
            if (entry.is_share) {
                absent.value = absent.low = absent.high = 1.0;
                absent.unit = entry.unit;
            }
        }
    }
    reader.refuse_unknown();
    return constants;
}

/// The member "correlations": each a pair of constants and a number.
void read_correlations(const Json& json, const std::string& origin, Faults& faults, EngineConstants& constants) {
    const auto list = json.value("correlations", Json::array());
    const auto refuse = [&](std::size_t at, const std::string& message) {
        faults.push_back({ErrorCode::kInvalidInput, "correlation", message, origin + ": /correlations/" + std::to_string(at)});
    };
    for (std::size_t at = 0; at < list.size(); ++at) {
        const auto& entry = list[at];
        const bool is_whole = entry.is_object() && entry.contains("between") && entry["between"].is_array() &&
                              entry["between"].size() == 2 && entry.contains("value") && entry["value"].is_number();
        if (!is_whole) {
            refuse(at, R"(must be {"between": ["call_cost", "tensor_cost"], "value": 0.2})");
            continue;
        }
        std::array<const NamedConstant*, 2> pair{};
        for (std::size_t i = 0; i < 2; ++i) {
            const auto& name = entry["between"][i];
            pair[i] = name.is_string() ? find_constant(name.get<std::string>()) : nullptr;
            if (pair[i] == nullptr) {
                refuse(at, name.dump() + " is no constant");
            }
        }
        const auto value = entry["value"].get<double>();
        if (!(value >= -1.0 && value <= 1.0)) {
            refuse(at, "value " + entry["value"].dump() + " does not lie from -1 to 1");
        } else if (pair[0] != nullptr && pair[1] != nullptr) {
            constants.correlations.push_back({pair[0]->member, pair[1]->member, value});
        }
    }
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
        read_correlations(json_, origin_, faults_, engine_.constants);
        read_options();
        if (reader.has("settings")) {
            engine_.options = with(engine_.options, settings_in(json_.at("settings"), "/settings"), "/settings");
        }
        read_paths();
        reader.refuse_unknown({"schema", "schema_version", "constants", "correlations", "options", "settings", "paths"});
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
    Faults faults_;
};

}  // namespace

Result<Engine> engine_from_json(const Json& json, const std::string& origin) {
    return EngineFile{json, origin}.run();
}

}  // namespace refit::io
