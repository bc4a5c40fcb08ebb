// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>
#include <utility>

#include "refit/io/library.hpp"
#include "refit/layout_check.hpp"
#include "refit/quantity.hpp"
#include "refit/suggest.hpp"

namespace refit::io {
namespace {

constexpr std::uint32_t kMostGpus = 1U << 20U;

class Resolver {
public:
    Resolver(const ScenarioDraft& draft, const Library& library) : draft_{draft}, library_{library} {}

    Result<Scenario> run() {
        auto model = take(library_.model(text_of("model", "deepseek-v3", true)), faults_, "model");
        const auto train = model ? read_train(*model) : std::nullopt;
        const auto generate = model ? read_generate(*model) : std::nullopt;
        const auto dtype = read_dtype();
        check_engines();
        auto engine = read_engine();
        const auto coverage = read_coverage();
        auto rules = engine ? take(library_.rules(engine->name, text_of("engine.rules", "2026-11")), faults_, "engine.rules")
                            : std::nullopt;
        auto train_system = read_system("system.train");
        auto generate_system = read_system("system.generate");
        std::optional<Placement> placement;
        if (train_system && generate_system) {
            placement = read_placement(*train_system, *generate_system);
        }
        auto published = read_published();
        if (!faults_.empty()) {
            return fail(std::move(faults_));
        }
        return Scenario{text_of("name", "scenario"),
                        std::move(*model),
                        *dtype,
                        *train,
                        *generate,
                        Cluster{std::move(*train_system), std::move(*generate_system), train->gpus, generate->gpus, *placement},
                        std::move(*engine),
                        std::move(*rules),
                        facts_of(*dtype, *train, *generate),
                        *coverage,
                        std::move(published),
                        text_of("note", "")};
    }

private:
    [[nodiscard]] std::string text_of(std::string_view name, const char* fallback, bool is_required = false) {
        const auto* field = draft_.find(name);
        if (field == nullptr && is_required) {
            refuse(ErrorCode::kInvalidInput,
                   "missing-field",
                   "'" + std::string{name} + "' is missing",
                   name,
                   Suggestion{std::string{name}, fallback, "for example"});
        }
        return field == nullptr ? fallback : field->text;
    }

    [[nodiscard]] std::string where(std::string_view name) const {
        const auto* field = draft_.find(name);
        return field == nullptr ? std::string{name} : field->origin;
    }

    void refuse(ErrorCode code, const char* rule, std::string message, std::string_view name,
                std::optional<Suggestion> nearest = std::nullopt) {
        faults_.push_back({code, rule, std::move(message), where(name), std::move(nearest)});
    }

