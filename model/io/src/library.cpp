// SPDX-License-Identifier: Apache-2.0
#include "refit/io/library.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine_file.hpp"
#include "figures.hpp"
#include "lower_case.hpp"
#include "refit/io/hugging_face.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/published_reader.hpp"
#include "refit/io/recipe.hpp"
#include "refit/io/rules_json.hpp"
#include "refit/io/safetensors.hpp"
#include "refit/shrink.hpp"
#include "refit/suggest.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

bool is_path(const std::string& name) {
    return name.find('/') != std::string::npos || name == "." || name == ".." || name.ends_with(".json") ||
           name.ends_with(".yaml") || name.ends_with(".yml");
}

/// The model, unless the weights that lie in its folder are others.
Result<Inventory> agreeing(Result<Inventory> model, const fs::path& folder) {
    std::error_code error;
    const auto is_weights = [](const fs::directory_entry& entry) { return entry.path().extension() == ".safetensors"; };
    if (!model || std::ranges::none_of(fs::directory_iterator{folder, error}, is_weights)) {
        return model;
    }
    const auto tensors = read_safetensors_folder(folder);
    if (!tensors) {
        return Failure{tensors.error()};
    }
    auto faults = compare_with_inventory(*tensors, *model);
    return faults.empty() ? std::move(model) : fail(std::move(faults));
}

/// "deepseek-ai/DeepSeek-V3", and no file here: what NeMo RL's recipes and Hugging Face's hub call a model.
bool is_hub_name(const std::string& name) {
    std::error_code error;
    return std::ranges::count(name, '/') == 1 && name.front() != '/' && name.front() != '.' && name.back() != '/' &&
           !name.ends_with(".json") && !fs::exists(name, error);
}

Result<Json> read_schema(const fs::path& file, const std::string& schema) {
    auto json = read_json(file);
    if (!json) {
        return json;
    }
    if (!json->is_object() || json->value("schema", Json{}) != schema) {
        return fail(ErrorCode::kInvalidInput, "schema", "\"schema\" must be \"" + schema + "\"", file.string());
    }
    const auto version = json->value("schema_version", Json{});
    if (!version.is_string() || !version.get_ref<const std::string&>().starts_with("1.")) {
        return fail(ErrorCode::kInvalidInput,
                    "schema-version",
                    "\"schema_version\" is " + version.dump() + "; this program reads \"1.0\" and later minor versions",
                    file.string());
    }
    return json;
}

System system_from(const Json& json, const std::string& origin, Faults& faults) {
    FigureReader reader{json, origin, faults};
    System system{reader.text("name"),
                  reader.text("title"),
                  reader.text("gpu"),
                  false,
                  reader.count("gpus_per_node"),
                  reader.count("gpus_per_domain"),
                  reader.count("nics_per_gpu"),
                  reader.bytes("gpu_memory"),
                  reader.bandwidth("nic"),
                  reader.bandwidth("nvlink"),
                  reader.bandwidth("hbm_copy")};
    const auto architecture = reader.text("architecture");
    system.is_blackwell = architecture == "blackwell";
    if (architecture != "blackwell" && architecture != "hopper" && architecture != "ampere" && architecture != "cpu") {
        reader.refuse("architecture", "unknown-architecture", "'architecture' must be ampere, hopper, blackwell or cpu");
    }
    // What refit-exec probe adds for itself.
    reader.refuse_unknown({"schema", "schema_version", "host"});
    return system;
}

/// "qwen3-235b-a22b" of "Qwen3 235B_A22B": letter case, spaces and underscores say nothing.
std::string plain_name(std::string_view name) {
    auto plain = lower_case(std::string{name});
    std::ranges::replace_if(plain, [](char c) { return c == ' ' || c == '_'; }, '-');
    return plain;
}

/// Without endings that name another training of the same tensors: "qwen3-30b-a3b" of "qwen3-30b-a3b-instruct-2507".
std::string untrained_name(std::string name) {
    constexpr std::array<std::string_view, 12> kEndings{
        "-base", "-instruct", "-chat", "-thinking", "-it", "-hf", "-bf16", "-2507", "-0324", "-0528", "-0711", "-0905"};
    for (;;) {
        const auto* const ending =
            std::ranges::find_if(kEndings, [&](std::string_view one) { return name.ends_with(one); });
        if (ending == kEndings.end()) {
            return name;
        }
        name.resize(name.size() - ending->size());
    }
}

/// "qwen3-235b" of "qwen3-235b-a22b": without the active parameters.
std::string total_name(const std::string& name) {
    const auto at = name.rfind("-a");
    const bool is_count = at != std::string::npos && at + 2 < name.size() && std::isdigit(static_cast<unsigned char>(name[at + 2])) != 0;
    return is_count ? name.substr(0, at) : name;
}

