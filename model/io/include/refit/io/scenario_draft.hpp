// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "refit/result.hpp"

namespace refit::io {

/// Who set a field; a later one overrides an earlier.
enum class Precedence : std::uint8_t { kDefault, kFile, kEnvironment, kFlag };

/// One field of a scenario as it was written.
struct DraftField {
    enum class Kind : std::uint8_t { kText, kNumber, kFlag };

    std::string text;
    Kind kind = Kind::kText;
    Precedence precedence = Precedence::kDefault;
    std::string origin;  ///< "deepseek-v3-h100.json: /train/layout", "--train", "REFIT_SYSTEM".
    std::optional<std::string> overridden = std::nullopt;  ///< What the scenario file says instead.
    bool operator==(const DraftField&) const = default;
};

/// A scenario before it is checked: its fields by dotted name, each with its origin. Command line, environment,
/// scenario files and recipes all write here, and suggestions are applied here.
class ScenarioDraft {
public:
    /// Sets the field unless one of higher precedence is there.
    void set(const std::string& name, DraftField field);
    /// Applies a suggestion, as a flag would.
    void apply(const Suggestion& suggestion);
    void erase(const std::string& name) { fields_.erase(name); }

    [[nodiscard]] const DraftField* find(std::string_view name) const;
    [[nodiscard]] const std::map<std::string, DraftField, std::less<>>& fields() const noexcept { return fields_; }
    bool operator==(const ScenarioDraft&) const = default;

private:
    std::map<std::string, DraftField, std::less<>> fields_;
};

/// What a scenario may say: dotted name and one line on its meaning, in the order of `--print-config`.
struct FieldInfo {
    std::string_view name;
    std::string_view meaning;
};
[[nodiscard]] std::span<const FieldInfo> scenario_fields() noexcept;

/// Whether this is the field's name; "fabric.nics.RANK" stands for one of every GPU.
[[nodiscard]] bool is_instance(std::string_view name, const FieldInfo& field) noexcept;

/// A fault with the nearest name where there is no such field, else nothing.
[[nodiscard]] std::optional<Fault> check_field_name(const std::string& name);

/// Reads a scenario of schema `refit.scenario`. `origin` names the file.
/// Errors: kInvalidInput, all at once: another schema, a newer major version, unknown keys (the nearest is named),
/// values of a wrong kind.
[[nodiscard]] Result<ScenarioDraft> draft_from_json(const nlohmann::json& json, const std::string& origin);

/// The draft as a scenario file, with the schema of this version: `draft_from_json` reads the same fields and texts from it.
[[nodiscard]] nlohmann::json to_json(const ScenarioDraft& draft);

}  // namespace refit::io
