// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "nccl_text.hpp"
#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

/// A finite number that is not below 0; "nan" and what is missing are none.
std::optional<double> number_in(const Json& object, const char* key) {
    const auto found = object.find(key);
    const bool is_number = found != object.end() && found->is_number();
    const auto value = is_number ? found->get<double>() : -1.0;
    return std::isfinite(value) && value >= 0.0 ? std::optional{value} : std::nullopt;
}

class JsonReader {
public:
    JsonReader(const std::string& origin, Faults& faults) : origin_{origin}, faults_{faults} {}

    NcclTable run(const Json& json) {
        table_.where = origin_;
        const auto args = json.value("args", Json::array());
        if (args.is_array() && !args.empty() && args[0].is_string()) {
            table_.test = nccl_test_name(args[0].get<std::string>());
        }
        devices(json.value("config", Json::object()));
        const auto& results = json.at("results");
        for (std::size_t at = 0; at < results.size(); ++at) {
            result(results[at], "/results/" + std::to_string(at));
        }
        return std::move(table_);
    }

private:
    void devices(const Json& config) {
        const auto list = config.is_object() ? config.value("devices", Json::array()) : Json::array();
        std::set<std::string> hosts;
        for (const auto& device : list) {
            if (device.is_object()) {
                ++table_.ranks;
                const auto host = device.find("hostname");
                hosts.insert(host != device.end() && host->is_string() ? host->get<std::string>()
                                                                       : std::string{});
            }
        }
        table_.hosts = static_cast<std::uint32_t>(hosts.size());
    }

    void result(const Json& entry, const std::string& path) {
        const auto size = entry.is_object() ? number_in(entry, "size") : std::nullopt;
        if (!size) {
            refuse(path, "has no size");
            return;
        }
        for (const auto* half : {"out_of_place", "in_place"}) {
            const auto found = entry.find(half);
            if (found != entry.end() && found->is_object()) {
                sample(*found, *size, path + "/" + half);
            }
        }
    }

    void sample(const Json& half, double size, const std::string& path) {
        const auto time = half.contains("time") ? number_in(half, "time") : number_in(half, "cpu_time");
        const auto bus = number_in(half, "bus_bw");
        if (!time || !bus) {
            refuse(path, "has no time and bus_bw that are numbers");
            return;
        }
        if (size > 0.0 && *time > 0.0 && *bus > 0.0) {
            const auto seconds = *time * 1e-6;
            table_.samples.push_back({*bus * 1e9 * seconds, size, seconds});
        }
        const auto wrong = number_in(half, "nwrong");
        table_.wrong += wrong && *wrong > 0.0 ? 1U : 0U;
    }

    void refuse(const std::string& path, const std::string& message) {
        faults_.push_back({ErrorCode::kInvalidInput, "nccl-tests", message, origin_ + ": " + path});
    }

    const std::string& origin_;
    Faults& faults_;
    NcclTable table_;
};

}  // namespace

std::vector<NcclTable> nccl_tables_of_json(std::string_view text, const std::string& origin, Faults& faults) {
    const auto json = parse_json(text, origin);
    if (!json) {
        faults.insert(faults.end(), json.error().begin(), json.error().end());
        return {};
    }
    const auto results = json->is_object() ? json->find("results") : json->end();
    if (!json->is_object() || results == json->end() || !results->is_array()) {
        faults.push_back({ErrorCode::kInvalidInput,
                          "nccl-tests",
                          "has no list \"results\", as nccl-tests write with -J",
                          origin});
        return {};
    }
    return {JsonReader{origin, faults}.run(*json)};
}

}  // namespace refit::io