/// The names of a model, plain: its id, its title, its hub names with and without the owner, and others that its file lists.
std::vector<std::string> plain_names(const std::string& id, const Json& json) {
    std::vector<std::string> names{id};
    const auto add = [&](const Json& known) {
        const auto text = known.is_string() ? plain_name(known.get<std::string>()) : std::string{};
        if (!text.empty()) {
            names.push_back(text);
            names.push_back(text.substr(text.find('/') + 1));
        }
    };
    if (json.is_object()) {
        add(json.value("_title", Json{}));
        for (const auto* key : {"_huggingface", "_also_called"}) {
            const auto list = json.value(key, Json::array());
            std::ranges::for_each(list, add);
        }
    }
    return names;
}

/// "deepseek-v3/64" in two: a model, and by what its widths are divided.
std::optional<std::pair<std::string, std::uint32_t>> divided_name(const std::string& name) {
    const auto slash = name.rfind('/');
    std::uint32_t divisor = 0;
    const auto* end = name.data() + name.size();
    if (slash == std::string::npos || std::from_chars(name.data() + slash + 1, end, divisor).ptr != end || divisor == 0) {
        return std::nullopt;
    }
    return std::pair{name.substr(0, slash), divisor};
}

}  // namespace

Result<Library> Library::open(fs::path folder) {
    std::error_code error;
    if (!fs::is_directory(folder / "models", error) || !fs::is_directory(folder / "systems", error)) {
        return fail(ErrorCode::kIo,
                    "no-data",
                    "Refit's data folder is not here; set REFIT_DATA to the folder that holds models and systems",
                    folder.string());
    }
    return Library{std::move(folder)};
}

std::vector<std::string> Library::names(const char* kind) const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& file : fs::directory_iterator{folder_ / kind, error}) {
        if (file.path().extension() == ".json") {
            names.push_back(file.path().stem().string());
        }
    }
    std::ranges::sort(names);
    return names;
}

Result<fs::path> Library::locate(const char* kind, const std::string& name, const std::string& field) const {
    if (is_path(name)) {
        return fs::path{name};
    }
    const auto known = names(kind);
    if (std::ranges::binary_search(known, name)) {
        return folder_ / kind / (name + ".json");
    }
    if (known.empty()) {
        return fail(ErrorCode::kIo, "no-data", "Refit's data folder holds no " + std::string{kind}, (folder_ / kind).string());
    }
    const auto nearest = nearest_name(name, known);
    std::string what{kind};
    what.pop_back();
    std::error_code error;
    const auto here = !name.empty() && fs::exists(name, error) ? ". For the one in this folder write ./" + name : "";
    Faults faults{{ErrorCode::kInvalidInput,
                   "unknown-" + what,
                   "unknown " + what + " '" + name + "'; did you mean '" + nearest + "'? Known: " + join_names(known) + here,
                   field}};
    if (!field.empty()) {
        faults.front().nearest = Suggestion{field, nearest, ""};
    }
    return fail(std::move(faults));
}

Result<Inventory> Library::model(const std::string& name) const {
    if (const auto small = divided_name(name); small && std::ranges::binary_search(names("models"), small->first)) {
        const auto facts = read_config(folder_ / "models" / (small->first + ".json"));
        if (!facts) {
            return Failure{facts.error()};
        }
        Faults ignored;
        auto small_facts = shrunk(*facts, small->second);
        small_facts.set("_title", facts->text_or("_title", small->first, ignored) + " / " + std::to_string(small->second));
        return Inventory::make(name, small_facts);
    }
    if (is_hub_name(name)) {
        const auto id = model_of_hub_name(name);
        return id ? model(*id) : Result<Inventory>{Failure{id.error()}};
    }
    auto file = locate("models", name, "model");
    if (!file) {
        return Failure{std::move(file.error())};
    }
    std::error_code error;
    const bool is_folder = fs::is_directory(*file, error);
    const auto folder = *file;
    if (is_folder) {
        *file /= "config.json";
    }
    const auto facts = read_config(*file);
    if (!facts) {
        return Failure{facts.error()};
    }
    // "." and "folder/" have no name of their own.
    const auto whole = fs::absolute(*file, error).lexically_normal();
    auto model =
        Inventory::make(whole.stem() == "config" ? whole.parent_path().filename().string() : whole.stem().string(), *facts);
    return is_folder ? agreeing(std::move(model), folder) : model;
}

Result<System> Library::system(const std::string& name, const std::string& field) const {
    const auto file = locate("systems", name, field);
    if (!file) {
        return Failure{file.error()};
    }
    const auto json = read_schema(*file, "refit.system");
    if (!json) {
        return Failure{json.error()};
    }
    Faults faults;
    auto system = system_from(*json, file->string(), faults);
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    return system;
}

Result<Engine> Library::engine(const std::string& name) const {
    const auto file = locate("engines", name, "engine.name");
    if (!file) {
        return Failure{file.error()};
    }
    const auto json = read_schema(*file, "refit.engine");
    if (!json) {
        return Failure{json.error()};
    }
    return engine_from_json(*json, file->string());
}

