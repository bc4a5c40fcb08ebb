// SPDX-License-Identifier: Apache-2.0
#include "layout_limits.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "refit/fp8_blocks.hpp"
#include "refit/quantity.hpp"
#include "refit/vocabulary.hpp"

namespace refit {
namespace {

std::string text_of(std::uint64_t value) {
    return std::to_string(value);
}

class Checker {
public:
    explicit Checker(const char* side) : side_{side} {}

    void add(const char* axis, std::uint32_t value, const char* rule, std::string message) {
        faults_.push_back(
            {ErrorCode::kInfeasible,
             rule,
             std::string{side_} + "." + axis + " = " + text_of(value) + ": " + std::move(message),
             std::string{side_} + ".layout"});
    }

    /// Every unit that `tp` has to divide; a multiple of the KV heads will do too, which are then replicated
    /// (vLLM) or whose fused rows are cut (Megatron).
    void divide_units(const ModelLimits& model, std::uint32_t tp, std::uint32_t expert_tp) {
        for (const auto& unit : model.units) {
            const auto ways = unit.is_expert ? expert_tp : tp;
            if (unit.count % ways == 0 || (unit.is_key_value && ways % unit.count == 0)) {
                continue;
            }
            const bool is_width = unit.name.ends_with("width") || unit.name == "rows";
            add(unit.is_expert ? "etp" : "tp",
                ways,
                is_width ? "width" : "heads",
                (is_width ? unit.name + " " + text_of(unit.count) + " is"
                          : text_of(unit.count) + " " + unit.name + " are") +
                    " not divisible by " + text_of(ways) + " (" + unit.example + ")");
        }
    }

    /// An FP8 block has one scale, so no rank may hold a part of one: once for each kind of unit. What does not divide
    /// at all is told by its units.
    void keep_blocks_whole(const ModelLimits& model, std::uint32_t tp, std::uint32_t expert_tp) {
        std::set<std::string> told;
        for (const auto& cut : model.cuts) {
            const std::uint64_t ways = cut.is_expert ? expert_tp : tp;
            const auto parts = cut.most_parts > 0 ? std::min(ways, cut.most_parts) : ways;
            const bool is_broken =
                parts > 1 && cut.elements % parts == 0 && cut.elements / parts % kFp8Block != 0;
            if (is_broken && told.insert(cut.name).second) {
                add_block(cut.is_expert && side_ == std::string{"train"} ? "etp" : "tp",
                          static_cast<std::uint32_t>(ways),
                          parts,
                          cut.elements,
                          cut.example);
            }
        }
    }

    void add_block(const char* axis,
                   std::uint32_t ways,
                   std::uint64_t parts,
                   std::uint64_t elements,
                   const std::string& example) {
        add(axis,
            ways,
            "fp8-block",
            text_of(elements) + " / " + text_of(parts) + " = " + text_of(elements / parts) +
                ", but an FP8 block is 128 wide (" + example + ")");
    }

