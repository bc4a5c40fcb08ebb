// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "refit/timed_refit.hpp"
#include "refit/validate.hpp"

namespace refit {

/// Sets what the rows are by constants that have not seen them. `timed`: the refits of the rows by
/// configuration; `fitted`: what served to fit, of all engines.
void set_left_out(std::vector<ValidationRow>& rows,
                  const std::map<std::size_t, TimedRefit>& timed,
                  std::span<const TimedRefit> fitted);

}  // namespace refit
