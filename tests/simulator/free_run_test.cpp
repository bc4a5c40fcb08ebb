// SPDX-License-Identifier: Apache-2.0
// What relays do where nothing paces them: every message open at once, rates shared by max-min fairness.
#include <gtest/gtest.h>

#include "../planner/study.hpp"
#include "refit/flow_run.hpp"
#include "refit/optimal.hpp"
#include "refit/slices.hpp"

namespace refit {
namespace {

/// Links: NIC out, NIC in, NVLink out, NVLink in of each rank.
std::uint32_t link_of(std::uint32_t rank, bool is_network, bool is_out) {
    return rank * 4 + (is_network ? 0 : 2) + (is_out ? 0 : 1);
}

/// Every hop as `chunks` flows in a row; a relay sends a chunk on when it has it. `is_paced`: rates go by
/// bytes.
FlowNetwork network_of(const RelayTable& relays, const Fabric& fabric, std::uint32_t chunks, bool is_paced) {
    FlowNetwork network;
    for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
        const auto& ports = fabric.ports(rank);
        for (const auto rate : {ports.nic_out, ports.nic_in, ports.nvlink_out, ports.nvlink_in}) {
            network.add_link(rate);
        }
    }
    for (std::uint32_t hop = 0; hop < relays.size(); ++hop) {
        const auto from = relays.source[hop];
        const auto to = relays.destination[hop];
        const bool is_network = fabric.domain_of(from) != fabric.domain_of(to);
        const LinkUse uses[] = {{link_of(from, is_network, true), 1.0},
                                {link_of(to, is_network, false), 1.0}};
        Flow flow;
        flow.bytes = static_cast<double>(relays.messages[relays.message[hop]].bytes) / chunks;
        flow.weight = is_paced ? flow.bytes : 1.0;
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
            std::vector<std::uint32_t> after;
            if (chunk > 0) {
                after.push_back(network.flows() - 1);
            }
            if (relays.follows[hop] != RelayTable::kNone) {
                after.push_back(relays.follows[hop] * chunks + chunk);
            }
            network.add_flow(flow, uses, after);
        }
    }
    return network;
}

class FreeRun : public testing::TestWithParam<study::Case> {};

// Acceptance of the study that docs/optimal.md follows: free at most 1.07 of the bound at 20 chunks, on every
// row.
TEST_P(FreeRun, EndsSoonAfterTheBound) {
    const auto& row = GetParam();
    const auto slices = SliceTable::make(study::workload_of(row.layout), row.layout.trainers());
    const auto relays = optimal_relays(slices, row.fabric);
    const auto run = run_flows(network_of(relays, row.fabric, 20, false)).value();
    const auto bound = lower_bound(slices, row.fabric).time.value();
    EXPECT_GE(run.makespan, bound * (1.0 - 1e-9));
    EXPECT_LE(run.makespan, bound * 1.07);
}

INSTANTIATE_TEST_SUITE_P(Rows, FreeRun, testing::ValuesIn(study::cases()), [](const auto& row) {
    return row.param.name;
});

}  // namespace
}  // namespace refit
