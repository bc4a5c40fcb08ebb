// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "refit/io/library.hpp"

namespace refit::testing_io {

inline io::Library library() {
    return io::Library::open(REFIT_DATA_DIR).value();
}

using Fields = std::vector<std::pair<std::string, std::string>>;

/// Sets fields as a file, the environment or flags would.
inline void set_all(io::ScenarioDraft& draft, const Fields& fields, io::Precedence precedence) {
    for (const auto& [name, text] : fields) {
        draft.set(name, {text, io::DraftField::Kind::kText, precedence, "file.json: /" + name});
    }
}

/// DeepSeek-V3 from 256 to 256 H100s as published, with the given fields changed in the file.
inline io::ScenarioDraft deepseek(const Fields& changes = {}) {
    io::ScenarioDraft draft;
    set_all(draft,
            {{"name", "test"},
             {"model", "deepseek-v3"},
             {"dtype", "bf16"},
             {"train.gpus", "256"},
             {"train.layout", "pp16.ep16"},
             {"train.pipeline.first", "3"},
             {"train.pipeline.last", "2"},
             {"generate.gpus", "256"},
             {"generate.layout", "tp32.dp8"},
             {"system", "h100-nvl8"}},
            io::Precedence::kFile);
    set_all(draft, changes, io::Precedence::kFile);
    return draft;
}

inline Faults faults_of(const io::ScenarioDraft& draft) {
    const auto scenario = io::resolve(draft, library());
    return scenario ? Faults{} : scenario.error();
}

inline std::string described(const Faults& faults) {
    std::string text;
    for (const auto& fault : faults) {
        text += fault.rule + " at " + fault.where + ": " + fault.message +
                (fault.nearest ? " -> " + fault.nearest->field + " = " + fault.nearest->value : "") + "\n";
    }
    return text;
}

inline bool mentions(const Faults& faults, const std::string& text) {
    return std::ranges::any_of(
        faults, [&](const auto& fault) { return fault.message.find(text) != std::string::npos; });
}

inline std::size_t count_rule(const Faults& faults, const std::string& rule) {
    return static_cast<std::size_t>(
        std::ranges::count_if(faults, [&](const auto& fault) { return fault.rule == rule; }));
}

}  // namespace refit::testing_io
