// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "refit/io/library.hpp"
#include "refit/published.hpp"
#include "refit/result.hpp"
#include "refit/scenario.hpp"

namespace refit::io {

/// The refit that a published record timed.
struct PublishedScenario {
    Scenario scenario;
    std::vector<std::string> assumed;  ///< What the record does not say and was assumed, one phrase each.
};

/// Turns a record into a scenario. What was timed is read from `engine`, never from prose. Where the record
/// has no layout but another of `known` for the same model and engine has an assumed one, that is taken; and
/// the layers of the first and last stage, where it gives none, from a record of the same model with as many
/// stages.
///
/// Errors: why it cannot be modelled. An engine that is unknown or has no file is the only fault then;
/// otherwise all at once: part of the weights, no known model, another size of model, a dtype path without a
/// plan, no layout or GPU count, axes that have no place, no system, or what `resolve` refuses.
[[nodiscard]] Result<PublishedScenario> scenario_of(const PublishedRecord& record,
                                                    std::span<const PublishedRecord> known,
                                                    const Library& library);

}  // namespace refit::io
