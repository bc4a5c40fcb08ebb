// SPDX-License-Identifier: Apache-2.0
#include "refit/io/published_scenario.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "lower_case.hpp"

namespace refit::io {
namespace {

/// How far a model may be from the size that a record gives it: sizes are rounded (7 B of 7.6 B), and MTP layers counted or
/// not. A model cut to some of its layers is further away.
constexpr double kSizeTolerance = 0.1;

/// Version of the rules by which a record is read.
constexpr const char* kRules = "2026-11";

/// Why no file of data/engines has a path for an engine of the records.
struct UnmodelledEngine {
    std::string_view name;
    std::string_view why;
};
constexpr std::array kUnmodelledEngines{
    UnmodelledEngine{"nemo-rl-reshard-all",
                     "an earlier code path that sends every parameter by transfers, timed without loading"},
    UnmodelledEngine{"verl-single-sender",
                     "bound by hosts, at 2 to 5 GB/s: times of one model differ by 3.4 times between sharding modes"},
    UnmodelledEngine{"vllm-pull-1", "gathers first; its time per tensor is a third of the other ways', for no known reason"},
    UnmodelledEngine{"prime-pull", "one configuration, of whose time most is a pause and work of the framework"}};

/// Engines whose constants are told where generators hold whole tensors, and are known not to hold where tp cuts them.
constexpr const char* kWholeTensors =
    "told by whole tensors alone: where tp cuts them it would be sevenfold too slow (vLLM pull request 43375)";
constexpr std::array kUncutEngines{UnmodelledEngine{"vllm-pull-2", kWholeTensors},
                                   UnmodelledEngine{"vllm-pull-3", kWholeTensors}};

/// The words of a GPU's name: "DGX", "H100" and "80GB" of "DGX H100-80GB".
std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words(1);
    for (const char c : lower_case(text)) {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
            words.back() += c;
        } else if (!words.back().empty()) {
            words.emplace_back();
        }
    }
    return words;
}

/// The date with what it leaves open as late as it can be: "2026-06-99" of "2026-06".
std::string last_day(const std::string& date) {
    constexpr std::string_view kLatest = "9999-99-99";
    return date + std::string{kLatest.substr(std::min(date.size(), kLatest.size()))};
}

/// "400Gbit/s".
std::string gigabits(Bandwidth rate) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6gGbit/s", rate.bytes_per_second() * 8.0 / 1e9);
    return text.data();
}

/// "30.5 B".
std::string billions(double count) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g B", count / 1e9);
    return text.data();
}

/// "tp4.pp8.ep16": axes of size one are left out, and dp, which follows from the GPUs.
std::string layout_text(const LayoutText& layout) {
    std::string text;
    const auto add = [&](const char* name, const std::optional<std::uint32_t>& size) {
        if (size.value_or(1) > 1) {
            text += (text.empty() ? "" : ".") + std::string{name} + std::to_string(*size);
        }
    };
    add("tp", layout.tp);
    add("cp", layout.cp);
    add("pp", layout.pp);
    add("ep", layout.ep);
    add("etp", layout.etp);
    if (layout.fsdp) {
        text += (text.empty() ? "fsdp" : ".fsdp") + std::to_string(*layout.fsdp);
    }
    return text.empty() ? "tp1" : text;
}

class RecordReader {
public:
    RecordReader(const PublishedRecord& record,
                 std::span<const PublishedRecord> known,
                 const Library& library)
        : record_{record}, known_{known}, library_{library} {}

