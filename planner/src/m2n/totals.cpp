// SPDX-License-Identifier: Apache-2.0
#include "totals.hpp"

#include <algorithm>
#include <vector>

#include "refit/units.hpp"

namespace refit::m2n {
namespace {

/// Running sums that throw where they overflow.
class Sums {
public:
    explicit Sums(M2nTotals& totals) : totals_{totals} {}

    void inject(Bytes bytes) { inject_ += bytes; }
    void ring(Bytes bytes) { ring_ += bytes; }
    void fan_out(Bytes bytes) { fanout_ += bytes; }
    void sends(RankId rank, Bytes bytes) {
        if (bytes.count() > totals_.busiest_tx) {
            totals_.busiest = rank;
            totals_.busiest_tx = bytes.count();
        }
    }
    void finish() {
        totals_.inject_bytes = inject_.count();
        totals_.ring_bytes = ring_.count();
        totals_.fanout_bytes = fanout_.count();
    }

private:
    M2nTotals& totals_;
    Bytes inject_;
    Bytes ring_;
    Bytes fanout_;
};

void raise(std::uint64_t& most, Bytes bytes) {
    most = std::max(most, bytes.count());
}

}  // namespace

M2nTotals totals_of(const M2nPlan& plan) {
    M2nTotals totals;
    totals.source_ranks = plan.source.ranks();
    const bool is_networked = plan.path != M2nPath::kLsa;
    Sums sums{totals};
    for (std::size_t begin = 0, end = 0; begin < plan.injections.size(); begin = end) {
        const auto rank = plan.injections[begin].source;
        Bytes sent;
        for (; end < plan.injections.size() && plan.injections[end].source == rank; ++end) {
            sent += Bytes{plan.pairs[plan.injections[end].pair].bytes};
        }
        ++totals.active_senders;
        sums.inject(sent);
        sums.sends(rank, sent);
        raise(totals.max_rank_inject_tx, sent);
    }
    totals.max_rank_network_tx = is_networked ? totals.max_rank_inject_tx : 0;
    for (const auto& entry : plan.destinations) {
        const Bytes awaited{plan.awaited_bytes(entry)};
        const auto ring = entry.ring_next ? awaited : Bytes{};
        const auto followers = entry.domain_replicas.size() > 1 ? entry.domain_replicas.size() - 1 : 0;
        const auto stored = awaited * followers;
        sums.ring(ring);
        sums.fan_out(stored);
        sums.sends(entry.rank, ring + stored);
        raise(totals.max_rank_ring_tx, ring);
        raise(totals.max_rank_fanout_tx, stored);
        raise(totals.max_rank_inject_rx, entry.is_direct ? awaited : Bytes{});
        raise(totals.max_rank_network_tx, ring);
        raise(totals.max_rank_network_rx, is_networked ? awaited : Bytes{});
    }
    sums.finish();
    return totals;
}

}  // namespace refit::m2n
