// SPDX-License-Identifier: Apache-2.0
#include "rates_file.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "refit/io/json_file.hpp"

namespace refit::exec {
namespace {

using Json = nlohmann::json;

Json figure(double value, const char* unit, double low, double high, const char* source) {
    return {{"value", value},
            {"unit", unit},
            {"low", low},
            {"high", high},
            {"kind", "measured"},
            {"source", source}};
}

constexpr CopyPattern kPatterns[] = {CopyPattern::kGather, CopyPattern::kScatter, CopyPattern::kRepeat};

/// A finite number above 0, else 0.
double positive(const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    const bool is_number = object.is_object() && found != object.end() && found->is_number();
    const auto value = is_number ? found->get<double>() : 0.0;
    return value > 0.0 && value < 1e18 ? value : 0.0;
}

}  // namespace

Json system_json(const HostRates& rates, const Machine& machine) {
    Json copies = Json::array();
    double most = 0.0;
    double least = 1e18;
    for (const auto& rate : rates.copies) {
        copies.push_back({{"pattern", name_of(rate.pattern)},
                          {"threads", rate.threads},
                          {"run_bytes", rate.run},
                          {"footprint_bytes", rate.footprint},
                          {"bytes_per_second", rate.bytes_per_second}});
        // What large refits of long runs reach.
        if (rate.threads == rates.threads && rate.run >= 1024 && rate.footprint >= std::uint64_t{64} << 20U) {
            most = std::max(most, rate.bytes_per_second);
            least = std::min(least, rate.bytes_per_second);
        }
    }
    if (most == 0.0) {
        most = least = rates.copies.front().bytes_per_second;
    }
    const auto rate =
        figure((most + least) / 2e9,
               "GB/s",
               least / 1e9,
               most / 1e9,
               "refit-exec probe: what all threads copy together, runs of 1 KiB and more, beyond the caches");
    const auto gibibytes = machine.memory.as_double() / static_cast<double>(std::uint64_t{1} << 30U);
    return {
        {"schema", "refit.system"},
        {"schema_version", "1.1"},
        {"name", "here"},
        {"title", describe(machine)},
        {"gpu", "none"},
        {"architecture", "cpu"},
        {"gpus_per_node", 64},
        {"gpus_per_domain", 64},
        {"nics_per_gpu", 1},
        {"gpu_memory", figure(gibibytes, "GiB", gibibytes, gibibytes, "/proc/meminfo; all ranks share it")},
        {"nic", rate},
        {"nvlink", rate},
        {"hbm_copy", rate},
        {"host",
         {{"threads", rates.threads},
          {"wave_seconds", rates.wave.value()},
          {"copy_seconds", rates.copy.value()},
          {"yardstick_seconds", rates.yardstick.value()},
          {"copies", copies}}}};
}

Result<HostRates> read_host_rates(const std::string& file) {
    const auto json = io::read_json(file);
    if (!json) {
        return Failure{json.error()};
    }
    const auto host = json->is_object() ? json->value("host", Json{}) : Json{};
    HostRates rates;
    rates.threads = static_cast<std::uint32_t>(std::min(positive(host, "threads"), 1e6));
    rates.wave = Seconds{positive(host, "wave_seconds")};
    rates.copy = Seconds{positive(host, "copy_seconds")};
    rates.yardstick = Seconds{positive(host, "yardstick_seconds")};
    const auto copies = host.is_object() ? host.value("copies", Json::array()) : Json::array();
    for (const auto& entry : copies.is_array() ? copies : Json::array()) {
        const auto name = entry.is_object() ? entry.value("pattern", Json{}) : Json{};
        const auto* pattern =
            std::ranges::find_if(kPatterns, [&](CopyPattern known) { return name == name_of(known); });
        const CopyRate rate{pattern == std::end(kPatterns) ? CopyPattern::kGather : *pattern,
                            static_cast<std::uint32_t>(std::min(positive(entry, "threads"), 1e6)),
                            static_cast<std::uint64_t>(positive(entry, "run_bytes")),
                            static_cast<std::uint64_t>(positive(entry, "footprint_bytes")),
                            positive(entry, "bytes_per_second")};
        if (pattern == std::end(kPatterns) || rate.threads == 0 || rate.run == 0 || rate.footprint == 0 ||
            rate.bytes_per_second == 0.0) {
            return fail(ErrorCode::kInvalidInput,
                        "host-rates",
                        "an entry of \"copies\" is no rate: " + entry.dump(),
                        file + ": /host/copies");
        }
        rates.copies.push_back(rate);
    }
    if (rates.yardstick == Seconds{}) {
        return fail(ErrorCode::kInvalidInput,
                    "host-rates",
                    "has no \"yardstick_seconds\"; refit-exec probe -O FILE writes it",
                    file + ": /host");
    }
    for (const auto pattern : kPatterns) {
        for (const auto threads : {1U, rates.threads}) {
            const bool is_there = std::ranges::any_of(rates.copies, [&](const CopyRate& rate) {
                return rate.pattern == pattern && rate.threads == threads;
            });
            if (rates.threads == 0 || !is_there) {
                return fail(ErrorCode::kInvalidInput,
                            "host-rates",
                            "has no rates of the transport host; refit-exec probe -O FILE writes them",
                            file + ": /host");
            }
        }
    }
    return rates;
}

}  // namespace refit::exec
