// SPDX-License-Identifier: Apache-2.0
// Cases from public bug reports on tensors, tables and domains as they are given, without a model's layout;
// the number in a test's name is the case's id in docs/public_reports.md.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "../shipped.hpp"
#include "refit/check.hpp"
#include "refit/explicit_job.hpp"
#include "refit/holdings.hpp"
#include "refit/layout_check.hpp"
#include "refit/methods.hpp"
#include "refit/optimal.hpp"
#include "refit/overlap.hpp"

namespace refit {
namespace {

using Kind = DtensorPlacement::Kind;

System system() {
    return shipped_scenario("reshard-one-domain").cluster.train_system();
}

Shard rows_of(const std::vector<std::uint64_t>& shape,
              std::vector<Interval> rows,
              std::vector<std::uint32_t> members) {
    Shard shard{{}, std::move(members)};
    for (const auto& interval : rows) {
        shard.boxes.push_back(Box::whole(shape).with(0, interval));
    }
    return shard;
}

WorkloadClass table(const std::string& name,
                    std::vector<std::uint64_t> shape,
                    std::vector<Shard> source,
                    std::vector<Shard> destination) {
    ParameterClass parameter;
    parameter.name = name;
    parameter.shape = shape;
    return {parameter,
            Distribution{shape, std::move(source)},
            {Distribution{shape, std::move(destination)}},
            {{0, 0, 1}}};
}

/// Both sides in NVLink domains of eight.
Cluster cluster_of(std::uint32_t trainers, std::uint32_t generators) {
    return {system(), system(), trainers, generators, Placement{8, 8, true}};
}

Plan plan_of(Method method, const Cluster& cluster, const Workload& workload) {
    return make_plan(method, cluster, port_rates(cluster, 1.0, 1.0), workload).value();
}

TEST(PublicReports, A09ARoundTripOfOneLayoutHidesScrambling) {
    // [gate | up] of 8 + 8 rows on four ranks: slices of four rows, or each rank's quarters of both halves.
    // From one kind to the same nothing moves. From slices to quarters a rank keeps rows only where its slice
    // holds one of its quarters: rank 0 gate 0-1 and rank 3 up 6-7, 4 of 16 rows, and the other 12 come from
    // elsewhere.
    const std::vector<std::uint64_t> shape{16, 1};
    std::vector<Shard> slices;
    std::vector<Shard> quarters;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        slices.push_back(rows_of(shape, {{4ULL * rank, 4ULL * rank + 4}}, {rank}));
        quarters.push_back(
            rows_of(shape, {{2ULL * rank, 2ULL * rank + 2}, {8 + 2ULL * rank, 10 + 2ULL * rank}}, {rank}));
    }
    const auto moved = [&](const std::vector<Shard>& from, const std::vector<Shard>& to) {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> rows;
        for (const auto& cell : overlap(Distribution{shape, from}, Distribution{shape, to})) {
            if (cell.source != cell.destination) {
                rows[{cell.source, cell.destination}] += cell.box.volume();
            }
        }
        return rows;
    };
    EXPECT_TRUE(moved(slices, slices).empty());
    EXPECT_TRUE(moved(quarters, quarters).empty());
    const std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> expected{
        {{2, 0}, 2}, {{0, 1}, 2}, {{2, 1}, 2}, {{1, 2}, 2}, {{3, 2}, 2}, {{1, 3}, 2}};
    EXPECT_EQ(moved(slices, quarters), expected);
}

TEST(PublicReports, A13TablesOfDifferentPaddingAreCutApart) {
    // 49,159 rows at TP2: the embedding unpadded, 24,580 and 24,579 rows; the head padded to 49,216, 24,608 a
    // rank, of which the last has 24,551. Padding is nobody's and is not sent.
    const std::vector<std::uint64_t> shape{49159, 64};
    const auto whole = std::vector{rows_of(shape, {{0, 49159}}, {0})};
    const auto workload =
        Workload::of({table("embedding",
                            shape,
                            whole,
                            {rows_of(shape, {{0, 24580}}, {0}), rows_of(shape, {{24580, 49159}}, {1})}),
                      table("head",
                            shape,
                            whole,
                            {rows_of(shape, {{0, 24608}}, {0}), rows_of(shape, {{24608, 49159}}, {1})})},
                     1,
                     1,
                     2);
    EXPECT_EQ(workload.generator_bytes()[0], (24580U + 24608U) * 64 * 2);
    EXPECT_EQ(workload.generator_bytes()[1], (24579U + 24551U) * 64 * 2);
    const auto cluster = cluster_of(1, 2);
    for (const auto method :
         {Method::kDirect, Method::kStriped, Method::kOptimal, Method::kGatherBroadcast}) {
        EXPECT_TRUE(check_plan(plan_of(method, cluster, workload), workload, cluster).empty())
            << name_of(method);
    }
}

/// Bytes that leave each rank, and that reach each, over the hops of a plan's relays.
std::pair<std::map<std::uint32_t, std::uint64_t>, std::map<std::uint32_t, std::uint64_t>> ends_of(
    const Plan& plan) {
    std::pair<std::map<std::uint32_t, std::uint64_t>, std::map<std::uint32_t, std::uint64_t>> ends;
    const auto& relays = plan.stages.front().relays;
    for (std::size_t hop = 0; hop < relays.size(); ++hop) {
        const auto bytes = relays.messages[relays.message[hop]].bytes;
        ends.first[relays.source[hop]] += bytes;
        ends.second[relays.destination[hop]] += bytes;
    }
    return ends;
}

TEST(PublicReports, A15TwoCopiesOfATiedTableShareTheSending) {
    // Llama-3.2-1B's table, 128,256 x 2048 in BF16, on the first and the last of four trainers; four
    // generators want a quarter each, 131,334,144 B. Each gets it once, and the two trainers send half of the
    // table each.
    const std::vector<std::uint64_t> shape{128256, 2048};
    std::vector<Shard> quarters;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
        quarters.push_back(rows_of(shape, {{32064ULL * rank, 32064ULL * (rank + 1)}}, {rank}));
    }
    const auto workload =
        Workload::of({table("table", shape, {rows_of(shape, {{0, 128256}}, {0, 3})}, quarters)}, 1, 4, 4);
    const auto cluster = cluster_of(4, 4);
    const auto plan = plan_of(Method::kOptimal, cluster, workload);
    EXPECT_TRUE(check_plan(plan, workload, cluster).empty());
    const auto [sent, received] = ends_of(plan);
    for (std::uint32_t rank = 4; rank < 8; ++rank) {
        EXPECT_EQ(received.at(rank), 131'334'144U) << rank;
    }
    EXPECT_EQ(sent.at(0), 262'668'288U);
    EXPECT_EQ(sent.at(3), 262'668'288U);
}

