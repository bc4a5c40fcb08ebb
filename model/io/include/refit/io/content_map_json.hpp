// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "refit/result.hpp"

namespace refit::io {

/// Answers one record by that record, and a list of them, bare or as `records` of an object, by a list: each with `ranks`
/// filled in (`rank`, `local_shape` and `runs`), or with `refused` and no ranks. Records of PyTorch's DTensor have `logical_shape`,
/// `mesh` and `placements`; those of Megatron and vLLM `framework`, `kind`, `config` and `inputs`.
/// Whatever `ranks` a record already has are replaced.
/// Errors: kInvalidInput where the JSON holds no record; a faulty record is answered by `refused`.
[[nodiscard]] Result<nlohmann::json> answer_content_maps(const nlohmann::json& records);

}  // namespace refit::io