    /// Takes the value, or the faults, each placed at the field; a suggestion that names no field means this one.
    template <class T>
    std::optional<T> take(Result<T> result, Faults& faults, std::string_view name, const char* fallback = nullptr) {
        if (result) {
            return std::move(*result);
        }
        for (auto fault : result.error()) {
            fault.where = fault.where.empty() || fault.where == name ? where(name) : fault.where;
            if (fault.nearest && fault.nearest->field.empty()) {
                fault.nearest->field = std::string{name};
            }
            if (!fault.nearest && fallback != nullptr) {
                fault.nearest = Suggestion{std::string{name}, fallback, ""};
            }
            const auto side = name.substr(0, name.find('.') + 1);
            if (side.empty() || !fault.message.starts_with(side)) {
                fault.message = std::string{name} + ": " + fault.message;
            }
            faults.push_back(std::move(fault));
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<std::string> list_of(std::string_view name) const {
        std::vector<std::string> items;
        if (const auto* field = draft_.find(name)) {
            std::istringstream stream{field->text};
            for (std::string item; std::getline(stream, item, ',');) {
                items.push_back(item);
            }
        }
        return items;
    }

    std::string one_of(std::string_view name, const char* fallback, std::vector<std::string> allowed, ErrorCode code) {
        auto text = text_of(name, fallback);
        if (std::ranges::find(allowed, text) == allowed.end()) {
            const auto nearest = nearest_name(text, allowed);
            refuse(code,
                   "unknown-value",
                   std::string{name} + ": '" + text + "' is not " + (allowed.size() == 1 ? "" : "one of ") + join_names(allowed),
                   name,
                   Suggestion{std::string{name}, nearest, ""});
        }
        return text;
    }

    /// A whole number in [1, most], or nothing and a fault that offers `nearest`.
    std::optional<std::uint32_t> whole_number(std::string_view name, const std::string& text, std::uint32_t most,
                                              std::uint32_t nearest) {
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc{} && end == text.data() + text.size() && value >= 1 && value <= most) {
            return static_cast<std::uint32_t>(value);
        }
        refuse(ErrorCode::kInvalidInput,
               "number-range",
               std::string{name} + ": '" + text + "' is not a whole number from 1 to " + std::to_string(most),
               name,
               Suggestion{std::string{name}, std::to_string(nearest), ""});
        return std::nullopt;
    }

    std::optional<Coverage> read_coverage() {
        constexpr std::string_view kName = "engine.coverage";
        const auto text = text_of(kName, "nemo-rl-names");
        const auto nearest = nearest_name(text, std::vector<std::string>{"nemo-rl-names", "ffn", "all"});
        return take(parse_coverage(text), faults_, kName, nearest.c_str());
    }

    /// A published time belongs to the refit that it was published for: once a later field changes that, there is none.
    std::vector<std::string> read_published() {
        auto ids = list_of("published");
        if (ids.empty()) {
            return ids;
        }
        const auto records = take(library_.published(), faults_, "published");
        for (const auto& id : ids) {
            if (records && std::ranges::find(*records, id, &PublishedRecord::id) == records->end()) {
                std::vector<std::string> known;
                std::ranges::transform(*records, std::back_inserter(known), &PublishedRecord::id);
                refuse(ErrorCode::kInvalidInput,
                       "unknown-published",
                       "published: there is no published time '" + id + "'; did you mean '" + nearest_name(id, known) + "'?",
                       "published");
            }
        }
        const auto precedence = draft_.find("published")->precedence;
        const bool is_changed = std::ranges::any_of(draft_.fields(), [&](const auto& entry) {
            const auto& [name, field] = entry;
            return name != "name" && name != "note" && field.precedence > precedence && field.overridden != field.text;
        });
        return is_changed ? std::vector<std::string>{} : ids;
    }

    std::optional<Dtype> read_dtype() {
        const auto dtype = take(parse_dtype(text_of("dtype", "bf16")), faults_, "dtype", "bf16");
        if (!dtype) {
            return std::nullopt;
        }
        if (*dtype == Dtype::kFp8) {
            refuse(ErrorCode::kUnsupported,
                   "train-dtype",
                   "dtype: weights that are trained in fp8 cannot be modelled yet",
                   "dtype",
                   Suggestion{"dtype", "bf16", ""});
            return dtype;
        }
        const auto generate = take(parse_dtype(text_of("generate.dtype", std::string{name_of(*dtype)}.c_str())),
                                   faults_,
                                   "generate.dtype",
                                   "bf16");
        if (generate && *generate != *dtype) {
            refuse(ErrorCode::kInfeasible,
                   "dtype-pair",
                   "generate.dtype: " + std::string{name_of(*dtype)} + " weights are not turned into " +
                       std::string{name_of(*generate)} + " on the way [nemo-rl rule 16]; both sides must agree",
                   "generate.dtype",
                   Suggestion{"generate.dtype", std::string{name_of(*dtype)}, ""});
        }
        return dtype;
    }

    /// What the support rules look at.
    SettingFacts facts_of(Dtype dtype, const TrainLayout& train, const GenerateLayout& generate) {
        SettingFacts facts{{"dtype", std::string{name_of(dtype)}},
                           {"generate.dtype", std::string{name_of(dtype)}},
                           {"generate.tp", std::to_string(generate.tp)},
                           {"generate.pp", std::to_string(generate.pp)},
                           {"generate.ep", std::to_string(generate.ep)},
                           {"train.etp", std::to_string(train.etp)}};
        for (const auto& [fact, usual] : {std::pair{"train.engine", "megatron"},
                                          std::pair{"train.dtensor", "false"},
                                          std::pair{"train.fp8_param", "false"},
                                          std::pair{"train.fp8_recipe", ""},
                                          std::pair{"train.pipeline.layout", ""},
                                          std::pair{"train.virtual_pipeline", "1"},
                                          std::pair{"train.account_for_embedding", "false"},
                                          std::pair{"train.account_for_loss", "false"},
                                          std::pair{"generate.engine", "vllm"},
                                          std::pair{"generate.colocated", "false"},
                                          std::pair{"generate.enable_eplb", "false"},
                                          std::pair{"generate.real_quant", "false"},
                                          std::pair{"generate.is_mx", "false"}}) {
            facts.emplace(fact, text_of(fact, usual));
        }
        return facts;
    }

    void check_engines() {
        static_cast<void>(one_of("train.engine", "megatron", {"megatron"}, ErrorCode::kInfeasible));
        static_cast<void>(one_of("generate.engine", "vllm", {"vllm"}, ErrorCode::kInfeasible));
    }

    std::optional<Engine> read_engine() {
        auto engine = take(library_.engine(text_of("engine.name", "nemo-rl")), faults_, "engine.name");
        if (!engine) {
            return std::nullopt;
        }
        auto& options = engine->options;
        const auto count = [&](const char* name, std::uint32_t& target) {
            const auto field = std::string{"engine.options."} + name;
            if (draft_.find(field) != nullptr) {
                target = whole_number(field, text_of(field, ""), 64, target).value_or(target);
            }
        };
        count("NRL_REFIT_NUM_STREAMS", options.streams);
        count("NRL_REFIT_NUM_BUFFERS", options.buffers);
        read_ratio(options);
        return engine;
    }

    void read_ratio(EngineOptions& options) {
        const std::string name = "engine.options.NRL_REFIT_BUFFER_MEMORY_RATIO";
        if (draft_.find(name) == nullptr) {
            return;
        }
        const auto text = text_of(name, "");
        double value = 0.0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc{} || end != text.data() + text.size() || !(value > 0.0) || !(value < 1.0)) {
            refuse(ErrorCode::kInvalidInput,
                   "number-range",
                   name + ": '" + text + "' is not a share between 0 and 1",
                   name,
                   Suggestion{name, "0.02", ""});
            return;
        }
        options.buffer_memory_ratio = value;
    }

