// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"
#include "refit/io/plan_file.hpp"
#include "refit/result.hpp"

namespace refit::exec {

/// The plan's scenario, planned again by its method for those who are left without `ranks` ("3,7-9") and
/// without whom the plan leaves out already. Errors, all at once: kInvalidInput where the text names no ranks
/// of the job, where the plan carries no scenario, or one that asks for another refit now; kInfeasible where
/// nobody is left who holds some elements, or no engine to serve, and where the method refuses; offers name
/// --resume-without.
[[nodiscard]] Result<io::PlanFile> planned_without(const io::PlanFile& file, const std::string& ranks);

/// The command that goes on without these ranks: the words of this one, but for faults that were injected.
/// `processes`: for transports that take a process a rank, else 0.
[[nodiscard]] std::string resume_command(const Options& options,
                                         const std::string& ranks,
                                         std::size_t processes);

}  // namespace refit::exec
