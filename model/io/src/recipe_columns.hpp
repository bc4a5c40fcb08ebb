// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "recipe_tree.hpp"

namespace refit::io {

/// One side of a recipe's parallel layout. Absent: not written, or the backend has no such setting.
struct RecipeLayout {
    std::optional<std::uint64_t> tp, pp, cp, ep, etp;
    std::string path;  ///< Where the settings stand: "policy.megatron_cfg.".
};

/// What a recipe says about its refit. Absent values are not written in the recipe.
struct RecipeColumns {
    std::string name;
    std::optional<std::string> model;
    std::uint64_t nodes = 1;
    std::uint64_t gpus_per_node = 1;
    std::optional<std::uint64_t> segment_nodes;  ///< Nodes of one NVLink segment.
    bool has_generation = true;                  ///< False for recipes that only train.
    bool is_colocated = true;
    std::optional<bool> is_async;

    std::optional<std::uint64_t> train_gpus;  ///< Absent, with a fault, where the split leaves none.
    std::string train_gpus_path;
    std::uint64_t reserved_nodes = 0;  ///< Of cluster.num_nodes, for reward models, teachers and judges.
    std::string train_backend;         ///< megatron, dtensor or dtensor_v2.
    RecipeLayout train;
    std::optional<std::uint64_t> first_stage_layers, last_stage_layers, virtual_stages;
    std::string pipeline_layout;
    bool accounts_for_embedding = false;
    bool accounts_for_loss = false;
    std::string train_precision;
    bool is_fp8 = false;
    bool keeps_fp8 = false;
    std::string fp8_recipe;

    std::string generate_backend;  ///< vllm, megatron, sglang, trtllm or dynamo.
    std::optional<std::uint64_t> generate_gpus;
    std::string generate_gpus_path;
    RecipeLayout generate;
    std::optional<std::string> generate_precision;
    std::string kv_cache_dtype;
    bool is_mx = false;
    std::optional<bool> is_async_engine;
    bool has_eplb = false;
    bool has_real_quant = false;
    std::optional<std::string> expert_placement;
    std::optional<std::string> transport;
};

/// Reads the columns of a recipe; what cannot be read is a fault of the tree.
[[nodiscard]] RecipeColumns read_recipe_columns(RecipeTree& tree);

}  // namespace refit::io
