// SPDX-License-Identifier: Apache-2.0
#include "relays.hpp"

#include <algorithm>
#include <string>

namespace refit::proof {
namespace {

void trace_stage(FaultLog& log,
                 std::size_t stage,
                 const RelayTable& relays,
                 std::uint32_t train_gpus,
                 std::vector<Route>& routes) {
    const auto first = routes.size();
    for (std::uint32_t message = 0; message < relays.messages.size(); ++message) {
        routes.push_back({stage, message, {}, {}});
    }
    std::vector<bool> is_followed(relays.size(), false);
    for (std::uint32_t hop = 0; hop < relays.size(); ++hop) {
        const auto before = relays.follows[hop];
        if (before == RelayTable::kNone) {
            routes[first + relays.message[hop]].origins.push_back(relays.source[hop]);
            continue;
        }
        // That a hop follows only an earlier one also means that nothing waits for itself.
        if (before >= hop || relays.message[before] != relays.message[hop] ||
            relays.destination[before] != relays.source[hop]) {
            log.add("follows",
                    {.stage = stage, .rank = relays.source[hop]},
                    "hop " + std::to_string(hop) + " of message " + std::to_string(relays.message[hop]) +
                        " follows no earlier hop that brings the message there");
            continue;
        }
        is_followed[before] = true;
    }
    for (std::uint32_t hop = 0; hop < relays.size(); ++hop) {
        const Place place{.stage = stage, .rank = relays.destination[hop]};
        auto& stops = routes[first + relays.message[hop]].stops;
        if (std::ranges::find(stops, relays.destination[hop], &Route::Stop::rank) != stops.end()) {
            log.add("message-twice",
                    place,
                    "gets message " + std::to_string(relays.message[hop]) + " again with hop " +
                        std::to_string(hop));
        }
        if (relays.destination[hop] < train_gpus && !is_followed[hop]) {
            log.add("needless",
                    place,
                    "gets message " + std::to_string(relays.message[hop]) +
                        " and neither wants it nor passes it on");
        }
        stops.push_back({relays.destination[hop], is_followed[hop]});
    }
}

}  // namespace

std::vector<Route> trace_routes(FaultLog& log, const Plan& plan, std::uint32_t train_gpus) {
    std::vector<Route> routes;
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
        trace_stage(log, stage, plan.stages[stage].relays, train_gpus, routes);
    }
    for (auto& route : routes) {
        std::ranges::sort(route.origins);
        route.origins.erase(std::unique(route.origins.begin(), route.origins.end()), route.origins.end());
    }
    return routes;
}

std::vector<std::vector<RoutedPart>> parts_by_class(const Plan& plan,
                                                    const std::vector<Route>& routes,
                                                    std::size_t classes) {
    std::vector<std::vector<RoutedPart>> parts(classes);
    for (const auto& route : routes) {
        const auto& relays = plan.stages[route.stage].relays;
        const auto& message = relays.messages[route.message];
        for (auto part = message.first_part; part < message.first_part + message.parts; ++part) {
            parts[relays.parts[part].parameter].push_back({&route, part});
        }
    }
    return parts;
}

void follow_relays(FaultLog& log,
                   const Plan& plan,
                   const ClassFacts& facts,
                   std::uint32_t train_gpus,
                   const std::vector<RoutedPart>& parts,
                   std::vector<Arrivals>& arrivals) {
    for (const auto& entry : parts) {
        const auto* route = entry.route;
        const auto& part = plan.stages[route->stage].relays.parts[entry.part];
        const Region region{{part.first_tensor, std::uint64_t{part.first_tensor} + part.tensors}, part.box};
        const auto report = [&](std::string_view rule, std::uint32_t rank, const std::string& what) {
            log.add(rule,
                    {.stage = route->stage,
                     .parameter = facts.index(),
                     .slice = part.slice,
                     .rank = rank,
                     .region = region},
                    what + " message " + std::to_string(route->message));
        };
        for (const auto rank : route->origins) {
            if (!facts.holds(rank, part.slice, part.box)) {
                report("source", rank, "sent by a rank that does not hold it, as part of");
            }
        }
        const auto arrived = arrivals[part.slice].region(route->stage, region);
        for (const auto& stop : route->stops) {
            if (stop.rank >= train_gpus) {
                arrivals[part.slice].add(stop.rank, arrived, stop.is_passing);
            } else if (facts.holds(stop.rank, part.slice, part.box)) {
                report("needless", stop.rank, "sent to a rank that holds it, as part of");
            }
        }
    }
}

}  // namespace refit::proof
