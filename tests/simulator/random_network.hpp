// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/flow_network.hpp"

namespace refit::testing_support {

/// What may occur in a random network.
struct Variety {
    std::uint32_t max_links = 6;
    std::uint32_t max_flows = 14;
    std::uint32_t max_uses = 4;    ///< Of a flow.
    bool has_coefficients = true;  ///< Uses other than 1, and weights.
    bool has_caps = true;
    bool has_order = true;    ///< Flows follow others; latencies, earliest times.
    bool has_changes = true;  ///< Links change their rate, fail and come back.
};

/// Depends on the seed alone. A network of few sizes and rates, so that many flows are alike and many events
/// fall together, or of many.
[[nodiscard]] FlowNetwork random_network(std::uint64_t seed, const Variety& variety = {});

}  // namespace refit::testing_support