TEST(PublicReports, A28AShardBelowABlockIsRefusedWithoutPadding) {
    // DeepSeek-V3's experts are 2048 wide: at TP32 a shard is 64 rows, half of a block of 128, whose scale
    // two ranks would have to share.
    const auto model = shipped_library().model("deepseek-v3").value();
    const auto layout = make_generate_layout(parse_layout("tp32").value(), 256, model).value();
    const auto faults = check_fp8_blocks(layout, model);
    EXPECT_TRUE(std::ranges::any_of(faults, [](const Fault& fault) {
        return fault.rule == "fp8-block" && fault.message.find("2048 / 32 = 64") != std::string::npos;
    }));
}

TEST(PublicReports, A30AScaleThatIsGivenAsATensorIsCutAsItsWeight) {
    // A weight of 4096 x 3072 in groups of 32 along its rows has 4096 x 96 scales; cut by columns in two,
    // 4096 x 48 a rank.
    M2nCall call;
    call.source = {{4096, 96}, 1, {{1}, RankId{0}}, {{Kind::kReplicate, 0, 1}}};
    call.destination = {{4096, 96}, 1, {{2}, RankId{1}}, {{Kind::kShard, 1, 1}}};
    const auto job = explicit_job("scales", call, 8, system()).value();
    const auto shards = job.workload.classes().front().destinations.front().shards();
    ASSERT_EQ(shards.size(), 2U);
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
        const auto axes = shards[rank].boxes.front().axes();
        EXPECT_EQ(axes[0], (Interval{0, 4096}));
        EXPECT_EQ(axes[1], (Interval{48 * rank, 48 * rank + 48}));
    }
}

