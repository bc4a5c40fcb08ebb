// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "refit/validate.hpp"

namespace refit {

/// The middle value, or the mean of the two in the middle. Pre: not empty.
[[nodiscard]] double median(std::vector<double> values);

/// What predictions from the size of the weights alone give on the modelled reshard rows: the anchors of a
/// calculator, interpolated over the logarithm of the size, on rows within 5 % of its sizes; and the line t =
/// a + bytes/b that fits the rows themselves best, each refit once, in squared logarithms. Nothing for what
/// cannot be had. Source: both as in NeMo RL's refit_bandwidth_calculator and the study of November 2026
/// (docs/fidelity.md).
[[nodiscard]] std::vector<Baseline> size_baselines(std::span<const ValidationRow> rows,
                                                   std::span<const PublishedRecord> anchors);

}  // namespace refit
