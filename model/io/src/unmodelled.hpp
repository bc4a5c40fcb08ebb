// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/io/library.hpp"

namespace refit::io {

/// Settings of a draft under which Refit cannot tell what moves: weights that stay in FP8, and trainers and
/// generators on the same GPUs. For the latter the faults together offer a split of these GPUs on which both
/// layouts fit. Errors come as kUnsupported, each with the value to set.
[[nodiscard]] Faults unmodelled_settings(const ScenarioDraft& draft, const Library& library);

}  // namespace refit::io