TEST(PublicReports, A31ADraftWithoutAConsumerIsListedNotDropped) {
    // DeepSeek-V3's MTP block is part of the trained model and no generator asks for it: each of its classes
    // is named.
    const auto scenario = shipped_scenario("deepseek-v3-h100");
    const auto nobody = summarise_layout(scenario, Workload::make(scenario)).delivered_to_nobody;
    std::vector<std::string> drafts;
    for (const auto& parameter : scenario.model.classes()) {
        if (parameter.part == ModelPart::kMtp) {
            drafts.push_back(parameter.name);
        }
    }
    EXPECT_FALSE(drafts.empty());
    EXPECT_EQ(nobody, drafts);
}

TEST(PublicReports, A32ADraftThatStaysAsItIsGetsNoBytes) {
    // DeepSeek-V3 has layers 0 to 60; its MTP block is layer 61, and nothing of it is moved.
    const auto workload = Workload::make(shipped_scenario("deepseek-v3-h100"));
    for (const auto& entry : workload.classes()) {
        EXPECT_EQ(entry.parameter.part, ModelPart::kText) << entry.parameter.name;
        EXPECT_TRUE(std::ranges::all_of(entry.parameter.layers, [](auto layer) { return layer < 61; }))
            << entry.parameter.name;
    }
}

TEST(PublicReports, A33RoutersInFp32AddTheirBytesAgain) {
    // Qwen3-30B-A3B: 48 layers of 128 x 2048 router rows are 12,582,912 elements; at 4 B instead of 2 B each,
    // 25,165,824 B more.
    const auto library = shipped_library();
    io::ScenarioDraft draft;
    for (const auto& [field, value] : {std::pair{"model", "qwen3-30b-a3b"},
                                       std::pair{"train.layout", "tp1@8"},
                                       std::pair{"generate.layout", "tp2@8"},
                                       std::pair{"system", "h100-nvl8"}}) {
        draft.apply({field, value, ""});
    }
    const auto scenario = io::resolve(draft, library).value();
    const auto plain = Workload::make(scenario);
    std::vector<WorkloadClass> classes{plain.classes().begin(), plain.classes().end()};
    for (auto& entry : classes) {
        if (entry.parameter.name == "model.layers.{layer}.mlp.gate.weight") {
            entry.parameter.dtype = Dtype::kFp32;
        }
    }
    const auto mixed = Workload::of(std::move(classes), plain.train_stages(), plain.trainers_per_stage(), 8);
    EXPECT_EQ(mixed.payload_bytes().count() - plain.payload_bytes().count(), 25'165'824U);
    const auto plan = plan_of(Method::kOptimal, scenario.cluster, mixed);
    EXPECT_TRUE(check_plan(plan, mixed, scenario.cluster).empty());
}

/// Pairs among four ranks of a group that lie in different domains.
std::uint32_t crossing_pairs(const Fabric& fabric, const std::vector<std::uint32_t>& group) {
    std::uint32_t pairs = 0;
    for (const auto a : group) {
        for (const auto b : group) {
            pairs += a < b && fabric.domain_of(a) != fabric.domain_of(b) ? 1U : 0U;
        }
    }
    return pairs;
}