    Result<PublishedScenario> run() {
        if (!read_engine()) {
            return faults_.empty() ? fail(ErrorCode::kUnsupported, "engine", why_not(), record_.id) : fail(std::move(faults_));
        }
        set("name", record_.id);
        if (record_.streams) {
            set("engine.options.NRL_REFIT_NUM_STREAMS", std::to_string(*record_.streams));
        }
        read_weights();
        read_model();
        read_dtypes();
        read_side("train", record_.train, &PublishedRecord::train);
        read_side("generate", record_.generate, &PublishedRecord::generate);
        read_pipeline();
        read_system();
        if (!faults_.empty()) {
            return fail(std::move(faults_));
        }
        auto scenario = resolve(draft_, library_);
        if (!scenario) {
            return Failure{std::move(scenario.error())};
        }
        tell_split(*scenario);
        scenario->engine.options.reading.is_floor_open = !is_as_old_as(scenario->engine.constants.bulk_parameter_cost);
        return PublishedScenario{std::move(*scenario), std::move(assumed_)};
    }

private:
    [[nodiscard]] bool is_of_model(const PublishedRecord& other) const {
        return lower_case(other.model) == lower_case(record_.model);
    }
    [[nodiscard]] bool is_of_model_and_engine(const PublishedRecord& other) const {
        return other.engine == record_.engine && is_of_model(other);
    }

    /// Whether the refit was published no later than the first record that identifies a constant, by this record or by another
    /// of the same refit: its software is no newer.
    [[nodiscard]] bool is_as_old_as(const Constant& constant) const {
        const auto is_same_refit = [&](const PublishedRecord& other) {
            return is_of_model_and_engine(other) &&
                   other.generate_dtype == record_.generate_dtype && other.gpu == record_.gpu &&
                   other.train.gpus == record_.train.gpus && other.train.layout == record_.train.layout &&
                   other.generate.gpus == record_.generate.gpus && other.generate.layout == record_.generate.layout;
        };
        auto published = last_day(record_.date);
        auto fitted = last_day("");
        for (const auto& other : known_) {
            if (is_same_refit(other)) {
                published = std::min(published, last_day(other.date));
            }
            if (std::ranges::find(constant.identified_by, other.id) != constant.identified_by.end()) {
                fitted = std::min(fitted, last_day(other.date));
            }
        }
        return published <= fitted && published != last_day("");
    }

