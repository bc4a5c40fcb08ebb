// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "refit/engine.hpp"
#include "refit/nccl_log.hpp"
#include "refit/result.hpp"
#include "refit/system.hpp"

namespace refit {

/// What one table of nccl-tests says of a system's links, or why it says nothing.
struct LinkReading {
    std::string test;
    std::string where;
    std::uint32_t ranks = 0;
    std::uint32_t hosts = 0;
    std::string constant;     ///< "nic_efficiency", "nvlink_efficiency"; empty: see `passed_over`.
    double efficiency = 0.0;  ///< Of the line rate.
    LinkFit fit;              ///< `rate` and `latency`; the rate of a ring is that of all NICs of a domain.
    std::string passed_over;
};

struct LinkConstants {
    EngineConstants constants;          ///< With the efficiencies that were measured, of kind "measured".
    std::vector<LinkReading> readings;  ///< One a table.
};

/// Efficiencies from tables of all_gather, broadcast and sendrecv on GPUs of `system`. Ranks of one NVLink
/// domain tell of NVLink. Ranks in several domains tell of NICs: a ring enters each domain over as many NICs
/// as it has ranks there, sendrecv over one. Where NVLink would be as slow as what was seen, such a table
/// tells nothing of NICs. Of several tables for one constant the fastest counts, and the slowest is the low
/// end of its interval. Errors: kInvalidInput for a rate above the line rate, wrong elements, a table without
/// its ranks; all at once.
[[nodiscard]] Result<LinkConstants> link_constants(std::span<const NcclTable> tables,
                                                   const System& system,
                                                   const EngineConstants& constants);

}  // namespace refit
