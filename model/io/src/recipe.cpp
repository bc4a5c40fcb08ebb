// SPDX-License-Identifier: Apache-2.0
#include "refit/io/recipe.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
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
constexpr int kDeepest = 64;

std::string place(const fs::path& file, const YAML::Mark& mark) {
    return file.string() + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

/// One file of a recipe's inheritance, as it was written.
struct Document {
    fs::path file;
    YAML::Node root;
};

// YAML::Node is a handle: assigning to one changes the document behind it, and asking a map that is not const for a
// missing key adds it. Hence const nodes and recursion below.

/// `over` laid upon `base`: maps key by key, everything else replaced; `_override_: true` replaces a map whole.
YAML::Node merged(const YAML::Node& base, const YAML::Node& over, int depth) {
    if (depth > kDeepest) {
        throw YAML::RepresentationException{over.Mark(), "maps nest deeper than 64 levels"};
    }
    if (!base.IsMap() || !over.IsMap()) {
        return over;
    }
    if (const auto mark = over["_override_"]; mark.IsDefined() && mark.IsScalar() && mark.Scalar() == "true") {
        return over;
    }
    YAML::Node result{YAML::NodeType::Map};
    for (const auto& item : base) {
        result[item.first.Scalar()] = item.second;
    }
    for (const auto& item : over) {
        const auto key = item.first.Scalar();
        const auto below = base[key];
        result[key] = below.IsDefined() ? merged(below, item.second, depth + 1) : item.second;
    }
    return result;
}

Result<YAML::Node> load(const fs::path& file, std::vector<Document>& documents, int depth);

Result<std::vector<std::string>> names_of_defaults(const YAML::Node& defaults, const fs::path& file) {
    std::vector<std::string> names;
    if (defaults.IsScalar()) {
        names.push_back(defaults.Scalar());
    }
    for (std::size_t i = 0; defaults.IsSequence() && i < defaults.size(); ++i) {
        const auto name = defaults[i];
        if (!name.IsScalar()) {
            return fail(ErrorCode::kUnsupported,
                        "recipe-inheritance",
                        "`defaults` must list file names",
                        place(file, name.Mark()));
        }
        names.push_back(name.Scalar());
    }
    return names;
}

Result<YAML::Node> with_defaults(const YAML::Node& node, const fs::path& file, std::vector<Document>& documents, int depth) {
    const auto defaults = node["defaults"];
    if (!defaults.IsDefined()) {
        return node;
    }
    const auto names = names_of_defaults(defaults, file);
    if (!names) {
        return Failure{names.error()};
    }
    std::vector<YAML::Node> layers{YAML::Node{YAML::NodeType::Map}};
    for (const auto& name : *names) {
        const auto parent = load(file.parent_path() / name, documents, depth + 1);
        if (!parent) {
            return parent;
        }
        layers.push_back(merged(layers.back(), *parent, 0));
    }
    return merged(layers.back(), node, 0);
}

/// Reads a file upon those that it inherits from; `documents` gets them all, the file itself last.
Result<YAML::Node> load(const fs::path& file, std::vector<Document>& documents, int depth) {
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
        auto whole = with_defaults(node, file, documents, depth);
        documents.push_back({file, node});
        return whole;
    } catch (const YAML::Exception& error) {
        return fail(ErrorCode::kInvalidInput, "yaml-syntax", "this is not valid YAML: " + error.msg, place(file, error.mark));
    }
}

YAML::Node nothing() { return YAML::Node{YAML::NodeType::Undefined}; }

/// The first name of a dotted path and the rest.
std::pair<std::string, std::string> split_path(const std::string& path) {
    const auto dot = path.find('.');
    return dot == std::string::npos ? std::pair{path, std::string{}} : std::pair{path.substr(0, dot), path.substr(dot + 1)};
}

/// The node at a dotted path as written; undefined where there is none.
YAML::Node written_at(const YAML::Node& node, const std::string& path) {
    if (path.empty()) {
        return node;
    }
    if (!node.IsDefined() || !node.IsMap()) {
        return nothing();
    }
    const auto [name, rest] = split_path(path);
    const auto next = node[name];
    return next.IsDefined() ? written_at(next, rest) : nothing();
}

