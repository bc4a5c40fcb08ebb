// SPDX-License-Identifier: Apache-2.0
#include "refit/layout.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <utility>

#include "refit/suggest.hpp"

namespace refit {
namespace {

constexpr std::uint32_t kLargestAxis = 1U << 20U;

using Member = std::optional<std::uint32_t> LayoutText::*;

constexpr std::array<std::pair<std::string_view, Member>, 7> kAxes{{{"tp", &LayoutText::tp},
                                                                   {"cp", &LayoutText::cp},
                                                                   {"pp", &LayoutText::pp},
                                                                   {"dp", &LayoutText::dp},
                                                                   {"ep", &LayoutText::ep},
                                                                   {"etp", &LayoutText::etp},
                                                                   {"fsdp", &LayoutText::fsdp}}};

Failure malformed(std::string message) {
    return fail(ErrorCode::kInvalidInput, "layout-syntax", std::move(message) + "; write for example tp4.pp8.ep16@128");
}

std::optional<std::uint32_t> number(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    return whole && value >= 1 && value <= kLargestAxis ? std::optional{value} : std::nullopt;
}

/// Reads "16:3:2" into the axis and, for pp, the layers of the first and last stage.
Result<bool> read_numbers(std::string_view name, std::string_view numbers, LayoutText& layout, Member member) {
    std::vector<std::uint32_t> values;
    while (true) {
        const auto colon = numbers.find(':');
        const auto value = number(numbers.substr(0, colon));
        if (!value) {
            return malformed("axis '" + std::string{name} + "' has '" + std::string{numbers.substr(0, colon)} +
                             "', which is not a whole number from 1 to 2^20");
        }
        values.push_back(*value);
        if (colon == std::string_view::npos) {
            break;
        }
        numbers.remove_prefix(colon + 1);
    }
    if (values.size() > (member == &LayoutText::pp ? 3U : 1U)) {
        return malformed("axis '" + std::string{name} + "' has too many numbers");
    }
    layout.*member = values[0];
    layout.first_stage_layers = values.size() > 1 ? std::optional{values[1]} : layout.first_stage_layers;
    layout.last_stage_layers = values.size() > 2 ? std::optional{values[2]} : layout.last_stage_layers;
    return true;
}

Result<bool> read_axis(std::string_view item, LayoutText& layout) {
    const auto digits = std::min(item.find_first_of("0123456789:-+"), item.size());
    const auto name = item.substr(0, digits);
    const auto axis = std::ranges::find(kAxes, name, [](const auto& entry) { return entry.first; });
    if (axis == kAxes.end()) {
        std::vector<std::string> known;
        for (const auto& entry : kAxes) {
            known.emplace_back(entry.first);
        }
        return malformed("'" + std::string{item} + "' names no parallel axis; the nearest is '" +
                         nearest_name(name, known) + "' (known: " + join_names(known) + ")");
    }
    if ((layout.*(axis->second)).has_value()) {
        return malformed("axis '" + std::string{name} + "' appears twice");
    }
    return read_numbers(name, item.substr(digits), layout, axis->second);
}

std::string joined(std::initializer_list<std::pair<std::string_view, std::uint32_t>> axes,
                   std::string_view separator,
                   bool upper) {
    std::string text;
    for (const auto& [name, size] : axes) {
        if (size == 1) {
            continue;
        }
        text += text.empty() ? "" : separator;
        for (const char c : name) {
            text += upper ? static_cast<char>(c - 'a' + 'A') : c;
        }
        text += std::to_string(size);
    }
    return text.empty() ? (upper ? "TP1" : "tp1") : text;
}

/// ":3:2" where the layers of the ends tell those of all stages, and the usual split does not.
std::string ends_of(const TrainLayout& layout) {
    const auto& stages = layout.stage_layers;
    LayoutText plain;
    plain.pp = layout.pp;
    const auto total = std::accumulate(stages.begin(), stages.end(), 0U);
    if (stages.empty() || split_layers(total, plain) == stages) {
        return {};
    }
    plain.first_stage_layers = stages.front();
    plain.last_stage_layers = stages.back();
    const bool is_told = stages.front() > 0 && stages.back() > 0 && split_layers(total, plain) == stages;
    return is_told ? ":" + std::to_string(stages.front()) + ":" + std::to_string(stages.back()) : "";
}

}  // namespace

Result<LayoutText> parse_layout(std::string_view text) {
    LayoutText layout;
    const auto at = text.find('@');
    if (at != std::string_view::npos) {
        layout.gpus = number(text.substr(at + 1));
        if (!layout.gpus) {
            return malformed("'" + std::string{text.substr(at)} + "' is not a GPU count from 1 to 2^20");
        }
        text = text.substr(0, at);
    }
    if (text.empty()) {
        return malformed("the layout is empty");
    }
    while (true) {
        const auto dot = text.find('.');
        const auto axis = read_axis(text.substr(0, dot), layout);
        if (!axis) {
            return Failure{axis.error()};
        }
        if (dot == std::string_view::npos) {
            return layout;
        }
        text.remove_prefix(dot + 1);
    }
}

Result<std::vector<std::uint32_t>> split_layers(std::uint32_t layers, const LayoutText& text) {
    const auto stages = text.pp.value_or(1);
    const auto first = text.first_stage_layers;
    const auto last = text.last_stage_layers;
    if (stages > layers) {
        return fail(ErrorCode::kInfeasible,
                    "pipeline-stages",
                    "pp " + std::to_string(stages) + " leaves stages without a layer: the model has " +
                        std::to_string(layers));
    }
    std::vector<std::uint32_t> split(stages, layers / stages);
    if (!first && !last) {
        for (std::uint32_t i = 0; i < layers % stages; ++i) {
            ++split[i];
        }
        return split;
    }
    if (stages == 1 && first == layers && last == layers) {
        return split;  // A lone stage is both ends.
    }
    const auto fixed_stages = (first ? 1U : 0U) + (last ? 1U : 0U);
    const std::uint64_t fixed = std::uint64_t{first.value_or(0)} + last.value_or(0);
    const auto others = stages > fixed_stages ? stages - fixed_stages : 0;
    const bool fits = stages >= fixed_stages && fixed <= layers && (others == 0) == (fixed == layers) &&
                      (others == 0 || (layers - fixed) % others == 0);
    if (!fits) {
        return fail(ErrorCode::kInfeasible,
                    "pipeline-split",
                    std::to_string(layers) + " layers less " + std::to_string(fixed) + " in the given stages do not divide over the other " +
                        std::to_string(others));
    }
    std::ranges::fill(split, others == 0 ? 0 : static_cast<std::uint32_t>((layers - fixed) / others));
    split.front() = first.value_or(split.front());
    split.back() = last.value_or(split.back());
    return split;
}

std::vector<std::uint32_t> stage_of_layers(const TrainLayout& layout) {
    std::vector<std::uint32_t> stages;
    for (std::uint32_t chunk = 0; chunk < layout.chunk_layers.size(); ++chunk) {
        stages.insert(stages.end(), layout.chunk_layers[chunk], chunk % layout.pp);
    }
    if (!stages.empty()) {
        return stages;
    }
    for (std::uint32_t chunk = 0; chunk < layout.virtual_stages; ++chunk) {
        for (std::uint32_t stage = 0; stage < layout.stage_layers.size(); ++stage) {
            stages.insert(stages.end(), layout.stage_layers[stage] / layout.virtual_stages, stage);
        }
    }
    return stages;
}

std::string describe_split(const std::vector<std::uint32_t>& stage_layers) {
    const auto total = std::accumulate(stage_layers.begin(), stage_layers.end(), 0U);
    std::string text = std::to_string(total) + (total == 1 ? " layer" : " layers");
    std::string parts;
    std::size_t runs = 0;
    for (std::size_t i = 0; i < stage_layers.size(); ++runs) {
        std::size_t end = i;
        while (end < stage_layers.size() && stage_layers[end] == stage_layers[i]) {
            ++end;
        }
        parts += runs == 0 ? "" : " + ";
        parts += end - i == 1 ? "" : std::to_string(end - i) + "x";
        parts += std::to_string(stage_layers[i]);
        i = end;
    }
    return stage_layers.size() == 1 ? text : text + " as " + parts;
}

std::string to_text(const TrainLayout& layout) {
    if (layout.is_fsdp()) {
        return (layout.ep > 1 ? "ep" + std::to_string(layout.ep) + "." : "") + "fsdp" + std::to_string(layout.fsdp);
    }
    auto text = joined({{"tp", layout.tp}, {"cp", layout.cp}}, ".", false);
    text = layout.tp * layout.cp == 1 ? "" : text;
    if (layout.pp > 1) {
        text += (text.empty() ? "pp" : ".pp") + std::to_string(layout.pp) + ends_of(layout);
    }
    const auto rest = joined({{"ep", layout.ep}, {"etp", layout.etp}}, ".", false);
    if (layout.ep * layout.etp > 1) {
        text += (text.empty() ? "" : ".") + rest;
    }
    return text.empty() ? "tp1" : text;
}

std::string to_text(const GenerateLayout& layout) {
    return joined({{"tp", layout.tp}, {"pp", layout.pp}, {"dp", layout.dp}, {"ep", layout.ep}}, ".", false);
}

std::string describe(const TrainLayout& layout) {
    if (layout.is_fsdp()) {
        return (layout.ep > 1 ? "EP" + std::to_string(layout.ep) + " x " : "") + "FSDP" + std::to_string(layout.fsdp) +
               (layout.dp > 1 ? " x DP" + std::to_string(layout.dp) : "");
    }
    return joined({{"tp", layout.tp}, {"cp", layout.cp}, {"pp", layout.pp}, {"ep", layout.ep}, {"etp", layout.etp}}, " x ", true);
}

std::string describe(const GenerateLayout& layout) {
    const auto text = joined({{"tp", layout.tp}, {"pp", layout.pp}, {"ep", layout.ep}, {"dp", layout.dp}}, " x ", true);
    return layout.expert_placement == ExpertPlacement::kRoundRobin ? text + ", experts in turn" : text;
}

}  // namespace refit
