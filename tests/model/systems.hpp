// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "refit/system.hpp"

namespace refit::testing_systems {

/// A system of `gpus_per_domain` GPUs a domain with round figures: one NIC of 50 GB/s, 450 GB/s of NVLink.
inline System system_of(std::string name, std::uint32_t gpus_per_domain) {
    const auto rate = [](std::uint64_t gigabytes) {
        const auto value = Bandwidth::gigabytes_per_second(static_cast<double>(gigabytes));
        return Figure<Bandwidth>{value, value, value, "made up"};
    };
    const auto memory = Bytes{80ULL << 30U};
    return {std::move(name),
            "A system",
            "A GPU",
            false,
            gpus_per_domain,
            gpus_per_domain,
            1,
            {memory, memory, memory, "made up"},
            rate(50),
            rate(450),
            rate(1500)};
}

}  // namespace refit::testing_systems
