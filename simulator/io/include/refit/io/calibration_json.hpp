// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

#include "refit/calibrate.hpp"
#include "refit/engine.hpp"
#include "refit/link_constants.hpp"

namespace refit::io {

/// What data/schema/fit.json describes. `calibration` or `links` may be null: nothing was fitted, or no log
/// was read.
[[nodiscard]] nlohmann::json to_json(const Engine& engine,
                                     const EngineConstants& constants,
                                     const Calibration* calibration,
                                     const LinkConstants* links);

}  // namespace refit::io
