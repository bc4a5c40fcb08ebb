// SPDX-License-Identifier: Apache-2.0
#include "recipe_columns.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace refit::io {
namespace {

constexpr const char* kMegatron = "policy.megatron_cfg.";
constexpr const char* kGeneration = "policy.generation.";
constexpr const char* kResources = "policy.generation.colocated.resources.";

class ColumnReader {
public:
    explicit ColumnReader(RecipeTree& tree) : tree_{tree} {}

    RecipeColumns run() {
        columns_.name = tree_.name();
        columns_.model = tree_.text("policy.model_name");
        columns_.has_generation = tree_.has("policy.generation");
        columns_.is_async = tree_.flag("grpo.async_grpo.enabled");
        columns_.nodes = needed_number("cluster.num_nodes");
        columns_.gpus_per_node = needed_number("cluster.gpus_per_node");
        columns_.segment_nodes = tree_.number("cluster.segment_size");
        read_train();
        if (columns_.has_generation) {
            read_generation();
        }
        read_gpus();
        return std::move(columns_);
    }

private:
    std::uint64_t needed_number(const std::string& path) {
        if (!tree_.has(path)) {
            tree_.refuse(ErrorCode::kInvalidInput, "missing-field", path + " is missing", path);
            return 1;
        }
        return tree_.number(path).value_or(1);
    }

    void read_train() {
        const bool is_megatron = tree_.flag(std::string{kMegatron} + "enabled").value_or(false);
        const bool is_v2 = !is_megatron && tree_.flag("policy.dtensor_cfg._v2").value_or(false);
        columns_.train_backend = is_megatron ? "megatron" : is_v2 ? "dtensor_v2" : "dtensor";
        columns_.train_precision = tree_.text("policy.precision").value_or("bf16");
        if (is_megatron) {
            read_megatron();
        } else {
            const std::string base = "policy.dtensor_cfg.";
            columns_.train.path = base;
            columns_.train.tp = tree_.number(base + "tensor_parallel_size");
            columns_.train.cp = tree_.number(base + "context_parallel_size");
            columns_.train.ep = tree_.number(base + "expert_parallel_size");
        }
    }

    void read_megatron() {
        columns_.train = {tree_.number(std::string{kMegatron} + "tensor_model_parallel_size"),
                          tree_.number(std::string{kMegatron} + "pipeline_model_parallel_size"),
                          tree_.number(std::string{kMegatron} + "context_parallel_size"),
                          tree_.number(std::string{kMegatron} + "expert_model_parallel_size"),
                          tree_.number(std::string{kMegatron} + "expert_tensor_parallel_size"),
                          kMegatron};
        columns_.first_stage_layers =
            tree_.number(std::string{kMegatron} + "num_layers_in_first_pipeline_stage");
        columns_.last_stage_layers =
            tree_.number(std::string{kMegatron} + "num_layers_in_last_pipeline_stage");
        columns_.virtual_stages =
            tree_.number(std::string{kMegatron} + "virtual_pipeline_model_parallel_size");
        columns_.pipeline_layout = tree_.written(std::string{kMegatron} + "pipeline_model_parallel_layout");
        columns_.accounts_for_embedding =
            tree_.flag(std::string{kMegatron} + "account_for_embedding_in_pipeline_split").value_or(false);
        columns_.accounts_for_loss =
            tree_.flag(std::string{kMegatron} + "account_for_loss_in_pipeline_split").value_or(false);
        columns_.is_fp8 = tree_.flag(std::string{kMegatron} + "fp8_cfg.enabled").value_or(false);
        const bool keeps_fp8 = tree_.flag(std::string{kMegatron} + "fp8_cfg.fp8_param").value_or(false);
        const auto recipe = tree_.text(std::string{kMegatron} + "fp8_cfg.fp8_recipe").value_or("");
        if (columns_.is_fp8) {
            columns_.keeps_fp8 = keeps_fp8;
            columns_.fp8_recipe = recipe;
        }
    }

