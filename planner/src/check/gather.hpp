// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "arrivals.hpp"
#include "class_facts.hpp"
#include "fault_log.hpp"

namespace refit::proof {

/// Bytes that a collective moves, over all classes: by stage and position in it, one a group.
using MovedBytes = std::map<std::pair<std::size_t, std::size_t>, std::vector<Bytes>>;

/// Follows the shards of a class through gathers and broadcasts of full parameters. `arrivals` by slice.
/// Pre: check_structure found nothing.
void follow_gathers(FaultLog& log,
                    const Plan& plan,
                    const ClassFacts& facts,
                    std::uint32_t train_gpus,
                    std::vector<Arrivals>& arrivals,
                    MovedBytes& moved);

/// Whether these collectives say enough bytes; a weight broadcast exactly as many.
void check_moved_bytes(FaultLog& log, const Plan& plan, const MovedBytes& moved);

}  // namespace refit::proof