    [[nodiscard]] Faults& faults() noexcept { return faults_; }

private:
    const char* side_;
    Faults faults_;
};

/// The axes that both sides have.
template <class Layout>
void take_axes(const LayoutText& text, std::uint32_t gpus, Layout& layout) {
    layout.gpus = gpus;
    layout.tp = text.tp.value_or(1);
    layout.pp = text.pp.value_or(1);
    layout.ep = text.ep.value_or(1);
}

/// What is left of the GPUs where `ways` of them hold one copy; `factors` says what these are the product of, with that
/// of `axis` among them.
template <class Layout>
void take_dp(const LayoutText& text,
             std::uint64_t ways,
             std::pair<const char*, std::uint32_t> axis,
             const std::string& factors,
             Checker& checker,
             Layout& layout) {
    const auto product = text_of(layout.gpus) + " GPUs / (" + factors + " = " + text_of(ways) + ")";
    if (ways > layout.gpus || layout.gpus % ways != 0) {
        checker.add(axis.first, axis.second, "layout-product", product + " is not whole");
    } else if (layout.dp = static_cast<std::uint32_t>(layout.gpus / ways); text.dp && *text.dp != layout.dp) {
        checker.add("dp", *text.dp, "layout-product", product + " is " + text_of(layout.dp));
    }
}

/// The trainers' fused qkv rows are cut evenly where TP exceeds the KV heads, so the rows must divide.
void check_fused_rows(const ModelLimits& model, std::uint32_t tp, Checker& checker) {
    if (model.fused_rows > 0 && model.key_value_heads % tp != 0 && model.fused_rows % tp != 0) {
        checker.add("tp",
                    tp,
                    "heads",
                    text_of(model.fused_rows) + " fused qkv rows are not divisible by " + text_of(tp));
    }
}

/// Trainers hold whole KV groups, or where TP exceeds these, even parts of the fused rows.
void check_train_blocks(const ModelLimits& model, const TrainLayout& layout, Checker& checker) {
    if (!model.is_in_fp8()) {
        return;
    }
    checker.keep_blocks_whole(model, layout.tp, layout.etp);
    if (model.fused_rows > 0 && model.key_value_heads % layout.tp != 0 && model.fused_rows % layout.tp == 0 &&
        model.fused_rows / layout.tp % kFp8Block != 0) {
        checker.add_block("tp", layout.tp, layout.tp, model.fused_rows, "fused qkv rows");
    }
}

/// Pre: the number of chunks is a multiple of pp.
void take_chunks(const LayoutText& text, TrainLayout& layout) {
    layout.chunk_layers = text.chunk_layers;
    layout.virtual_stages = static_cast<std::uint32_t>(text.chunk_layers.size()) / layout.pp;
    layout.stage_layers.assign(layout.pp, 0);
    for (std::size_t chunk = 0; chunk < text.chunk_layers.size(); ++chunk) {
        layout.stage_layers[chunk % layout.pp] += text.chunk_layers[chunk];
    }
}

void check_pipeline(const LayoutText& text, const ModelLimits& model, Checker& checker, TrainLayout& layout) {
    if (!text.chunk_layers.empty()) {
        take_chunks(text, layout);
        return;
    }
    auto split = split_layers(model.layers, text);
    if (split) {
        layout.stage_layers = std::move(*split);
        return;
    }
    for (auto& fault : split.error()) {
        checker.add("pp", layout.pp, fault.rule.c_str(), std::move(fault.message));
    }
}

void check_train_experts(const ModelLimits& model, const TrainLayout& layout, Checker& checker) {
    if (model.experts == 0 && (layout.ep > 1 || layout.etp > 1)) {
        checker.add("ep", layout.ep, "experts", "the model has no experts to spread");
    } else if (model.experts > 0 && model.experts % layout.ep != 0) {
        checker.add("ep",
                    layout.ep,
                    "experts",
                    text_of(model.experts) + " experts are not divisible by " + text_of(layout.ep));
    }
}

void check_generate_experts(const ModelLimits& model, const GenerateLayout& layout, Checker& checker) {
    if (layout.ep == 1) {
        return;
    }
    if (model.experts == 0) {
        checker.add("ep", layout.ep, "experts", "the model has no experts to spread");
        return;
    }
    if (layout.ep > model.experts) {
        checker.add("ep", layout.ep, "experts", "there are only " + text_of(model.experts) + " experts");
    }
    const std::uint64_t ranks = std::uint64_t{layout.tp} * layout.dp;
    const bool spans_engines = layout.pp == 1 && layout.ep % layout.tp == 0 && ranks % layout.ep == 0;
    if (layout.ep != layout.tp && !spans_engines) {
        checker.add("ep",
                    layout.ep,
                    "generate-ep",
                    "vLLM spreads experts over whole tensor-parallel groups: ep must be 1, tp, or without pp "
                    "a multiple of tp that divides tp x dp = " +
                        text_of(ranks));
    }
}

/// Weights alone must fit: a layout that is wrong otherwise holds nothing that could be counted.
void check_memory(const FullestRank& fullest,
                  const std::string& side,
                  const std::string& layout,
                  const ModelLimits& model,
                  Faults& faults) {
    if (!model.memory || fullest.bytes <= model.memory->bytes) {
        return;
    }
    faults.push_back({ErrorCode::kInfeasible,
                      "gpu-memory",
                      side + ".layout = " + layout + ": " + (side == "train" ? "trainer " : "generator ") +
                          text_of(fullest.rank) + " would hold " + format_bytes(fullest.bytes) +
                          " of weights, and its " + model.memory->gpu + " has " +
                          format_bytes(model.memory->bytes) + " of memory",
                      side + ".layout"});
}

/// FSDP cuts rows wherever they fall, so nothing but the product has to be whole.
std::pair<TrainLayout, Faults> examine_fsdp(const LayoutText& text, std::uint32_t gpus, const ModelLimits& model) {
    Checker checker{"train"};
    TrainLayout layout;
    layout.gpus = gpus;
    layout.fsdp = text.fsdp.value();
    layout.ep = text.ep.value_or(1);
    for (const auto& [axis, value] : {std::pair{"tp", text.tp}, std::pair{"cp", text.cp}, std::pair{"pp", text.pp}, std::pair{"etp", text.etp}}) {
        if (value.value_or(1) != 1) {
            checker.add(axis, *value, "fsdp-axis", "beside fsdp there are only ep and dp");
        }
    }
    take_dp(text,
            std::uint64_t{layout.ep} * layout.fsdp,
            {"fsdp", layout.fsdp},
            (layout.ep > 1 ? "ep " + text_of(layout.ep) + " x " : "") + "fsdp " + text_of(layout.fsdp),
            checker,
            layout);
    layout.edp = layout.dp;
    check_train_experts(model, layout, checker);
    check_pipeline(text, model, checker, layout);
    auto faults = std::move(checker.faults());
    if (faults.empty()) {
        check_memory(fullest_rank(layout, model.payload), "train", to_text(layout), model, faults);
    }
    return {layout, std::move(faults)};
}

}  // namespace

ModelLimits::ModelLimits(const Inventory& model, std::optional<GpuMemory> gpu_memory)
    : layers{model.layers()},
      experts{model.experts()},
      payload{model.payload()},
      memory{std::move(gpu_memory)} {
    for (const auto& entry : payload) {
        add(entry);
        add_cuts(entry);
    }
    payload = kept_in(std::move(payload), memory ? memory->dtype : Dtype::kBf16);
}

void ModelLimits::add_cuts(const ParameterClass& entry) {
    const bool is_cut = entry.part == ModelPart::kText && entry.shape.size() == 2 && !entry.units_name.empty() &&
                        entry.sharding != Sharding::kReplicated && entry.sharding != Sharding::kVocabulary;
    if (!is_cut) {
        return;
    }
    const bool is_key_value = entry.sharding == Sharding::kKey || entry.sharding == Sharding::kValue;
    auto extents = entry.segments;
    if (extents.empty() || entry.sharding == Sharding::kRow) {
        extents = {entry.shape[entry.sharding == Sharding::kRow ? 1 : 0]};
    }
    for (const auto extent : extents) {
        cuts.push_back({entry.units_name,
                        entry.name,
                        extent,
                        is_key_value ? entry.heads.key_value : 0,
                        entry.is_expert()});
    }
}

Faults broken_fp8_blocks(const GenerateLayout& layout, const ModelLimits& model) {
    Checker checker{"generate"};
    checker.keep_blocks_whole(model, layout.tp, layout.ep > 1 ? 1 : layout.tp);
    return std::move(checker.faults());
}

void ModelLimits::add(const ParameterClass& entry) {
    const bool is_key_value = entry.sharding == Sharding::kKey || entry.sharding == Sharding::kValue;
    if (entry.sharding == Sharding::kVocabulary) {
        vocabulary_rows = entry.shape[0];
    }
    if (entry.sharding == Sharding::kQuery) {
        key_value_heads = entry.heads.key_value;
        fused_rows = entry.heads.query * entry.heads.rows_per_query_head +
                     2 * entry.heads.key_value * entry.heads.rows_per_key_value_head;
    }
    const bool is_known = std::ranges::any_of(units, [&](const auto& other) {
        return other.name == entry.units_name && other.count == entry.units;
    });
    if (entry.units > 0 && entry.sharding != Sharding::kReplicated && !is_known) {
        units.push_back({entry.units_name, entry.name, entry.units, is_key_value, entry.is_expert()});
    }
}

std::pair<TrainLayout, Faults> examine_train(const LayoutText& text,
                                             std::uint32_t gpus,
                                             const ModelLimits& model) {
    if (text.fsdp) {
        return examine_fsdp(text, gpus, model);
    }
    Checker checker{"train"};
    TrainLayout layout;
    take_axes(text, gpus, layout);
    layout.cp = text.cp.value_or(1);
    layout.etp = text.etp.value_or(1);
    const std::uint64_t expert = std::uint64_t{layout.etp} * layout.ep * layout.pp;
    take_dp(text,
            std::uint64_t{layout.tp} * layout.cp * layout.pp,
            {"tp", layout.tp},
            "tp " + text_of(layout.tp) + (layout.cp > 1 ? " x cp " + text_of(layout.cp) : "") + " x pp " +
                text_of(layout.pp),
            checker,
            layout);
    if (model.experts > 0 && (expert > gpus || gpus % expert != 0)) {
        checker.add("ep",
                    layout.ep,
                    "layout-product",
                    text_of(gpus) + " GPUs / (" +
                        (layout.etp > 1 ? "etp " + text_of(layout.etp) + " x " : "") + "ep " +
                        text_of(layout.ep) + " x pp " + text_of(layout.pp) + " = " + text_of(expert) +
                        ") is not whole");
    } else {
        layout.edp = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, gpus / expert));
    }
    check_train_experts(model, layout, checker);
    checker.divide_units(model, layout.tp, layout.etp);
    check_fused_rows(model, layout.tp, checker);
    check_train_blocks(model, layout, checker);
    check_pipeline(text, model, checker, layout);
    auto faults = std::move(checker.faults());
    if (faults.empty()) {
        check_memory(fullest_rank(layout, model.payload), "train", to_text(layout), model, faults);
    }
    return {layout, std::move(faults)};
}

