// SPDX-License-Identifier: Apache-2.0
#include "refit/io/recipe.hpp"

#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 1U << 20U;
constexpr int kMostInheritance = 16;
constexpr int kMostReferences = 16;

std::string place(const fs::path& file, const YAML::Mark& mark) {
    return file.string() + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

/// `over` laid upon `base`: maps key by key, everything else replaced; `_override_: true` replaces a map whole.
YAML::Node merged(const YAML::Node& base, const YAML::Node& over) {
    if (!base || !base.IsMap() || !over.IsMap()) {
        return over;
    }
    if (const auto mark = over["_override_"]; mark && mark.IsScalar() && mark.Scalar() == "true") {
        return over;
    }
    YAML::Node result{YAML::NodeType::Map};
    for (const auto& item : base) {
        result[item.first.Scalar()] = item.second;
    }
    for (const auto& item : over) {
        const auto key = item.first.Scalar();
        const YAML::Node below = result[key];
        result[key] = merged(below, item.second);
    }
    return result;
}

Result<YAML::Node> load(const fs::path& file, int depth);

Result<YAML::Node> with_defaults(const YAML::Node& node, const fs::path& file, int depth) {
    const YAML::Node defaults = node["defaults"];
    if (!defaults) {
        return node;
    }
    std::vector<std::string> names;
    if (defaults.IsScalar()) {
        names.push_back(defaults.Scalar());
    }
    for (std::size_t i = 0; defaults.IsSequence() && i < defaults.size(); ++i) {
        names.push_back(defaults[i].IsScalar() ? defaults[i].Scalar() : "");
    }
    YAML::Node base{YAML::NodeType::Map};
    for (const auto& name : names) {
        auto parent = load(file.parent_path() / name, depth + 1);
        if (!parent) {
            return parent;
        }
        base = merged(base, *parent);
    }
    return merged(base, node);
}

Result<YAML::Node> load(const fs::path& file, int depth) {
    if (depth > kMostInheritance) {
        return fail(ErrorCode::kInvalidInput, "recipe-inheritance", "`defaults` nest deeper than 16 files", file.string());
    }
    const auto text = read_text(file, kMostBytes);
    if (!text) {
        return Failure{text.error()};
    }
    try {
        const auto node = YAML::Load(*text);
        if (!node.IsMap()) {
            return fail(ErrorCode::kInvalidInput, "recipe-shape", "a recipe must be a YAML map", file.string());
        }
        return with_defaults(node, file, depth);
    } catch (const YAML::Exception& error) {
        return fail(ErrorCode::kInvalidInput, "yaml-syntax", "this is not valid YAML: " + error.msg, place(file, error.mark));
    }
}

class RecipeReader {
public:
    RecipeReader(YAML::Node root, fs::path file, const Library& library)
        : root_{std::move(root)}, file_{std::move(file)}, library_{library} {}

    Result<ScenarioDraft> run() {
        set("name", file_.stem().string(), "file name");
        read_model();
        read_support();
        const auto per_node = number("cluster.gpus_per_node").value_or(1);
        const auto nodes = number("cluster.num_nodes").value_or(1);
        read_gpus(nodes, per_node);
        read_train();
        read_generation();
        read_options();
        if (const auto segment = number("cluster.segment_size")) {
            set("placement.gpus_used_per_domain", std::to_string(*segment * per_node), "cluster.segment_size");
        }
        if (!faults_.empty()) {
            return fail(std::move(faults_));
        }
        return std::move(draft_);
    }

private:
    /// The node at a dotted path; undefined where there is none. References are followed; one that leads nowhere, and
    /// anything else in "${...}", stays as it is written, so that its reader refuses it with its line.
    [[nodiscard]] YAML::Node at(const std::string& path, int depth = 0) const {
        YAML::Node node = YAML::Clone(YAML::Node{});
        node.reset(root_);
        std::size_t begin = 0;
        while (begin <= path.size()) {
            const auto dot = std::min(path.find('.', begin), path.size());
            if (!node.IsMap()) {
                return YAML::Node{YAML::NodeType::Undefined};
            }
            const YAML::Node next = node[path.substr(begin, dot - begin)];
            if (!next) {
                return YAML::Node{YAML::NodeType::Undefined};
            }
            node.reset(next);
            begin = dot + 1;
        }
        if (node.IsScalar() && node.Scalar().starts_with("${") && node.Scalar().ends_with("}") && depth < kMostReferences) {
            const auto target = at(node.Scalar().substr(2, node.Scalar().size() - 3), depth + 1);
            return target.IsDefined() ? target : node;
        }
        return node;
    }

    [[nodiscard]] std::optional<std::string> text(const std::string& path) const {
        const auto node = at(path);
        return node.IsDefined() && node.IsScalar() ? std::optional{node.Scalar()} : std::nullopt;
    }

    [[nodiscard]] bool flag(const std::string& path, bool fallback) const {
        const auto value = text(path);
        return value ? *value == "true" || *value == "True" : fallback;
    }

    [[nodiscard]] std::string where(const std::string& path) const {
        const auto node = at(path);
        return node.IsDefined() && !node.Mark().is_null() ? place(file_, node.Mark()) + " (" + path + ")" : file_.string() + " (" + path + ")";
    }

    std::optional<std::uint64_t> number(const std::string& path) {
        const auto value = text(path);
        if (!value || *value == "null" || *value == "~") {
            return std::nullopt;
        }
        std::uint64_t result = 0;
        const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), result);
        if (error != std::errc{} || end != value->data() + value->size() || result > (1U << 20U)) {
            refuse(ErrorCode::kInvalidInput, "recipe-number", path + " is '" + *value + "', not a whole number up to 2^20", path);
            return std::nullopt;
        }
        return result;
    }

    void refuse(ErrorCode code, const char* rule, std::string message, const std::string& path) {
        faults_.push_back({code, rule, std::move(message), where(path)});
    }

    void set(const std::string& field, std::string value, const std::string& path) {
        draft_.set(field, {std::move(value), DraftField::Kind::kText, Precedence::kFile, where(path)});
    }

    void read_model() {
        const auto name = text("policy.model_name");
        if (!name) {
            refuse(ErrorCode::kInvalidInput, "missing-field", "policy.model_name is missing", "policy.model_name");
            return;
        }
        // An unknown name is left as it stands: --model may replace it, and if not, resolving says so.
        const auto id = library_.model_of_hub_name(*name);
        set("model", id ? *id : *name, "policy.model_name");
        set("dtype", text("policy.precision").value_or("bf16"), "policy.precision");
    }

    void read_support() {
        if (flag("policy.generation.colocated.enabled", true)) {
            refuse(ErrorCode::kUnsupported,
                   "colocated",
                   "this recipe is colocated: its weights move within a GPU, which is not modelled. Set "
                   "policy.generation.colocated.enabled: false and colocated.resources to split the GPUs",
                   "policy.generation.colocated.enabled");
        }
        if (!flag("policy.megatron_cfg.enabled", false)) {
            refuse(ErrorCode::kUnsupported, "train-backend", "only Megatron trainers are modelled: policy.megatron_cfg.enabled must be true", "policy.megatron_cfg.enabled");
        }
        set("generate.engine", text("policy.generation.backend").value_or("vllm"), "policy.generation.backend");
    }

    /// On one node the generators take some of its GPUs; else whole nodes.
    void read_gpus(std::uint64_t nodes, std::uint64_t per_node) {
        const std::string resources = "policy.generation.colocated.resources.";
        const auto generate_per_node = number(resources + "gpus_per_node").value_or(per_node);
        const auto generate = nodes == 1 ? generate_per_node : number(resources + "num_nodes").value_or(0) * generate_per_node;
        const auto total = nodes * per_node;
        if (generate == 0 || generate >= total) {
            refuse(ErrorCode::kInvalidInput,
                   "recipe-gpus",
                   "generation takes " + std::to_string(generate) + " of " + std::to_string(total) + " GPUs; it must leave some to training",
                   resources + "num_nodes");
            return;
        }
        set("generate.gpus", std::to_string(generate), resources + "num_nodes");
        set("train.gpus", std::to_string(total - generate), "cluster.num_nodes");
    }

    void read_train() {
        const std::string base = "policy.megatron_cfg.";
        std::string layout;
        for (const auto& [axis, key] : {std::pair{"tp", "tensor_model_parallel_size"},
                                        std::pair{"cp", "context_parallel_size"},
                                        std::pair{"pp", "pipeline_model_parallel_size"},
                                        std::pair{"ep", "expert_model_parallel_size"},
                                        std::pair{"etp", "expert_tensor_parallel_size"}}) {
            layout += (layout.empty() ? "" : ".") + std::string{axis} + std::to_string(number(base + key).value_or(1));
        }
        set("train.layout", layout, base + "tensor_model_parallel_size");
        for (const auto& [field, key] : {std::pair{"train.pipeline.first", "num_layers_in_first_pipeline_stage"},
                                         std::pair{"train.pipeline.last", "num_layers_in_last_pipeline_stage"}}) {
            if (const auto layers = number(base + key)) {
                set(field, std::to_string(*layers), base + key);
            }
        }
    }

    void read_generation() {
        const std::string base = "policy.generation.vllm_cfg.";
        std::string layout = "tp" + std::to_string(number(base + "tensor_parallel_size").value_or(1));
        layout += ".pp" + std::to_string(number(base + "pipeline_parallel_size").value_or(1));
        layout += ".ep" + std::to_string(number(base + "expert_parallel_size").value_or(1));
        set("generate.layout", layout, base + "tensor_parallel_size");
        const auto precision = text(base + "precision");
        if (precision && *precision != "auto" && *precision != "null") {
            set("generate.dtype", *precision, base + "precision");
        }
    }

    void read_options() {
        for (const char* name : {"NRL_REFIT_NUM_STREAMS", "NRL_REFIT_NUM_BUFFERS", "NRL_REFIT_BUFFER_MEMORY_RATIO"}) {
            for (const char* base : {"policy.megatron_cfg.env_vars.", "policy.generation.vllm_cfg.env_vars."}) {
                if (const auto value = text(std::string{base} + name)) {
                    set(std::string{"engine.options."} + name, *value, std::string{base} + name);
                }
            }
        }
    }

    YAML::Node root_;
    fs::path file_;
    const Library& library_;
    ScenarioDraft draft_;
    Faults faults_;
};

}  // namespace

Result<ScenarioDraft> read_recipe(const fs::path& file, const Library& library) {
    const auto root = load(file, 0);
    if (!root) {
        return Failure{root.error()};
    }
    return RecipeReader{*root, file, library}.run();
}

}  // namespace refit::io