bool is_one_of(const std::string& text, std::initializer_list<const char*> words) {
    std::string lower = text;
    std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return std::ranges::find(words, lower) != words.end();
}

class RecipeReader {
public:
    RecipeReader(YAML::Node root, std::vector<Document> documents, const Library& library)
        : root_{std::move(root)}, documents_{std::move(documents)}, library_{library} {}

    Result<ScenarioDraft> run() {
        set("name", documents_.back().file.stem().string(), "file name");
        read_model();
        const bool is_split = read_support();
        const auto per_node = number("cluster.gpus_per_node").value_or(1);
        if (const auto nodes = number("cluster.num_nodes").value_or(1); is_split) {
            read_gpus(nodes, per_node);
        }
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
    /// The node itself, or what it refers to.
    [[nodiscard]] Result<YAML::Node> followed(const YAML::Node& node, const std::string& path, int depth) const {
        if (!node.IsDefined() || !node.IsScalar() || node.Scalar().find("${") == std::string::npos) {
            return node;
        }
        const auto& text = node.Scalar();
        const bool is_whole = text.starts_with("${") && text.ends_with("}");
        const auto target = is_whole ? text.substr(2, text.size() - 3) : std::string{};
        if (target.empty() || target.front() == '.' || target.find_first_of("${}[]: ,") != std::string::npos) {
            return fail(ErrorCode::kUnsupported,
                        "recipe-reference",
                        path + " is '" + text + "'; of references only ${a.b} for a whole value is read",
                        where(path));
        }
        if (depth >= kMostReferences) {
            return fail(ErrorCode::kInvalidInput, "recipe-reference", path + " refers to itself", where(path));
        }
        auto found = at(root_, target, path, depth + 1);
        if (found && !found->IsDefined()) {
            return fail(ErrorCode::kInvalidInput,
                        "recipe-reference",
                        path + " is '" + text + "', but there is no " + target,
                        where(path));
        }
        return found;
    }

    /// What stands at a dotted path, references followed, also on the way there; undefined where there is nothing.
    [[nodiscard]] Result<YAML::Node> at(const YAML::Node& node, const std::string& rest, const std::string& path, int depth) const {
        auto here = followed(node, path, depth);
        if (!here || rest.empty()) {
            return here;
        }
        const YAML::Node& map = *here;
        if (!map.IsDefined() || !map.IsMap()) {
            return nothing();
        }
        const auto [name, below] = split_path(rest);
        const auto next = map[name];
        return next.IsDefined() ? at(next, below, path, depth) : Result<YAML::Node>{nothing()};
    }

    /// The value at a path; nothing where it is absent or null, or, with a fault, no single value.
    [[nodiscard]] std::optional<std::string> text(const std::string& path) {
        const auto node = at(root_, path, path, 0);
        if (!node) {
            faults_.insert(faults_.end(), node.error().begin(), node.error().end());
            return std::nullopt;
        }
        if (!node->IsDefined() || node->IsNull()) {
            return std::nullopt;
        }
        if (!node->IsScalar()) {
            refuse(ErrorCode::kInvalidInput, "recipe-value", path + " must be a single value", path);
            return std::nullopt;
        }
        return node->Scalar();
    }

    [[nodiscard]] bool flag(const std::string& path, bool fallback) {
        const auto value = text(path);
        if (!value || is_one_of(*value, {"true", "yes", "on"})) {
            return value ? true : fallback;
        }
        if (!is_one_of(*value, {"false", "no", "off"})) {
            refuse(ErrorCode::kInvalidInput, "recipe-flag", path + " is '" + *value + "', not true or false", path);
            return fallback;
        }
        return false;
    }

    /// Where a path was written last, in this file or one that it inherits from.
    [[nodiscard]] std::string where(const std::string& path) const {
        for (auto document = documents_.rbegin(); document != documents_.rend(); ++document) {
            const auto node = written_at(document->root, path);
            if (node.IsDefined() && !node.Mark().is_null()) {
                return place(document->file, node.Mark()) + " (" + path + ")";
            }
        }
        return documents_.back().file.string() + " (" + path + ")";
    }

    std::optional<std::uint64_t> number(const std::string& path) {
        const auto value = text(path);
        if (!value) {
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
        const std::string fp8 = "policy.megatron_cfg.fp8_cfg.";
        if (flag(fp8 + "enabled", false) && flag(fp8 + "fp8_param", false)) {
            refuse(ErrorCode::kUnsupported, "train-dtype", "weights that are kept in fp8 cannot be modelled yet", fp8 + "fp8_param");
        }
    }

    /// Whether trainers and generators have GPUs of their own.
    bool read_support() {
        const bool is_colocated = flag("policy.generation.colocated.enabled", true);
        if (is_colocated) {
            refuse(ErrorCode::kUnsupported,
                   "colocated",
                   "this recipe is colocated: its weights move within a GPU, which is not modelled. Set "
                   "policy.generation.colocated.enabled: false and colocated.resources to split the GPUs",
                   "policy.generation.colocated.enabled");
        }
        if (!flag("policy.megatron_cfg.enabled", false)) {
            refuse(ErrorCode::kUnsupported, "train-backend", "only Megatron trainers are modelled: policy.megatron_cfg.enabled must be true", "policy.megatron_cfg.enabled");
        }
        const auto backend = text("policy.generation.backend").value_or("vllm");
        if (backend != "vllm") {
            refuse(ErrorCode::kUnsupported, "generate-backend", "only vLLM generators are modelled, not '" + backend + "'", "policy.generation.backend");
        }
        set("generate.engine", "vllm", "policy.generation.backend");
        refuse_other_pipelines();
        return !is_colocated;
    }

    /// Settings that put layers on other stages than the layout's numbers say.
    void refuse_other_pipelines() {
        const std::string base = "policy.megatron_cfg.";
        const auto unsupported = [&](const std::string& path) {
            refuse(ErrorCode::kUnsupported, "pipeline-split", path + " is not modelled: it puts layers on other stages", path);
        };
        const auto layout = base + "pipeline_model_parallel_layout";
        if (const auto node = written_at(root_, layout); node.IsDefined() && !node.IsNull()) {
            unsupported(layout);
        }
        if (number(base + "virtual_pipeline_model_parallel_size").value_or(1) > 1) {
            unsupported(base + "virtual_pipeline_model_parallel_size");
        }
        for (const char* key : {"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"}) {
            if (flag(base + key, false)) {
                unsupported(base + key);
            }
        }
    }

    /// On one node the generators take some of its GPUs; else whole nodes.
    void read_gpus(std::uint64_t nodes, std::uint64_t per_node) {
        const std::string resources = "policy.generation.colocated.resources.";
        const auto generate_per_node = number(resources + "gpus_per_node").value_or(per_node);
        const auto generate_nodes = number(resources + "num_nodes");
        if (nodes > 1 && generate_per_node != per_node) {
            refuse(ErrorCode::kInvalidInput,
                   "recipe-gpus",
                   "generation takes " + std::to_string(generate_per_node) + " GPUs of each node, but on more than one node it must take all " + std::to_string(per_node),
                   resources + "gpus_per_node");
            return;
        }
        const auto generate = nodes == 1 ? generate_per_node : generate_nodes.value_or(0) * generate_per_node;
        const auto total = nodes * per_node;
        if (generate == 0 || generate >= total) {
            refuse(ErrorCode::kInvalidInput,
                   "recipe-gpus",
                   "generation takes " + std::to_string(generate) + " of " + std::to_string(total) + " GPUs; it must leave some to training",
                   resources + (nodes == 1 ? "gpus_per_node" : "num_nodes"));
            return;
        }
        set("generate.gpus", std::to_string(generate), resources + (nodes == 1 ? "gpus_per_node" : "num_nodes"));
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
        if (precision && *precision != "auto") {
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

    const YAML::Node root_;
    std::vector<Document> documents_;
    const Library& library_;
    ScenarioDraft draft_;
    Faults faults_;
};

}  // namespace

Result<ScenarioDraft> read_recipe(const fs::path& file, const Library& library) {
    std::vector<Document> documents;
    const auto root = load(file, documents, 0);
    if (!root) {
        return Failure{root.error()};
    }
    return RecipeReader{*root, std::move(documents), library}.run();
}

}  // namespace refit::io
