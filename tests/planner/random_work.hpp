// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "refit/fabric.hpp"
#include "refit/slices.hpp"

namespace refit::random_work {

/// A made-up job: slices on a fabric of unequal ports.
struct Work {
    SliceTable slices;
    Fabric fabric;
    std::vector<Slice> raw;                              ///< As they were drawn; sets index `sets`.
    std::vector<std::vector<std::uint32_t>> sets;
    bool is_mixed = false;                               ///< Some domains have trainers and generators.
};

class Generator {
public:
    explicit Generator(std::uint64_t seed) : random_{seed} {}

    /// From `low` to `high`, both included. Not a standard distribution: those differ between libraries.
    std::uint32_t number(std::uint32_t low, std::uint32_t high) {
        return low + static_cast<std::uint32_t>(random_() % (high - low + 1));
    }
    std::vector<std::uint32_t> choose(const std::vector<std::uint32_t>& from, std::size_t count) {
        auto all = from;
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::swap(all[i], all[i + random_() % (all.size() - i)]);
        }
        all.resize(std::min(count, all.size()));
        std::ranges::sort(all);
        return all;
    }

private:
    std::mt19937_64 random_;
};

/// 2 to 12 domains of 1 to 8 GPUs, NICs at half, full or twice the usual rate, one domain in ten with a quarter of its
/// egress, one NIC in twenty down but never a domain's last, one job in four with mixed domains; 20 to 120 slices of
/// 16 MiB to 1 GiB with 1 to 4 holders and 1 to 12 receivers. Nothing where a side came out empty.
inline std::vector<Work> draw(std::uint64_t seed) {
    Generator generator{seed};
    const auto held = generator.number(1, 4);
    const auto all = held + generator.number(1, 8);
    const bool is_mixed = generator.number(0, 99) < 27;
    std::vector<std::uint32_t> domains;
    std::vector<GpuPorts> ports;
    std::vector<std::uint32_t> holders;
    std::vector<std::uint32_t> receivers;
    for (std::uint32_t domain = 0; domain < all; ++domain) {
        const auto size = 1U << generator.number(0, 3);
        constexpr double kFactors[] = {1.0, 1.0, 1.0, 0.5, 2.0};
        const auto nic = 50e9 * kFactors[generator.number(0, 4)];
        const auto out = generator.number(0, 9) == 0 ? nic / 4.0 : nic;
        const auto first = ports.size();
        bool is_alive = false;
        for (std::uint32_t i = 0; i < size; ++i) {
            const bool is_down = generator.number(0, 19) == 0;
            is_alive = is_alive || !is_down;
            ports.push_back(is_down ? GpuPorts{0.0, 0.0, 450e9, 450e9} : GpuPorts{out, nic, 450e9, 450e9});
            const bool is_other = is_mixed && generator.number(0, 3) == 0;
            ((domain < held) != is_other ? holders : receivers).push_back(static_cast<std::uint32_t>(domains.size()));
            domains.push_back(domain);
        }
        if (!is_alive) {
            ports[first] = {out, nic, 450e9, 450e9};
        }
    }
    std::vector<std::vector<std::uint32_t>> sets;
    std::vector<Slice> slices;
    if (holders.empty() || receivers.empty()) {
        return {};
    }
    const auto count = generator.number(20, 120);
    for (std::uint32_t i = 0; i < count; ++i) {
        sets.push_back(generator.choose(holders, generator.number(1, 4)));
        sets.push_back(generator.choose(receivers, generator.number(1, 12)));
        slices.push_back({2 * i, 2 * i + 1, std::uint64_t{generator.number(1, 64)} << 24U});
    }
    std::vector<Work> work;
    work.push_back({SliceTable::of(sets, slices), Fabric{std::move(domains), std::move(ports)}, slices, sets, is_mixed});
    return work;
}

}  // namespace refit::random_work
