// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "plan_text.hpp"
#include "refit/result.hpp"

namespace refit::cli {

/// In words, what a rank (a number, trainers first) sends and receives and why it is the sender; or for a class of
/// tensors, by its name or a part of it that only one class has, who holds it, who wants it, and how it gets there.
/// Errors: kInvalidInput where there is no such rank or class, naming the nearest.
[[nodiscard]] Result<std::string> explain_plan(const ShownPlan& shown, const std::string& what);

}  // namespace refit::cli
