// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "arrivals.hpp"
#include "class_facts.hpp"
#include "fault_log.hpp"

namespace refit::proof {

/// Where a message of a relay table goes.
struct Route {
    struct Stop {
        std::uint32_t rank = 0;
        bool is_passing = false;  ///< Some hop follows the one that ends here.
    };
    std::size_t stage = 0;
    std::uint32_t message = 0;
    std::vector<std::uint32_t> origins;  ///< Ranks that send it without having got it.
    std::vector<Stop> stops;
};

/// The routes of all messages of a plan. Reports hops that follow what they cannot, ranks that get a message
/// twice, and trainers that get one for nothing. Pre: check_structure found nothing.
[[nodiscard]] std::vector<Route> trace_routes(FaultLog& log, const Plan& plan, std::uint32_t train_gpus);

/// A part of a message, by class.
struct RoutedPart {
    const Route* route = nullptr;
    std::uint32_t part = 0;
};

/// The parts of all routed messages by class.
[[nodiscard]] std::vector<std::vector<RoutedPart>> parts_by_class(const Plan& plan,
                                                                  const std::vector<Route>& routes,
                                                                  std::size_t classes);

/// Follows the parts of one class: origins must hold them. `arrivals` by slice.
void follow_relays(FaultLog& log,
                   const Plan& plan,
                   const ClassFacts& facts,
                   std::uint32_t train_gpus,
                   const std::vector<RoutedPart>& parts,
                   std::vector<Arrivals>& arrivals);

}  // namespace refit::proof
