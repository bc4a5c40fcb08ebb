// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "refit/batches.hpp"
#include "refit/cluster.hpp"
#include "refit/plan.hpp"
#include "refit/result.hpp"
#include "refit/workload.hpp"

namespace refit {

/// Ranks on each side of a job.
struct JobSize {
    std::uint32_t train_gpus = 1;
    std::uint32_t generate_gpus = 1;

    [[nodiscard]] std::uint32_t gpus() const noexcept { return train_gpus + generate_gpus; }
};

/// Proves that a plan delivers the workload, element by element, without any of the code that made it. Empty: proven.
///
/// What is shown for each class and slice: every generator gets each element of its boxes of each tensor exactly once,
/// and nothing else; whoever sends an element has it by then; sums agree with the workload, by rank.
///
/// What a plan means here:
/// - At the start, trainers hold their boxes of the slices of their own stage; nobody else holds anything.
/// - The transfers of a class, in the order of the plan, run through the tensors of the slices of their trainer stage, in
///   the order of the generator stages; no use crosses from one slice to the next. They are sent by holders.
/// - The replica collectives of a class in a stage run, a call a tensor, through what the stage's transfers brought of the
///   slices whose destination has replicas. After an all-gather each member has what the members had, after a broadcast
///   what its root had, the first of the group, and everything arrives anew: stripes must be disjoint and complete. Their
///   bytes are exactly what they move.
/// - Collectives of a gather stage work on trainers' shards, in their order: a pipeline broadcast gives the members its
///   root's shards of the root's own stage; an all-gather gives each member what the members had. Their bytes are at least
///   what they move: frameworks carry padding too.
/// - A weight broadcast gives each generator in the group its own boxes of the full tensors, or of the parts of them, that
///   it carries; its root, any trainer, must have all of what is wanted by then. Its bytes are exactly those of what it
///   carries. The weight broadcasts of a stage run at once, each from what its root gathered in stages before.
/// - A relayed message begins at ranks that hold all of it; a hop that follows another begins where that one ends, and
///   carries the same message. No rank gets a message that it has. Who gets one wants all of it, or passes it on.
///
/// Errors: each fault names method, stage, class, slice, tensor, rank and elements as far as they apply; at most 100.
/// Cost: in classes, stages, transfers and their cells, not in elements or layers.
[[nodiscard]] Faults check_plan(const Plan& plan, const Workload& workload, const JobSize& job);
[[nodiscard]] inline Faults check_plan(const Plan& plan, const Workload& workload, const Cluster& cluster) {
    return check_plan(plan, workload, JobSize{cluster.train_gpus(), cluster.generate_gpus()});
}

/// Shows that batches can be run: each posting has one, which exists and is no rank's beyond `limit` operations; what
/// follows another posting lies in a later batch, so that no rank waits for what it has yet to post; none is empty.
[[nodiscard]] Faults check_batches(const Postings& postings, const Batches& batches, std::uint32_t limit);

}  // namespace refit
