// SPDX-License-Identifier: Apache-2.0
#include "dtype_reader.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "refit/fp8_blocks.hpp"
#include "refit/layout.hpp"
#include "refit/suggest.hpp"

namespace refit::io {
namespace {

constexpr const char* kBlockwise = "blockwise";

/// A dtype, or `nearest` and a fault that offers it.
Dtype dtype_in(DraftReader& reader,
               std::string_view name,
               const std::string& text,
               std::string_view nearest) {
    auto dtype = parse_dtype(text);
    if (dtype) {
        return *dtype;
    }
    dtype.error().front().nearest = Suggestion{std::string{name}, std::string{nearest}, ""};
    static_cast<void>(reader.take(std::move(dtype), name));
    return parse_dtype(nearest).value();
}

/// The dtype that is written, and the one in which trainers keep their weights.
struct TrainDtype {
    Dtype written;
    Dtype kept;
};
TrainDtype read_train(DraftReader& reader) {
    static const std::vector<std::string> plain{"bf16", "fp16", "fp32"};  // FP8 is never guessed at
    const auto text = reader.text_of("dtype", "bf16");
    const auto written = dtype_in(reader, "dtype", text, nearest_name(text, plain));
    const bool is_all_said = written == Dtype::kFp8;
    const auto is_kept = reader.text_of("train.fp8_param", is_all_said ? "true" : "false") == "true";
    if (!is_all_said && !is_kept) {
        return {written, written};
    }
    if (!is_kept) {
        reader.refuse(ErrorCode::kInvalidInput,
                      "train-dtype",
                      "train.fp8_param: dtype is fp8, so the weights are kept in fp8",
                      "train.fp8_param",
                      Suggestion{"train.fp8_param", "true", ""});
    }
    if (!is_all_said && written != Dtype::kBf16) {
        reader.refuse(ErrorCode::kUnsupported,
                      "train-dtype",
                      "dtype = " + std::string{name_of(written)} +
                          ": beside weights in fp8, the others can be modelled in bf16 only",
                      "dtype",
                      Suggestion{"dtype", "bf16", ""});
    }
    const auto recipe = reader.text_of("train.fp8_recipe", is_all_said ? kBlockwise : "");
    if (recipe != kBlockwise) {
        reader.refuse(ErrorCode::kUnsupported,
                      "fp8-recipe",
                      "train.fp8_recipe" + (recipe.empty() ? " is missing" : " = " + recipe) +
                          ": weights kept in fp8 can be modelled blockwise only",
                      "train.fp8_recipe",
                      Suggestion{"train.fp8_recipe", kBlockwise, ""});
    }
    return {written, Dtype::kFp8};
}

/// Both sides must have one dtype: where a rule forbids the pair, it is named; else Refit has no model of the
/// change. MXFP8 has other scales than blockwise FP8.
void check_pair(DraftReader& reader, Dtype dtype, Dtype generate, const std::optional<RuleSet>& rules) {
    const bool is_mx = reader.text_of("generate.is_mx", "false") == "true" && generate == Dtype::kFp8;
    if (generate == dtype && !is_mx) {
        return;
    }
    const std::string from{name_of(dtype)};
    const std::string to{name_of(generate)};
    const auto same = generate == dtype ? Suggestion{"generate.is_mx", "false", ""}
                                        : Suggestion{"generate.dtype", from, ""};
    const SettingFacts facts{{"dtype", from},
                             {"generate.dtype", to},
                             {"train.fp8_param", dtype == Dtype::kFp8 ? "true" : "false"},
                             {"generate.is_mx", reader.text_of("generate.is_mx", "false")}};
    const auto broken = rules ? violations(*rules, facts) : Faults{};
    for (const auto& fault : broken) {
        auto message = "generate.dtype = " + to;
        message += fault.message.substr(std::min(fault.message.find(": "), fault.message.size()));
        reader.refuse(fault.code, "dtype-pair", message + "; both sides must agree", same.field, same);
    }
    if (broken.empty()) {
        reader.refuse(ErrorCode::kUnsupported,
                      "dtype-pair",
                      "generate.dtype = " + to + ": generators that turn " + from + " weights into " +
                          (is_mx ? "mxfp8" : to) + " cannot be modelled yet; both sides must agree",
                      same.field,
                      same);
    }
}

/// Why the trainers cannot keep the model in FP8, or nothing.
std::optional<std::string> why_not(DraftReader& reader, const std::optional<Inventory>& model) {
    const auto layout = parse_layout(reader.text_of("train.layout", "tp1"));
    if (layout && layout->fsdp) {
        return "FSDP shards weights by rows, whatever FP8 blocks these cut";
    }
    return model ? why_not_in_fp8_blocks(*model) : std::nullopt;
}

/// Tells that the model cannot be kept in FP8, wherever FP8 is asked for. Returns whether it had to.
bool refuse_model(DraftReader& reader, const std::optional<Inventory>& model) {
    const auto why = why_not(reader, model);
    if (!why) {
        return false;
    }
    for (const auto& [field, value] : {std::pair{"dtype", "bf16"},
                                       std::pair{"train.fp8_param", "false"},
                                       std::pair{"generate.dtype", "bf16"}}) {
        const auto text = reader.text_of(field, "");
        if (text == name_of(Dtype::kFp8) || text == "true") {
            reader.refuse(ErrorCode::kUnsupported,
                          "fp8-model",
                          std::string{field} + " = " + text + ": " + *why,
                          field,
                          Suggestion{field, value, ""});
        }
    }
    return true;
}

}  // namespace

SideDtypes read_dtypes(DraftReader& reader,
                       const std::optional<Inventory>& model,
                       const std::optional<RuleSet>& rules) {
    auto [written, kept] = read_train(reader);
    const std::string usual{name_of(written)};
    auto generate =
        dtype_in(reader, "generate.dtype", reader.text_of("generate.dtype", usual.c_str()), name_of(kept));
    if (kept == Dtype::kFp8 && refuse_model(reader, model)) {
        kept = Dtype::kBf16;
        generate = generate == Dtype::kFp8 ? kept : generate;
    }
    check_pair(reader, kept, generate, rules);
    return {kept, generate};
}

}  // namespace refit::io
