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
    if (dtype == Dtype::kFp8) {
        facts.emplace("train.fp8_param", "true");
        facts.emplace("train.fp8_recipe", "blockwise");
    }
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
