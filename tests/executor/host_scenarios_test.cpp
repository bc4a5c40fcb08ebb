// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../model/small_models.hpp"
#include "../planner/random_refit.hpp"
#include "../shipped.hpp"
#include "posting_check.hpp"
#include "refit/exec/host.hpp"
#include "refit/exec/measure.hpp"
#include "refit/exec/posting.hpp"
#include "refit/layout_check.hpp"
#include "refit/methods.hpp"

namespace refit::exec {
namespace {

using testing_support::Dice;

/// Layouts that the model takes, on up to 64 ranks in domains of any size.
Scenario scenario_of(Dice& dice, const std::string& model) {
    auto scenario = shipped_scenario("reshard-one-domain");
    scenario.model = testing_models::shrunken(model).model;
    const auto one_of = [&](std::initializer_list<std::uint32_t> sizes) {
        return *(sizes.begin() + dice.index(sizes.size()));
    };
    for (int attempt = 0; attempt < 400; ++attempt) {
        const bool is_fsdp = dice.once_in(4);
        LayoutText train;
        train.ep = scenario.model.experts() == 0 ? 1 : one_of({1, 2, 3, 4});
        if (is_fsdp) {
            train.fsdp = one_of({1, 2, 3, 4});
        } else {
            train.tp = one_of({1, 1, 2, 4});
            train.pp = one_of({1, 2, 3});
        }
        LayoutText generate;
        generate.tp = one_of({1, 2, 4});
        generate.pp = one_of({1, 1, 2});
        const auto trainers =
            (is_fsdp ? *train.fsdp * *train.ep : *train.tp * *train.pp * *train.ep) * one_of({1, 2});
        const auto generators = *generate.tp * *generate.pp * one_of({1, 2, 4});
        auto from = make_train_layout(train, trainers, scenario.model);
        auto to = make_generate_layout(generate, generators, scenario.model);
        if (from && to && trainers + generators <= 64) {
            scenario.train = std::move(*from);
            scenario.generate = std::move(*to);
            Placement placement;
            placement.train_gpus_per_domain = static_cast<std::uint32_t>(dice.between(1, 8));
            placement.generate_gpus_per_domain = static_cast<std::uint32_t>(dice.between(1, 8));
            placement.generation_starts_new_domain = true;
            scenario.cluster = Cluster{scenario.cluster.train_system(),
                                       scenario.cluster.generate_system(),
                                       trainers,
                                       generators,
                                       placement};
            scenario.rules = {};
            scenario.engine.options.broadcast_root =
                !is_fsdp && dice.once_in(2) ? BroadcastRoot::kEachStage : BroadcastRoot::kTrainer0;
            return scenario;
        }
    }
    throw std::runtime_error{"no layout for " + model};
}

class HostScenario : public testing::TestWithParam<const char*> {};

constexpr Method kAllMethods[] = {Method::kGatherBroadcast,
                                  Method::kHybrid,
                                  Method::kDirect,
                                  Method::kStriped,
                                  Method::kM2n,
                                  Method::kOptimal};

/// How many methods' plans of the scenario arrive whole.
int run_all(Dice& dice, const Scenario& scenario, std::uint64_t seed) {
    int moved = 0;
    const auto workload = Workload::make(scenario);
    for (const auto method : kAllMethods) {
        const auto plan = make_plan(method, scenario, workload);
        if (!plan) {
            continue;
        }
        program::Settings settings;
        settings.pack_bytes = Bytes{dice.between(500, 50'000)};
        settings.wave_bytes = Bytes{dice.between(500, 50'000)};
        settings.least_chunk = Bytes{dice.between(64, 2000)};
        SCOPED_TRACE(std::string{name_of(method)} + ", " + describe(scenario.train) + " to " +
                     to_text(scenario.generate) + ", seed " + std::to_string(seed) + ", without ranks " +
                     ranks_text(scenario.cluster.losses().absent()));
        const program::Schedule schedule{*plan, workload, scenario.cluster.train_gpus(), settings};
        // Groups of NCCL, too: with a communicator of all alone, and with one for each domain.
        const auto domains = domains_to_split(testing_support::starts_of(scenario.cluster), schedule.ranks(), schedule.members());
        EXPECT_EQ(testing_support::fault_of_groups(schedule, domains), "");
        EXPECT_EQ(testing_support::fault_of_groups(schedule, {}), "");
        Job job;
        job.schedule = &schedule;
        job.threads = 2;
        const auto transport = make_host_transport();
        const auto measured = measure(*transport, job, {0, 1});
        EXPECT_TRUE(measured.has_value()) << name_of(method) << ": " << measured.error().front().message;
        EXPECT_TRUE(measured && measured->records.size() == scenario.cluster.active_gpus());
        ++moved;
    }
    return moved;
}

/// Without up to four ranks at random that the others can do without; the same where none of a few tries can be.
Scenario without_some(Dice& dice, const Scenario& scenario) {
    for (int attempt = 0; attempt < 6; ++attempt) {
        std::vector<std::uint32_t> lost;
        for (auto left = dice.between(1, 4); left > 0; --left) {
            lost.push_back(dice.index(scenario.cluster.gpus()));
        }
        std::ranges::sort(lost);
        lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
        if (auto losses = losses_of(scenario, lost)) {
            auto rest = scenario;
            rest.cluster = rest.cluster.without(std::move(*losses));
            return rest;
        }
    }
    return scenario;
}

/// Three scenarios of each shipped model, as they are and without some ranks: each method's plan arrives whole, compared
/// element by element.
TEST_P(HostScenario, RunsAndVerifiesByEveryMethod) {
    const std::string model = GetParam();
    int moved = 0;
    int resumed = 0;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        Dice dice{std::accumulate(model.begin(), model.end(), seed, [](std::uint64_t sum, char letter) {
            return sum * 31 + static_cast<unsigned char>(letter);
        })};
        const auto scenario = scenario_of(dice, model);
        moved += run_all(dice, scenario, seed);
        const auto rest = without_some(dice, scenario);
        if (!rest.cluster.losses().empty()) {
            resumed += run_all(dice, rest, seed);
        }
    }
    EXPECT_GE(moved, 8);
    EXPECT_GE(resumed, 3);
}

INSTANTIATE_TEST_SUITE_P(Models,
                         HostScenario,
                         testing::ValuesIn(testing_models::kShippedIds),
                         [](const auto& test) { return testing_models::test_name(test.param); });

}  // namespace
}  // namespace refit::exec
