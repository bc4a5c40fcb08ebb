// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "refit/exec/tensor_source.hpp"
#include "refit/result.hpp"
#include "refit/workload.hpp"

namespace refit::exec {

/// The tensors of a Hugging Face folder of safetensors, by the names of a workload's classes; a stacked
/// expert is a tensor of its own. Files are mapped, not read. Errors: kIo, kInvalidInput: those of the headers; tensors that are missing, or of
/// another shape or element width, all at once.
[[nodiscard]] Result<std::unique_ptr<TensorSource>> open_checkpoint(const std::string& folder,
                                                                    const Workload& workload);

}  // namespace refit::exec
