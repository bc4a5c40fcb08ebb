// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "refit/result.hpp"

namespace refit {

/// A layout as it is written: "tp4.pp16:3:2.ep16@256", or "ep8.fsdp8@64". Axes that are not named are absent.
struct LayoutText {
    std::optional<std::uint32_t> tp, cp, pp, dp, ep, etp, gpus, first_stage_layers, last_stage_layers;
    std::vector<std::uint32_t> chunk_layers;  ///< From Megatron's layout string, which stands beside the layout.
    std::optional<std::uint32_t> fsdp = std::nullopt;  ///< Trainers run FSDP, not Megatron.
    bool operator==(const LayoutText&) const = default;
};

/// Errors: kInvalidInput for an unknown axis (the nearest is named), a missing, zero or too large number, an axis
/// named twice, or anything else than AXIS NUMBER joined by dots.
[[nodiscard]] Result<LayoutText> parse_layout(std::string_view text);

/// The trainers' parallel layout: Megatron's, or where `fsdp` is at least 1 that of FSDP.
///
/// Megatron. Rank order: tp, cp, dp, pp, fastest first, where EP is folded into CP and DP: expert ranks run etp, ep,
/// edp, pp. Invariant: tp·cp·dp·pp == etp·ep·edp·pp == gpus; a stage's chunks have its layers.
/// Source: Megatron-Core parallel_state.py, order "tp-cp-ep-dp-pp".
///
/// FSDP. Rank order: ep, fsdp, dp, fastest first. The ep·fsdp ranks of a replica share each tensor; an expert is on the
/// fsdp ranks with its place in ep. Invariant: ep·fsdp·dp == gpus, edp == dp; the other axes are 1.
/// Source: PyTorch fully_shard and its mesh (replicas, shards); VeOmni parallel_state.py for ep.
struct TrainLayout {
    std::uint32_t tp = 1, cp = 1, ep = 1, etp = 1, pp = 1, dp = 1, edp = 1, gpus = 1;
    std::vector<std::uint32_t> stage_layers;  ///< Layers of each pipeline stage, first to last.
    std::uint32_t virtual_stages = 1;         ///< Chunks of layers a stage: chunk c of all lies on stage c mod pp.
    std::vector<std::uint32_t> chunk_layers;  ///< Of each chunk, where a layout string gives them; empty: even ones.
    std::uint32_t fsdp = 0;                   ///< Ranks between which FSDP cuts an expert; 0: Megatron.

    [[nodiscard]] std::uint32_t ranks_per_stage() const noexcept { return gpus / pp; }
    [[nodiscard]] bool is_fsdp() const noexcept { return fsdp > 0; }
    /// Of FSDP: ranks between which a tensor without experts is cut.
    [[nodiscard]] std::uint32_t ranks_per_replica() const noexcept { return ep * fsdp; }
    bool operator==(const TrainLayout&) const = default;
};

/// Which of the experts that are spread over several ranks a rank holds.
enum class ExpertPlacement : std::uint8_t {
    kLinear,      ///< Neighbours, the first ranks one more.
    kRoundRobin,  ///< Every ep-th, in turn.
};

/// vLLM's parallel layout: `dp` engines of tp·pp ranks; tp fastest, then pp, then dp.
/// `ep` 1: experts are cut by tp. Else each rank holds whole experts, spread over `ep` consecutive ranks.
/// Invariant: tp·pp·dp == gpus.
struct GenerateLayout {
    std::uint32_t tp = 1, pp = 1, dp = 1, ep = 1, gpus = 1;
    ExpertPlacement expert_placement = ExpertPlacement::kLinear;
    bool operator==(const GenerateLayout&) const = default;
};

/// Layers of each stage: as asked where first or last are given, else Megatron's even split where `layers` divide,
/// else the most even one, where the first stages have one layer more.
/// Errors: kInfeasible where a stage would have no layer, or what is left does not divide over the stages left.
[[nodiscard]] Result<std::vector<std::uint32_t>> split_layers(std::uint32_t layers, const LayoutText& text);

/// The stage of each layer. Source: Megatron-Core parallel_state.py: virtual stages run over the pipeline in turn.
[[nodiscard]] std::vector<std::uint32_t> stage_of_layers(const TrainLayout& layout);

/// "61 layers as 3 + 14x4 + 2".
[[nodiscard]] std::string describe_split(const std::vector<std::uint32_t>& stage_layers);

/// The shortest text that parses to this layout, without the GPU count: "tp4.pp8.ep16", "fsdp16". Layers that only a layout
/// string can say are not in it.
[[nodiscard]] std::string to_text(const TrainLayout& layout);
[[nodiscard]] std::string to_text(const GenerateLayout& layout);

/// "TP4 x PP8 x EP16", "FSDP8 x DP2", without axes of size one.
[[nodiscard]] std::string describe(const TrainLayout& layout);
[[nodiscard]] std::string describe(const GenerateLayout& layout);

}  // namespace refit
