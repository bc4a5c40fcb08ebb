// SPDX-License-Identifier: Apache-2.0
// Plans of NCCL M2N for random layouts, followed element by element (m2n_check.hpp).
#include <array>
#include <numeric>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "m2n_cases.hpp"
#include "m2n_check.hpp"
#include "refit/m2n.hpp"
#include "refit/m2n_limits.hpp"

namespace refit {
namespace {

constexpr int kLayouts = 20000;

using m2n_cases::Side;

/// Draws small calls that divide.
class Draw {
public:
    explicit Draw(std::uint32_t seed) : engine_{seed} {}

    std::uint32_t number(std::uint32_t least, std::uint32_t most) {
        return std::uniform_int_distribution<std::uint32_t>{least, most}(engine_);
    }

    template <std::size_t N>
    std::uint32_t one_of(const std::array<std::uint32_t, N>& values) {
        return values[number(0, N - 1)];
    }

    Side side(std::size_t axes) {
        constexpr std::array<std::uint32_t, 8> kCounts{1, 2, 2, 3, 4, 4, 6, 8};
        const auto shards = one_of(kCounts);
        const auto replicas = one_of(kCounts);
        const auto dim = number(0, static_cast<std::uint32_t>(axes) - 1);
        switch (number(0, 7)) {
            case 0:
                return {{shards}, {m2n_cases::shard(dim)}, 0};
            case 1:
                return {{replicas}, {m2n_cases::replicate()}, 0};
            case 2:
                return {{replicas, shards}, {m2n_cases::replicate(), m2n_cases::replicate()}, 0};
            case 3:
            case 4:
                return m2n_cases::strided(shards, replicas, dim, 0);
            default:
                return m2n_cases::blocks(replicas, shards, dim, 0);
        }
    }

    M2nCall call() {
        const std::size_t axes = number(1, 3);
        auto source = side(axes);
        auto destination = side(axes);
        m2n_cases::Shape shape;
        for (std::size_t axis = 0; axis < axes; ++axis) {
            shape.push_back(number(1, 2));
        }
        for (const auto* one : {&source, &destination}) {
            for (std::size_t i = 0; i < one->axes.size(); ++i) {
                if (one->placements[i].kind == DtensorPlacement::Kind::kShard) {
                    auto& extent = shape[one->placements[i].dim];
                    extent = std::lcm(extent, std::uint64_t{one->axes[i]});
                }
            }
        }
        auto& first = number(0, 4) == 0 ? destination : source;
        auto& second = &first == &source ? destination : source;
        first.first_rank = number(0, 3) == 0 ? number(1, 9) : 0;
        second.first_rank = first.first_rank +
                            std::accumulate(first.axes.begin(), first.axes.end(), 1U, std::multiplies<>{}) +
                            (number(0, 3) == 0 ? number(1, 9) : 0);
        return m2n_cases::call(shape, std::uint64_t{1} << number(0, 3), source, destination);
    }

    M2nSettings settings() {
        M2nSettings settings;
        settings.domain_size = one_of(std::array<std::uint32_t, 8>{1, 2, 3, 4, 6, 8, 8, 72});
        settings.path = static_cast<M2nPath>(number(0, 2));
        settings.balance = static_cast<M2nBalance>(number(0, 3) == 0 ? number(0, 2) : 0);
        if (number(0, 3) == 0) {
            settings.single_injection = number(0, 1) == 0;
        }
        settings.large_communicator = number(0, 5) == 0 ? number(1, 60) : 200;
        return settings;
    }

private:
    std::mt19937 engine_;
};

std::string describe(const M2nCall& call, const M2nSettings& settings) {
    std::ostringstream text;
    for (const auto* tensor : {&call.source, &call.destination}) {
        text << "mesh";
        for (std::size_t i = 0; i < tensor->mesh.axes.size(); ++i) {
            const auto& placement = tensor->placements[i];
            text << ' ' << tensor->mesh.axes[i]
                 << (placement.kind == DtensorPlacement::Kind::kShard
                         ? "=shard" + std::to_string(placement.dim)
                         : "");
        }
        text << " from " << tensor->mesh.first_rank.index() << ", ";
    }
    text << "domains of " << settings.domain_size << ", " << name_of(settings.path) << ", "
         << name_of(settings.balance);
    return text.str();
}

TEST(M2nRandom, NothingIsLostDoubledOrUnawaited) {
    Draw draw{20261129};
    std::array<int, 3> paths{};
    int rings = 0;
    int stores = 0;
    for (int i = 0; i < kLayouts; ++i) {
        const auto call = draw.call();
        const auto settings = draw.settings();
        const auto plan = m2n_plan(call, settings);
        ASSERT_TRUE(plan) << plan.error().front().message << ": " << describe(call, settings);
        const auto problems = M2nChecker{call, *plan, settings.domain_size}.problems();
        ASSERT_TRUE(problems.empty()) << problems.front() << ": " << describe(call, settings);
        ++paths.at(static_cast<std::size_t>(plan->path));
        rings += plan->totals.ring_bytes > 0 ? 1 : 0;
        stores += plan->totals.fanout_bytes > 0 ? 1 : 0;
    }
    // The draw reaches every path, rings and stores.
    EXPECT_GT(*std::ranges::min_element(paths), 300);
    EXPECT_GT(rings, 300);
    EXPECT_GT(stores, 300);
}

TEST(M2nRandom, TheCheckerSeesEachKindOfDamage) {
    // 4 sources to 4 replicas of 2 shards in domains of 4: rings and stores.
    const auto call =
        m2n_cases::call({8, 2}, 2, m2n_cases::blocks(1, 4, 0, 0), m2n_cases::blocks(4, 2, 0, 4));
    M2nSettings settings;
    settings.domain_size = 4;
    const auto sound = m2n_plan(call, settings).value();
    const auto is_sound = [&](const M2nPlan& plan) {
        return M2nChecker{call, plan, settings.domain_size}.problems().empty();
    };
    ASSERT_TRUE(is_sound(sound));
    auto plan = sound;
    plan.injections.pop_back();
    EXPECT_FALSE(is_sound(plan)) << "lost";
    plan = sound;
    plan.injections.push_back(plan.injections.back());
    EXPECT_FALSE(is_sound(plan)) << "doubled";
    plan = sound;
    plan.injections.front().destination = plan.injections.back().destination;
    EXPECT_FALSE(is_sound(plan)) << "sent elsewhere";
    plan = sound;
    plan.destinations.front().ring_next = std::nullopt;
    EXPECT_FALSE(is_sound(plan)) << "a broken ring";
    plan = sound;
    plan.destinations.front().domain_replicas.end -= 1;
    EXPECT_FALSE(is_sound(plan)) << "a follower forgotten";
    plan = sound;
    plan.destinations.front().domain_replicas.end += 1;
    EXPECT_FALSE(is_sound(plan)) << "a follower in another domain";
    plan = sound;
    plan.pairs.front().run_bytes *= 2;
    plan.pairs.front().runs = 1;
    plan.pairs.front().bytes *= 2;
    EXPECT_FALSE(is_sound(plan)) << "a pair too large";
    plan = sound;
    plan.totals.ring_bytes += 1;
    EXPECT_FALSE(is_sound(plan)) << "a wrong total";
}

}  // namespace
}  // namespace refit
