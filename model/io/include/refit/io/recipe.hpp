// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "refit/io/library.hpp"
#include "refit/io/scenario_draft.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// Reads a NeMo RL recipe as a scenario: model, both layouts, the GPU split and the refit's environment variables.
/// `defaults:` files are read relative to the recipe, and whole-value references `${a.b}` are followed. A recipe does
/// not name the machines: `system` is left to the caller.
/// Errors: kInvalidInput for YAML faults with line and column, values of a wrong kind, and models Refit does not ship;
/// kUnsupported for a colocated recipe or for backends other than Megatron and vLLM, all at once.
/// Source of the keys: NeMo RL examples/configs at 7ea279ab.
[[nodiscard]] Result<ScenarioDraft> read_recipe(const std::filesystem::path& file, const Library& library);

}  // namespace refit::io
