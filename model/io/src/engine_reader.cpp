// SPDX-License-Identifier: Apache-2.0
#include "engine_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include "engine_options.hpp"
#include "pipeline_reader.hpp"
#include "refit/suggest.hpp"

namespace refit::io {
namespace {

/// Settings that rules look at beside the layouts, and their usual values.
constexpr std::array<std::pair<const char*, const char*>, 12> kSettings{
    {{"train.engine", "megatron"},
     {"train.dtensor", "false"},
     {"train.fp8_param", "false"},
     {"train.fp8_recipe", ""},
     {"train.virtual_pipeline", "1"},
     {"train.account_for_embedding", "false"},
     {"train.account_for_loss", "false"},
     {"generate.engine", "vllm"},
     {"generate.colocated", "false"},
     {"generate.enable_eplb", "false"},
     {"generate.real_quant", "false"},
     {"generate.is_mx", "false"}}};

/// The trainers' engine has to be the one that their layout is of.
void check_engines(DraftReader& reader) {
    const auto known = reader.faults().size();
    static_cast<void>(reader.one_of("train.engine", "megatron", {"megatron", "fsdp"}, ErrorCode::kInfeasible));
    const auto layout = parse_layout(reader.text_of("train.layout", "tp1"));
    if (reader.faults().size() > known && layout) {
        reader.faults().back().nearest = Suggestion{"train.engine", layout->fsdp ? "fsdp" : "megatron", ""};
    }
    static_cast<void>(reader.one_of("generate.engine", "vllm", {"vllm"}, ErrorCode::kInfeasible));
}

void read_ratio(DraftReader& reader, EngineOptions& options) {
    const std::string name = "engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO";
    if (reader.draft().find(name) == nullptr) {
        return;
    }
    const auto text = reader.text_of(name, "");
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value > 0.0) || !(value < 1.0)) {
        reader.refuse(ErrorCode::kInvalidInput,
                      "number-range",
                      name + ": '" + text + "' is not a share between 0 and 1",
                      name,
                      Suggestion{name, "0.02", ""});
        return;
    }
    options.buffer_memory_ratio = value;
}

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

/// Both sides must have one dtype: where a rule forbids the pair, it is named; else Refit has no model of the
/// change.
void check_pair(DraftReader& reader, Dtype dtype, Dtype generate, const std::optional<RuleSet>& rules) {
    if (generate == dtype) {
        return;
    }
    const std::string from{name_of(dtype)};
    const std::string to{name_of(generate)};
    const Suggestion same{"generate.dtype", from, ""};
    SettingFacts facts{{"dtype", from}, {"generate.dtype", to}};
    for (const auto* name : {"train.fp8_param", "generate.is_mx"}) {
        facts.emplace(name, reader.text_of(name, "false"));
    }
    const auto broken = rules ? violations(*rules, facts) : Faults{};
    for (const auto& fault : broken) {
        auto message = "generate.dtype = " + to;
        message += fault.message.substr(std::min(fault.message.find(": "), fault.message.size()));
        reader.refuse(fault.code, "dtype-pair", message + "; both sides must agree", "generate.dtype", same);
    }
    if (broken.empty()) {
        const bool is_mx = facts.at("generate.is_mx") == "true" && generate == Dtype::kFp8;
        reader.refuse(ErrorCode::kUnsupported,
                      "dtype-pair",
                      "generate.dtype = " + to + ": generators that turn " + from + " weights into " +
                          (is_mx ? "mxfp8" : to) + " cannot be modelled yet; both sides must agree",
                      "generate.dtype",
                      same);
    }
}

}  // namespace

