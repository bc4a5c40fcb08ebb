// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/engine.hpp"
#include "refit/io/scenario_draft.hpp"

namespace refit::io {

/// Reads the variants of an engine that a scenario asks for. A word that is none of those known is a fault
/// with the nearest.
void read_engine_variants(const ScenarioDraft& draft, EngineOptions& options, Faults& faults);

}  // namespace refit::io
