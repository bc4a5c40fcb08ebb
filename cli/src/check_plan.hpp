// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "options.hpp"
#include "refit/io/plan_file.hpp"

namespace refit::cli {

/// Whether the name is that of a plan file: it ends in .cbor, or is a JSON file whose schema is refit.plan.
[[nodiscard]] bool is_plan_file(const std::string& name);

/// Errors: as io::read_plan; kIo.
[[nodiscard]] Result<io::PlanFile> read_plan_file(const std::string& name);

/// Reads the plan file and proves that it delivers every element once. Returns the exit code.
[[nodiscard]] int run_plan_check(const Options& options);

}  // namespace refit::cli