    /// Backends spell the sizes in their own ways.
    RecipeLayout read_generate_layout(const std::string& backend) {
        RecipeLayout layout;
        if (backend == "megatron") {
            // Megatron generates with the trainers' sizes unless it is told others.
            layout.path = std::string{kGeneration} + "mcore_generation_config.";
            layout.tp = tree_.number(layout.path + "tensor_model_parallel_size");
            layout.pp = tree_.number(layout.path + "pipeline_model_parallel_size");
            layout.ep = tree_.number(layout.path + "expert_model_parallel_size");
            layout.tp = layout.tp ? layout.tp : columns_.train.tp;
            layout.pp = layout.pp ? layout.pp : columns_.train.pp;
            layout.ep = layout.ep ? layout.ep : columns_.train.ep;
        } else if (backend == "sglang") {
            layout.path = std::string{kGeneration} + "sglang_cfg.";
            layout.tp = tree_.number(layout.path + "tp_size");
            layout.pp = tree_.number(layout.path + "pp_size");
            layout.ep = tree_.number(layout.path + "ep_size");
        } else {
            layout.path = std::string{kGeneration} + (backend == "trtllm" ? "trtllm_cfg." : "vllm_cfg.");
            layout.tp = tree_.number(layout.path + "tensor_parallel_size");
            layout.pp = tree_.number(layout.path + "pipeline_parallel_size");
            layout.ep = tree_.number(
                layout.path + (backend == "trtllm" ? "moe_expert_parallel_size" : "expert_parallel_size"));
        }
        return layout;
    }

    void read_generation() {
        columns_.generate_backend = tree_.text(std::string{kGeneration} + "backend").value_or("vllm");
        const auto& backend = columns_.generate_backend;
        columns_.is_colocated = tree_.flag(std::string{kGeneration} + "colocated.enabled").value_or(true);
        columns_.generate = read_generate_layout(backend);
        if (backend == "megatron") {
            columns_.generate_precision = columns_.train_precision;
        } else {
            columns_.generate_precision =
                tree_.text(columns_.generate.path + (backend == "sglang" ? "dtype" : "precision"));
        }
        columns_.kv_cache_dtype =
            tree_.text(std::string{kGeneration} + "vllm_cfg.kv_cache_dtype").value_or("auto");
        columns_.is_mx = tree_.flag(std::string{kGeneration} + "vllm_cfg.is_mx").value_or(false);
        columns_.is_async_engine = tree_.flag(std::string{kGeneration} + "vllm_cfg.async_engine");
        columns_.has_eplb = tree_.flag(std::string{kGeneration} + "vllm_kwargs.enable_eplb").value_or(false);
        columns_.expert_placement =
            tree_.text(std::string{kGeneration} + "vllm_kwargs.expert_placement_strategy");
        columns_.has_real_quant = tree_.flag(std::string{kGeneration} + "real_quant").value_or(false);
        columns_.transport = tree_.text(std::string{kGeneration} + "refit_transport");
    }

    std::optional<std::string> teacher_of(const std::string& teachers, const std::string& agent) {
        return tree_.text(teachers + "." + agent);
    }

    std::optional<std::uint64_t> teacher_nodes_of(const std::string& apart, const std::string& agent) {
        return tree_.number(apart + "teacher_overrides." + agent + ".num_nodes");
    }

    /// Nodes of teachers that have GPUs of their own: one group for each checkpoint, or for each agent.
    std::uint64_t teacher_nodes() {
        const std::string base = "on_policy_distillation.";
        const std::string apart = base + "non_colocated_teachers.";
        if (!tree_.flag(base + "enabled").value_or(false) || !tree_.flag(apart + "enabled").value_or(false)) {
            return 0;
        }
        const bool are_shared = tree_.flag(base + "deduplicate_shared_teacher_checkpoints").value_or(true);
        const auto usual = tree_.number(apart + "default_teacher_cfg.num_nodes").value_or(1);
        std::set<std::string> seen;
        std::uint64_t nodes = 0;
        const std::string teachers = base + "teacher_model_by_agent_name";
        for (const auto& agent : tree_.keys(teachers)) {
            if (seen.insert(teacher_of(teachers, agent).value_or(agent)).second || !are_shared) {
                nodes += teacher_nodes_of(apart, agent).value_or(usual);
            }
        }
        return nodes;
    }

    /// Whether the data is judged by a reward model of NeMo RL's, which takes GPUs from the cluster.
    bool has_reward_model() {
        return std::ranges::any_of(
            std::vector<std::string>{"data.env_name", "data.default.env_name", "data.train.env_name"},
            [&](const auto& path) { return tree_.text(path) == "reward_model"; });
    }

