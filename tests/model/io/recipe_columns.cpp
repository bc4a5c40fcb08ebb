// SPDX-License-Identifier: Apache-2.0
// Prints what the importer reads of each recipe, a line of CSV each, for a comparison with other readers.
#include "recipe_columns.hpp"

#include <iostream>
#include <optional>
#include <string>

namespace {

using refit::io::RecipeColumns;

std::string number(std::optional<std::uint64_t> value) {
    return value ? std::to_string(*value) : "";
}

std::string quoted(const std::string& text) {
    return text.find(',') == std::string::npos ? text : '"' + text + '"';
}

std::string flag(std::optional<bool> value) {
    return !value ? "" : *value ? "True" : "False";
}

std::string ends_of(const RecipeColumns& columns) {
    std::string text;
    for (const auto& [name, value] : {std::pair{"first=", number(columns.first_stage_layers)},
                                      std::pair{"last=", number(columns.last_stage_layers)},
                                      std::pair{"vpp=", number(columns.virtual_stages)},
                                      std::pair{"layout=", columns.pipeline_layout}}) {
        text += value.empty() ? "" : (text.empty() ? "" : ";") + std::string{name} + value;
    }
    return text;
}

std::string quotient(std::optional<std::uint64_t> gpus, std::uint64_t sizes) {
    return gpus && sizes > 0 ? std::to_string(*gpus / sizes) : "";
}

void print_side(const RecipeColumns& columns) {
    const auto& train = columns.train;
    const auto of = [](std::optional<std::uint64_t> size) { return size.value_or(1); };
    std::cout << number(columns.train_gpus) << ',' << columns.train_backend << ',' << of(train.tp) << ','
              << of(train.pp) << ',' << of(train.cp) << ',' << of(train.ep) << ',' << number(train.etp) << ','
              << quoted(ends_of(columns)) << ','
              << quotient(columns.train_gpus, of(train.tp) * of(train.pp) * of(train.cp)) << ',';
    const auto& generate = columns.generate;
    std::cout << columns.generate_backend << ',' << number(columns.generate_gpus) << ','
              << number(generate.tp) << ',' << number(generate.pp) << ',' << number(generate.ep) << ','
              << quotient(columns.generate_gpus, of(generate.tp) * of(generate.pp)) << ',';
}

void print(const std::string& file, const RecipeColumns& columns) {
    std::cout << file << ',' << columns.model.value_or("") << ',' << columns.nodes << ','
              << columns.gpus_per_node << ',' << (columns.has_generation ? flag(columns.is_colocated) : "n/a")
              << ',' << flag(columns.is_async) << ',';
    print_side(columns);
    std::cout << quoted(columns.train_precision +
                        (columns.is_fp8
                             ? "+fp8(" + columns.fp8_recipe + ",fp8_param=" + flag(columns.keeps_fp8) + ")"
                             : ""))
              << ',';
    if (columns.has_generation) {
        std::cout << columns.generate_precision.value_or("None") << (columns.is_mx ? "(mxfp8)" : "")
                  << (columns.kv_cache_dtype == "auto" ? "" : "+kv:" + columns.kv_cache_dtype) << ','
                  << columns.transport.value_or("null");
    } else {
        std::cout << ",n/a";
    }
    std::cout << ',' << number(columns.segment_nodes) << ',' << flag(columns.is_async_engine) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    std::cout << "recipe,model,nodes,gpus_per_node,colocated,async,train_gpus,train_backend,train_TP,train_"
                 "PP,train_CP,"
                 "train_EP,train_ETP,vpp_or_layout,train_DP,gen_backend,gen_gpus,gen_TP,gen_PP,gen_EP,gen_DP,"
                 "train_precision,gen_precision,refit_transport,segment_size,async_engine\n";
    for (int i = 1; i < argc; ++i) {
        auto tree = refit::io::RecipeTree::read(argv[i]);
        if (tree) {
            print(argv[i], refit::io::read_recipe_columns(*tree));
        }
        for (const auto& fault : tree ? tree->faults() : tree.error()) {
            std::cerr << argv[i] << ": " << fault.where << ": " << fault.message << '\n';
        }
    }
}
