// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <sstream>
#include <utility>

#include "engine_options.hpp"
#include "refit/io/library.hpp"
#include "refit/layout_check.hpp"
#include "refit/quantity.hpp"
#include "refit/suggest.hpp"
#include "unmodelled.hpp"

namespace refit::io {
namespace {

constexpr std::uint32_t kMostGpus = 1U << 20U;
constexpr const char* kExampleSystem = "h100-nvl8";

class Resolver {
public:
    Resolver(const ScenarioDraft& draft, const Library& library) : draft_{draft}, library_{library} {}

    Result<Scenario> run() {
        auto model = read_model();
        const auto train = read_train(model);
        const auto generate = read_generate(model);
        const auto dtype = read_dtype();
        if (generate && text_of("generate.dtype", "") == name_of(Dtype::kFp8)) {
            const auto cut = check_fp8_blocks(*generate, *model);
            faults_.insert(faults_.end(), cut.begin(), cut.end());
        }
        check_engines();
        auto engine = read_engine();
        const auto coverage = take(parse_coverage(text_of("engine.coverage", "nemo-rl-names")), faults_, "engine.coverage");
        auto rules = read_rules(engine);
        auto systems = read_systems();
        std::optional<Placement> placement;
        if (systems) {
            placement = read_placement(systems->first, systems->second);
        }
        auto published = read_published();
        if (!faults_.empty()) {
            return fail(std::move(faults_));
        }
        auto& [train_system, generate_system] = *systems;
        return Scenario{text_of("name", "scenario"),
                        std::move(*model),
                        dtype,
                        *train,
                        *generate,
                        Cluster{std::move(train_system), std::move(generate_system), train->gpus, generate->gpus, *placement},
                        std::move(engine),
                        std::move(*rules),
                        facts_of(dtype, *train, *generate),
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

    // Where a fault offers a value, reading goes on with it, so that one run tells all faults and their suggestions
    // together make the draft whole.

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
                   std::string{name} + ": '" + text + "' is none of " + join_names(allowed),
                   name,
                   Suggestion{std::string{name}, nearest, ""});
        }
        return text;
    }

    static std::optional<std::uint32_t> whole_number(const std::string& text, std::uint32_t most) {
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_whole = error == std::errc{} && end == text.data() + text.size();
        return is_whole && value >= 1 && value <= most ? std::optional{static_cast<std::uint32_t>(value)} : std::nullopt;
    }

    void refuse_number(std::string_view name, const std::string& text, std::uint32_t most, std::uint32_t nearest) {
        refuse(ErrorCode::kInvalidInput,
               "number-range",
               std::string{name} + ": '" + text + "' is not a whole number from 1 to " + std::to_string(most),
               name,
               Suggestion{std::string{name}, std::to_string(nearest), ""});
    }

    /// A whole number in [1, most], or `nearest` and a fault that offers it.
    std::uint32_t whole_number(std::string_view name, const std::string& text, std::uint32_t most, std::uint32_t nearest) {
        const auto value = whole_number(text, most);
        if (!value) {
            refuse_number(name, text, most, nearest);
        }
        return value.value_or(nearest);
    }

    std::optional<Inventory> read_model() {
        auto model = take(library_.model(text_of("model", "deepseek-v3", true)), faults_, "model");
        if (!model && faults_.back().nearest) {
            Faults ignored;
            model = refit::take(library_.model(faults_.back().nearest->value), ignored);
        }
        return model;
    }

    /// A dtype, or `nearest` and a fault that offers it.
    Dtype dtype_in(std::string_view name, const std::string& text, std::string_view nearest) {
        auto dtype = parse_dtype(text);
        if (dtype) {
            return *dtype;
        }
        dtype.error().front().nearest = Suggestion{std::string{name}, std::string{nearest}, ""};
        static_cast<void>(take(std::move(dtype), faults_, name));
        return parse_dtype(nearest).value();
    }