    std::optional<System> read_system(const std::string& side) {
        const auto* own = draft_.find(side);
        // A flag for both sides outranks a file's word on one.
        const auto* both = draft_.find("system");
        const bool uses_own = own != nullptr && (both == nullptr || own->precedence >= both->precedence);
        const std::string name = uses_own ? side : "system";
        if (!uses_own && both == nullptr) {
            if (side == "system.train" || draft_.find("system.train") != nullptr) {
                refuse(ErrorCode::kInvalidInput,
                       "missing-field",
                       "'system' is missing: which machines? Known: " + join_names(library_.systems()),
                       name,
                       Suggestion{"system", "h100-nvl8", "for example"});
            }
            return std::nullopt;
        }
        // Both sides share the field: its faults are told once.
        Faults told_already;
        const bool is_told = !uses_own && side == "system.generate";
        auto system = take(library_.system(text_of(name, ""), name), is_told ? told_already : faults_, name);
        override_rate("system.nic", system ? &system->nic : nullptr, side);
        override_rate("system.nvlink", system ? &system->nvlink : nullptr, side);
        return system;
    }

    /// A rate holds for both sides; its faults are told with the first.
    void override_rate(const std::string& name, Figure<Bandwidth>* figure, const std::string& side) {
        const auto* field = draft_.find(name);
        if (field == nullptr) {
            return;
        }
        Faults told_already;
        const auto rate = take(parse_bandwidth(field->text), side == "system.generate" ? told_already : faults_, name);
        if (rate && figure != nullptr) {
            *figure = {*rate, *rate, *rate, field->origin, "assumed"};
        }
    }

