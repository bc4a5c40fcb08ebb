// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "nccl_library.hpp"

namespace refit::testing_support {

/// What a job over the fake NCCL did.
struct NcclCounts {
    std::atomic<int> communicators{0};  ///< That are there.
    std::atomic<int> splits{0};
    std::atomic<int> shrinks{0};
    std::atomic<int> kernels{0};         ///< Run, of all communicators.
    std::atomic<int> domain_kernels{0};  ///< Of those that were split off.
};
[[nodiscard]] NcclCounts& nccl_counts();

/// Forgets all communicators and faults of the job before. Pre: none is left.
void reset_nccl();
/// What NCCL would have done wrong with: calls on a communicator that has not settled, a blocking one, ends
/// of unlike length, memory registered on one side alone; a shrink by ranks that do not agree on whom it
/// leaves out, by one of these, or by default beside what is outstanding; a finalize after a revoke. Empty
/// where all was right.
[[nodiscard]] std::vector<std::string> nccl_faults();
/// After so many groups from now on, of whatever ranks, each that ends fails as that of a rank whose peer is
/// gone; or is never done.
void fail_groups_after(int groups, bool silently = false);

/// From here on the thread is a process that is gone: its communicators end, and the others hear of it from
/// NCCL only if it is `aloud`.
void vanish(bool aloud);

/// NCCL over threads of one process, whose devices are AsyncDevice. Calls are as asynchronous as a
/// non-blocking communicator's: what was called is done once its state was asked for. A group is a kernel for
/// each of its communicators, on the stream of its calls; it ends once all its messages have met their other
/// end, which match by order alone; a sender waits for its receiver. An abort reaches all members as a remote
/// error, and a communicator that has one is not shrunk. A revoke ends the rank's own ends alone.
[[nodiscard]] exec::nccl::Library fake_nccl();

}  // namespace refit::testing_support
