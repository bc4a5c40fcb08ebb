// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "refit/units.hpp"

namespace refit {

/// A publicly reported refit time.
struct PublishedRecord {
    std::string id;
    std::string source;  ///< Title of what was read.
    std::string engine;  ///< Implementation that was timed: "nemo-rl-broadcast", "nemo-rl-reshard" …
    std::optional<Seconds> seconds;
    std::optional<Seconds> low;
    std::optional<Seconds> high;
    std::vector<std::string> inferred;               ///< Fields derived rather than published.
    std::vector<std::string> same_configuration_as;  ///< Ids of other records of the same refit.
    bool operator==(const PublishedRecord&) const = default;
};

}  // namespace refit
