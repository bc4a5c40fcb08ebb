// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "members.hpp"
#include "refit/fabric.hpp"
#include "refit/plan.hpp"
#include "refit/slices.hpp"
#include "router.hpp"

namespace refit {

/// Who of a slice's holders sends the first copy: bytes still to be sent, by domain and by holder in it.
struct Reserve {
    std::vector<double> domains;               ///< By position among the holders' domains.
    std::vector<std::vector<double>> holders;  ///< By the same and position in it.
};

/// Ranks of some domains.
using MemberList = std::span<const Members* const>;

/// What all messages of a slice have in common.
struct Job {
    std::uint32_t slice = 0;
    std::uint32_t holders = 0;                ///< Rank set.
    MemberList targets;                       ///< Receivers in domains without a holder.
    MemberList local;                         ///< Receivers in domains with one.
    Reserve* reserve = nullptr;               ///< Null where nothing leaves the holders' domains.
    std::uint32_t first_message = 0;
    std::uint32_t messages = 0;
};

/// What there is to route, before any of it is.
/// Invariant: the pointers of jobs lead into `members`, `lists` and `reserves`, also where the book is moved.
struct JobBook {
    std::vector<std::vector<Members>> members;  ///< By rank set.
    std::vector<std::vector<const Members*>> lists;  ///< Receivers: one list for all jobs of a set that have the same.
    std::map<std::uint32_t, Reserve> reserves;  ///< By rank set of holders.
    std::vector<Job> jobs;                      ///< Most bytes first.
    RelayTable table;                           ///< The messages, without hops.
    std::vector<double> reserved;               ///< By rank: first copies that it has to send. Unit: byte.
    std::vector<double> local_reserved;         ///< By rank: what it has to send over NVLink at least once. Unit: byte.
    std::vector<double> need;                   ///< By rank: what it wants. Unit: byte.
    std::vector<double> domain_reserved;        ///< By domain: first copies that it has to send. Unit: byte.
};

/// Slices as jobs, their first copies shared out by flows, cut into messages within the limits.
[[nodiscard]] JobBook make_job_book(const SliceTable& slices, const Fabric& fabric, const RouteLimits& limits);

}  // namespace refit