    /// GPUs from "…@128" or from the side's own field, whichever was set later.
    std::optional<std::uint32_t> gpus_of(const std::string& side, const LayoutText& layout) {
        const auto* gpus = draft_.find(side + ".gpus");
        const auto* text = draft_.find(side + ".layout");
        if (gpus == nullptr && !layout.gpus) {
            const auto product = std::uint64_t{layout.tp.value_or(1)} * layout.pp.value_or(1) * layout.cp.value_or(1) * layout.dp.value_or(1);
            refuse(ErrorCode::kInvalidInput,
                   "missing-field",
                   "'" + side + ".gpus' is missing: how many GPUs?",
                   side + ".gpus",
                   Suggestion{side + ".gpus", std::to_string(std::max<std::uint64_t>(product, layout.ep.value_or(1) * std::uint64_t{layout.pp.value_or(1)})), "the fewest for this layout"});
            return std::nullopt;
        }
        if (layout.gpus && (gpus == nullptr || text->precedence > gpus->precedence || gpus->text == std::to_string(*layout.gpus))) {
            return layout.gpus;
        }
        const auto product = std::uint64_t{layout.tp.value_or(1)} * layout.pp.value_or(1) * layout.cp.value_or(1);
        const auto usual = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(product * layout.ep.value_or(1), 1, kMostGpus));
        const auto count = whole_number(side + ".gpus", gpus->text, kMostGpus, usual);
        if (count && layout.gpus && gpus->precedence == text->precedence) {
            refuse(ErrorCode::kInvalidInput,
                   "gpus-twice",
                   side + ".gpus is " + gpus->text + ", but the layout says @" + std::to_string(*layout.gpus),
                   side + ".gpus",
                   Suggestion{side + ".gpus", std::to_string(*layout.gpus), ""});
            return std::nullopt;
        }
        return count;
    }

    /// The layout as written. Where the GPU count was set later, dp follows from it: `compare X --gen-gpus 512`.
    std::optional<LayoutText> read_layout(const std::string& side) {
        const auto name = side + ".layout";
        auto layout = take(parse_layout(text_of(name, "tp1")), faults_, name, "tp1");
        if (layout && has_later_gpus(side)) {
            layout->dp.reset();
        }
        return layout;
    }

    [[nodiscard]] bool has_later_gpus(const std::string& side) const {
        const auto* gpus = draft_.find(side + ".gpus");
        const auto* layout = draft_.find(side + ".layout");
        return gpus != nullptr && layout != nullptr && gpus->precedence > layout->precedence;
    }

    /// The GPU count next to `gpus` that suits the layout, by `make`, or nothing.
    template <class Make>
    [[nodiscard]] static std::optional<std::uint32_t> nearest_gpus(const LayoutText& layout, std::uint32_t gpus, Make make) {
        const auto pp = std::uint64_t{layout.pp.value_or(1)};
        const auto dense = pp * layout.tp.value_or(1) * layout.cp.value_or(1);
        const auto step = std::lcm(dense, pp * layout.etp.value_or(1) * layout.ep.value_or(1));
        const auto below = gpus / step * step;
        for (const auto count : gpus - below < step - (gpus - below) ? std::array{below, below + step} : std::array{below + step, below}) {
            if (count >= 1 && count <= kMostGpus && make(static_cast<std::uint32_t>(count))) {
                return static_cast<std::uint32_t>(count);
            }
        }
        return std::nullopt;
    }

    /// Takes the layout, or its faults. Where it was the GPU count that was changed last, a count that works is offered.
    template <class Make>
    auto take_layout(const std::string& side, const LayoutText& layout, std::uint32_t gpus, Make make) {
        auto made = make(gpus);
        if (!made && has_later_gpus(side)) {
            if (const auto nearest = nearest_gpus(layout, gpus, make)) {
                for (auto& fault : made.error()) {
                    fault.nearest = Suggestion{side + ".gpus", std::to_string(*nearest), ""};
                }
            }
        }
        return take(std::move(made), faults_, side + ".layout");
    }

    /// A suggested layout with the layers of its first and last stage, where flags give these and would spoil it.
    void spell_split(Suggestion& suggestion, const Inventory& model) const {
        const bool has_flags = std::ranges::any_of(std::array{"train.pipeline.first", "train.pipeline.last"}, [&](const char* name) {
            const auto* field = draft_.find(name);
            return field != nullptr && field->precedence == Precedence::kFlag;
        });
        const auto text = parse_layout(suggestion.value);
        if (!has_flags || suggestion.field != "train.layout" || !text || text->first_stage_layers) {
            return;
        }
        const auto axis = "pp" + std::to_string(text->pp.value_or(1));
        const auto at = ("." + suggestion.value + ".").find("." + axis + ".");
        const auto split = at == std::string::npos ? std::nullopt : most_even_split(*text, model.layers());
        if (split) {
            suggestion.value.insert(at + axis.size(), ":" + std::to_string(split->first) + ":" + std::to_string(split->second));
        }
    }

