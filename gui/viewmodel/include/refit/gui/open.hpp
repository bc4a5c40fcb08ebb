// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "refit/gui/answer.hpp"

namespace refit::gui {

/// What a file or name turned out to be.
struct Opened {
    Question question;
    std::map<Method, Measured> measured;
    std::string what;  ///< "scenario", "recipe", "plan", "report", "measurement", "model".
};

/// A scenario's name or file, a NeMo RL recipe, a plan, a report (predicted or measured), or a Hugging Face folder or
/// config.json, which replaces the model of `current`. Whether a plan delivers the weights, `answer` proves. Errors: those
/// of the readers, with file and place.
[[nodiscard]] Result<Opened> open_any(const std::string& target, const Question& current, const io::Library& library);

/// The fields that a window offers to change: scenario field, what it is called, and an example.
struct EditField {
    std::string field;
    std::string title;
    std::string example;
};
[[nodiscard]] const std::vector<EditField>& edit_fields();

/// What the field says in this answer, also where the draft leaves it open.
[[nodiscard]] std::string value_of(const Answer& answer, const std::string& field);

/// Sets a field as a flag would; an empty value takes it back to what the file says, or out.
void set_field(io::ScenarioDraft& draft, const std::string& field, const std::string& value);

/// Sets "FIELD=VALUE". Errors: kInvalidInput for an unknown field (the nearest is named), or no "=".
[[nodiscard]] Result<bool> apply_setting(io::ScenarioDraft& draft, const std::string& setting);

/// The draft as a scenario file, by schema refit.scenario 1.0.
[[nodiscard]] std::string scenario_text(const io::ScenarioDraft& draft);

/// The plan of A as a plan file's JSON, with the scenario and its changes; pre: there is one.
[[nodiscard]] std::string plan_text(const Answer& answer);

/// A fault for people: the message, its place, and what to try.
[[nodiscard]] std::vector<std::string> lines_of(const Faults& faults);

}  // namespace refit::gui
