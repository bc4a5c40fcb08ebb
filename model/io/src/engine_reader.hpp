// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "draft_reader.hpp"
#include "refit/dtype.hpp"
#include "refit/engine.hpp"
#include "refit/layout.hpp"
#include "refit/rules.hpp"

namespace refit::io {

/// The engine with the options that the draft sets, after a check that Refit models both sides' software.
[[nodiscard]] Engine read_engine(DraftReader& reader);

/// The engine's support rules of the version that the draft names, or of the nearest; nothing without an
/// engine.
[[nodiscard]] std::optional<RuleSet> read_rules(DraftReader& reader, const Engine& engine);

/// The dtype of the weights. Faults: one that cannot be modelled, or generation in another one; where a rule
/// of the engine forbids the pair, the fault names it.
/// What the support rules look at.
[[nodiscard]] SettingFacts read_facts(DraftReader& reader,
                                      Dtype dtype,
                                      const TrainLayout& train,
                                      const GenerateLayout& generate);

/// A published time belongs to the refit that it was published for: once a later field changes that, there is
/// none.
[[nodiscard]] std::vector<std::string> read_published(DraftReader& reader);

}  // namespace refit::io