Engine read_engine(DraftReader& reader) {
    check_engines(reader);
    auto read = reader.take(reader.library().engine(reader.text_of("engine.name", "nemo-rl")), "engine.name");
    if (!read && reader.faults().back().nearest) {
        Faults ignored;
        read = take(reader.library().engine(reader.faults().back().nearest->value), ignored);
    }
    auto engine = read.value_or(Engine{});
    auto& options = engine.options;
    const auto count = [&](const char* name, std::uint32_t& target) {
        const auto field = std::string{"engine.options."} + name;
        if (reader.draft().find(field) != nullptr) {
            target = reader.whole_number(field, reader.text_of(field, ""), 64, target);
        }
    };
    count("NRL_REFIT_NUM_STREAMS", options.streams);
    count("NRL_REFIT_NUM_BUFFERS", options.buffers);
    read_ratio(reader, options);
    read_engine_variants(reader.draft(), options, reader.faults());
    return engine;
}

std::optional<RuleSet> read_rules(DraftReader& reader, const Engine& engine) {
    if (engine.name.empty()) {
        return std::nullopt;
    }
    auto rules = reader.take(reader.library().rules(engine.name, reader.text_of("engine.rules", "2026-11")),
                             "engine.rules");
    if (!rules && reader.faults().back().nearest) {
        Faults ignored;
        rules = take(reader.library().rules(engine.name, reader.faults().back().nearest->value), ignored);
    }
    return rules;
}

Dtype read_dtype(DraftReader& reader, const std::optional<RuleSet>& rules) {
    static const std::vector<std::string> modelled{"bf16", "fp16", "fp32"};
    const auto text = reader.text_of("dtype", "bf16");
    auto dtype = dtype_in(reader, "dtype", text, nearest_name(text, modelled));
    if (dtype == Dtype::kFp8) {
        reader.refuse(ErrorCode::kUnsupported,
                      "train-dtype",
                      "dtype: weights that are trained in fp8 cannot be modelled yet",
                      "dtype",
                      Suggestion{"dtype", "bf16", ""});
        dtype = Dtype::kBf16;
    }
    const std::string same{name_of(dtype)};
    check_pair(reader,
               dtype,
               dtype_in(reader, "generate.dtype", reader.text_of("generate.dtype", same.c_str()), same),
               rules);
    return dtype;
}

SettingFacts read_facts(DraftReader& reader,
                        Dtype dtype,
                        const TrainLayout& train,
                        const GenerateLayout& generate) {
    SettingFacts facts{{"dtype", std::string{name_of(dtype)}},
                       {"generate.dtype", std::string{name_of(dtype)}},
                       {"generate.tp", std::to_string(generate.tp)},
                       {"generate.pp", std::to_string(generate.pp)},
                       {"generate.ep", std::to_string(generate.ep)},
                       {"train.engine", train.is_fsdp() ? "fsdp" : reader.text_of("train.engine", "megatron")},
                       {"train.etp", std::to_string(train.etp)},
                       {"train.layout", reader.text_of("train.layout", "tp1")},
                       {"generate.layout", reader.text_of("generate.layout", "tp1")},
                       {"train.pipeline.layout", pipeline_string(reader.draft())}};
    for (const auto& [fact, usual] : kSettings) {
        facts.emplace(fact, reader.text_of(fact, usual));
    }
    return facts;
}

std::vector<std::string> read_published(DraftReader& reader) {
    auto ids = reader.list_of("published");
    if (ids.empty()) {
        return ids;
    }
    const auto records = reader.take(reader.library().published(), "published");
    for (const auto& id : ids) {
        if (records && std::ranges::find(*records, id, &PublishedRecord::id) == records->end()) {
            std::vector<std::string> known;
            std::ranges::transform(*records, std::back_inserter(known), &PublishedRecord::id);
            reader.refuse(ErrorCode::kInvalidInput,
                          "unknown-published",
                          "published: there is no published time '" + id + "'; did you mean '" +
                              nearest_name(id, known) + "'?",
                          "published");
        }
    }
    const auto precedence = reader.draft().find("published")->precedence;
    const bool is_changed = std::ranges::any_of(reader.draft().fields(), [&](const auto& entry) {
        const auto& [name, field] = entry;
        return name != "name" && name != "note" && field.precedence > precedence &&
               field.overridden != field.text;
    });
    return is_changed ? std::vector<std::string>{} : ids;
}

}  // namespace refit::io
