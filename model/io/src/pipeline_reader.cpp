// SPDX-License-Identifier: Apache-2.0
#include "pipeline_reader.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "refit/layout_check.hpp"
#include "refit/pipeline_layout.hpp"

namespace refit::io {
namespace {

using EndOf = std::optional<std::uint32_t> LayoutText::*;

/// The field of a layer count at one end of the pipeline.
struct End {
    std::string name;
    EndOf target;
};

const std::array<End, 2>& ends() {
    static const std::array<End, 2> both_ends{End{"train.pipeline.first", &LayoutText::first_stage_layers},
                                          End{"train.pipeline.last", &LayoutText::last_stage_layers}};
    return both_ends;
}

/// A number of layers for an end of the pipeline that `fits`, the nearest to an even share.
template <class Fits>
std::optional<std::uint32_t> nearest_end(const LayoutText& layout,
                                         EndOf end,
                                         std::uint32_t layers,
                                         const Fits& fits) {
    const auto even = layers / layout.pp.value_or(1);
    std::optional<std::uint32_t> nearest;
    for (std::uint32_t count = 1; count <= layers; ++count) {
        auto candidate = layout;
        candidate.*end = count;
        const auto distance = [&](std::uint32_t value) { return value > even ? value - even : even - value; };
        if ((!nearest || distance(count) < distance(*nearest)) && split_layers(layers, candidate) &&
            fits(candidate)) {
            nearest = count;
        }
    }
    return nearest;
}

/// First and last stage from their own fields, unless the layout has them. Where a later word made them
/// impossible, they are left out; the split is always printed.
void add_ends(DraftReader& reader, LayoutText& layout, std::uint32_t layers) {
    const auto* layout_field = reader.draft().find("train.layout");
    const auto original = layout;
    std::vector<End> older;
    std::vector<End> unreadable;
    for (const auto& end : ends()) {
        const auto* field = reader.draft().find(end.name);
        if (field == nullptr || (original.*(end.target)).has_value()) {
            continue;
        }
        const auto is_later = [&](const DraftField* other) {
            return other != nullptr && other->precedence > field->precedence;
        };
        if (is_later(layout_field) || is_later(reader.draft().find("train.engine")) || is_later(reader.draft().find("train.pipeline.layout"))) {
            older.push_back(end);
        }
        layout.*(end.target) = whole_number_in(field->text, layers);
        if (!(layout.*(end.target))) {
            unreadable.push_back(end);
        }
    }
    for (const auto& end : unreadable) {
        const auto nearest =
            nearest_end(layout, end.target, layers, [](const LayoutText&) { return true; }).value_or(1);
        reader.refuse_number(end.name, reader.text_of(end.name, ""), layers, nearest);
        layout.*(end.target) = nearest;
    }
    if (split_layers(layers, layout)) {
        return;
    }
    for (const auto& end : older) {
        (layout.*(end.target)).reset();
    }
}

/// Megatron counts the embedding or the loss that it accounts for as a layer of the first or last stage.
void account_for_tables(DraftReader& reader, LayoutText& layout, std::uint32_t layers) {
    const std::array counted{"train.account_for_embedding", "train.account_for_loss"};
    const std::array table_ends{&LayoutText::first_stage_layers, &LayoutText::last_stage_layers};
    const auto is_counted = [&](const char* name) { return reader.text_of(name, "false") == "true"; };
    const auto all = layers + static_cast<std::uint32_t>(std::ranges::count_if(counted, is_counted));
    const auto stages = layout.pp.value_or(1);
    if (all == layers || stages == 1) {
        return;
    }
    const bool is_even =
        !layout.first_stage_layers && !layout.last_stage_layers && all % stages == 0 && all / stages > 1;
    for (std::size_t i = 0; i < counted.size(); ++i) {
        if (!is_counted(counted[i])) {
            continue;
        }
        if (is_even) {
            layout.*table_ends[i] = all / stages - 1;
            continue;
        }
        reader.refuse(ErrorCode::kInfeasible,
                      "pipeline-split",
                      std::string{counted[i]} + ": Megatron then wants " + std::to_string(all) +
                          " layers and tables to divide into " + std::to_string(stages) +
                          " stages of two or more, and no number of layers set for an end",
                      counted[i],
                      Suggestion{counted[i], "false", ""});
    }
}

/// Megatron takes a layout string alone: other words on the pipeline beside it are refused, unless it was set
/// later. Whether layers of the ends are among them, in which case the string is the one to go.
bool has_ends_beside(DraftReader& reader, const LayoutText& layout) {
    bool is_found = false;
    const auto is_current = [&](const char* name) {
        const auto* field = reader.draft().find(name);
        return field != nullptr &&
               field->precedence >= reader.draft().find("train.pipeline.layout")->precedence;
    };
    const auto refuse = [&](const std::string& name, Suggestion nearest) {
        reader.refuse(
            ErrorCode::kInfeasible,
            "layout-string",
            name + ": Megatron takes no such setting beside a layout string (train.pipeline.layout)",
            name,
            std::move(nearest));
    };
    for (const auto& end : ends()) {
        const bool has_field = is_current(end.name.c_str());
        if (has_field || (layout.*(end.target)).has_value()) {
            refuse(has_field ? end.name : "train.layout",
                   {"train.pipeline.layout", "", "without the layout string"});
            is_found = true;
        }
    }
    for (const auto* name : {"train.account_for_embedding", "train.account_for_loss"}) {
        if (!is_found && is_current(name) && reader.text_of(name, "false") == "true") {
            refuse(name, {name, "false", ""});
        }
    }
    return is_found;
}

/// The chunks of the layout string; where it is refused, those of the string that is offered.
std::vector<std::uint32_t> read_chunks(DraftReader& reader,
                                       const std::string& text,
                                       std::uint32_t stages,
                                       std::uint32_t layers) {
    auto chunks = read_pipeline_layout(text, stages, layers);
    if (chunks) {
        return std::move(*chunks);
    }
    const auto nearest = chunks.error().front().nearest.value();
    static_cast<void>(reader.take(std::move(chunks), "train.pipeline.layout"));
    return read_pipeline_layout(nearest.value, stages, layers).value_or(std::vector<std::uint32_t>{});
}

}  // namespace

std::string pipeline_string(const ScenarioDraft& draft) {
    const auto* text = draft.find("train.pipeline.layout");
    const auto* layout = draft.find("train.layout");
    const bool is_replaced = text != nullptr && layout != nullptr && layout->precedence > text->precedence;
    return text == nullptr || is_replaced ? std::string{} : text->text;
}

void add_pipeline(DraftReader& reader, LayoutText& layout, const Inventory& model) {
    const auto text = pipeline_string(reader.draft());
    if (text.empty() || has_ends_beside(reader, layout)) {
        add_ends(reader, layout, model.layers());
        account_for_tables(reader, layout, model.layers());
        return;
    }
    layout.chunk_layers = read_chunks(reader, text, layout.pp.value_or(1), model.layers());
}

void add_virtual_stages(DraftReader& reader, TrainLayout& layout) {
    const std::string name = "train.virtual_pipeline";
    const bool is_written = reader.draft().find(name) != nullptr;
    const auto stages = reader.whole_number(name, reader.text_of(name, "1"), kMostGpus, 1);
    if (!layout.chunk_layers.empty()) {
        if (is_written && stages != layout.virtual_stages) {
            reader.refuse(ErrorCode::kInfeasible,
                          "virtual-pipeline",
                          name + ": the layout string has " + std::to_string(layout.virtual_stages) +
                              (layout.virtual_stages == 1 ? " chunk" : " chunks") +
                              " of layers a stage, not " + std::to_string(stages),
                          name,
                          Suggestion{name, std::to_string(layout.virtual_stages), ""});
        }
        return;
    }
    if (std::ranges::any_of(layout.stage_layers,
                            [&](std::uint32_t layers) { return layers % stages != 0; })) {
        reader.refuse(ErrorCode::kInfeasible,
                      "virtual-pipeline",
                      name + ": the layers of a stage do not divide into " + std::to_string(stages) +
                          " virtual stages (" + describe_split(layout.stage_layers) + ")",
                      name,
                      Suggestion{name, "1", ""});
        return;
    }
    layout.virtual_stages = stages;
}

void suggest_ends(const DraftReader& reader,
                  Faults& faults,
                  const LayoutText& layout,
                  std::uint32_t gpus,
                  const Inventory& model,
                  const std::optional<GpuMemory>& memory) {
    const auto is_split = [](const Fault& fault) { return fault.rule == "pipeline-split"; };
    if (std::ranges::none_of(faults, is_split)) {
        return;
    }
    const auto* written = reader.draft().find("train.layout");
    const auto own = written == nullptr ? LayoutText{} : parse_layout(written->text).value_or(LayoutText{});
    for (const auto& [name, end] : ends()) {
        const auto* field = reader.draft().find(name);
        if (field == nullptr || field->precedence != Precedence::kFlag || (own.*end).has_value()) {
            continue;
        }
        const auto fits = [&](const LayoutText& candidate) {
            return is_possible(candidate, gpus, model, memory);
        };
        const auto nearest = nearest_end(layout, end, model.layers(), fits);
        for (auto& fault : faults) {
            if (nearest && is_split(fault)) {
                fault.nearest = Suggestion{name, std::to_string(*nearest), ""};
            }
        }
        if (nearest) {
            return;
        }
    }
}

}  // namespace refit::io
