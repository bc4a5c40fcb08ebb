// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "refit/nccl_log.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// Reads what nccl-tests print, or write with -J: any number of tables. In text the columns are found by the
/// names in the header above a table, the units by the line below it; mpirun's prefixes ("[1,0]<stdout>:")
/// and all other lines are passed over. Sizes of no bytes or no time are left out. Errors: kInvalidInput with
/// `origin:line` or the member's path, where a row does not fit its header, a file holds no table, or JSON
/// was cut off; up to a hundred at once.
[[nodiscard]] Result<std::vector<NcclTable>> parse_nccl_tests(std::string_view text,
                                                              const std::string& origin);

/// The same of a file; its name tells the test where its text does not ("all_gather_perf.log"). Errors also:
/// kIo.
[[nodiscard]] Result<std::vector<NcclTable>> read_nccl_tests(const std::filesystem::path& file);

}  // namespace refit::io
