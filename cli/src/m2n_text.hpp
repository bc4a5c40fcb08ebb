// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "refit/io/m2n_json.hpp"

namespace refit::cli {

/// The plans for people: a paragraph a record, and sums where there are several; at most 80 columns, plain
/// ASCII.
[[nodiscard]] std::string m2n_text(const std::vector<io::M2nAnswer>& answers);

}  // namespace refit::cli
