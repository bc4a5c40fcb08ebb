// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../shipped.hpp"
#include "device_waves.hpp"
#include "refit/exec/copy_table.hpp"
#include "refit/exec/rank_storage.hpp"
#include "refit/methods.hpp"
#include "refit/program_schedule.hpp"

namespace refit::exec {
namespace {

namespace fs = std::filesystem;
using Elements = std::vector<std::uint16_t>;

/// How a generator of two wants a tensor: its half along this axis, or all of it.
struct Cut {
    std::string name;
    std::vector<std::uint64_t> shape;
    int axis = -1;
};
/// Llama of 8 layers, hidden size 16, 4 heads of 4, 2 of them for keys and values.
const std::vector<Cut> kLayer{{"self_attn.q_proj", {16, 16}, 0},
                              {"self_attn.k_proj", {8, 16}, 0},
                              {"self_attn.v_proj", {8, 16}, 0},
                              {"self_attn.o_proj", {16, 16}, 1},
                              {"mlp.gate_proj", {32, 16}, 0},
                              {"mlp.up_proj", {32, 16}, 0},
                              {"mlp.down_proj", {16, 32}, 1},
                              {"input_layernorm", {16}},
                              {"post_attention_layernorm", {16}}};
const std::vector<Cut> kOutside{
    {"model.embed_tokens", {256, 16}, 0}, {"lm_head", {256, 16}, 0}, {"model.norm", {16}}};

/// Files of the model, in which no two tensors agree; what is in them, by name.
class CheckpointFolder : public ::testing::Test {
protected:
    CheckpointFolder() {
        fs::remove_all(folder_);
        fs::create_directories(folder_);
        std::ofstream{folder_ / "config.json"}
            << R"({"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 8, "vocab_size": 256,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4, "intermediate_size": 32,
            "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";
        for (const auto& cut : kOutside) {
            add(cut.name, cut.shape);
        }
        for (int layer = 0; layer < 8; ++layer) {
            for (const auto& cut : kLayer) {
                add("model.layers." + std::to_string(layer) + "." + cut.name, cut.shape);
            }
        }
        const auto text = header_.dump();
        std::ofstream stream{folder_ / "model.safetensors", std::ios::binary};
        const std::uint64_t length = text.size();
        stream.write(reinterpret_cast<const char*>(&length), sizeof(length));
        stream << text;
        stream.write(reinterpret_cast<const char*>(data_.data()),
                     static_cast<std::streamsize>(2 * data_.size()));
    }
    ~CheckpointFolder() override { fs::remove_all(folder_); }

    void add(const std::string& name, const std::vector<std::uint64_t>& shape) {
        auto& own = tensors_[name + ".weight"];
        own.resize(shape.size() == 1 ? shape[0] : shape[0] * shape[1]);
        for (auto& element : own) {
            element = static_cast<std::uint16_t>((data_.size() + 1) *
                                                 40503U);  // An odd factor: none twice in 65,536.
            data_.push_back(element);
        }
        header_[name + ".weight"] = {{"dtype", "BF16"},
                                     {"shape", shape},
                                     {"data_offsets", {2 * (data_.size() - own.size()), 2 * data_.size()}}};
    }

    [[nodiscard]] Scenario scenario(const std::string& pipeline_field, const std::string& pipeline) const {
        return shipped_scenario("reshard-one-domain",
                                {{"model", folder_.string()},
                                 {"train.layout", "tp2.pp2"},
                                 {"train.gpus", "8"},
                                 {pipeline_field, pipeline},
                                 {"generate.layout", "tp2.pp2"},
                                 {"generate.gpus", "8"}});
    }

