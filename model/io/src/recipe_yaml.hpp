// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <yaml-cpp/yaml.h>

#include "refit/result.hpp"

namespace refit::io {

/// Parses one YAML document of bounded size: at most 64 levels, 20000 values with every alias unfolded. Merge
/// keys
/// (`<<`) are merged in, as YAML 1.1 readers do.
/// Errors: kInvalidInput with the place `file:line:column`.
[[nodiscard]] Result<YAML::Node> parse_yaml(const std::string& text, const std::string& file);

/// "file:3:7"; lines and columns count from one.
[[nodiscard]] std::string place_in(const std::string& file, const YAML::Mark& mark);

}  // namespace refit::io
