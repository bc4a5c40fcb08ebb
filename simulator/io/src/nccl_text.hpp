// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "refit/nccl_log.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// The tables of a text of nccl-tests; faults go to `faults`.
[[nodiscard]] std::vector<NcclTable> nccl_tables_of_text(std::string_view text,
                                                         const std::string& origin,
                                                         Faults& faults);

/// The tables of the JSON that nccl-tests write with -J; faults go to `faults`.
[[nodiscard]] std::vector<NcclTable> nccl_tables_of_json(std::string_view text,
                                                         const std::string& origin,
                                                         Faults& faults);

/// "all_gather" of "/opt/nccl-tests/build/all_gather_perf" or "all_gather_perf.2n.log"; empty where it is
/// none.
[[nodiscard]] std::string nccl_test_name(std::string_view text);

}  // namespace refit::io
