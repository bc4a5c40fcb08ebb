// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "arrivals.hpp"
#include "class_facts.hpp"
#include "fault_log.hpp"

namespace refit::proof {

/// Follows the transfers of a class, and the sharing among replicas after them. `arrivals` by slice.
/// Pre: check_structure found nothing.
void follow_transfers(FaultLog& log,
                      const Plan& plan,
                      const ClassFacts& facts,
                      std::uint32_t train_gpus,
                      std::vector<Arrivals>& arrivals);

}  // namespace refit::proof
