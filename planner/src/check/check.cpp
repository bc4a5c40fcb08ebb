// SPDX-License-Identifier: Apache-2.0
#include "refit/check.hpp"

#include <string>

#include "arrivals.hpp"
#include "class_facts.hpp"
#include "fault_log.hpp"
#include "gather.hpp"
#include "relays.hpp"
#include "structure.hpp"
#include "transfers.hpp"

namespace refit {
namespace {

/// Follows everything once all that the plan names is known to exist.
void follow(proof::FaultLog& log, const Plan& plan, const Workload& workload, const JobSize& job) {
    const auto train_gpus = job.train_gpus;
    const auto generators = job.generate_gpus;  // The workload may have fewer; the others want nothing.
    const auto routes = proof::trace_routes(log, plan, train_gpus);
    const auto routed = proof::parts_by_class(plan, routes, workload.classes().size());
    std::vector<std::uint64_t> delivered(generators, 0);
    proof::MovedBytes moved;
    for (std::uint32_t index = 0; index < workload.classes().size() && !log.is_full(); ++index) {
        const proof::ClassFacts facts{workload, index, train_gpus};
        std::vector<proof::Arrivals> arrivals;
        for (std::uint32_t slice = 0; slice < facts.entry().slices.size(); ++slice) {
            arrivals.emplace_back(facts, slice, train_gpus, generators);
        }
        proof::follow_transfers(log, plan, facts, train_gpus, arrivals);
        proof::follow_gathers(log, plan, facts, train_gpus, arrivals, moved);
        proof::follow_relays(log, plan, facts, train_gpus, routed[index], arrivals);
        for (auto& slice : arrivals) {
            slice.prove(log, delivered);
        }
    }
    proof::check_moved_bytes(log, plan, moved);
    for (std::uint32_t i = 0; i < workload.generator_bytes().size() && log.is_empty(); ++i) {
        if (delivered[i] != workload.generator_bytes()[i]) {
            log.add("delivered-bytes",
                    {.rank = train_gpus + i},
                    "gets " + std::to_string(delivered[i]) + " bytes of " +
                        std::to_string(workload.generator_bytes()[i]));
        }
    }
}

}  // namespace

Faults check_plan(const Plan& plan, const Workload& workload, const JobSize& job) {
    proof::FaultLog log{plan, workload};
    proof::check_workload(log, workload, job);
    if (log.is_empty()) {
        proof::check_structure(log, plan, workload, job);
    }
    if (log.is_empty()) {
        follow(log, plan, workload, job);
    }
    return log.take();
}

}  // namespace refit
