// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "refit/parameter.hpp"
#include "refit/result.hpp"

namespace refit {

/// Which parameters go by the bulk path of a hybrid refit.
enum class Coverage : std::uint8_t {
    kNemoRlNames,  ///< NeMo RL's own rule, by the end of the Hugging Face name.
    kFfn,          ///< The same parameters by meaning: gate, up and down of dense MLPs and routed experts.
    kAll,
};

/// "nemo-rl-names", "ffn", "all".
[[nodiscard]] std::string_view name_of(Coverage coverage) noexcept;

/// Errors: kInvalidInput naming the nearest.
[[nodiscard]] Result<Coverage> parse_coverage(std::string_view text);

/// Whether the parameter goes by the bulk path. MTP parameters never do.
/// Source: NeMo RL nemo_rl/weight_sync/nccl_reshard_utils.py, is_nccl_reshard_param, at 7ea279ab.
[[nodiscard]] bool is_bulk(const ParameterClass& parameter, Coverage coverage);

}  // namespace refit