    /// Layers of the first and last stage next to those of the others.
    [[nodiscard]] static std::optional<std::pair<std::uint32_t, std::uint32_t>> most_even_split(LayoutText text, std::uint32_t layers) {
        const auto mean = layers / text.pp.value_or(1);
        std::optional<std::pair<std::uint32_t, std::uint32_t>> best;
        auto least = std::numeric_limits<std::uint32_t>::max();
        for (std::uint32_t first = 1; first < layers; ++first) {
            for (std::uint32_t last = 1; first + last < layers; ++last) {
                text.first_stage_layers = first;
                text.last_stage_layers = last;
                const auto distance = std::max(first, mean) - std::min(first, mean) + std::max(last, mean) - std::min(last, mean);
                if (distance < least && split_layers(layers, text)) {
                    least = distance;
                    best = {first, last};
                }
            }
        }
        return best;
    }

    /// First and last stage from their own fields, unless the layout has them. Where a later layout made them
    /// impossible, they are left out; the split is always printed.
    void add_pipeline(LayoutText& layout, const Inventory& model) {
        const auto* layout_field = draft_.find("train.layout");
        const auto original = layout;
        bool is_older = false;
        for (const auto& [name, target] : {std::pair{"train.pipeline.first", &layout.first_stage_layers},
                                           std::pair{"train.pipeline.last", &layout.last_stage_layers}}) {
            const auto* field = draft_.find(name);
            if (field == nullptr || target->has_value()) {
                continue;
            }
            is_older = is_older || (layout_field != nullptr && layout_field->precedence > field->precedence);
            *target = whole_number(name, field->text, model.layers(), 1);
        }
        if (is_older && !split_layers(model.layers(), layout)) {
            layout = original;
        }
    }

    std::optional<TrainLayout> read_train(const Inventory& model) {
        auto layout = read_layout("train");
        if (!layout) {
            return std::nullopt;
        }
        add_pipeline(*layout, model);
        const auto gpus = gpus_of("train", *layout);
        const auto make = [&](std::uint32_t count) {
            auto made = make_train_layout(*layout, count, model);
            for (std::size_t i = 0; !made && i < made.error().size(); ++i) {
                if (auto& nearest = made.error()[i].nearest) {
                    spell_split(*nearest, model);
                }
            }
            return made;
        };
        return gpus ? take_layout("train", *layout, *gpus, make) : std::nullopt;
    }

    std::optional<GenerateLayout> read_generate(const Inventory& model) {
        const auto layout = read_layout("generate");
        if (!layout) {
            return std::nullopt;
        }
        const auto gpus = gpus_of("generate", *layout);
        const auto make = [&](std::uint32_t count) { return make_generate_layout(*layout, count, model); };
        return gpus ? take_layout("generate", *layout, *gpus, make) : std::nullopt;
    }

    std::optional<Placement> read_placement(const System& train, const System& generate) {
        Placement placement{usual_gpus_per_domain(train), usual_gpus_per_domain(generate), true};
        const std::string name = "placement.gpus_used_per_domain";
        if (draft_.find(name) != nullptr) {
            const auto most = std::min(train.gpus_per_domain, generate.gpus_per_domain);
            const auto used = whole_number(name, text_of(name, ""), most, most);
            placement.train_gpus_per_domain = used.value_or(1);
            placement.generate_gpus_per_domain = used.value_or(1);
        }
        placement.generation_starts_new_domain =
            one_of("placement.generation_starts_new_domain", "true", {"true", "false"}, ErrorCode::kInvalidInput) == "true";
        return placement;
    }

    const ScenarioDraft& draft_;
    const Library& library_;
    Faults faults_;
};

}  // namespace

Result<Scenario> resolve(const ScenarioDraft& draft, const Library& library) { return Resolver{draft, library}.run(); }

}  // namespace refit::io
