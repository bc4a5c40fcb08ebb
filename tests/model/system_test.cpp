// SPDX-License-Identifier: Apache-2.0
#include "refit/system.hpp"

#include <gtest/gtest.h>

#include "systems.hpp"

namespace refit {
namespace {

TEST(System, AddsUpTheNicsOfAGpu) {
    auto system = testing_systems::system_of("nvl8", 8);
    EXPECT_DOUBLE_EQ(system.nic_per_gpu().bytes_per_second(), 50e9);
    system.nics_per_gpu = 2;
    EXPECT_DOUBLE_EQ(system.nic_per_gpu().bytes_per_second(), 100e9);  // 2 · 50 GB/s.
}

TEST(System, DiffersByAnyFigure) {
    const auto system = testing_systems::system_of("nvl8", 8);
    auto other = system;
    EXPECT_EQ(other, system);
    other.nvlink.low = Bandwidth::gigabytes_per_second(300.0);
    EXPECT_NE(other, system);
}

}  // namespace
}  // namespace refit
