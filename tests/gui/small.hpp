// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "refit/gui/answer.hpp"
#include "refit/gui/open.hpp"

namespace refit::gui {

[[nodiscard]] inline const io::Library& library() {
    static const auto kLibrary = io::Library::open(REFIT_DATA_DIR).value();
    return kLibrary;
}

[[nodiscard]] inline Question question_of(const std::string& scenario, Method method = Method::kHybrid, Method against = Method::kGatherBroadcast) {
    auto opened = open_any(scenario, {}, library());
    if (!opened) {
        throw std::runtime_error{opened.error().front().message};
    }
    opened->question.method = method;
    opened->question.against = against;
    return opened->question;
}

[[nodiscard]] inline std::shared_ptr<const Answer> answer_of(const Question& question) {
    auto made = answer(question, library());
    if (!made) {
        throw std::runtime_error{made.error().front().message};
    }
    return *made;
}

/// Four trainers with a quarter of a matrix each, four generators that want all of it.
[[nodiscard]] inline const Answer& small_answer() {
    static const auto kAnswer = answer_of(question_of("reshard-one-domain"));
    return *kAnswer;
}

[[nodiscard]] inline const Answer& large_answer() {
    static const auto kAnswer = answer_of(question_of("deepseek-v3-h100"));
    return *kAnswer;
}

}  // namespace refit::gui