    /// Finds the engine that has a path of the record's name. Returns whether there is one.
    bool read_engine() {
        for (const auto& name : library_.engines()) {
            const auto engine = take(library_.engine(name), faults_);
            const auto* path = engine ? engine->find_path(record_.engine) : nullptr;
            if (path != nullptr) {
                set("engine.name", name);
                engine_ = name;
                method_ = path->method;
                for (const auto& [option, value] : path->settings) {
                    set("engine.options." + option, value);
                }
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] std::string why_not() const {
        if (record_.engine.empty()) {
            return "the source does not say which engine was timed";
        }
        const auto* const known = std::ranges::find(kUnmodelledEngines, record_.engine, &UnmodelledEngine::name);
        return record_.engine + ": " +
               (known == kUnmodelledEngines.end() ? "no file of data/engines has a path for this engine"
                                                  : std::string{known->why});
    }

    void set(const std::string& field, const std::string& value) {
        draft_.set(field, {value, DraftField::Kind::kText, Precedence::kFile, record_.id});
    }
    void refuse(const char* rule, std::string message) {
        faults_.push_back({ErrorCode::kUnsupported, rule, std::move(message), record_.id});
    }

    void read_weights() {
        if (record_.weights != "full") {
            refuse("partial-weights", "moves only part of the weights (" + record_.weights + ")");
        }
    }

    void read_model() {
        const auto id = library_.model_of_published_name(record_.model);
        if (!id) {
            refuse("unknown-model",
                   record_.model.empty() ? "the source names no model"
                                         : "no model of data/models is called '" + record_.model + "'");
            return;
        }
        const auto model = library_.model(*id);
        if (!model) {
            faults_.insert(faults_.end(), model.error().begin(), model.error().end());
            return;
        }
        set("model", *id);
        const auto parameters = static_cast<double>(model->payload_totals().parameters);
        if (record_.parameters && std::abs(*record_.parameters / parameters - 1.0) > kSizeTolerance) {
            refuse("model-size",
                   "has " + billions(*record_.parameters) + " parameters, but " + *id + " has " +
                       billions(parameters) + ": another model");
        }
    }

    void read_dtypes() {
        const auto read = [&](const std::string& text, const char* side) {
            auto dtype = parse_dtype(text.empty() ? "bf16" : text);
            if (text.empty()) {
                assumed_.push_back("bf16 " + std::string{side});
            }
            return dtype ? std::optional{*dtype} : std::nullopt;
        };
        const auto train = read(record_.train_dtype, "trainers");
        const auto generate = read(record_.generate_dtype, "generators");
        if (train && generate && *train == Dtype::kBf16 && *generate == Dtype::kFp8 && must_keep_fp8()) {
            set("dtype", "fp8");
            assumed_.push_back("trainers keep FP8 blockwise (" + engine_ + " sends no BF16 weights to FP8 this way)");
            return;
        }
        if (train && generate && *train == Dtype::kFp8 && *generate == Dtype::kFp8) {
            assumed_.emplace_back("FP8 in blocks of 128 x 128 on both sides");
        } else if (!train || !generate || *train != *generate || *train == Dtype::kFp8) {
            refuse("dtype-path",
                   "from " + record_.train_dtype + " to " + record_.generate_dtype +
                       ": a change of dtype on the way has no plan yet");
            return;
        }
        set("dtype", std::string{name_of(*train)});
    }

    /// Whether BF16 training can only have reached FP8 generators from weights that the trainers keep in FP8: the
    /// engine's rules refuse the change on the way, and do not refuse this.
    [[nodiscard]] bool must_keep_fp8() {
        const auto rules = method_ == "hybrid" ? take(library_.rules(engine_, kRules), faults_) : std::nullopt;
        const auto is_refused = [&](const char* is_kept) {
            return !violations(*rules,
                               {{"dtype", "bf16"},
                                {"generate.dtype", "fp8"},
                                {"generate.is_mx", "false"},
                                {"train.fp8_param", is_kept},
                                {"train.fp8_recipe", "blockwise"}})
                        .empty();
        };
        return rules && is_refused("false") && !is_refused("true");
    }

    /// The layout of a side: published, or assumed for this record or for another of its model and engine.
    std::optional<LayoutText> layout_of(const PublishedSide& side, PublishedSide PublishedRecord::*member) {
        if (side.layout || side.assumed_layout) {
            source_ = side.layout ? "" : "not published";
            return side.layout ? side.layout : side.assumed_layout;
        }
        const auto same = std::ranges::find_if(known_, [&](const PublishedRecord& other) {
            return is_of_model_and_engine(other) && (other.*member).assumed_layout.has_value();
        });
        if (same == known_.end()) {
            return std::nullopt;
        }
        source_ = "not published; as for " + same->id;
        return ((*same).*member).assumed_layout;
    }

    void read_side(const std::string& name,
                   const PublishedSide& side,
                   PublishedSide PublishedRecord::*member) {
        const std::string who = name == "train" ? "trainers" : "generators";
        if (!side.unplaced.empty()) {
            std::string names;
            for (const auto& axis : side.unplaced) {
                names += (names.empty() ? "" : ", ") + axis;
            }
            refuse("layout-axes", "the layout of the " + who + " has no place for " + names);
            return;
        }
        auto layout = layout_of(side, member);
        if (!layout) {
            refuse("no-layout", "the layout of the " + who + " is not published");
            return;
        }
        place_shards(side, *layout);
        if (side.attention_groups && !place_attention(*side.attention_groups, who, *layout)) {
            return;
        }
        const bool is_train = name == "train";
        const auto* const uncut = std::ranges::find(kUncutEngines, record_.engine, &UnmodelledEngine::name);
        if (!is_train && layout->tp.value_or(1) > 1 && uncut != kUncutEngines.end()) {
            refuse("cut-tensors", record_.engine + "'s cost of a tensor is " + std::string{uncut->why});
        }
        const auto text = layout_text(*layout);
        set(name + ".layout", text);
        if (is_train && side.virtual_stages.value_or(1) > 1) {
            set("train.virtual_pipeline", std::to_string(*side.virtual_stages));
        }
        if (!source_.empty()) {
            assumed_.push_back(who + " " + text + " (" + source_ + ")");
        }
        if (is_train) {
            train_ = *layout;
        }
        read_gpus(name, who, side, *layout);
    }

    /// FSDP of no given size shards over all trainers, and HSDP is taken to shard within an NVLink domain.
    void place_shards(const PublishedSide& side, LayoutText& layout) {
        const auto all = side.shards == ShardsOver::kAll ? side.gpus : record_.domain;
        if (side.shards == ShardsOver::kNumber || !all) {
            return;
        }
        layout.fsdp = std::max(1U, *all / layout.ep.value_or(1));
        if (side.shards == ShardsOver::kSome) {
            assumed_.emplace_back("trainers shard within an NVLink domain (sizes of HSDP not published)");
        }
    }

    /// SGLang's attention of `groups` copies within the tp ranks of an engine, whose experts lie whole on ranks: an engine of
    /// ours with tp / groups ranks and as many times its dp.
    bool place_attention(std::uint32_t groups, const std::string& who, LayoutText& layout) {
        const auto tp = layout.tp.value_or(1);
        if (groups == 1) {
            return true;
        }
        if (tp % groups != 0 || layout.ep.value_or(1) == 1) {
            refuse("layout-axes",
                   "dp_attn " + std::to_string(groups) + " of the " + who + " needs a tp that it divides, and experts over ep");
            return false;
        }
        layout.tp = tp / groups;
        layout.dp = layout.dp ? std::optional{*layout.dp * groups} : std::nullopt;
        assumed_.push_back(who + " tp" + std::to_string(tp) + " with " + std::to_string(groups) + " copies of attention as tp" +
                           std::to_string(*layout.tp));
        return true;
    }

    static std::uint32_t fewest_trainers(const LayoutText& layout) {
        const auto size = [](const std::optional<std::uint32_t>& axis) { return std::uint64_t{axis.value_or(1)}; };
        const auto count = layout.fsdp ? size(layout.ep) * *layout.fsdp
                                       : size(layout.pp) * std::lcm(size(layout.tp) * size(layout.cp), size(layout.ep) * size(layout.etp));
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, 1U << 20U));
    }

