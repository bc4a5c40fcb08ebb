// SPDX-License-Identifier: Apache-2.0
#include "refit/fp8_blocks.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace refit {
namespace {

/// Rows that stand together in what trainers or generators store fused: those of one head, of each segment,
/// or all.
std::vector<std::uint64_t> fused_rows(const ParameterClass& parameter) {
    switch (parameter.sharding) {
        case Sharding::kQuery:
        case Sharding::kKey:
        case Sharding::kValue:
            return {parameter.heads.rows_per_key_value_head};
        case Sharding::kColumn:
            if (!parameter.segments.empty()) {
                return parameter.segments;
            }
            return parameter.task == ExportTask::kOwn ? std::vector<std::uint64_t>{}
                                                      : std::vector{parameter.shape.front()};
        default:
            return {};
    }
}

}  // namespace

ParameterClass scales_of(const ParameterClass& projection) {
    auto scales = projection;
    scales.name += "_scale_inv";
    scales.dtype = Dtype::kFp32;
    scales.native = NativeStorage::kPlain;
    scales.is_projection = false;
    scales.is_ffn = false;
    for (auto& extent : scales.shape) {
        extent = fp8_blocks(extent);
    }
    for (auto& rows : scales.segments) {
        rows = fp8_blocks(rows);
    }
    // Layouts are checked with the projection's own units and with whole blocks of it.
    scales.units = 0;
    scales.units_name.clear();
    scales.heads.rows_per_query_head = fp8_blocks(projection.heads.rows_per_query_head);
    scales.heads.rows_per_key_value_head = fp8_blocks(projection.heads.rows_per_key_value_head);
    return scales;
}

std::vector<ParameterClass> kept_in(std::vector<ParameterClass> classes, Dtype dtype) {
    std::vector<ParameterClass> kept;
    kept.reserve(classes.size());
    for (auto& entry : classes) {
        const bool is_quantised = dtype == Dtype::kFp8 && entry.is_projection;
        if (entry.dtype == Dtype::kBf16 && (is_quantised || dtype != Dtype::kFp8)) {
            entry.dtype = dtype;
        }
        kept.push_back(std::move(entry));
        if (is_quantised) {
            kept.push_back(scales_of(kept.back()));
        }
    }
    return kept;
}

std::optional<std::string> why_not_in_fp8_blocks(const Inventory& model) {
    const auto payload = model.payload();
    if (std::ranges::none_of(payload, &ParameterClass::is_projection)) {
        return "which weights of " + model.title() + " such training would quantise is not known";
    }
    for (const auto& entry : payload) {
        if (!entry.is_projection) {
            continue;
        }
        for (const auto rows : fused_rows(entry)) {
            if (rows % kFp8Block != 0) {
                return std::to_string(rows) + " rows of " + entry.name +
                       " are fused with others, and no whole number of FP8 blocks, which are 128 wide";
            }
        }
    }
    return std::nullopt;
}

}  // namespace refit
