// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "refit/flow_network.hpp"

namespace refit::flow {

/// Classes numbered from 0 in the order of their first members.
struct Classes {
    std::vector<std::uint32_t> of;     ///< By member.
    std::vector<std::uint32_t> first;  ///< By class: its first member.
};

struct AlikeClasses {
    Classes flows;
    Classes links;
};

/// Flows and links that are alike, found by refining colours: at first by their own numbers, then again and
/// again by the colours of what they touch, until no class splits. The result is checked: flows one by one
/// against the first of their class, links by a second fingerprint, so that two colours that collide are
/// found out. Nothing where there are more than `most` classes of flows, where the check fails, or where
/// `is_cancelled` said so.
[[nodiscard]] std::optional<AlikeClasses> find_alike(const FlowNetwork& network,
                                                     std::size_t most,
                                                     const std::function<bool()>& is_cancelled);

}  // namespace refit::flow