    /// The count, or what a layout with its dp multiplies out to, or the fewest trainers that a layout takes.
    void read_gpus(const std::string& name,
                   const std::string& who,
                   const PublishedSide& side,
                   const LayoutText& layout) {
        auto gpus = side.gpus;
        const auto product = std::uint64_t{layout.tp.value_or(1)} * layout.cp.value_or(1) *
                             layout.pp.value_or(1) * layout.dp.value_or(1) *
                             (layout.fsdp ? layout.ep.value_or(1) * *layout.fsdp : 1U);
        if (!gpus && layout.dp) {
            gpus = static_cast<std::uint32_t>(std::min<std::uint64_t>(product, 1U << 20U));
            assumed_.push_back(std::to_string(*gpus) + " " + who + " (from the layout)");
        } else if (!gpus && name == "train" && side.shards == ShardsOver::kNumber) {
            gpus = fewest_trainers(layout);
            assumed_.push_back(std::to_string(*gpus) + " trainers (not published; the fewest that the layout takes)");
        } else if (name == "generate" && gpus && layout.dp && product != *gpus) {
            // Some sources count ep beside dp.
            assumed_.push_back(who + " are " + std::to_string(*gpus) + ", so dp" +
                               std::to_string(*layout.dp) + " is not taken at its word");
        }
        if (!gpus) {
            refuse("no-gpus", "the number of " + who + " is not published");
            return;
        }
        set(name + ".gpus", std::to_string(*gpus));
    }