    void read_gpus() {
        const auto per_node = columns_.gpus_per_node;
        columns_.train_gpus_path = "cluster.num_nodes";
        std::uint64_t reward_gpus = 0;
        if (has_reward_model()) {
            const std::string base = "env.reward_model.resources.";
            columns_.reserved_nodes += columns_.nodes > 1 ? tree_.number(base + "num_nodes").value_or(0) : 0;
            reward_gpus = columns_.nodes == 1 ? tree_.number(base + "gpus_per_node").value_or(0) : 0;
        }
        columns_.reserved_nodes += teacher_nodes();
        if (columns_.reserved_nodes >= columns_.nodes || reward_gpus >= per_node) {
            refuse_gpus("reward models and teachers leave no node to the policy", "cluster.num_nodes");
            return;
        }
        const auto total = (columns_.nodes - columns_.reserved_nodes) * per_node - reward_gpus;
        if (!columns_.has_generation || columns_.is_colocated) {
            columns_.train_gpus = total;
            columns_.generate_gpus = columns_.has_generation ? std::optional{total} : std::nullopt;
            columns_.generate_gpus_path = "cluster.num_nodes";
            return;
        }
        split_gpus(total, columns_.nodes - columns_.reserved_nodes);
    }

    void refuse_gpus(std::string message, const std::string& path) {
        tree_.refuse(ErrorCode::kInvalidInput, "recipe-gpus", std::move(message), path);
    }

    /// On one node the generators take some of its GPUs; else whole nodes.
    void split_gpus(std::uint64_t total, std::uint64_t nodes) {
        const auto per_node = columns_.gpus_per_node;
        const auto generate_per_node =
            tree_.number(std::string{kResources} + "gpus_per_node").value_or(per_node);
        const auto generate_nodes = tree_.number(std::string{kResources} + "num_nodes");
        if (nodes > 1 && generate_per_node != per_node) {
            refuse_gpus("generation takes " + std::to_string(generate_per_node) +
                            " GPUs of each node, but on more than one node it must take all " +
                            std::to_string(per_node),
                        std::string{kResources} + "gpus_per_node");
            return;
        }
        const auto generate = nodes == 1 ? generate_per_node : generate_nodes.value_or(0) * generate_per_node;
        columns_.generate_gpus_path = std::string{kResources} + (nodes == 1 ? "gpus_per_node" : "num_nodes");
        if (generate == 0 || generate >= total) {
            refuse_gpus("generation takes " + std::to_string(generate) + " of " + std::to_string(total) +
                            " GPUs; it must leave some to training",
                        columns_.generate_gpus_path);
            return;
        }
        columns_.generate_gpus = generate;
        columns_.train_gpus = without_judges(total - generate);
    }

    /// Judges of NeMo Gym have nodes inside cluster.num_nodes or beside it, as the launcher likes: inside,
    /// where the trainers' layout divides only the GPUs that this leaves.
    std::uint64_t without_judges(std::uint64_t gpus) {
        const std::string path = "env.nemo_gym.num_gpu_nodes";
        const auto judges = tree_.number(path).value_or(0);
        const auto of = [](std::optional<std::uint64_t> size) {
            return std::max<std::uint64_t>(size.value_or(1), 1);
        };
        const auto& train = columns_.train;
        const auto dense = of(train.tp) * of(train.cp);
        const auto expert = of(train.ep) * of(train.etp);
        const auto fits = [&](std::uint64_t count) {
            return count % of(train.pp) == 0 && count / of(train.pp) % dense == 0 &&
                   count / of(train.pp) % expert == 0;
        };
        const auto taken = judges * columns_.gpus_per_node;
        if (judges == 0 || taken >= gpus || fits(gpus) || !fits(gpus - taken)) {
            return gpus;
        }
        columns_.reserved_nodes += judges;
        columns_.train_gpus_path = path;
        return gpus - taken;
    }

    RecipeTree& tree_;
    RecipeColumns columns_;
};

}  // namespace

RecipeColumns read_recipe_columns(RecipeTree& tree) {
    return ColumnReader{tree}.run();
}

}  // namespace refit::io
