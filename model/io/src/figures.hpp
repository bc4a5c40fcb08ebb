// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "refit/engine.hpp"
#include "refit/quantity.hpp"
#include "refit/result.hpp"
#include "refit/system.hpp"

namespace refit::io {

/// Reads the figures of one data file, {"value": 400, "unit": "Gbit/s", "low": …, "high": …, "source": "…"}, and
/// collects all faults with file and field.
class FigureReader {
public:
    /// `pointer` leads to the object within the file: "/constants", or nothing for the whole.
    FigureReader(const nlohmann::json& object, std::string origin, Faults& faults, std::string pointer = {})
        : object_{object}, origin_{std::move(origin)}, pointer_{std::move(pointer)}, faults_{faults} {}

    [[nodiscard]] Figure<Bandwidth> bandwidth(const char* key) {
        return figure<Bandwidth>(key, parse_bandwidth, Bandwidth::bytes_per_second(1.0));
    }
    [[nodiscard]] Figure<Bytes> bytes(const char* key) { return figure<Bytes>(key, parse_bytes, Bytes{1U}); }
    /// A constant in its base unit.
    [[nodiscard]] Constant constant(const char* key);
    /// The same; without one, no cost.
    [[nodiscard]] Constant cost(const char* key) { return ask(key) ? constant(key) : Constant{}; }
    /// A constant above 0 and at most 1: the part of a rate that is reached.
    [[nodiscard]] Constant efficiency(const char* key);
    /// The value of an entry without a range of its own.
    [[nodiscard]] double option(const char* key, double least, double most);
    [[nodiscard]] std::string text(const char* key);
    /// A whole number in [1, 2^20].
    [[nodiscard]] std::uint32_t count(const char* key);
    [[nodiscard]] bool has(const char* key) const { return object_.is_object() && object_.contains(key); }
    /// Refuses every member that nothing has asked for and that is not among `others`; those that begin with "_" are
    /// remarks.
    void refuse_unknown(std::vector<std::string> others = {});

    void refuse(const char* key, const char* rule, const std::string& message) {
        faults_.push_back({ErrorCode::kInvalidInput, rule, message, origin_ + ": " + pointer_ + "/" + key});
    }

private:
    template <class T, class Parse>
    Figure<T> figure(const char* key, Parse parse, T fallback);
    /// The member `key` as an object, or nothing and a fault.
    const nlohmann::json* entry(const char* key);
    /// Remembers that the member is known. Returns whether it is there.
    bool ask(const char* key);
    /// The members "prior" and "bounds" of a constant, where it has them, times `factor`.
    void read_prior(const nlohmann::json& entry, const char* key, double factor, Constant& result);
    std::optional<double> number(const nlohmann::json& entry, const char* key, const char* part);
    std::optional<std::string> unit(const nlohmann::json& entry, const char* key);

    const nlohmann::json& object_;
    std::string origin_;
    std::string pointer_;
    Faults& faults_;
    std::vector<std::string> asked_;
};

}  // namespace refit::io
