// SPDX-License-Identifier: Apache-2.0
#include "refit/nccl_log.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "refit/link_constants.hpp"

namespace refit {
namespace {

/// Times of latency + bytes / rate for sizes from 1 KiB to 1 GiB.
NcclTable line_table(
    const std::string& test, double latency, double rate, std::uint32_t ranks, std::uint32_t hosts) {
    NcclTable table{test, "log:1", ranks, hosts, {}, 0};
    for (double size = 1024.0; size <= 1024.0 * 1024.0 * 1024.0; size *= 4.0) {
        table.samples.push_back({size, size, latency + size / rate});
    }
    return table;
}

System h100(std::uint32_t node = 8, std::uint32_t domain = 8) {
    const auto rate = [](double gigabytes) {
        const auto value = Bandwidth::gigabytes_per_second(gigabytes);
        return Figure<Bandwidth>{value, value, value, "s", "vendor"};
    };
    return {"h100-nvl8",
            "H100 NVL8",
            "H100",
            false,
            node,
            domain,
            1,
            {Bytes{1U}, Bytes{1U}, Bytes{1U}, "s", "vendor"},
            rate(50.0),
            rate(450.0),
            rate(1450.0)};
}

EngineConstants fitted_constants() {
    EngineConstants result;
    result.nvlink_efficiency.value = 0.7;
    result.nic_efficiency.prior = ConstantPrior{0.9, 1.1, "s"};
    return result;
}

TEST(NcclLog, FindsLatencyAndRateOfALine) {
    const auto fit = fit_link(line_table("all_gather", 20e-6, 300e9, 8, 1));
    EXPECT_NEAR(fit.rate, 300e9, 1e3);
    EXPECT_NEAR(fit.latency, 20e-6, 1e-12);
    EXPECT_NEAR(fit.spread, 1.0, 1e-9);
    EXPECT_EQ(fit.samples, 11U);
}

TEST(NcclLog, TakesARateFromOneSize) {
    const auto fit = fit_link({"sendrecv", "log:1", 2, 2, {{1e9, 1e9, 0.025}}, 0});
    EXPECT_NEAR(fit.rate, 40e9, 1.0);
    EXPECT_EQ(fit.latency, 0.0);
    EXPECT_THROW(static_cast<void>(fit_link({})), std::logic_error);
}

TEST(NcclLog, SpreadGrowsWithScatter) {
    auto table = line_table("all_gather", 0.0, 300e9, 8, 1);
    for (std::size_t i = 0; i < table.samples.size(); ++i) {
        table.samples[i].seconds *= i % 2 == 0 ? 1.1 : 0.9;
    }
    EXPECT_GT(fit_link(table).spread, 1.02);
    EXPECT_LT(fit_link(table).spread, 1.2);
}

TEST(LinkConstants, ADomainTellsOfNvlinkAndPairsAcrossHostsOfNics) {
    const std::vector tables{line_table("sendrecv", 30e-6, 47e9, 2, 2),
                             line_table("all_gather", 20e-6, 315e9, 8, 1)};
    const auto read = link_constants(tables, h100(), fitted_constants());
    ASSERT_TRUE(read.has_value());
    EXPECT_NEAR(read->constants.nvlink_efficiency.value, 315.0 / 450.0, 1e-9);
    EXPECT_NEAR(read->constants.nic_efficiency.value, 47.0 / 50.0, 1e-9);
    EXPECT_EQ(read->constants.nic_efficiency.kind, "measured");
    EXPECT_FALSE(read->constants.nic_efficiency.prior.has_value()) << "what is measured is not fitted";
    EXPECT_NE(read->constants.nic_efficiency.source.find("sendrecv on 2 GPUs of 2 hosts of h100-nvl8"),
              std::string::npos);
    EXPECT_EQ(read->readings.size(), 2U);
}

TEST(LinkConstants, ARingOverHostsHasANicForEachOfItsRanksThere) {
    // Two ranks on each of two hosts: 90 GB/s are 45 of each NIC. Eight on each: 300 GB/s is what NVLink
    // allows, 0.7 of 450 = 315, less 5 %, so it says nothing of NICs.
    const auto two =
        link_constants(std::vector{line_table("all_gather", 0.0, 90e9, 4, 2)}, h100(), fitted_constants());
    ASSERT_TRUE(two.has_value());
    EXPECT_NEAR(two->constants.nic_efficiency.value, 0.9, 1e-9);
    const auto eight =
        link_constants(std::vector{line_table("broadcast", 0.0, 300e9, 16, 2)}, h100(), fitted_constants());
    ASSERT_TRUE(eight.has_value());
    EXPECT_EQ(eight->readings[0].constant, "");
    EXPECT_NE(eight->readings[0].passed_over.find("NVLink"), std::string::npos);
    EXPECT_EQ(eight->constants.nic_efficiency, fitted_constants().nic_efficiency);
}

TEST(LinkConstants, HostsOfOneRackShareADomain) {
    const std::vector tables{line_table("all_gather", 0.0, 300e9, 16, 4)};
    const auto read = link_constants(tables, h100(4, 72), fitted_constants());
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->readings[0].constant, "nvlink_efficiency");
}

TEST(LinkConstants, TheFastestCountsAndTheSlowestIsTheLowEnd) {
    const std::vector tables{line_table("sendrecv", 0.0, 40e9, 2, 2),
                             line_table("sendrecv", 0.0, 47e9, 2, 2)};
    const auto read = link_constants(tables, h100(), fitted_constants()).value();
    EXPECT_NEAR(read.constants.nic_efficiency.value, 0.94, 1e-9);
    EXPECT_NEAR(read.constants.nic_efficiency.low, 0.8, 1e-6);
}

TEST(LinkConstants, RefusesWhatCannotBeAllAtOnce) {
    auto wrong = line_table("sendrecv", 0.0, 47e9, 2, 2);
    wrong.wrong = 3;
    const std::vector tables{
        wrong, line_table("sendrecv", 0.0, 60e9, 2, 2), line_table("all_gather", 0.0, 300e9, 0, 0)};
    const auto read = link_constants(tables, h100(), fitted_constants());
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().size(), 3U);
    const auto mentions = [&](const std::string& text) {
        for (const auto& fault : read.error()) {
            if (fault.message.find(text) != std::string::npos) {
                return true;
            }
        }
        return false;
    };
    EXPECT_TRUE(mentions("wrong elements"));
    EXPECT_TRUE(mentions("60 GB/s is above the line rate of h100-nvl8, 50 GB/s"));
    EXPECT_TRUE(mentions("0 ranks"));
    const auto other = link_constants(
        std::vector{line_table("all_reduce", 0.0, 300e9, 8, 1), line_table("", 0.0, 1e9, 8, 1)},
        h100(),
        fitted_constants());
    ASSERT_TRUE(other.has_value());
    EXPECT_NE(other->readings[0].passed_over.find("all_reduce"), std::string::npos);
    EXPECT_NE(other->readings[1].passed_over.find("does not name its test"), std::string::npos);
}

}  // namespace
}  // namespace refit
