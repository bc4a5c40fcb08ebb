// SPDX-License-Identifier: Apache-2.0
#include "refit/io/safetensors.hpp"

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "drafts.hpp"
#include "refit/io/library.hpp"
#include "scratch.hpp"

namespace refit::io {
namespace {

using testing_io::count_rule;
using testing_io::described;
using testing_io::mentions;

/// A file of a header and `data_bytes` zeros.
std::string file_of(const std::string& header, std::size_t data_bytes) {
    std::string text;
    for (unsigned i = 0; i < 8; ++i) {
        text += static_cast<char>(header.size() >> (8 * i) & 0xFFU);
    }
    return text + header + std::string(data_bytes, '\0');
}

std::string entry(
    const std::string& name, const std::string& dtype, const std::string& shape, int begin, int end) {
    return "\"" + name + R"(": {"dtype": ")" + dtype + R"(", "shape": [)" + shape +
           R"(], "data_offsets": [)" + std::to_string(begin) + ", " + std::to_string(end) + "]}";
}

class Safetensors : public testing_io::Scratch {
protected:
    [[nodiscard]] Result<std::vector<StoredTensor>> read(const std::string& header,
                                                         std::size_t data_bytes) const {
        static_cast<void>(write("model.safetensors", file_of(header, data_bytes)));
        return read_safetensors_folder(path("."));
    }
    [[nodiscard]] Faults faults_of(const std::string& header, std::size_t data_bytes) const {
        const auto tensors = read(header, data_bytes);
        return tensors ? Faults{} : tensors.error();
    }
};

TEST_F(Safetensors, GiveNameDtypeShapeFileAndBytes) {
    // 2 · 3 BF16 are 12 bytes, 4 FP8 4, a scalar FP32 4, nothing 0.
    const auto header = "{\"__metadata__\": {\"format\": \"pt\"}, " + entry("b", "BF16", "2, 3", 0, 12) +
                        ", " + entry("a", "F8_E4M3", "4", 12, 16) + ", " + entry("c", "F32", "", 16, 20) +
                        ", " + entry("d", "I64", "0, 5", 20, 20) + "}";
    const auto tensors = read(header, 20);
    ASSERT_TRUE(tensors.has_value()) << described(tensors.error());
    ASSERT_EQ(tensors->size(), 4U);
    const auto start = 8 + header.size();
    EXPECT_EQ((*tensors)[0],
              (StoredTensor{"a", "F8_E4M3", {4}, path("./model.safetensors"), start + 12, start + 16}));
    EXPECT_EQ((*tensors)[1].shape, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ((*tensors)[2].shape, std::vector<std::uint64_t>{});
}

TEST_F(Safetensors, AreRefusedWhereTheHeaderIsNotWhole) {
    EXPECT_EQ(count_rule(read_safetensors_folder(path(".")).error(), "no-tensors"), 1U);
    for (const auto& [text, message] :
         {std::pair{std::string{}, "0 bytes"},
          std::pair{std::string{"\5\0\0\0\0\0\0", 7}, "7 bytes"},
          std::pair{std::string{"\5\0\0\0\0\0\0\0{}", 10}, "the header has 5 bytes, but the file only 10"},
          std::pair{std::string(8, '\xff') + "{}", "at most 100 MB"},
          std::pair{file_of("[]", 0), "must be a JSON object"},
          std::pair{file_of("{", 0), "ends too early"}}) {
        const auto file = write("model.safetensors", text);
        const auto tensors = read_safetensors_folder(path("."));
        ASSERT_FALSE(tensors.has_value());
        EXPECT_TRUE(mentions(tensors.error(), message)) << described(tensors.error());
        EXPECT_TRUE(tensors.error()[0].where.find("model.safetensors") != std::string::npos);
    }
}

TEST_F(Safetensors, TellAllFaultyTensorsAtOnce) {
    const auto faults = faults_of(
        "{" + entry("outside", "BF16", "2", 8, 12) + "," + entry("backwards", "BF16", "2", 4, 0) + "," +
            entry("size", "F32", "2", 0, 4) + "," + entry("dtype", "Q3", "2", 0, 4) +
            R"(, "lacks": {"dtype": "F32"}, "text": 5,)" +
            entry("huge", "F64", "4294967296, 4294967296", 0, 8) + "," + entry("odd", "F4", "3", 0, 1) + "," +
            R"("negative": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})",
        8);
    EXPECT_EQ(count_rule(faults, "safetensors-offsets"), 2U) << described(faults);
    EXPECT_EQ(count_rule(faults, "safetensors-size"), 3U);
    EXPECT_EQ(count_rule(faults, "safetensors-dtype"), 1U);
    EXPECT_EQ(count_rule(faults, "safetensors-tensor"), 3U);
    EXPECT_TRUE(mentions(faults, "'size' has 4 bytes, but its shape and dtype mean 8"));
    EXPECT_TRUE(mentions(faults, "'outside' has data_offsets 8 to 12, but the file holds 8 bytes of data"));
}

TEST_F(Safetensors, MustFillTheirFileWithoutOverlapsAndGaps) {
    EXPECT_TRUE(
        mentions(faults_of("{" + entry("a", "U8", "4", 0, 4) + "," + entry("b", "U8", "4", 2, 6) + "}", 6),
                 "'b' overlaps 'a'"));
    EXPECT_TRUE(
        mentions(faults_of("{" + entry("a", "U8", "4", 0, 4) + "," + entry("b", "U8", "2", 6, 8) + "}", 8),
                 "2 bytes before 'b' belong to no tensor"));
    EXPECT_TRUE(mentions(faults_of("{" + entry("a", "U8", "4", 0, 4) + "}", 7), "3 bytes at the end"));
    // Cut short by two bytes.
    EXPECT_EQ(count_rule(faults_of("{" + entry("a", "U8", "4", 0, 4) + "}", 2), "safetensors-offsets"), 1U);
}

TEST_F(Safetensors, MayNotOccurTwice) {
    const auto twice = "{" + entry("a", "U8", "4", 0, 4) + "," + entry("a", "U8", "4", 0, 4) + "}";
    EXPECT_EQ(count_rule(faults_of(twice, 4), "json-repeated-key"), 1U);
    static_cast<void>(write("model.safetensors", file_of("{" + entry("a", "U8", "4", 0, 4) + "}", 4)));
    static_cast<void>(write("other.safetensors", file_of("{" + entry("a", "U8", "4", 0, 4) + "}", 4)));
    const auto tensors = read_safetensors_folder(path("."));
    ASSERT_FALSE(tensors.has_value());
    EXPECT_TRUE(mentions(tensors.error(), "'a' is also in model.safetensors"));
}

TEST_F(Safetensors, AgreeWithTheirIndex) {
    static_cast<void>(write("1.safetensors", file_of("{" + entry("a", "U8", "4", 0, 4) + "}", 4)));
    static_cast<void>(
        write("2.safetensors",
              file_of("{" + entry("b", "U8", "4", 0, 4) + "," + entry("extra", "U8", "4", 4, 8) + "}", 8)));
    // Files beside the index do not count.
    static_cast<void>(write("consolidated.safetensors", "no header"));
    const auto with = [&](const std::string& map) {
        static_cast<void>(write("model.safetensors.index.json", "{\"weight_map\": " + map + "}"));
        const auto tensors = read_safetensors_folder(path("."));
        return tensors ? Faults{} : tensors.error();
    };
    EXPECT_TRUE(with(R"({"a": "1.safetensors", "b": "2.safetensors", "extra": "2.safetensors"})").empty());
    const auto faults =
        with(R"({"a": "2.safetensors", "b": "2.safetensors", "c": "1.safetensors", "d": "3.safetensors"})");
    EXPECT_TRUE(mentions(faults, "'a' is in 1.safetensors, not in 2.safetensors")) << described(faults);
    EXPECT_TRUE(mentions(faults, "'extra' of 2.safetensors is not in the index"));
    EXPECT_TRUE(mentions(faults, "'c' is not in 1.safetensors"));
    EXPECT_EQ(count_rule(faults, "missing-shard"), 1U);
    EXPECT_EQ(faults.size(), 4U);
    for (const auto* map : {"5", R"({"a": 5})", R"({"a": "../1.safetensors"})", R"({"a": "config.json"})"}) {
        EXPECT_EQ(count_rule(with(map), "safetensors-index"), 1U) << map;
    }
}

TEST_F(Safetensors, OfAModelsFolderMustAgreeWithItsConfig) {
    static_cast<void>(write("config.json", R"({"model_type": "teaching_matrix", "rows": 2, "columns": 3})"));
    const auto with = [&](const char* name, const char* shape) {
        static_cast<void>(write("model.safetensors", file_of("{" + entry(name, "BF16", shape, 0, 12) + "}", 12)));
        return testing_io::library().model(path(".").string());
    };
    EXPECT_TRUE(with("model.layers.0.mlp.up_proj.weight", "2, 3").has_value());
    EXPECT_EQ(count_rule(with("model.layers.0.mlp.up_proj.weight", "3, 2").error(), "tensor-shape"), 1U);
    EXPECT_EQ(count_rule(with("bias", "2, 3").error(), "missing-tensor"), 1U);
}

class Checkpoint : public testing::Test {
protected:
    /// What a checkpoint of this model would hold, in the dtypes of the inventory.
    static std::vector<StoredTensor> tensors_of(const Inventory& model) {
        std::vector<StoredTensor> tensors;
        for (const auto& parameter : model.classes()) {
            const auto layers = parameter.layers.empty() ? std::vector<std::uint32_t>{0} : parameter.layers;
            for (const auto layer : layers) {
                for (std::uint32_t expert = 0; expert < parameter.tensors_per_layer(); ++expert) {
                    auto name = replaced(parameter.name, "{layer}", std::to_string(layer));
                    name = replaced(name, "{expert}", std::to_string(expert));
                    tensors.push_back(
                        {name, parameter.dtype == Dtype::kFp32 ? "F32" : "BF16", parameter.shape, "x", 0, 0});
                }
            }
        }
        return tensors;
    }
    static std::string replaced(std::string text, std::string_view what, const std::string& by) {
        const auto at = text.find(what);
        return at == std::string::npos ? text : text.replace(at, what.size(), by);
    }
    static Inventory model(const char* name) { return testing_io::library().model(name).value(); }
    static StoredTensor& tensor(std::vector<StoredTensor>& tensors, std::string_view name) {
        return *std::ranges::find(tensors, name, &StoredTensor::name);
    }
};

TEST_F(Checkpoint, OfEachModelAgreesWithItsInventory) {
    for (const auto* name : {"qwen3-30b-a3b", "nemotron-3-nano-30b-a3b", "deepseek-v3"}) {
        const auto faults = compare_with_inventory(tensors_of(model(name)), model(name));
        EXPECT_TRUE(faults.empty()) << name << "\n" << described(faults);
    }
}

TEST_F(Checkpoint, DifferencesAreToldOnceForAPattern) {
    const auto qwen = model("qwen3-30b-a3b");
    auto tensors = tensors_of(qwen);
    tensor(tensors, "model.layers.3.self_attn.q_proj.weight").shape = {4096, 1024};
    tensor(tensors, "model.norm.weight").dtype = "F32";
    tensor(tensors, "model.layers.7.mlp.experts.0.up_proj.weight").name =
        "model.layers.7.mlp.experts.128.up_proj.weight";
    tensor(tensors, "model.layers.8.mlp.experts.0.up_proj.weight").name =
        "model.layers.8.mlp.experts.128.up_proj.weight";
    const auto faults = compare_with_inventory(tensors, qwen);
    EXPECT_EQ(faults.size(), 4U) << described(faults);
    EXPECT_TRUE(
        mentions(faults,
                 "1 of 48 tensors have another shape, the first model.layers.3.self_attn.q_proj.weight: "
                 "[4096 x 1024] instead of [4096 x 2048]"));
    EXPECT_TRUE(mentions(faults, "F32 instead of BF16"));
    // 48 layers of 128 experts.
    EXPECT_TRUE(mentions(
        faults, "2 of 6144 tensors are missing, the first model.layers.7.mlp.experts.0.up_proj.weight"));
    EXPECT_TRUE(
        mentions(faults, "model.layers.{n}.mlp.experts.{n}.up_proj.weight: 2 tensors are unknown to"));
}

TEST_F(Checkpoint, MayLackAllOfMtpButNotPart) {
    const auto deepseek = model("deepseek-v3");
    auto tensors = tensors_of(deepseek);
    std::erase_if(tensors, [](const auto& one) { return one.name.starts_with("model.layers.61."); });
    EXPECT_TRUE(compare_with_inventory(tensors, deepseek).empty());
    tensors.push_back({"model.layers.61.enorm.weight", "BF16", {7168}, "x", 0, 0});
    EXPECT_GT(count_rule(compare_with_inventory(tensors, deepseek), "missing-tensor"), 1U);
}

TEST_F(Checkpoint, MayBeInItsOwnFp8WhereScalesAreBesideIt) {
    const auto deepseek = model("deepseek-v3");
    auto tensors = tensors_of(deepseek);
    const std::string name = "model.layers.3.self_attn.o_proj.weight";
    tensor(tensors, name).dtype = "F8_E4M3";
    EXPECT_EQ(count_rule(compare_with_inventory(tensors, deepseek), "tensor-dtype"), 1U);
    tensors.push_back({name + "_scale_inv", "F32", {56, 128}, "x", 0, 0});
    EXPECT_TRUE(compare_with_inventory(tensors, deepseek).empty());
    // A norm is never quantised.
    tensor(tensors, "model.norm.weight").dtype = "F8_E4M3";
    EXPECT_EQ(count_rule(compare_with_inventory(tensors, deepseek), "tensor-dtype"), 1U);
}

TEST_F(Checkpoint, MayPackExpertsInFp4) {
    const auto kimi = model("kimi-k3");
    auto tensors = tensors_of(kimi);
    std::vector<StoredTensor> scales;
    for (auto& one : tensors) {
        if (one.name.find(".experts.") != std::string::npos) {
            scales.push_back({one.name + "_scale", "U8", {1}, "x", 0, 0});
            one.name += "_packed";
        }
    }
    tensors.insert(tensors.end(), scales.begin(), scales.end());
    const auto faults = compare_with_inventory(tensors, kimi);
    EXPECT_TRUE(faults.empty()) << described(faults);
}

}  // namespace
}  // namespace refit::io
