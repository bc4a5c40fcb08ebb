// SPDX-License-Identifier: Apache-2.0
#include "refit/io/field_options.hpp"

#include <algorithm>
#include <array>

#include "refit/shell_word.hpp"

namespace refit::io {
namespace {

constexpr std::array kOptions{
    FieldOption{"--model", "model", "NAME|FOLDER", "a model of data/models, or a Hugging Face folder"},
    FieldOption{"--train", "train.layout", "LAYOUT", "training layout, for example tp4.pp8.ep16@128 or fsdp16"},
    FieldOption{"--generate", "generate.layout", "LAYOUT", "generation layout, for example tp8.dp16@128"},
    FieldOption{"--train-gpus", "train.gpus", "N", "training GPUs"},
    FieldOption{"--gen-gpus", "generate.gpus", "N", "generation GPUs"},
    FieldOption{"--system", "system", "NAME|FILE", "a system of data/systems, or a file"},
    FieldOption{"--dtype", "dtype", "DTYPE", "bf16, fp16, fp32, or fp8: blockwise, with its scales"},
    FieldOption{"--generate-dtype", "generate.dtype", "DTYPE", "dtype on the generation side"},
    FieldOption{"--engine", "engine.name", "NAME", "an engine of data/engines"},
    FieldOption{"--oversubscription", "fabric.oversubscription", "RATIO", "NICs of a pod to its uplinks, for example 2:1"},
    FieldOption{"--domains-per-pod", "fabric.domains_per_pod", "N", "NVLink domains under one group of leaf switches"},
    FieldOption{"--without", "lost", "RANKS", "ranks that the refit goes on without: 3,7-9, trainer:2 (docs/executor.md)"},
    FieldOption{"--coverage", "engine.coverage", "NAME", "bulk path takes: nemo-rl-names, ffn, all or pattern:GLOB"},
};

}  // namespace

std::span<const FieldOption> field_options() noexcept { return kOptions; }

std::string flag_for(std::string_view field, std::string_view value) {
    const auto* option = std::ranges::find(kOptions, field, &FieldOption::field);
    if (option != kOptions.end()) {
        return std::string{option->flag} + " " + shell_word(std::string{value});
    }
    constexpr std::string_view kNics = "fabric.nics.";
    const bool is_nic = field.starts_with(kNics);
    const auto name = std::string{is_nic ? field.substr(kNics.size()) : field};
    return (is_nic ? "--nic " : "--set ") + shell_word(name + "=" + std::string{value});
}

}  // namespace refit::io
