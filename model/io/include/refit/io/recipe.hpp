// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "refit/io/library.hpp"
#include "refit/io/scenario_draft.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// Reads a NeMo RL recipe as a scenario: model, both layouts, the GPU split, the settings that support rules
/// look at and the refit's environment variables. `defaults:` files are read relative to the recipe, and
/// whole-value references
/// `${a.b}` are followed. A recipe does not name the machines: `system` is left to the caller.
/// A colocated recipe has all its GPUs on both sides and `generate.colocated`; resolving it tells how to
/// split them. Errors: kInvalidInput for YAML faults with line and column, and values of a wrong kind;
/// kUnsupported for other references, and for recipes that only train; all at once. Source of the keys and of
/// the GPU split: NeMo RL examples/configs and nemo_rl/algorithms/grpo.py at 7ea279ab.
[[nodiscard]] Result<ScenarioDraft> read_recipe(const std::filesystem::path& file, const Library& library);

/// The same from memory; `origin` stands for the file in messages. Errors: also kUnsupported for `defaults:`.
[[nodiscard]] Result<ScenarioDraft> read_recipe_text(std::string_view text,
                                                     const std::string& origin,
                                                     const Library& library);

}  // namespace refit::io
