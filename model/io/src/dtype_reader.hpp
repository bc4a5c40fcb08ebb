// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "draft_reader.hpp"
#include "refit/dtype.hpp"
#include "refit/inventory.hpp"
#include "refit/rules.hpp"

namespace refit::io {

struct SideDtypes {
    Dtype kept;      ///< In what trainers keep the weights.
    Dtype generate;  ///< In what generators want them; another one is a fault that has been told.
};

/// `dtype` of the trainers, or FP8 where `train.fp8_param` says so; `dtype: fp8` alone means blockwise FP8 on
/// both sides. Where the model cannot be kept in FP8, a fault is told and BF16 returned.
[[nodiscard]] SideDtypes read_dtypes(DraftReader& reader,
                                     const std::optional<Inventory>& model,
                                     const std::optional<RuleSet>& rules);

}  // namespace refit::io