    Dtype read_dtype() {
        static const std::vector<std::string> kModelled{"bf16", "fp16", "fp32"};
        const auto text = text_of("dtype", "bf16");
        auto dtype = dtype_in("dtype", text, nearest_name(text, kModelled));
        if (dtype == Dtype::kFp8) {
            refuse(ErrorCode::kUnsupported,
                   "train-dtype",
                   "dtype: weights that are trained in fp8 cannot be modelled yet",
                   "dtype",
                   Suggestion{"dtype", "bf16", ""});
            dtype = Dtype::kBf16;
        }
        const std::string same{name_of(dtype)};
        const auto generate = dtype_in("generate.dtype", text_of("generate.dtype", same.c_str()), same);
        if (generate != dtype) {
            refuse(ErrorCode::kInfeasible,
                   "dtype-pair",
                   "generate.dtype: " + same + " weights are not turned into " + std::string{name_of(generate)} +
                       " on the way [nemo-rl rule 16]; both sides must agree",
                   "generate.dtype",
                   Suggestion{"generate.dtype", same, ""});
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

    void check_engines() {
        static_cast<void>(one_of("train.engine", "megatron", {"megatron"}, ErrorCode::kInfeasible));
        static_cast<void>(one_of("generate.engine", "vllm", {"vllm"}, ErrorCode::kInfeasible));
    }

    std::optional<RuleSet> read_rules(const Engine& engine) {
        return engine.name.empty() ? std::nullopt
                                   : take(library_.rules(engine.name, text_of("engine.rules", "2026-11")), faults_, "engine.rules");
    }

    Engine read_engine() {
        auto read = take(library_.engine(text_of("engine.name", "nemo-rl")), faults_, "engine.name");
        if (!read && faults_.back().nearest) {
            Faults ignored;
            read = refit::take(library_.engine(faults_.back().nearest->value), ignored);
        }
        auto engine = read.value_or(Engine{});
        auto& options = engine.options;
        const auto count = [&](const char* name, std::uint32_t& target) {
            const auto field = std::string{"engine.options."} + name;
            if (draft_.find(field) != nullptr) {
                target = whole_number(field, text_of(field, ""), 64, target);
            }
        };
        count("NRL_REFIT_NUM_STREAMS", options.streams);
        count("NRL_REFIT_NUM_BUFFERS", options.buffers);
        read_ratio(options);
        read_engine_variants(draft_, options, faults_);
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

    /// The field that names the system of a side, or nothing and a fault. A flag for both sides outranks a file's word
    /// on one.
    std::optional<std::string> system_field(const std::string& side, const std::string& other_side) {
        const auto* own = draft_.find(side);
        const auto* both = draft_.find("system");
        if (own != nullptr && (both == nullptr || own->precedence >= both->precedence)) {
            return side;
        }
        if (both != nullptr) {
            return "system";
        }
        const bool has_other = draft_.find(other_side) != nullptr;
        if (has_other || side == "system.train") {
            const std::string name = has_other ? side : "system";
            refuse(ErrorCode::kInvalidInput,
                   "missing-field",
                   "'" + name + "' is missing: which machines? Known: " + join_names(library_.systems()),
                   name,
                   Suggestion{name, kExampleSystem, "for example"});
        }
        return std::nullopt;
    }

    /// The system that a field names, or the nearest and a fault; an example where no field does.
    std::optional<System> read_system(const std::optional<std::string>& field) {
        Faults ignored;
        if (!field) {
            return refit::take(library_.system(kExampleSystem, ""), ignored);
        }
        auto system = take(library_.system(text_of(*field, ""), *field), faults_, *field);
        if (!system && faults_.back().nearest) {
            system = refit::take(library_.system(faults_.back().nearest->value, ""), ignored);
        }
        return system;
    }

    std::optional<Figure<Bandwidth>> read_rate(const std::string& name) {
        const auto* field = draft_.find(name);
        const auto rate = field == nullptr ? std::nullopt : take(parse_bandwidth(field->text), faults_, name);
        return rate ? std::optional{Figure<Bandwidth>{*rate, *rate, *rate, field->origin, "assumed"}} : std::nullopt;
    }

    /// Those of trainers and generators.
    std::optional<std::pair<System, System>> read_systems() {
        const auto train_field = system_field("system.train", "system.generate");
        const auto generate_field = system_field("system.generate", "system.train");
        const auto train = read_system(train_field);
        const auto generate = generate_field == train_field ? train : read_system(generate_field);
        const auto nic = read_rate("system.nic");
        const auto nvlink = read_rate("system.nvlink");
        if (!train || !generate) {
            return std::nullopt;
        }
        auto systems = std::pair{*train, *generate};
        for (auto* system : {&systems.first, &systems.second}) {
            system->nic = nic.value_or(system->nic);
            system->nvlink = nvlink.value_or(system->nvlink);
        }
        return systems;
    }

    /// The fewest GPUs on which the axes of a layout multiply out.
    static std::uint32_t fewest_gpus(const LayoutText& layout, bool is_train) {
        const auto of = [](std::optional<std::uint32_t> axis) { return std::uint64_t{axis.value_or(1)}; };
        const auto dense = of(layout.tp) * of(layout.cp) * of(layout.dp);
        const auto expert = is_train || layout.pp.value_or(1) == 1 ? of(layout.ep) * of(layout.etp) : 1;
        if (dense > kMostGpus || expert > kMostGpus) {
            return kMostGpus;
        }
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::lcm(dense, expert) * of(layout.pp), kMostGpus));
    }

    /// GPUs from "…@128" or from the side's own field, whichever was set later.
    std::uint32_t gpus_of(const std::string& side, const LayoutText& layout) {
        const auto name = side + ".gpus";
        const auto* gpus = draft_.find(name);
        const auto* text = draft_.find(side + ".layout");
        const auto fewest = fewest_gpus(layout, side == "train");
        if (layout.gpus && (gpus == nullptr || text->precedence > gpus->precedence)) {
            return *layout.gpus;
        }
        if (gpus == nullptr) {
            refuse(ErrorCode::kInvalidInput,
                   "missing-field",
                   "'" + name + "' is missing: how many GPUs?",
                   name,
                   Suggestion{name, std::to_string(fewest), "the fewest for this layout"});
            return fewest;
        }
        const bool says_both = layout.gpus && gpus->precedence == text->precedence;
        const auto count = whole_number(name, gpus->text, kMostGpus, says_both ? *layout.gpus : fewest);
        if (says_both && count != *layout.gpus) {
            refuse(ErrorCode::kInvalidInput,
                   "gpus-twice",
                   name + " is " + gpus->text + ", but the layout says @" + std::to_string(*layout.gpus),
                   name,
                   Suggestion{name, std::to_string(*layout.gpus), ""});
            return *layout.gpus;
        }
        return count;
    }

    /// A layout, or nothing and a fault that offers one that fits every model.
    std::optional<LayoutText> read_layout(const std::string& side) {
        const auto name = side + ".layout";
        const auto text = text_of(name, "tp1");
        const auto at = std::min(text.find('@'), text.size());
        const auto plain = parse_layout("tp1" + text.substr(at)) ? "tp1" + text.substr(at) : "tp1";
        auto layout = take(parse_layout(text), faults_, name, plain.c_str());
        if (!layout) {
            static_cast<void>(gpus_of(side, parse_layout(plain).value()));
        } else if (has_later_gpus(side)) {
            layout->dp.reset();
        }
        return layout;
    }

    /// Where the GPU count was set after the layout, dp follows from it: `compare X --gen-gpus 512`.
    [[nodiscard]] bool has_later_gpus(const std::string& side) const {
        const auto* gpus = draft_.find(side + ".gpus");
        const auto* layout = draft_.find(side + ".layout");
        return gpus != nullptr && layout != nullptr && gpus->precedence > layout->precedence;
    }

    /// A number of layers for an end of the pipeline with which the layers split, the nearest to an even share.
    static std::optional<std::uint32_t> nearest_end(const LayoutText& layout, std::optional<std::uint32_t> LayoutText::*end,
                                                    std::uint32_t layers) {
        const auto even = layers / layout.pp.value_or(1);
        std::optional<std::uint32_t> nearest;
        for (std::uint32_t count = 1; count <= layers; ++count) {
            auto candidate = layout;
            candidate.*end = count;
            const auto distance = [&](std::uint32_t value) { return value > even ? value - even : even - value; };
            if ((!nearest || distance(count) < distance(*nearest)) && split_layers(layers, candidate)) {
                nearest = count;
            }
        }
        return nearest;
    }

    /// First and last stage from their own fields, unless the layout has them. Where a later layout made them
    /// impossible, they are left out; the split is always printed.
    void add_pipeline(LayoutText& layout, const Inventory& model) {
        struct End {
            std::string name;
            std::optional<std::uint32_t> LayoutText::*target;
        };
        const auto* layout_field = draft_.find("train.layout");
        const auto original = layout;
        std::vector<End> older;
        std::vector<End> unreadable;
        for (const auto& end : {End{"train.pipeline.first", &LayoutText::first_stage_layers},
                                End{"train.pipeline.last", &LayoutText::last_stage_layers}}) {
            const auto* field = draft_.find(end.name);
            if (field == nullptr || (original.*(end.target)).has_value()) {
                continue;
            }
            if (layout_field != nullptr && layout_field->precedence > field->precedence) {
                older.push_back(end);
            }
            layout.*(end.target) = whole_number(field->text, model.layers());
            if (!(layout.*(end.target))) {
                unreadable.push_back(end);
            }
        }
        for (const auto& end : unreadable) {
            const auto nearest = nearest_end(layout, end.target, model.layers()).value_or(1);
            refuse_number(end.name, text_of(end.name, ""), model.layers(), nearest);
            layout.*(end.target) = nearest;
        }
        if (split_layers(model.layers(), layout)) {
            return;
        }
        for (const auto& end : older) {
            (layout.*(end.target)).reset();
        }
    }

    /// Where flags give the ends of the pipeline, another layout would meet the same ends: one that works is offered.
    void suggest_end(Faults& faults, const LayoutText& layout, std::uint32_t layers) const {
        for (auto& fault : faults) {
            for (const auto& [name, end] : {std::pair{"train.pipeline.first", &LayoutText::first_stage_layers},
                                            std::pair{"train.pipeline.last", &LayoutText::last_stage_layers}}) {
                const auto* field = draft_.find(name);
                const auto nearest = nearest_end(layout, end, layers);
                if (fault.rule == "pipeline-split" && field != nullptr && field->precedence == Precedence::kFlag && nearest) {
                    fault.nearest = Suggestion{name, std::to_string(*nearest), ""};
                    break;
                }
            }
        }
    }

    /// Takes a layout; a suggested one keeps the GPU count where the refused one had it.
    template <class Layout>
    std::optional<Layout> take_layout(Result<Layout> result, const LayoutText& text, std::uint32_t gpus, const std::string& name) {
        for (std::size_t i = 0; !result && text.gpus == gpus && i < result.error().size(); ++i) {
            if (auto& nearest = result.error()[i].nearest; nearest && nearest->field == name) {
                nearest->value += "@" + std::to_string(gpus);
            }
        }
        return take(std::move(result), faults_, name);
    }

    void read_virtual_stages(TrainLayout& layout) {
        const std::string name = "train.virtual_pipeline";
        const auto stages = whole_number(name, text_of(name, "1"), kMostGpus, 1);
        if (std::ranges::any_of(layout.stage_layers, [&](std::uint32_t layers) { return layers % stages != 0; })) {
            refuse(ErrorCode::kInfeasible,
                   "virtual-pipeline",
                   name + ": the layers of a stage do not divide into " + std::to_string(stages) + " virtual stages (" +
                       describe_split(layout.stage_layers) + ")",
                   name,
                   Suggestion{name, "1", ""});
            return;
        }
        layout.virtual_stages = stages;
    }

    /// Megatron counts the embedding or the loss that it accounts for as a layer of the first or last stage.
    void account_for_tables(LayoutText& layout, std::uint32_t layers) {
        const std::array counted{"train.account_for_embedding", "train.account_for_loss"};
        const std::array ends{&LayoutText::first_stage_layers, &LayoutText::last_stage_layers};
        const auto is_counted = [&](const char* name) { return text_of(name, "false") == "true"; };
        const auto all = layers + static_cast<std::uint32_t>(std::ranges::count_if(counted, is_counted));
        const auto stages = layout.pp.value_or(1);
        if (all == layers || stages == 1) {
            return;
        }
        const bool is_even = !layout.first_stage_layers && !layout.last_stage_layers && all % stages == 0 && all / stages > 1;
        for (std::size_t i = 0; i < counted.size(); ++i) {
            if (!is_counted(counted[i])) {
                continue;
            }
            if (is_even) {
                layout.*ends[i] = all / stages - 1;
                continue;
            }
            refuse(ErrorCode::kInfeasible,
                   "pipeline-split",
                   std::string{counted[i]} + ": Megatron then wants " + std::to_string(all) + " layers and tables to divide into " +
                       std::to_string(stages) + " stages of two or more, and no number of layers set for an end",
                   counted[i],
                   Suggestion{counted[i], "false", ""});
        }
    }

    std::optional<TrainLayout> read_train(const std::optional<Inventory>& model) {
        auto layout = read_layout("train");
        if (!layout) {
            return std::nullopt;
        }
        const auto gpus = gpus_of("train", *layout);
        if (!model) {
            return std::nullopt;
        }
        add_pipeline(*layout, *model);
        account_for_tables(*layout, model->layers());
        auto made = make_train_layout(*layout, gpus, *model);
        if (!made) {
            suggest_end(made.error(), *layout, model->layers());
        }
        auto taken = take_layout(std::move(made), *layout, gpus, "train.layout");
        if (taken) {
            read_virtual_stages(*taken);
        }
        return taken;
    }

    std::optional<GenerateLayout> read_generate(const std::optional<Inventory>& model) {
        const auto layout = read_layout("generate");
        if (!layout) {
            return std::nullopt;
        }
        const auto gpus = gpus_of("generate", *layout);
        return model ? take_layout(make_generate_layout(*layout, gpus, *model), *layout, gpus, "generate.layout") : std::nullopt;
    }

    std::optional<Placement> read_placement(const System& train, const System& generate) {
        Placement placement{usual_gpus_per_domain(train), usual_gpus_per_domain(generate), true};
        const std::string name = "placement.gpus_used_per_domain";
        if (draft_.find(name) != nullptr) {
            const auto most = std::min(train.gpus_per_domain, generate.gpus_per_domain);
            const auto used = whole_number(name, text_of(name, ""), most, most);
            placement.train_gpus_per_domain = used;
            placement.generate_gpus_per_domain = used;
        }
        placement.generation_starts_new_domain =
            one_of("placement.generation_starts_new_domain", "true", {"true", "false"}, ErrorCode::kInvalidInput) == "true";
        return placement;
    }

    const ScenarioDraft& draft_;
    const Library& library_;
    Faults faults_;
};

/// The faults, and those that would be left once their suggestions were followed.
Faults with_others(Faults faults, ScenarioDraft draft, const Library& library) {
    for (const auto& fault : faults) {
        draft.apply(fault.nearest.value());
    }
    static_cast<void>(take(Resolver{draft, library}.run(), faults));
    return faults;
}

}  // namespace

Result<Scenario> resolve(const ScenarioDraft& draft, const Library& library) {
    auto faults = unmodelled_settings(draft, library);
    return faults.empty() ? Resolver{draft, library}.run() : fail(with_others(std::move(faults), draft, library));
}

}  // namespace refit::io