TEST(PublicReports, A60RanksThatAlternateNodesCrossThemInEveryGroup) {
    // Two nodes of four, groups of four neighbours: in order no pair of a group crosses, alternating 2 x 2 of
    // 6 do.
    const std::vector<GpuPorts> ports(8, {50e9, 50e9, 450e9, 450e9});
    const Fabric in_order{{0, 0, 0, 0, 1, 1, 1, 1}, ports};
    const Fabric alternating{{0, 1, 0, 1, 0, 1, 0, 1}, ports};
    EXPECT_EQ(crossing_pairs(in_order, {0, 1, 2, 3}), 0U);
    EXPECT_EQ(crossing_pairs(alternating, {0, 1, 2, 3}), 4U);
    EXPECT_EQ(crossing_pairs(alternating, {4, 5, 6, 7}), 4U);
    // Rank 0 has 64 MiB that ranks 1 to 3 want: beside it at 450 GB/s. Alternating, ranks 1 and 3 are across:
    // one copy leaves the node, over both ends' four NICs at most, 64 MiB / (4 x 50 GB/s), and the plan takes
    // hardly longer.
    const auto slices = SliceTable::of({{0}, {1, 2, 3}}, {{0, 1, std::uint64_t{1} << 26U}});
    EXPECT_EQ(lower_bound(slices, in_order).network_bytes.count(), 0U);
    EXPECT_EQ(lower_bound(slices, alternating).network_bytes.count(), std::uint64_t{1} << 26U);
    EXPECT_NEAR(lower_bound(slices, alternating).time.value(), 67108864.0 / 200e9, 1e-9);
    const auto relays = optimal_relays(slices, alternating);
    EXPECT_LE(busiest_port(port_seconds(relays, alternating)).time.value(), 1.1 * 67108864.0 / 200e9);
}

TEST(PublicReports, A64HalfOfTheNvlinkPathsHalveItsRate) {
    // Racks of 43, 44, 64 and 72 GPUs, in which one trainer has 1 GB that all others want: with 4 of 8 paths
    // NVLink carries 225 GB/s instead of 450, nothing fails, and the bound, which NVLink alone sets, doubles.
    for (const std::uint32_t gpus : {43U, 44U, 64U, 72U}) {
        std::vector<std::uint32_t> others(gpus - 1);
        std::iota(others.begin(), others.end(), 1U);
        const auto slices = SliceTable::of({{0}, others}, {{0, 1, 1'000'000'000}});
        const auto rack = [&](double nvlink) {
            return Fabric{std::vector<std::uint32_t>(gpus, 0),
                          std::vector<GpuPorts>(gpus, {50e9, 50e9, nvlink, nvlink})};
        };
        const auto whole = lower_bound(slices, rack(450e9)).time;
        EXPECT_NEAR(lower_bound(slices, rack(225e9)).time / whole, 2.0, 1e-9) << gpus;
        const auto relays = optimal_relays(slices, rack(225e9));
        EXPECT_LE(busiest_port(port_seconds(relays, rack(225e9))).time / whole, 2.0 * 1.10) << gpus;
    }
}

TEST(PublicReports, A85ABudgetOfTransfersIsHeldBeforeTheyAreMade) {
    // N row stripes to N column stripes are N x N regions, each with one receiver: 1,024, 4,096 and 16,384. A
    // caller with a budget of 10,000 knows before it plans that the last is beyond it.
    for (const std::uint32_t stripes : {32U, 64U, 128U}) {
        M2nCall call;
        call.source = {{1024, 1024}, 1, {{stripes}, RankId{0}}, {{Kind::kShard, 0, 1}}};
        call.destination = {{1024, 1024}, 1, {{stripes}, RankId{stripes}}, {{Kind::kShard, 1, 1}}};
        const auto job = explicit_job("matrix", call, 8, system()).value();
        const auto slices = SliceTable::make(job.workload, stripes);
        EXPECT_EQ(least_hops(slices), std::uint64_t{stripes} * stripes);
        EXPECT_EQ(least_hops(slices) > 10'000, stripes == 128);
        EXPECT_GE(plan_of(Method::kOptimal, job.cluster, job.workload).stages.front().relays.size(),
                  least_hops(slices));
    }
}

}  // namespace
}  // namespace refit
