// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "draft_reader.hpp"
#include "refit/held_weights.hpp"
#include "refit/inventory.hpp"
#include "refit/layout.hpp"

namespace refit::io {

/// Adds to the trainers' layout what other fields say of its pipeline: the layout string; or the layers of
/// the ends and the tables that count as layers.
void add_pipeline(DraftReader& reader, LayoutText& layout, const Inventory& model);

/// The virtual stages of a layout that is sound otherwise.
void add_virtual_stages(DraftReader& reader, TrainLayout& layout);

/// Where flags give the ends of the pipeline, another layout would meet the same ends: one that works is
/// offered.
void suggest_ends(const DraftReader& reader,
                  Faults& faults,
                  const LayoutText& layout,
                  std::uint32_t gpus,
                  const Inventory& model,
                  const std::optional<GpuMemory>& memory);

/// The layout string, unless a layout that was set later replaces it.
[[nodiscard]] std::string pipeline_string(const ScenarioDraft& draft);

}  // namespace refit::io
