// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace refit::testing_io {

/// A recipe for Qwen3-30B-A3B from one node to another, with lines of its own in each section.
inline std::string small(const std::string& megatron = "",
                         const std::string& generation = "",
                         const std::string& vllm = "") {
    return "cluster: {num_nodes: 2, gpus_per_node: 8}\n"
           "policy:\n"
           "  model_name: Qwen/Qwen3-30B-A3B\n"
           "  megatron_cfg:\n"
           "    enabled: true\n" +
           (megatron.empty() ? "" : "    " + megatron + "\n") +
           "  generation:\n"
           "    colocated: {enabled: false, resources: {num_nodes: 1}}\n" +
           (generation.empty() ? "" : "    " + generation + "\n") +
           "    vllm_cfg:\n      tensor_parallel_size: 2\n" + (vllm.empty() ? "" : "      " + vllm + "\n");
}

}  // namespace refit::testing_io