Result<RuleSet> Library::rules(const std::string& engine, const std::string& version) const {
    std::vector<std::string> versions;
    for (const auto& name : names("rules")) {
        if (name.starts_with(engine + "@")) {
            versions.push_back(name.substr(engine.size() + 1));
        }
    }
    if (versions.empty()) {
        return RuleSet{.engine = engine, .version = version, .source = "", .rules = {}};
    }
    if (std::ranges::find(versions, version) != versions.end()) {
        return read_rules(folder_ / "rules" / (engine + "@" + version + ".json"));
    }
    Faults faults{{ErrorCode::kInvalidInput,
                   "unknown-rules",
                   "'" + version + "' is none of the versions " + join_names(versions) + " of the rules of " + engine,
                   ""}};
    if (!versions.empty()) {
        faults.front().nearest = Suggestion{"engine.rules", nearest_name(version, versions), ""};
    }
    return fail(std::move(faults));
}

Result<ScenarioDraft> Library::scenario(const std::string& name) const {
    if (name.ends_with(".yaml") || name.ends_with(".yml")) {
        return read_recipe(name, *this);
    }
    const auto file = locate("scenarios", name, "");
    if (!file) {
        return Failure{file.error()};
    }
    const auto json = read_json(*file);
    if (!json) {
        return Failure{json.error()};
    }
    return draft_from_json(*json, is_path(name) ? name : name + ".json");
}

Result<MembershipConstants> Library::membership() const {
    const auto file = folder_ / "membership" / "nccl.json";
    const auto json = read_schema(file, "refit.membership-constants");
    if (!json) {
        return Failure{json.error()};
    }
    Faults faults;
    FigureReader reader{*json, file.string(), faults};
    MembershipConstants constants{reader.constant("shrink"),
                                  reader.constant("shrink_per_gpu"),
                                  reader.constant("grow"),
                                  reader.constant("grow_per_gpu"),
                                  reader.constant("rebuild"),
                                  reader.constant("rebuild_per_gpu"),
                                  reader.constant("setup_after_shrink"),
                                  reader.constant("setup_after_grow"),
                                  reader.constant("setup_after_rebuild"),
                                  reader.count("gpus_least"),
                                  reader.count("gpus_most")};
    reader.refuse_unknown({"schema", "schema_version", "name", "title"});
    return faults.empty() ? Result<MembershipConstants>{std::move(constants)} : fail(std::move(faults));
}

Result<std::vector<PublishedRecord>> Library::published() const {
    return read_published_records(folder_ / "published" / "timings.json");
}

Result<std::string> Library::model_of_hub_name(const std::string& name) const {
    std::vector<std::string> hub_names;
    std::vector<std::string> ids;
    for (const auto& id : models()) {
        const auto json = read_json(folder_ / "models" / (id + ".json"));
        if (!json) {
            return Failure{json.error()};
        }
        const auto known = json->is_object() ? json->value("_huggingface", Json::array()) : Json::array();
        for (const auto& hub_name : known) {
            if (hub_name == name) {
                return id;
            }
            hub_names.push_back(hub_name.is_string() ? hub_name.get<std::string>() : std::string{});
            ids.push_back(id);
        }
    }
    const auto nearest = nearest_name(name, hub_names);
    const auto at = static_cast<std::size_t>(std::ranges::find(hub_names, nearest) - hub_names.begin());
    Faults faults{{ErrorCode::kInvalidInput,
                   "unknown-model",
                   "model '" + name + "' is not one that Refit ships; the nearest is '" + nearest +
                       "'. Give --model a name of `data/models`, or the folder of its config.json",
                   "model"}};
    if (at < ids.size()) {
        faults.front().nearest = Suggestion{"model", ids[at], ""};
    }
    return fail(std::move(faults));
}

Result<std::string> Library::model_of_published_name(const std::string& name) const {
    const auto exact = plain_name(name);
    const auto untrained = untrained_name(exact);
    std::string same_tensors;
    std::string same_total;
    for (const auto& id : models()) {
        const auto json = read_json(folder_ / "models" / (id + ".json"));
        if (!json) {
            return Failure{json.error()};
        }
        for (const auto& known : plain_names(id, *json)) {
            if (known == exact) {
                return id;
            }
            same_tensors = known == untrained ? id : same_tensors;
            same_total = total_name(known) == untrained ? id : same_total;
        }
    }
    if (!same_tensors.empty() || !same_total.empty()) {
        return same_tensors.empty() ? same_total : same_tensors;
    }
    return fail(ErrorCode::kInvalidInput, "unknown-model", "no model of data/models is called '" + name + "'", "model");
}

std::filesystem::path data_folder(const std::filesystem::path& source) {
    if (const char* folder = std::getenv("REFIT_DATA"); folder != nullptr && *folder != '\0') {
        return folder;
    }
    std::error_code error;
    const auto installed = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "share" / "refit";
    return fs::is_directory(installed / "models", error) ? installed : source;
}

}  // namespace refit::io
