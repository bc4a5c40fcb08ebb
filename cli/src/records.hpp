// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "refit/io/library.hpp"
#include "refit/published.hpp"
#include "refit/validate.hpp"

namespace refit::cli {

/// The faults' messages, one after the other.
[[nodiscard]] std::string joined(const Faults& faults);

/// Each record with its scenario. The shipped records lend what a record does not say, and know which served
/// to fit.
[[nodiscard]] std::vector<ValidationCase> cases_of(const std::vector<PublishedRecord>& records,
                                                   const std::vector<PublishedRecord>& shipped,
                                                   const io::Library& library);

}  // namespace refit::cli
