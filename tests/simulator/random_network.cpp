// SPDX-License-Identifier: Apache-2.0
#include "random_network.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace refit::testing_support {
namespace {

class Dice {
public:
    explicit Dice(std::uint64_t seed) : engine_{seed} {}
    /// Range: [0, count).
    std::uint32_t index(std::uint32_t count) { return static_cast<std::uint32_t>(engine_() % count); }
    bool once_in(std::uint32_t times) { return index(times) == 0; }
    /// One of three values, or any of a million between them.
    double amount(bool is_plain) {
        return is_plain ? 10.0 * (1 + index(3)) : 10.0 + static_cast<double>(index(1'000'000)) / 50'000.0;
    }

private:
    std::mt19937_64 engine_;
};

Flow random_flow(Dice& dice, bool is_plain, const Variety& variety) {
    Flow flow{.bytes = dice.once_in(12) ? 0.0 : 10.0 * dice.amount(is_plain)};
    if (variety.has_coefficients && dice.once_in(3)) {
        flow.weight = is_plain ? 2.0 : dice.amount(false) / 10.0;
    }
    if (variety.has_caps && dice.once_in(4)) {
        flow.rate_cap = dice.amount(is_plain) / (1 + dice.index(6));
    }
    if (variety.has_order && dice.once_in(4)) {
        flow.earliest = Seconds{dice.amount(is_plain) / 5.0};
    }
    if (variety.has_order && dice.once_in(4)) {
        flow.latency = Seconds{dice.amount(is_plain) / 10.0};
    }
    return flow;
}

std::vector<LinkUse> random_uses(Dice& dice, std::uint32_t links, const Variety& variety) {
    std::vector<std::uint32_t> order(links);
    std::iota(order.begin(), order.end(), 0U);
    for (std::uint32_t i = links; i > 1; --i) {
        std::swap(order[i - 1], order[dice.index(i)]);
    }
    std::vector<LinkUse> uses;
    const auto count = 1 + dice.index(std::min(links, variety.max_uses));
    for (std::uint32_t i = 0; i < count; ++i) {
        constexpr double kUses[] = {2.0, 0.5, 0.125, 1.75};
        uses.push_back({order[i], variety.has_coefficients && dice.once_in(4) ? kUses[dice.index(4)] : 1.0});
    }
    return uses;
}

void add_changes(Dice& dice, bool is_plain, FlowNetwork& network) {
    for (std::uint32_t i = dice.index(4); i > 0; --i) {
        const auto link = dice.index(network.links());
        const auto at = dice.amount(is_plain) / 4.0;
        if (dice.once_in(2)) {
            network.add_change({Seconds{at + dice.amount(is_plain) / 8.0}, link, dice.amount(is_plain)});
            network.add_change({Seconds{at}, link, std::nullopt});
        } else {
            network.add_change({Seconds{dice.once_in(5) ? 0.0 : at}, link, dice.amount(is_plain)});
        }
    }
}

}  // namespace

FlowNetwork random_network(std::uint64_t seed, const Variety& variety) {
    Dice dice{seed};
    const bool is_plain = dice.once_in(2);
    FlowNetwork network;
    const auto links = 1 + dice.index(variety.max_links);
    for (std::uint32_t link = 0; link < links; ++link) {
        network.add_link(dice.amount(is_plain));
    }
    const auto flows = 1 + dice.index(variety.max_flows);
    for (std::uint32_t number = 0; number < flows; ++number) {
        std::vector<std::uint32_t> after;
        while (variety.has_order && number != 0 && dice.once_in(3)) {
            const auto before = dice.index(number);
            if (std::find(after.begin(), after.end(), before) == after.end()) {
                after.push_back(before);
            }
        }
        auto flow = random_flow(dice, is_plain, variety);
        if (variety.has_caps && dice.once_in(10)) {
            flow.rate_cap = dice.amount(is_plain);
            network.add_flow(flow, {}, after);
        } else {
            network.add_flow(flow, random_uses(dice, links, variety), after);
        }
    }
    if (variety.has_changes && dice.once_in(2)) {
        add_changes(dice, is_plain, network);
    }
    return network;
}

}  // namespace refit::testing_support
