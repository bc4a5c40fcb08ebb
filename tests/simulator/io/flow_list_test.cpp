// SPDX-License-Identifier: Apache-2.0
#include "refit/io/flow_list.hpp"

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace refit::io {
namespace {

Result<FlowNetwork> read(const std::string& text) {
    std::istringstream in{text};
    return read_flow_list(in, "f.txt");
}

/// "LINE MESSAGE" of each fault.
std::vector<std::string> told(const std::string& text) {
    std::vector<std::string> lines;
    const auto network = read(text);
    if (network) {
        return lines;
    }
    for (const auto& fault : network.error()) {
        EXPECT_EQ(fault.code, ErrorCode::kInvalidInput);
        lines.push_back(fault.where + " " + fault.message);
    }
    return lines;
}

using Lines = std::vector<std::string>;

TEST(FlowList, TakesNvlinkInsideANodeAndNicsBetweenNodes) {
    // GPUs 0 and 1 share a node; 2 is in the next.
    const auto network = read("4 2 450e9 50000000000 3\n0 1 100\n0 2 200\n1 2 0\n");
    ASSERT_TRUE(network.has_value());
    ASSERT_EQ(network->flows(), 3U);
    const auto rate = [&](std::uint32_t flow, std::size_t use) {
        return network->rate(network->uses(flow)[use].link);
    };
    EXPECT_EQ(rate(0, 0), 450e9);
    EXPECT_EQ(rate(0, 1), 450e9);
    EXPECT_EQ(rate(1, 0), 50e9);
    EXPECT_EQ(rate(1, 1), 50e9);
    EXPECT_EQ(network->flow(1).bytes, 200.0);
    // Both go into the NIC of GPU 2, out of different ones.
    EXPECT_EQ(network->uses(1)[1].link, network->uses(2)[1].link);
    EXPECT_NE(network->uses(1)[0].link, network->uses(2)[0].link);
    EXPECT_TRUE(network->faults().empty());
}

TEST(FlowList, LetsBlankLinesBe) {
    const auto network = read("2 1 2 1 1\r\n\n0 1 5\r\n\n");
    ASSERT_TRUE(network.has_value());
    EXPECT_EQ(network->flows(), 1U);
}

TEST(FlowList, RefusesAFirstLineWithEachWrongNumber) {
    EXPECT_EQ(told(""), (Lines{"f.txt:1 there is no first line 'GPUs node NVLink-rate NIC-rate flows'"}));
    EXPECT_EQ(
        told("2 1 2 1\n"),
        (Lines{
            "f.txt:1 the first line takes 5 numbers: GPUs, GPUs in a node, NVLink rate, NIC rate, flows"}));
    EXPECT_EQ(told("0 0 0 nan -1\n"),
              (Lines{"f.txt:1 number of GPUs '0' is not from 1 to 1048576",
                     "f.txt:1 GPUs in a node '0' is not a whole number above 0",
                     "f.txt:1 NVLink rate '0' is not above 0 and finite",
                     "f.txt:1 NIC rate 'nan' is not above 0 and finite",
                     "f.txt:1 number of flows '-1' is not a whole number"}));
    EXPECT_EQ(told("99999999999999999999 1 inf 1e999 2.5\n").size(), 4U);
}

TEST(FlowList, RefusesEachWrongFlowWithItsLine) {
    EXPECT_EQ(told("4 2 9 5 7\n0 1 5\n1 1 5\n0 4 5\n-1 x 5\n0 1 -5\n0 1 nan\n0 1\n"),
              (Lines{"f.txt:3 source and destination are both 1",
                     "f.txt:4 destination '4' is not a GPU from 0 to 3",
                     "f.txt:5 source '-1' is not a GPU from 0 to 3",
                     "f.txt:5 destination 'x' is not a GPU from 0 to 3",
                     "f.txt:6 bytes '-5' is not 0 or more and finite",
                     "f.txt:7 bytes 'nan' is not 0 or more and finite",
                     "f.txt:8 a flow takes 3 numbers: source, destination, bytes"}));
}

TEST(FlowList, RefusesMoreOrFewerFlowsThanItSays) {
    EXPECT_EQ(told("2 1 2 1 3\n0 1 5\n"), (Lines{"f.txt:3 the file ends after 1 of 3 flows"}));
    EXPECT_EQ(told("2 1 2 1 1\n0 1 5\n1 0 5\n0 1 5\n"),
              (Lines{"f.txt:3 a flow more than the 1 of the first line"}));
    EXPECT_EQ(told("2 1 2 1 1\n0 1 5 6\n"),
              (Lines{"f.txt:2 a flow takes 3 numbers: source, destination, bytes"}));
}

TEST(FlowList, StopsTellingAfterAHundredFaults) {
    std::string text = "2 1 2 1 250\n";
    for (int i = 0; i < 250; ++i) {
        text += "0 0 1\n";
    }
    const auto lines = told(text);
    ASSERT_EQ(lines.size(), 101U);
    EXPECT_EQ(lines.back(), "f.txt 150 more faults");
}

}  // namespace
}  // namespace refit::io
