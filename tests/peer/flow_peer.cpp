// SPDX-License-Identifier: Apache-2.0
// Runs a list of flows in SimGrid and in our simulator, and compares when each flow ends and what it costs.
//   flow_peer WORKLOAD      one of tests/golden/flows; exit code 1 where a time differs by more than 1e-9
// This program alone is linked with SimGrid (LGPL 2.1), which is installed as a package and is no part of
// Refit.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

#include "golden_flows.hpp"
#include "refit/flow_run.hpp"

namespace refit::peer {
namespace {

namespace s4u = simgrid::s4u;

constexpr double kClose = 1e-9;
constexpr int kRepetitions = 5;

double cpu_seconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

/// SimGrid's fastest settings for this list, plain fluid sharing. Its lazy updates merge events closer than
/// the precision, by default 1e-9 s, so that is lowered.
std::vector<std::string> settings(const std::string& workload) {
    const bool is_random = workload == "W0" || workload == "W1" || workload == "W3s";
    return {"network/model:CM02",
            "network/crosstraffic:0",
            "network/bandwidth-factor:1",
            "network/latency-factor:1",
            "network/weight-S:0",
            "surf/precision:1e-12",
            is_random ? "network/optim:Full" : "network/optim:Lazy"};
}

/// A host for each link: on the first link of a flow it sends, on the second it receives.
std::vector<s4u::Host*> build_platform(const FlowNetwork& network) {
    std::vector<bool> is_in(network.links(), false);
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        is_in[network.uses(flow)[1].link] = true;
    }
    auto* const zone = s4u::create_star_zone("star");
    std::vector<s4u::Host*> hosts;
    for (std::uint32_t number = 0; number < network.links(); ++number) {
        const auto name = std::to_string(number);
        auto* const host = zone->create_host("host" + name, 1e9);
        const auto* const link =
            zone->create_link("link" + name, network.rate(number))->set_latency(0.0)->seal();
        auto* const point = host->get_netpoint();
        zone->add_route(is_in[number] ? nullptr : point,
                        is_in[number] ? point : nullptr,
                        nullptr,
                        nullptr,
                        {s4u::LinkInRoute(link)},
                        false);
        hosts.push_back(host);
    }
    zone->seal();
    return hosts;
}

struct Answer {
    std::vector<double> end;
    double cpu = 0.0;  ///< Unit: s.
};

Answer run_simgrid(s4u::Engine& engine, const FlowNetwork& network) {
    const auto hosts = build_platform(network);
    Answer answer;
    s4u::Actor::create("sender", hosts.front(), [&] {
        std::vector<s4u::CommPtr> flows;
        for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
            const auto uses = network.uses(flow);
            flows.push_back(s4u::Comm::sendto_init(hosts[uses[0].link], hosts[uses[1].link]));
            flows.back()->set_payload_size(static_cast<std::uint64_t>(network.flow(flow).bytes));
            flows.back()->start();
        }
        for (const auto& flow : flows) {
            flow->wait();
            answer.end.push_back(flow->get_finish_time());
        }
    });
    const auto begin = cpu_seconds();
    engine.run();
    answer.cpu = cpu_seconds() - begin;
    return answer;
}

/// The median of some runs.
Answer run_refit(const FlowNetwork& network, bool has_quotient) {
    Answer answer;
    std::vector<double> costs;
    for (int i = 0; i < kRepetitions; ++i) {
        const auto begin = cpu_seconds();
        answer.end = run_flows(network, {.has_quotient = has_quotient}).value().end;
        costs.push_back(cpu_seconds() - begin);
    }
    std::sort(costs.begin(), costs.end());
    answer.cpu = costs[kRepetitions / 2];
    return answer;
}

double largest_difference(const Answer& a, const Answer& b) {
    double largest = a.end.size() == b.end.size() ? 0.0 : 1.0;
    for (std::size_t flow = 0; flow < std::min(a.end.size(), b.end.size()); ++flow) {
        largest = std::max(largest, std::abs(a.end[flow] - b.end[flow]) / b.end[flow]);
    }
    return largest;
}

int compare(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: flow_peer WORKLOAD\n");
        return 2;
    }
    const std::string workload{argv[1]};
    const auto network = testing_support::golden_network(workload);
    std::string quiet{"--log=xbt_cfg.thresh:warning"};
    std::array<char*, 3> words{argv[0], quiet.data(), nullptr};
    int count = 2;
    s4u::Engine engine{&count, words.data()};
    for (const auto& setting : settings(workload)) {
        s4u::Engine::set_config(setting);
    }
    const auto peer = run_simgrid(engine, network);
    bool is_close = true;
    std::printf("%-4s %6u flows   SimGrid %8.3f s CPU", workload.c_str(), network.flows(), peer.cpu);
    for (const bool has_quotient : {false, true}) {
        const auto own = run_refit(network, has_quotient);
        const auto difference = largest_difference(own, peer);
        is_close = is_close && difference <= kClose;
        std::printf("   %s %.5f s, %.0f times faster, differs by %.1e",
                    has_quotient ? "by classes" : "refit",
                    own.cpu,
                    peer.cpu / own.cpu,
                    difference);
    }
    std::printf("\n");
    return is_close ? 0 : 1;
}

}  // namespace
}  // namespace refit::peer

int main(int argc, char** argv) {
    return refit::peer::compare(argc, argv);
}
