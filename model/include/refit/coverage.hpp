// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "refit/parameter.hpp"
#include "refit/result.hpp"

namespace refit {

/// Which parameters go by the bulk path of a hybrid refit.
/// Invariant: only a pattern has a glob, which is not empty.
class Coverage {
public:
    enum Kind : std::uint8_t {
        kNemoRlNames,  ///< NeMo RL's own rule, by the end of the Hugging Face name.
        kFfn,  ///< The same parameters by meaning: gate, up and down of dense MLPs and routed experts.
        kAll,
        kPattern,  ///< Those whose Hugging Face name a glob matches.
    };

    Coverage() = default;
    /// Pre: not kPattern.
    Coverage(Kind kind) : kind_{kind} {}  // NOLINT(google-explicit-constructor): a kind is a whole coverage
    /// `*` matches any run of characters, and alone matches the numbers of layers and experts; `?` matches
    /// any one character of the rest. Pre: not empty.
    [[nodiscard]] static Coverage pattern(std::string glob);

    [[nodiscard]] Kind kind() const noexcept { return kind_; }
    [[nodiscard]] const std::string& glob() const noexcept { return glob_; }
    bool operator==(const Coverage&) const = default;

private:
    Kind kind_ = kNemoRlNames;
    std::string glob_;
};

/// "nemo-rl-names", "ffn", "all", "pattern:GLOB".
[[nodiscard]] std::string name_of(const Coverage& coverage);

/// Errors: kInvalidInput naming the nearest.
[[nodiscard]] Result<Coverage> parse_coverage(std::string_view text);

/// Whether the parameter goes by the bulk path. MTP parameters never do.
/// Source: NeMo RL nemo_rl/weight_sync/nccl_reshard_utils.py, is_nccl_reshard_param, at 7ea279ab.
[[nodiscard]] bool is_bulk(const ParameterClass& parameter, const Coverage& coverage);

}  // namespace refit
