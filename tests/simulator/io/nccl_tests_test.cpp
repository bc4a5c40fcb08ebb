// SPDX-License-Identifier: Apache-2.0
#include "refit/io/nccl_tests.hpp"

#include <string>

#include <gtest/gtest.h>

namespace refit::io {
namespace {

/// As the program prints it, on two ranks of one host.
const std::string kNew = R"(# nccl-tests version 2.19.6
# Collective test starting: all_gather_perf
# nThread 1 nGpus 2 minBytes 1048576 maxBytes 2097152 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1320 on     node-a device  0 [0000:05:00] NVIDIA H100
#  Rank  1 Group  0 Pid   1320 on     node-a device  1 [0000:06:00] NVIDIA H100
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
           0             0     float    none      -1     5.00    0.00    0.00       0     5.00    0.00    0.00       0
     1048576        131072     float    none      -1    10.00  104.86   52.43       0    20.00   52.43   26.21     N/A
     2097152        262144     float    none      -1   1.5e+01  139.81   69.91       0    30.00   69.91   34.95       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 45.9
#
)";

/// Of 2019: no redop and root, "error" for "#wrong", no Group, and mpirun's prefixes.
const std::string kOld =
    R"([1,0]<stdout>:# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
[1,0]<stdout>:# Using devices
[1,0]<stdout>:#   Rank  0 Pid   1320 on ip-1 device  0 [0x00] Tesla V100
[1,1]<stdout>:#   Rank  1 Pid   2066 on ip-2 device  0 [0x00] Tesla V100
[1,0]<stdout>:#       size         count      type     time   algbw   busbw  error     time   algbw   busbw  error
[1,0]<stdout>:#        (B)    (elements)                (ms)  (MB/s)  (MB/s)            (us)  (GB/s)  (GB/s)
[1,0]<stdout>:     1000000        250000     float     1.00  1000.0  1000.0  0e+00   500.0     2.0     2.0  1e+00
)";

TEST(NcclTests, BindsColumnsToTheirNames) {
    const auto tables = parse_nccl_tests(kNew, "log").value();
    ASSERT_EQ(tables.size(), 1U);
    const auto& table = tables[0];
    EXPECT_EQ(table.test, "all_gather");
    EXPECT_EQ(table.where, "log:10");
    EXPECT_EQ(table.ranks, 2U);
    EXPECT_EQ(table.hosts, 1U);
    EXPECT_EQ(table.wrong, 0U);
    // Two sizes, each out of place and in place; that of no bytes is left out.
    ASSERT_EQ(table.samples.size(), 4U);
    EXPECT_DOUBLE_EQ(table.samples[0].seconds, 10e-6);
    EXPECT_DOUBLE_EQ(table.samples[0].bytes, 52.43e9 * 10e-6);
    EXPECT_DOUBLE_EQ(table.samples[1].seconds, 20e-6);
    EXPECT_DOUBLE_EQ(table.samples[2].seconds, 15e-6);
    EXPECT_EQ(table.samples[2].size, 2097152.0);
}

TEST(NcclTests, ReadsOldColumnsOtherUnitsAndPrefixes) {
    const auto tables = parse_nccl_tests(kOld, "log").value();
    ASSERT_EQ(tables.size(), 1U);
    EXPECT_EQ(tables[0].ranks, 2U);
    EXPECT_EQ(tables[0].hosts, 2U);
    EXPECT_EQ(tables[0].test, "");
    ASSERT_EQ(tables[0].samples.size(), 2U);
    EXPECT_DOUBLE_EQ(tables[0].samples[0].seconds, 1e-3);
    EXPECT_DOUBLE_EQ(tables[0].samples[0].bytes, 1e9 * 1e-3);
    EXPECT_DOUBLE_EQ(tables[0].samples[1].seconds, 500e-6);
    EXPECT_EQ(tables[0].wrong, 1U);
}

TEST(NcclTests, ReadsSeveralTablesOfAFile) {
    const auto tables = parse_nccl_tests(kNew + kOld, "log").value();
    ASSERT_EQ(tables.size(), 2U);
    EXPECT_EQ(tables[0].test, "all_gather");
    EXPECT_EQ(tables[1].test, "") << "the name is that of the run";
    EXPECT_EQ(tables[1].hosts, 2U);
}

