// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <gtest/gtest.h>
#include <unistd.h>

namespace refit::testing_io {

/// An empty folder of the running test, removed after it.
class Scratch : public testing::Test {
protected:
    void SetUp() override {
        const auto* info = testing::UnitTest::GetInstance()->current_test_info();
        folder_ = std::filesystem::path{testing::TempDir()} /
                  ("refit-" + std::to_string(::getpid()) + "-" + info->name());
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    [[nodiscard]] std::filesystem::path path(std::string_view name) const { return folder_ / name; }
    [[nodiscard]] std::filesystem::path write(std::string_view name, std::string_view text) const {
        std::ofstream{path(name), std::ios::binary} << text;
        return path(name);
    }

private:
    std::filesystem::path folder_;
};

}  // namespace refit::testing_io
