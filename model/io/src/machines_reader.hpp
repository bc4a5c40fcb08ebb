// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "draft_reader.hpp"
#include "refit/cluster.hpp"
#include "refit/system.hpp"

namespace refit::io {

/// The systems of trainers and generators, with the rates that the draft sets; nothing where one cannot be
/// read.
[[nodiscard]] std::optional<std::pair<System, System>> read_systems(DraftReader& reader);

/// Which GPUs of these systems' NVLink domains are used.
[[nodiscard]] Placement read_placement(DraftReader& reader, const System& train, const System& generate);

}  // namespace refit::io