    /// Layers of the first and last stage, where the record or one of the same model and pipeline gives them.
    void read_pipeline() {
        const auto stages = train_.pp.value_or(1);
        if (stages == 1) {
            return;
        }
        auto first = train_.first_stage_layers;
        auto last = train_.last_stage_layers;
        if (!first && !last) {
            const auto like = std::ranges::find_if(known_, [&](const PublishedRecord& other) {
                const auto& layout = other.train.layout;
                return is_of_model(other) && layout && layout->pp == stages &&
                       (layout->first_stage_layers || layout->last_stage_layers);
            });
            if (like != known_.end()) {
                first = like->train.layout->first_stage_layers;
                last = like->train.layout->last_stage_layers;
                split_source_ = "as in " + like->id;
            } else {
                split_source_ = "not published";
            }
        }
        if (first) {
            set("train.pipeline.first", std::to_string(*first));
        }
        if (last) {
            set("train.pipeline.last", std::to_string(*last));
        }
    }

    /// A split that the record does not give is told, unless it is the only usual one.
    void tell_split(const Scenario& scenario) {
        const auto& layers = scenario.train.stage_layers;
        if (!split_source_.empty() &&
            std::ranges::adjacent_find(layers, std::not_equal_to{}) != layers.end()) {
            assumed_.push_back(describe_split(layers) + " (" + split_source_ + ")");
        }
    }

    void read_system() {
        const bool is_named = !record_.gpu.empty();
        if (!is_named && record_.domain != 8U) {
            refuse("no-system", "the GPU is not published");
            return;
        }
        const auto words = words_of(is_named ? record_.gpu : "H100");
        std::optional<System> best;
        std::set<std::string> named;
        for (const auto& name : library_.systems()) {
            auto system = take(library_.system(name, "system"), faults_);
            const bool is_meant = system && std::ranges::find(words, lower_case(system->gpu)) != words.end();
            if (is_meant) {
                named.insert(system->gpu);
            }
            if (is_meant && record_.domain.value_or(1) <= system->gpus_per_domain &&
                (!best || system->gpus_per_domain < best->gpus_per_domain)) {
                best = std::move(system);
            }
        }
        if (named.size() > 1) {
            refuse("no-system", "names several GPUs (" + record_.gpu + "): which side has which is not said");
            return;
        }
        if (!best) {
            refuse("no-system",
                   "no system of data/systems has " + record_.gpu +
                       (record_.domain ? " in NVLink domains of " + std::to_string(*record_.domain) : ""));
            return;
        }
        if (!is_named) {
            assumed_.push_back(best->title + " (GPU not published; 8 in an NVLink domain)");
        }
        use_system(*best);
    }

    void use_system(const System& system) {
        set("system", system.name);
        if (record_.domain && *record_.domain < system.gpus_per_domain) {
            const auto used = *record_.domain < 16 ? *record_.domain : *record_.domain / 16 * 16;
            set("placement.gpus_used_per_domain", std::to_string(used));
        }
        const auto usual = system.nic_per_gpu();
        if (!record_.nic) {
            assumed_.push_back("NIC " + gigabits(usual) + " a GPU (as " + system.name + ")");
        } else if (*record_.nic != usual) {
            set("system.nic",
                gigabits(Bandwidth::bytes_per_second(record_.nic->bytes_per_second() / system.nics_per_gpu)));
        }
    }

    const PublishedRecord& record_;
    std::span<const PublishedRecord> known_;
    const Library& library_;
    ScenarioDraft draft_;
    Faults faults_;
    std::vector<std::string> assumed_;
    std::string engine_;
    std::string method_;        ///< Of the path of the record's name.
    std::string source_;        ///< Of the layout that was read last; empty: the record.
    std::string split_source_;  ///< Of the layers of the stages; empty: the record.
    LayoutText train_;
};

}  // namespace

Result<PublishedScenario> scenario_of(const PublishedRecord& record,
                                      std::span<const PublishedRecord> known,
                                      const Library& library) {
    return RecordReader{record, known, library}.run();
}

}  // namespace refit::io
