// SPDX-License-Identifier: Apache-2.0
#include "unmodelled.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "refit/layout_check.hpp"

namespace refit::io {
namespace {

constexpr std::uint32_t kMostGpus = 1U << 20U;
constexpr int kMostTries = 64;

std::string text_of(const ScenarioDraft& draft, std::string_view name, const char* fallback) {
    const auto* field = draft.find(name);
    return field == nullptr ? fallback : field->text;
}

std::optional<std::uint32_t> count_of(const ScenarioDraft& draft, std::string_view name) {
    const auto text = text_of(draft, name, "");
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc{} && end == text.data() + text.size();
    return is_whole && value >= 1 && value <= kMostGpus ? std::optional{value} : std::nullopt;
}

/// A side's layout on whatever number of GPUs: `dp` follows from that.
std::optional<LayoutText> layout_of(const ScenarioDraft& draft, std::string_view name) {
    auto layout = parse_layout(text_of(draft, name, "tp1"));
    if (!layout) {
        return std::nullopt;
    }
    layout->dp.reset();
    layout->gpus.reset();
    if (name == "train.layout" && !layout->first_stage_layers) {
        layout->first_stage_layers = count_of(draft, "train.pipeline.first");
        layout->last_stage_layers = count_of(draft, "train.pipeline.last");
    }
    return *layout;
}

struct Split {
    std::uint32_t train = 0;
    std::uint32_t generate = 0;
};

/// The split next to halves on which both layouts fit the model.
std::optional<Split> split_of(const ScenarioDraft& draft, const Library& library, std::uint32_t total) {
    const auto train = layout_of(draft, "train.layout");
    const auto generate = layout_of(draft, "generate.layout");
    const auto model = library.model(text_of(draft, "model", ""));
    if (!train || !generate || !model) {
        return std::nullopt;
    }
    const auto product = [](const LayoutText& layout) {
        const auto dense = std::uint64_t{layout.tp.value_or(1)} * layout.cp.value_or(1) * layout.pp.value_or(1);
        return layout.fsdp ? std::uint64_t{*layout.fsdp} * layout.ep.value_or(1) : dense;
    };
    int tries = 0;
    const auto fits = [&](std::uint32_t generators) {
        const auto trainers = total - generators;
        if (generators == 0 || trainers == 0 || generators % product(*generate) != 0 ||
            trainers % product(*train) != 0 || ++tries > kMostTries) {
            return false;
        }
        return make_train_layout(*train, trainers, *model).has_value() &&
               make_generate_layout(*generate, generators, *model).has_value();
    };
    for (std::uint32_t distance = 0; distance <= total / 2 && tries <= kMostTries; ++distance) {
        for (const auto generators : {total / 2 - distance, total / 2 + distance}) {
            if (fits(generators)) {
                return Split{total - generators, generators};
            }
        }
    }
    return std::nullopt;
}

class Check {
public:
    Check(const ScenarioDraft& draft, const Library& library) : draft_{draft}, library_{library} {}

    Faults run() {
        if (text_of(draft_, "generate.colocated", "false") == "true") {
            check_colocated();
        }
        return std::move(faults_);
    }

private:
    void refuse(const char* rule, std::string message, const std::string& field, std::string value) {
        const auto* written = draft_.find(field);
        faults_.push_back({ErrorCode::kUnsupported,
                           rule,
                           std::move(message),
                           written == nullptr ? field : written->origin,
                           Suggestion{field, std::move(value), ""}});
    }

    void check_colocated() {
        const std::string what =
            "generate.colocated: trainers and generators share their GPUs, so weights move within a GPU "
            "(IPC), "
            "which is not modelled";
        const auto total = count_of(draft_, "train.gpus");
        const auto split = total ? split_of(draft_, library_, *total) : std::nullopt;
        if (!split) {
            refuse("colocated",
                   what + (total ? ". No split of " + std::to_string(*total) +
                                       " GPUs fits both layouts; apart, each side keeps as many"
                                 : ""),
                   "generate.colocated",
                   "false");
            return;
        }
        refuse("colocated", what, "generate.colocated", "false");
        const auto half =
            "; of " + std::to_string(*total) + " GPUs, split between both sides, it could have ";
        refuse("colocated",
               "train.gpus: training shares its GPUs" + half + std::to_string(split->train),
               "train.gpus",
               std::to_string(split->train));
        refuse("colocated",
               "generate.gpus: generation shares its GPUs" + half + std::to_string(split->generate),
               "generate.gpus",
               std::to_string(split->generate));
    }

    const ScenarioDraft& draft_;
    const Library& library_;
    Faults faults_;
};

}  // namespace

Faults unmodelled_settings(const ScenarioDraft& draft, const Library& library) {
    return Check{draft, library}.run();
}

}  // namespace refit::io
