// SPDX-License-Identifier: Apache-2.0
#include "refit/task_graph.hpp"

#include <array>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/broadcast_roots.hpp"
#include "refit/methods.hpp"
#include "refit/traffic.hpp"

namespace refit {
namespace {

constexpr Method kMethods[] = {
    Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped, Method::kOptimal};

struct Built {
    Scenario scenario;
    Workload workload;
    Plan plan;
    TaskGraph graph;
};

Built built(Method method,
            const std::string& name,
            std::initializer_list<std::pair<std::string, std::string>> changes = {},
            const GraphOptions& options = {}) {
    auto scenario = shipped_scenario(name, changes);
    auto workload = Workload::make(scenario);
    auto plan = make_plan(method, scenario, workload).value();
    auto graph = make_task_graph(plan, workload, scenario, options);
    return {std::move(scenario), std::move(workload), std::move(plan), std::move(graph)};
}

/// Bytes that a port of a rank carries over all sections: by rank, then by port.
/// By Port, a pod's at its first rank.
using CarriedBytes = std::array<double, 8>;

std::vector<CarriedBytes> carried_bytes(const Built& job) {
    std::vector<double> of_link(job.graph.network.links(), 0.0);
    for (std::uint32_t task = 0; task < job.graph.network.flows(); ++task) {
        if (job.graph.tasks[task].bytes > 0.0 && is_on_links(job.graph.tasks[task].activity)) {
            for (const auto& use : job.graph.network.uses(task)) {
                of_link[use.link] += job.graph.network.flow(task).bytes * use.per_byte;
            }
        }
    }
    std::vector<CarriedBytes> carried(job.scenario.cluster.gpus(), CarriedBytes{});
    for (std::uint32_t link = 0; link < of_link.size(); ++link) {
        for (const auto rank : job.graph.ranks_of(link)) {
            carried[rank.index()][static_cast<std::size_t>(job.graph.links[link].port)] += of_link[link];
        }
    }
    return carried;
}

/// Relative to the planner's, and the odd byte of uneven divisions aside.
double difference(double carried, std::uint64_t wanted) {
    return std::abs(carried - static_cast<double>(wanted)) / (1e3 + static_cast<double>(wanted));
}

void expect_planners_bytes(const Built& job) {
    const auto carried = carried_bytes(job);
    const auto wanted = traffic(job.plan, job.scenario.cluster);
    double worst = 0.0;
    for (std::uint32_t rank = 0; rank < carried.size(); ++rank) {
        const auto& ports = wanted.ports()[rank];
        const std::uint64_t bytes[] = {ports.nic_out, ports.nic_in, ports.nvlink_out, ports.nvlink_in};
        for (std::size_t port = 0; port < 4; ++port) {
            worst = std::max(worst, difference(carried[rank][port], bytes[port]));
        }
    }
    for (std::size_t pod = 0; pod < wanted.pods().size(); ++pod) {
        const auto& at = carried[job.graph.pods[pod].front().index()];
        worst = std::max(worst, difference(at[static_cast<std::size_t>(Port::kUplink)], wanted.pods()[pod].up));
        worst = std::max(worst, difference(at[static_cast<std::size_t>(Port::kDownlink)], wanted.pods()[pod].down));
    }
    EXPECT_LT(worst, 1e-6);
}

// The simulation moves through each port of each rank exactly what the planner's traffic has there.
TEST(TaskGraph, CarriesThePlannersBytesOnEachPortOfEachRank) {
    for (const auto& name : {"deepseek-v3-h100",
                             "deepseek-v3-gb200",
                             "nemotron-ultra-gb200",
                             "reshard-one-domain",
                             "reshard-two-domains"}) {
        for (const auto method : kMethods) {
            SCOPED_TRACE(std::string{name} + " " + std::string{name_of(method)});
            expect_planners_bytes(built(method, name));
        }
    }
}

// The same where messages go by other ranks' NICs, and through the uplinks of pods.
TEST(TaskGraph, CarriesThePlannersBytesOnFabricsThatFallShort) {
    using Changes = std::initializer_list<std::pair<std::string, std::string>>;
    const Changes down{{"fabric.nics.trainer:1", "down"}, {"fabric.nics.generation:9", "down"}};
    const Changes slow{{"fabric.nics.trainer:1", "100Gbit/s"}};
    const Changes rails{{"fabric.rail_only", "true"}};
    const Changes pods{{"fabric.oversubscription", "4:1"}, {"fabric.domains_per_pod", "2"}};
    for (const auto& changes : {down, slow, rails, pods}) {
        for (const auto method : kMethods) {
            SCOPED_TRACE(changes.begin()->first + " " + std::string{name_of(method)});
            expect_planners_bytes(built(method, "qwen3-235b-h100", changes));
            expect_planners_bytes(built(method, "reshard-two-domains", changes));
        }
    }
}

TEST(TaskGraph, IsRunnableAndAsLongAsItsColumns) {
    for (const auto method : kMethods) {
        const auto job = built(method, "qwen3-235b-h100");
        EXPECT_TRUE(job.graph.network.faults().empty());
        EXPECT_EQ(job.graph.tasks.size(), job.graph.network.flows());
        EXPECT_EQ(job.graph.links.size(), job.graph.network.links());
        for (const auto& task : job.graph.tasks) {
            ASSERT_LT(task.lane, job.graph.lanes.size());
            ASSERT_LT(task.stage, job.plan.stages.size());
        }
    }
}

double seconds_of(const Built& job, Activity activity) {
    double sum = 0.0;
    for (std::uint32_t task = 0; task < job.graph.network.flows(); ++task) {
        sum += job.graph.tasks[task].activity == activity ? job.graph.network.flow(task).bytes : 0.0;
    }
    return sum;
}

// DeepSeek-V3 on H100, constants of data/engines/nemo-rl.json: 5,430 calls x 0.33 ms; 45,395 tensors x
// (92 + 0.12 x 256) us; 0.14 s + 512 x 0.3 ms; copies of 1,307,817,541,632 + 1,342,052,868,096 B on each
// trainer.
TEST(TaskGraph, SharesOutCallsCopiesAndLoadingOverThePacks) {
    const auto job = built(Method::kGatherBroadcast, "deepseek-v3-h100");
    EXPECT_NEAR(seconds_of(job, Activity::kCalls), 5430 * 0.33e-3, 1e-9);
    EXPECT_NEAR(seconds_of(job, Activity::kLoading), 45'395 * (92e-6 + 0.12e-6 * 256), 1e-9);
    EXPECT_NEAR(seconds_of(job, Activity::kControl), 0.14 + 512 * 0.30e-3, 1e-12);
    EXPECT_NEAR(seconds_of(job, Activity::kCopies), 1'307'817'541'632.0 + 1'342'052'868'096.0, 1.0);
    EXPECT_NEAR(seconds_of(job, Activity::kWeightBroadcast), 1'342'052'868'096.0, 10.0);
}

// 174 grouped expert parameters at 5.2 ms; one post of 0.33 ms for each of the 183 bulk tensors, 3 x 61.
TEST(TaskGraph, ReshardPostsEachTensorAndGroupsExperts) {
    const auto job = built(Method::kHybrid, "deepseek-v3-h100");
    EXPECT_NEAR(seconds_of(job, Activity::kGrouping), 174 * 5.2e-3, 1e-9);
    EXPECT_NEAR(seconds_of(job, Activity::kPosting), 183 * 0.33e-3, 1e-9);
}

TEST(TaskGraph, LinksAloneHaveNoHostsAndNoCopies) {
    GraphOptions links_alone;
    links_alone.has_software = false;
    for (const auto method : kMethods) {
        const auto job = built(method, "deepseek-v3-gb200", {}, links_alone);
        for (std::uint32_t task = 0; task < job.graph.network.flows(); ++task) {
            EXPECT_TRUE(is_on_links(job.graph.tasks[task].activity) ||
                        job.graph.network.flow(task).bytes == 0.0);
        }
    }
}

// Pack i is gathered when the broadcast of pack i - buffers is over.
TEST(TaskGraph, AnExportWaitsForTheBufferThatItFills) {
    for (const std::uint32_t buffers : {1U, 2U, 3U}) {
        const auto job = built(Method::kGatherBroadcast,
                               "qwen3-235b-h100",
                               {{"engine.options.NRL_REFIT_NUM_BUFFERS", std::to_string(buffers)}});
        std::uint32_t looked_at = 0;
        for (std::uint32_t task = 0; task < job.graph.network.flows(); ++task) {
            for (const auto before : job.graph.network.after(task)) {
                const auto& waiting = job.graph.tasks[task];
                const auto& awaited = job.graph.tasks[before];
                if (waiting.activity == Activity::kCalls && awaited.activity == Activity::kWeightBroadcast) {
                    EXPECT_EQ(waiting.item - awaited.item, buffers);
                    ++looked_at;
                }
            }
        }
        EXPECT_GT(looked_at, 100U);
    }
}

// The first tensor of a stage is posted when the stage `streams` before it is over.
TEST(TaskGraph, AStageWaitsForItsStream) {
    const auto job =
        built(Method::kHybrid, "deepseek-v3-h100", {{"engine.options.NRL_REFIT_NUM_STREAMS", "3"}});
    std::set<std::uint32_t> distances;
    for (std::uint32_t task = 0; task < job.graph.network.flows(); ++task) {
        for (const auto before : job.graph.network.after(task)) {
            const auto& waiting = job.graph.tasks[task];
            const auto& awaited = job.graph.tasks[before];
            const bool is_bulk = waiting.activity == Activity::kTransfer && awaited.bytes > 0.0;
            if (is_bulk && waiting.stage != awaited.stage) {
                distances.insert(waiting.stage - awaited.stage);
            }
        }
    }
    EXPECT_EQ(distances, (std::set<std::uint32_t>{3}));
}

TEST(TaskGraph, APairOfRanksKeepsToItsRate) {
    GraphOptions options;
    options.pair_rate = 14e9;
    const auto job = built(Method::kDirect, "reshard-two-domains", {}, options);
    for (std::uint32_t task = 0; task < job.graph.network.flows(); ++task) {
        if (job.graph.tasks[task].activity == Activity::kTransfer && job.graph.tasks[task].bytes > 0.0) {
            EXPECT_EQ(job.graph.network.flow(task).rate_cap, 14e9);
        }
    }
}

/// Bytes that tasks of an activity put on a port, summed over the classes.
double port_bytes(const Built& job, Activity activity, Port port) {
    double sum = 0.0;
    for (std::uint32_t task = 0; task < job.graph.network.flows(); ++task) {
        for (const auto& use : job.graph.network.uses(task)) {
            const bool is_it =
                job.graph.tasks[task].activity == activity && job.graph.links[use.link].port == port;
            sum += is_it ? job.graph.network.flow(task).bytes * use.per_byte : 0.0;
        }
    }
    return sum;
}

// Tensor groups of eight in one domain: a ring sends 7/8 of the result from each rank, a multicast its own
// 1/8 alone.
TEST(TaskGraph, SwitchesMulticastGathersInsideADomain) {
    GraphOptions options;
    options.has_nvls = true;
    const auto ring = built(Method::kGatherBroadcast, "nemotron-ultra-gb200");
    const auto multicast = built(Method::kGatherBroadcast, "nemotron-ultra-gb200", {}, options);
    const auto out = [](const Built& job) {
        return port_bytes(job, Activity::kTensorAllGather, Port::kNvlinkOut);
    };
    const auto in = [](const Built& job) {
        return port_bytes(job, Activity::kTensorAllGather, Port::kNvlinkIn);
    };
    EXPECT_NEAR(out(multicast), out(ring) / 7.0, 1e-6 * out(ring));
    EXPECT_DOUBLE_EQ(in(multicast), in(ring));
}

// Receivers keep gate and up fused: two of the three expert projections of each layer are copied into place,
// 58 layers, 256 x 2048 x 7168 elements of 2 B over 32 ranks; and those of 3 dense layers, 18,432 x 7168.
TEST(TaskGraph, ReceiversCopyHalvesOfFusedParametersIntoPlace) {
    const auto job = built(Method::kHybrid, "deepseek-v3-h100");
    const auto experts = 2.0 * 58.0 * 256.0 * 2048.0 * 7168.0 * 2.0 / 32.0;
    const auto dense = 2.0 * 3.0 * 18432.0 * 7168.0 * 2.0 / 32.0;
    EXPECT_NEAR(seconds_of(job, Activity::kUnpacking), experts + dense, 1.0);
}

TEST(TaskGraph, EveryActivityHasANameAndAPhase) {
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < kActivities; ++i) {
        names.insert(name_of(static_cast<Activity>(i)));
        EXPECT_FALSE(phase_of(static_cast<Activity>(i)).empty());
    }
    EXPECT_EQ(names.size(), kActivities);
    EXPECT_EQ(phase_of(Activity::kLoading), "load");
    EXPECT_EQ(phase_of(Activity::kRelay), "bulk");
}

}  // namespace
}  // namespace refit
