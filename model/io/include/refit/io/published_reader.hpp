// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "refit/published.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// Reads published times (data/schema/published.json). Members that are absent, null or unknown are normal:
/// public reports say what they say. `origin` names the source in messages. Errors: kInvalidInput, all at
/// once, each with its place: another schema, a newer major version, no list of records, an id that is
/// missing or there twice, a member of a wrong kind, times that are not positive or a low end above the high
/// one.
[[nodiscard]] Result<std::vector<PublishedRecord>> published_from_json(const nlohmann::json& json,
                                                                       const std::string& origin);

/// The same from a file. Errors: also those of read_json.
[[nodiscard]] Result<std::vector<PublishedRecord>> read_published_records(const std::filesystem::path& file);

}  // namespace refit::io
