// SPDX-License-Identifier: Apache-2.0
#include "refit/packs.hpp"

#include <algorithm>
#include <compare>
#include <iterator>
#include <utility>

namespace refit {
namespace {

/// Where the export comes to a run.
struct Position {
    std::uint32_t part = 0;  ///< 0 before the layers, 1 in them, 2 after.
    std::uint32_t layer = 0;
    std::uint32_t parameter = 0;
    auto operator<=>(const Position&) const = default;
};

std::vector<std::pair<Position, ExportRun>> runs_of(const WorkloadClass& entry, std::uint32_t index) {
    const auto& parameter = entry.parameter;
    std::vector<std::pair<Position, ExportRun>> runs;
    for (std::uint32_t slice = 0; slice < entry.slices.size(); ++slice) {
        for (std::uint32_t i = 0; i < entry.slices[slice].layers && !entry.slices[slice].is_copy; ++i) {
            const auto layer = entry.logical_number(slice, i);
            const bool is_outside = parameter.layers.empty();
            const auto part = !is_outside ? 1U : parameter.on_last_stage ? 2U : 0U;
            const auto number = is_outside || layer >= parameter.layers.size() ? 0 : parameter.layers[layer];
            runs.push_back(
                {{part, number, index},
                 {index, slice, i, parameter.tensors_per_layer(), parameter.tensor_bytes().count()}});
        }
    }
    return runs;
}

}  // namespace

std::vector<ExportRun> export_order(const Workload& workload, std::span<const std::uint32_t> classes) {
    std::vector<std::pair<Position, ExportRun>> placed;
    for (const auto index : classes) {
        const auto runs = runs_of(workload.classes()[index], index);
        placed.insert(placed.end(), runs.begin(), runs.end());
    }
    std::ranges::stable_sort(placed, {}, [](const auto& entry) { return entry.first; });
    std::vector<ExportRun> order;
    std::ranges::transform(placed, std::back_inserter(order), [](const auto& entry) { return entry.second; });
    return order;
}

std::vector<Pack> make_packs(std::span<const ExportRun> runs, std::uint64_t target) {
    std::vector<Pack> packs;
    Pack open;
    for (std::uint32_t run = 0; run < runs.size(); ++run) {
        const auto& [parameter, slice, tensor, tensors, bytes] = runs[run];
        for (std::uint64_t first = 0; first < tensors;) {
            const auto to_exceed = bytes == 0 ? tensors : (target - open.bytes) / bytes + 1;
            const auto taken = std::min(tensors - first, to_exceed);
            open.pieces.push_back({run, first, taken});
            open.bytes += taken * bytes;
            first += taken;
            if (open.bytes > target) {
                packs.push_back(std::move(open));
                open = {};
            }
        }
    }
    if (!open.pieces.empty()) {
        packs.push_back(std::move(open));
    }
    return packs;
}

std::uint64_t most_in_flight(std::span<const Pack> packs, std::uint32_t buffers) {
    std::uint64_t held = 0;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < packs.size(); ++i) {
        held += packs[i].bytes;
        held -= i >= buffers ? packs[i - buffers].bytes : 0;
        most = std::max(most, held);
    }
    return most;
}

}  // namespace refit
