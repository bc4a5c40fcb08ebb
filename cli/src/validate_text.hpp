// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/validate.hpp"

namespace refit::cli {

/// Tables of at most 100 columns: each modelled record, errors by engine, baselines, and what is not modelled
/// by reason.
[[nodiscard]] std::string validation_table(const Validation& validation);
/// The same as Markdown; the headline figures and the errors by engine come first, as README.md shows them.
[[nodiscard]] std::string validation_markdown(const Validation& validation);
/// One line a record, RFC 4180, units in the header.
[[nodiscard]] std::string validation_csv(const Validation& validation);

}  // namespace refit::cli