    const fs::path folder_ = fs::temp_directory_path() / ("refit-checkpoint-" + std::to_string(::getpid()));
    nlohmann::json header_ = nlohmann::json::object();
    Elements data_;
    std::map<std::string, Elements> tensors_;
};

/// Ranks' memories after all waves of their programs, which begin with a checkpoint's elements.
std::vector<std::pair<program::RankProgram, RankStorage>> moved(const program::Schedule& schedule,
                                                                const TensorSource& data) {
    std::vector<std::pair<program::RankProgram, RankStorage>> ranks;
    std::vector<program::RankProgram> programs;
    std::vector<std::vector<StagedWave>> staged;
    std::vector<std::vector<std::byte>> staging;
    for (std::uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
        const auto program = schedule.program_of(rank);
        auto storage = RankStorage::allocate(program).value();
        fill(program, schedule.workload(), data, storage);
        RankView view{program.regions, {}};
        for (std::size_t arena = 0; arena < program::kArenas; ++arena) {
            view.arenas[arena] =
                reinterpret_cast<std::uint64_t>(storage.base(static_cast<program::Arena>(arena)));
        }
        auto& room = staging.emplace_back(staging_bytes(program, view) + 256);
        staged.push_back(
            staged_waves(program, view, reinterpret_cast<std::uint64_t>(room.data()) / 256 * 256 + 256));
        programs.push_back(program);
        ranks.emplace_back(program, std::move(storage));
    }
    const auto copy_all = [&](std::uint32_t wave, auto copies) {
        for (const auto& rank : staged) {
            run_copy_table(make_copy_table(rank[wave].*copies));
        }
    };
    for (std::uint32_t wave = 0; wave < schedule.waves(); ++wave) {
        copy_all(wave, &StagedWave::packs);
        for (const auto& carry : carries_of(programs, staged, wave)) {
            std::memcpy(
                reinterpret_cast<void*>(carry.to), reinterpret_cast<const void*>(carry.from), carry.bytes);
        }
        copy_all(wave, &StagedWave::unpacks);
    }
    return ranks;
}

/// Layers of trainer stages by Megatron's rule, which is written out here.
using StageLayers = std::array<std::vector<int>, 2>;

/// Each generator of stage s (vLLM: layers 4s to 4s + 3) and tensor-parallel rank t has every layer of its
/// stage, its half of each tensor, element by element as the files have it. Returns how many tensors that
/// were.
std::size_t compare_with_files(const program::RankProgram& program,
                               const RankStorage& storage,
                               const Workload& workload,
                               std::uint32_t generator,
                               const StageLayers& trains,
                               const std::map<std::string, Elements>& tensors) {
    const std::uint64_t stage = generator % 4 / 2;  // Replicas outermost, then pp, then tp.
    const std::uint64_t half = generator % 2;
    std::map<std::string, std::uint64_t> seen;
    for (const auto& region : program.regions) {
        if (region.arena != program::Arena::kDestination) {
            continue;
        }
        const auto& entry = workload.classes()[region.tensor.parameter];
        const auto& slice = entry.slices[region.tensor.slice];
        auto name = entry.parameter.name;
        if (const auto at = name.find("{layer}"); at != std::string::npos) {
            std::vector<int> both;
            for (const int layer : trains.at(slice.train_stage)) {
                if (static_cast<std::uint64_t>(layer) / 4 == stage) {
                    both.push_back(layer);
                }
            }
            name.replace(at, 7, std::to_string(both.at(region.tensor.number)));
        }
        const auto& whole = tensors.at(name);
        const bool is_matrix = region.box.axes().size() == 2;
        const auto& shape = entry.parameter.shape;
        const auto& rows = region.box.axes()[0];
        const auto columns = is_matrix ? region.box.axes()[1] : Interval{0, 1};
        const auto axis = std::ranges::find_if(
            kLayer, [&](const Cut& cut) { return name.find(cut.name) != std::string::npos; });
        const int wanted = !is_matrix ? -1 : axis == kLayer.end() ? 0 : axis->axis;
        if (wanted >= 0) {
            const auto& cut = wanted == 0 ? rows : columns;
            const auto width = shape[static_cast<std::size_t>(wanted)] / 2;
            EXPECT_TRUE(cut.begin >= half * width && cut.end <= (half + 1) * width) << name;
        }
        const auto* memory = reinterpret_cast<const std::uint16_t*>(
            storage.base(program::Arena::kDestination) + region.offset);
        for (auto row = rows.begin; row < rows.end; ++row) {
            for (auto column = columns.begin; column < columns.end; ++column, ++memory) {
                const auto width = is_matrix ? shape[1] : 1;
                if (*memory != whole[row * width + column]) {
                    ADD_FAILURE() << name << " [" << row << ", " << column << "] of generator " << generator;
                    return 0;
                }
            }
        }
        seen[name] += region.box.volume();
    }
    for (const auto& [name, elements] : seen) {
        const auto whole = tensors.at(name).size();
        EXPECT_EQ(elements, whole <= 16 ? whole : whole / 2) << name;
    }
    return seen.size();
}

TEST_F(CheckpointFolder, ReachesEveryGeneratorAsInItsFilesAlsoFromInterleavedPipelines) {
    // Two chunks a stage: of two layers each, chunk c = layers 2c, 2c + 1 on stage c mod 2; or of 1, 2, 3 and
    // 2 layers.
    const std::vector<std::tuple<std::string, std::string, StageLayers>> pipelines{
        {"train.virtual_pipeline", "2", {{{0, 1, 4, 5}, {2, 3, 6, 7}}}},
        {"train.pipeline.layout", "Et|tt|ttt|ttL", {{{0, 3, 4, 5}, {1, 2, 6, 7}}}},
        {"train.virtual_pipeline", "1", {{{0, 1, 2, 3}, {4, 5, 6, 7}}}}};
    for (const auto& [field, pipeline, layers] : pipelines) {
        const auto made = scenario(field, pipeline);
        const auto workload = Workload::make(made);
        const auto data = open_checkpoint(folder_.string(), workload).value();
        for (const Method method :
             {Method::kGatherBroadcast, Method::kDirect, Method::kStriped, Method::kOptimal}) {
            const auto plan =
                make_plan(method, made.cluster, port_rates(made.cluster, 1, 1), workload).value();
            const program::Schedule schedule{plan, workload, made.cluster.train_gpus()};
            const auto ranks = moved(schedule, *data);
            for (std::uint32_t generator = 0; generator < 8; ++generator) {
                const auto& [program, storage] = ranks[8 + generator];
                // Four layers of nine tensors; the embedding on the first stage, norm and head on the last.
                EXPECT_EQ(compare_with_files(program, storage, workload, generator, layers, tensors_),
                          36U + (generator % 4 < 2 ? 1 : 2))
                    << pipeline << ", " << name_of(method);
            }
        }
    }
}

TEST_F(CheckpointFolder, IsRefusedWhereThePlanMovesMoreTensorsThanTheModelHas) {
    const auto workload = Workload::make(scenario("train.virtual_pipeline", "2"));
    auto classes = std::vector(workload.classes().begin(), workload.classes().end());
    classes.front().slices.front().layers += 1;
    const auto opened = open_checkpoint(folder_.string(), Workload::of(classes, 2, 4, 8));
    ASSERT_FALSE(opened.has_value());
    EXPECT_NE(opened.error().front().message.find("more tensors of"), std::string::npos);
}

}  // namespace
}  // namespace refit::exec
