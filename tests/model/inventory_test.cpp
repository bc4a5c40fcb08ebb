// SPDX-License-Identifier: Apache-2.0
#include "refit/inventory.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "refit/io/hugging_face.hpp"

namespace refit {
namespace {

Inventory inventory_of(const std::string& id) {
    const auto facts = io::read_config(std::filesystem::path{REFIT_DATA_DIR} / "models" / (id + ".json"));
    return Inventory::make(id, facts.value()).value();
}

/// Exact counts by part, published with the model collection.
struct Expected {
    std::string id;
    std::uint64_t parameters, tensors, mtp_parameters, mtp_tensors, vision_parameters, vision_tensors, ffn_parameters;
};

class PublishedCounts : public testing::TestWithParam<Expected> {};

TEST_P(PublishedCounts, AreMetExactlyByPart) {
    const auto& expected = GetParam();
    const auto inventory = inventory_of(expected.id);
    const auto text = inventory.totals(ModelPart::kText);
    EXPECT_EQ(text.parameters, expected.parameters);
    EXPECT_EQ(text.tensors, expected.tensors);
    EXPECT_EQ(inventory.totals(ModelPart::kMtp).parameters, expected.mtp_parameters);
    EXPECT_EQ(inventory.totals(ModelPart::kMtp).tensors, expected.mtp_tensors);
    EXPECT_EQ(inventory.totals(ModelPart::kVision).parameters, expected.vision_parameters);
    EXPECT_EQ(inventory.totals(ModelPart::kVision).tensors, expected.vision_tensors);
    std::uint64_t ffn = 0;
    for (const auto& entry : inventory.payload()) {
        ffn += entry.is_ffn ? entry.elements() * entry.tensors() : 0;
    }
    EXPECT_EQ(ffn, expected.ffn_parameters);
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    PublishedCounts,
    testing::Values(Expected{"deepseek-v3", 671026419200, 45395, 13463426304, 788, 0, 0, 655097856000}),
    [](const auto& test) {
        auto name = test.param.id;
        std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
        return name;
    });

}  // namespace
}  // namespace refit
