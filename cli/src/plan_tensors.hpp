// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.hpp"
#include "refit/io/library.hpp"

namespace refit::cli {

/// Plans the file that --tensors names by the method asked for, m2n unless told otherwise. Returns the exit code: that
/// of what cannot run only where nothing in the file can.
[[nodiscard]] int plan_tensors(const Options& options, const io::Library& library);

}  // namespace refit::cli
