// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fault_log.hpp"
#include "refit/check.hpp"

namespace refit::proof {

/// Whether distributions keep their invariants: boxes inside the tensor, no rank in two shards, members that
/// exist.
void check_workload(FaultLog& log, const Workload& workload, const JobSize& job);

/// Whether everything that a plan names exists, columns have equal lengths, groups have no member twice,
/// boxes lie inside their tensors, and messages are as long as their parts. Only then can what it means be
/// looked at.
void check_structure(FaultLog& log, const Plan& plan, const Workload& workload, const JobSize& job);

}  // namespace refit::proof