std::pair<GenerateLayout, Faults> examine_generate(const LayoutText& text,
                                                   std::uint32_t gpus,
                                                   const ModelLimits& model) {
    Checker checker{"generate"};
    GenerateLayout layout;
    take_axes(text, gpus, layout);
    for (const auto& [axis, value] : {std::pair{"cp", text.cp}, std::pair{"etp", text.etp}, std::pair{"fsdp", text.fsdp}}) {
        if (value.value_or(1) != 1) {
            checker.add(axis, *value, "generate-axis", "generation has no such axis");
        }
    }
    if (text.first_stage_layers) {
        checker.add("pp",
                    layout.pp,
                    "generate-axis",
                    "vLLM splits layers evenly; first and last stage cannot be given");
    }
    take_dp(text,
            std::uint64_t{layout.tp} * layout.pp,
            {"tp", layout.tp},
            "tp " + text_of(layout.tp) + " x pp " + text_of(layout.pp),
            checker,
            layout);
    if (layout.pp > model.layers) {
        checker.add(
            "pp", layout.pp, "pipeline-stages", "the model has only " + text_of(model.layers) + " layers");
    }
    check_generate_experts(model, layout, checker);
    checker.divide_units(model, layout.tp, layout.ep > 1 ? 1 : layout.tp);
    if (padded_rows(model.vocabulary_rows, kGeneratorVocabularyMultiple) % layout.tp != 0) {
        checker.add(
            "tp", layout.tp, "width", "the vocabulary, padded to a multiple of 64, is not divisible by it");
    }
    auto faults = std::move(checker.faults());
    if (model.is_in_fp8()) {
        auto broken = broken_fp8_blocks(layout, model);
        std::ranges::move(broken, std::back_inserter(faults));
    }
    if (faults.empty()) {
        check_memory(
            fullest_rank(layout, model.payload, model.layers), "generate", to_text(layout), model, faults);
    }
    return {layout, std::move(faults)};
}

}  // namespace refit
