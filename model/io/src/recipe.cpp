// SPDX-License-Identifier: Apache-2.0
#include "refit/io/recipe.hpp"

#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "recipe_columns.hpp"
#include "recipe_tree.hpp"

namespace refit::io {
namespace {

/// Turns the columns of a recipe into a scenario's fields, each with the place that it comes from.
class DraftWriter {
public:
    DraftWriter(RecipeTree tree, const Library& library)
        : tree_{std::move(tree)}, columns_{read_recipe_columns(tree_)}, library_{library} {}

    Result<ScenarioDraft> run() {
        set("name", columns_.name, "file name");
        if (!columns_.has_generation) {
            tree_.refuse(ErrorCode::kUnsupported,
                         "no-generation",
                         "this recipe only trains: it has no policy.generation, so no weights move",
                         "policy.generation");
        }
        write_model();
        write_gpus();
        write_train();
        write_generation();
        write_options();
        write_note();
        if (!tree_.faults().empty()) {
            return fail(std::move(tree_.faults()));
        }
        return std::move(draft_);
    }

private:
    void set(const std::string& field, std::string value, const std::string& path) {
        draft_.set(field, {std::move(value), DraftField::Kind::kText, Precedence::kFile, tree_.where(path)});
    }

    void set_flag(const std::string& field, bool value, const std::string& path) {
        if (value) {
            set(field, "true", path);
        }
    }

    void write_model() {
        // A name that is missing or unknown is left so: --model may give it, and if not, resolving says so.
        if (columns_.model) {
            const auto id = library_.model_of_hub_name(*columns_.model);
            set("model", id ? *id : *columns_.model, "policy.model_name");
        }
        set("dtype", columns_.train_precision, "policy.precision");
    }

    void write_gpus() {
        if (columns_.train_gpus && columns_.generate_gpus) {
            set("train.gpus", std::to_string(*columns_.train_gpus), columns_.train_gpus_path);
            set("generate.gpus", std::to_string(*columns_.generate_gpus), columns_.generate_gpus_path);
        }
        set_flag("generate.colocated", columns_.is_colocated, "policy.generation.colocated.enabled");
        if (columns_.segment_nodes) {
            set("placement.gpus_used_per_domain",
                std::to_string(*columns_.segment_nodes * columns_.gpus_per_node),
                "cluster.segment_size");
        } else if (columns_.nodes - columns_.reserved_nodes == 1) {
            // Both sides share the node's NVLink.
            set("placement.generation_starts_new_domain", "false", "cluster.num_nodes");
        }
    }

    static std::string axis(const char* name, std::optional<std::uint64_t> size) {
        return name + std::to_string(size.value_or(1));
    }

    void write_train() {
        const auto& train = columns_.train;
        const bool is_megatron = columns_.train_backend == "megatron";
        set("train.engine",
            is_megatron ? "megatron" : "dtensor",
            is_megatron ? train.path + "enabled" : "policy.dtensor_cfg.enabled");
        set_flag("train.dtensor", !is_megatron, "policy.dtensor_cfg.enabled");
        set("train.layout",
            axis("tp", train.tp) + "." + axis("cp", train.cp) + "." + axis("pp", train.pp) + "." +
                axis("ep", train.ep) + "." + axis("etp", train.etp),
            train.path + (is_megatron ? "tensor_model_parallel_size" : "tensor_parallel_size"));
        for (const auto& [field, key, layers] :
             {std::tuple{
                  "train.pipeline.first", "num_layers_in_first_pipeline_stage", columns_.first_stage_layers},
              std::tuple{
                  "train.pipeline.last", "num_layers_in_last_pipeline_stage", columns_.last_stage_layers},
              std::tuple{"train.virtual_pipeline",
                         "virtual_pipeline_model_parallel_size",
                         columns_.virtual_stages}}) {
            if (layers) {
                set(field, std::to_string(*layers), train.path + key);
            }
        }
        if (!columns_.pipeline_layout.empty()) {
            set("train.pipeline.layout",
                columns_.pipeline_layout,
                train.path + "pipeline_model_parallel_layout");
        }
        set_flag("train.account_for_embedding",
                 columns_.accounts_for_embedding,
                 train.path + "account_for_embedding_in_pipeline_split");
        set_flag("train.account_for_loss",
                 columns_.accounts_for_loss,
                 train.path + "account_for_loss_in_pipeline_split");
        set_flag("train.fp8_param", columns_.keeps_fp8, train.path + "fp8_cfg.fp8_param");
        if (!columns_.fp8_recipe.empty()) {
            set("train.fp8_recipe", columns_.fp8_recipe, train.path + "fp8_cfg.fp8_recipe");
        }
    }

    void write_generation() {
        const auto& generate = columns_.generate;
        const std::string base = "policy.generation.";
        set("generate.engine", columns_.generate_backend, base + "backend");
        set("generate.layout",
            axis("tp", generate.tp) + "." + axis("pp", generate.pp) + "." + axis("ep", generate.ep),
            generate.path + (columns_.generate_backend == "sglang" ? "tp_size" : "tensor_parallel_size"));
        const auto& precision = columns_.generate_precision;
        if (precision && *precision != "auto") {
            set("generate.dtype", *precision, generate.path + "precision");
        }
        set_flag("generate.is_mx", columns_.is_mx, base + "vllm_cfg.is_mx");
        set_flag("generate.enable_eplb", columns_.has_eplb, base + "vllm_kwargs.enable_eplb");
        if (columns_.expert_placement) {
            set("generate.expert_placement",
                *columns_.expert_placement,
                base + "vllm_kwargs.expert_placement_strategy");
        }
        set_flag("generate.real_quant", columns_.has_real_quant, base + "real_quant");
    }

    void write_options() {
        for (const char* name :
             {"NRL_REFIT_NUM_STREAMS", "NRL_REFIT_NUM_BUFFERS", "NRL_REFIT_BUFFER_MEMORY_RATIO"}) {
            for (const char* base :
                 {"policy.megatron_cfg.env_vars.", "policy.generation.vllm_cfg.env_vars."}) {
                if (const auto value = tree_.text(std::string{base} + name)) {
                    set(std::string{"engine.options."} + name, *value, std::string{base} + name);
                }
            }
        }
    }

    /// What the fields do not hold, for people.
    void write_note() {
        const auto& transport = columns_.transport;
        if (transport && *transport != "nccl_reshard" && *transport != "null") {
            set("note",
                "the recipe's refit_transport, " + *transport + ", is not modelled",
                "policy.generation.refit_transport");
        }
    }

    RecipeTree tree_;
    const RecipeColumns columns_;
    const Library& library_;
    ScenarioDraft draft_;
};

}  // namespace

Result<ScenarioDraft> read_recipe(const std::filesystem::path& file, const Library& library) {
    auto tree = RecipeTree::read(file);
    if (!tree) {
        return Failure{tree.error()};
    }
    return DraftWriter{std::move(*tree), library}.run();
}

Result<ScenarioDraft> read_recipe_text(std::string_view text,
                                       const std::string& origin,
                                       const Library& library) {
    auto tree = RecipeTree::parse(text, origin);
    if (!tree) {
        return Failure{tree.error()};
    }
    return DraftWriter{std::move(*tree), library}.run();
}

}  // namespace refit::io