TEST(NcclTests, PassesOverFurtherColumnsAndRemarks) {
    const std::string text =
        R"(#  size count type redop root time algbw busbw #wrong i_min i_max time algbw busbw #wrong i_min i_max
# (B) (elements) (us) (GB/s) (GB/s) (us) (us) (us) (GB/s) (GB/s) (us) (us)
NCCL version 2.28.9+cuda13.0
 1000000 250000 float none -1 10.0 100.0 50.0 0 9.0 11.0 20.0 50.0 25.0 0 19.0 21.0
)";
    const auto tables = parse_nccl_tests(text, "log").value();
    ASSERT_EQ(tables[0].samples.size(), 2U);
    EXPECT_DOUBLE_EQ(tables[0].samples[1].seconds, 20e-6);
    EXPECT_DOUBLE_EQ(tables[0].samples[1].bytes, 25e9 * 20e-6);
}

TEST(NcclTests, SaysWhereARowDoesNotFit) {
    const auto cut = parse_nccl_tests("# size time busbw\n 8 1.0\n 16 1.0 many\n", "log");
    ASSERT_FALSE(cut.has_value());
    ASSERT_EQ(cut.error().size(), 2U);
    EXPECT_EQ(cut.error()[0].where, "log:2");
    EXPECT_EQ(cut.error()[0].message, "has 2 columns, but the header has 3");
    EXPECT_EQ(cut.error()[1].where, "log:3");
    const auto none = parse_nccl_tests("nothing here\n", "log");
    ASSERT_FALSE(none.has_value());
    EXPECT_NE(none.error()[0].message.find("holds no table"), std::string::npos);
}

TEST(NcclTests, ReadsJson) {
    const std::string text = R"({"version": 3, "args": ["/opt/build/sendrecv_perf", "-b", "8"],
 "config": {"devices": [{"rank": 0, "hostname": "a"}, {"rank": 1, "hostname": "b"}], "graph": "false"},
 "results": [
  {"size": 1000000, "out_of_place": {"time": 25.0, "alg_bw": 40.0, "bus_bw": 40.0, "nwrong": "nan"},
   "in_place": {"cpu_time": 50.0, "alg_bw": 20.0, "bus_bw": 20.0, "nwrong": 0}}]})";
    const auto tables = parse_nccl_tests(text, "log").value();
    ASSERT_EQ(tables.size(), 1U);
    EXPECT_EQ(tables[0].test, "sendrecv");
    EXPECT_EQ(tables[0].ranks, 2U);
    EXPECT_EQ(tables[0].hosts, 2U);
    ASSERT_EQ(tables[0].samples.size(), 2U);
    EXPECT_DOUBLE_EQ(tables[0].samples[0].bytes, 40e9 * 25e-6);
    EXPECT_DOUBLE_EQ(tables[0].samples[1].seconds, 50e-6);
}

TEST(NcclTests, RefusesJsonThatWasCutOffOrLacksTimes) {
    const auto cut = parse_nccl_tests(R"({"results": [{"size": 8)", "log");
    ASSERT_FALSE(cut.has_value());
    EXPECT_EQ(cut.error()[0].code, ErrorCode::kInvalidInput);
    EXPECT_FALSE(parse_nccl_tests(R"({"results": 5})", "log").has_value());
    const auto lacking =
        parse_nccl_tests(R"({"results": [{"size": 8, "in_place": {"time": "nan"}}, {}]})", "log");
    ASSERT_FALSE(lacking.has_value());
    ASSERT_EQ(lacking.error().size(), 2U);
    EXPECT_EQ(lacking.error()[0].where, "log: /results/0/in_place");
    EXPECT_EQ(lacking.error()[1].where, "log: /results/1");
}

TEST(NcclTests, AFileThatIsNotThereIsFileTrouble) {
    const auto missing = read_nccl_tests("no-such-file");
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error()[0].code, ErrorCode::kIo);
}

}  // namespace
}  // namespace refit::io
