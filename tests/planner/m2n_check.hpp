// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "refit/m2n.hpp"

namespace refit {

/// Follows every element of a small call through its plan. Slow, and shares no code with the planner: who
/// holds what is worked out from mesh coordinates, one element at a time.
class M2nChecker {
public:
    M2nChecker(const M2nCall& call, const M2nPlan& plan, std::uint32_t domain_size)
        : call_{call}, plan_{plan}, domain_size_{domain_size} {}

    /// What is wrong; empty where all is well.
    [[nodiscard]] std::vector<std::string> problems() {
        for (const auto& entry : plan_.destinations) {
            entries_[entry.rank.index()] = &entry;
        }
        if (entries_.size() != ranks_of(call_.destination.mesh)) {
            say("not every destination has an entry", 0);
        }
        inject();
        pass_on();
        fan_out();
        count_elements();
        compare_totals();
        return problems_;
    }

private:
    using Elements = std::vector<std::uint64_t>;  ///< Row-major indices in the whole tensor, ascending.
    using Rank = std::uint32_t;

    static std::uint64_t ranks_of(const M2nMesh& mesh) {
        std::uint64_t product = 1;
        for (const auto axis : mesh.axes) {
            product *= axis;
        }
        return product;
    }

    void say(const std::string& what, Rank rank) {
        problems_.push_back(what + " at rank " + std::to_string(rank));
    }

    /// Whether the rank of the mesh holds the element.
    static bool holds(const M2nTensor& tensor, Rank rank, std::uint64_t element) {
        std::uint64_t place = rank - tensor.mesh.first_rank.index();
        for (std::size_t i = tensor.mesh.axes.size(); i-- > 0;) {
            const auto coordinate = place % tensor.mesh.axes[i];
            place /= tensor.mesh.axes[i];
            if (tensor.placements[i].kind == DtensorPlacement::Kind::kReplicate) {
                continue;
            }
            std::uint64_t inner = 1;
            for (std::size_t axis = tensor.placements[i].dim + 1; axis < tensor.shape.size(); ++axis) {
                inner *= tensor.shape[axis];
            }
            const auto extent = tensor.shape[tensor.placements[i].dim];
            const auto index = element / inner % extent;
            if (index * tensor.mesh.axes[i] / extent != coordinate) {
                return false;
            }
        }
        return true;
    }

    const Elements& held(const M2nTensor& tensor, Rank rank) {
        auto& elements = held_[rank];
        if (elements.empty()) {
            std::uint64_t count = 1;
            for (const auto extent : tensor.shape) {
                count *= extent;
            }
            for (std::uint64_t element = 0; element < count; ++element) {
                if (holds(tensor, rank, element)) {
                    elements.push_back(element);
                }
            }
        }
        return elements;
    }

    const Elements& shared(Rank source, Rank destination) {
        auto& both = shared_[{source, destination}];
        if (both.empty()) {
            std::ranges::set_intersection(
                held(call_.source, source), held(call_.destination, destination), std::back_inserter(both));
        }
        return both;
    }

    std::uint64_t bytes(const std::vector<Rank>& sources, Rank destination) {
        std::uint64_t sum = 0;
        for (const auto source : sources) {
            sum += shared(source, destination).size() * call_.source.element_bytes;
        }
        return sum;
    }

    /// Whether runs of `length` of these elements lie side by side in both local tensors.
    bool are_runs(const Elements& elements, std::uint64_t length, Rank source, Rank destination) {
        const auto place = [](const Elements& local, std::uint64_t element) {
            return std::ranges::lower_bound(local, element) - local.begin();
        };
        for (std::size_t i = 1; i < elements.size(); ++i) {
            for (const auto* local : {&held(call_.source, source), &held(call_.destination, destination)}) {
                if (i % length != 0 && place(*local, elements[i]) != place(*local, elements[i - 1]) + 1) {
                    return false;
                }
            }
        }
        return true;
    }

    void inject() {
        Rank last = 0;
        for (const auto& injection : plan_.injections) {
            const auto source = injection.source.index();
            const auto destination = injection.destination.index();
            const auto& pair = plan_.pairs.at(injection.pair);
            const auto& elements = shared(source, destination);
            const auto size = call_.source.element_bytes;
            if (source < last) {
                say("injections out of order", source);
            }
            last = source;
            if (elements.empty() || pair.bytes != elements.size() * size ||
                pair.bytes != pair.run_bytes * pair.runs) {
                say("an injection of the wrong size", source);
            } else if (pair.run_bytes % size != 0 ||
                       !are_runs(elements, pair.run_bytes / size, source, destination)) {
                say("runs that are not contiguous", source);
            }
            arrived_[destination].push_back(source);
            sent_[source] += pair.bytes;
            injected_ += pair.bytes;
        }
        for (const auto& [rank, sources] : arrived_) {
            if (!entries_.contains(rank) || !entries_.at(rank)->is_direct) {
                say("an injection that nobody waits for", rank);
            }
        }
    }

    [[nodiscard]] std::vector<Rank> awaited(const M2nDestination& entry) const {
        std::vector<Rank> ranks;
        for (const auto rank : plan_.sources_of(entry)) {
            ranks.push_back(rank.index());
        }
        return ranks;
    }

    [[nodiscard]] std::uint32_t domain_of(Rank rank) const {
        const auto anchor = plan_.path == M2nPath::kSplit ? call_.destination.mesh.first_rank.index() : 0;
        return plan_.path == M2nPath::kLsa ? 0 : (rank - anchor) / domain_size_;
    }

    /// Runs the rings: domain by domain, since a ring only goes to later domains.
    void pass_on() {
        std::vector<const M2nDestination*> order;
        for (const auto& entry : plan_.destinations) {
            order.push_back(&entry);
        }
        std::ranges::stable_sort(
            order, {}, [&](const auto* entry) { return domain_of(entry->rank.index()); });
        for (const auto* entry : order) {
            const auto rank = entry->rank.index();
            auto came = arrived_[rank];
            std::ranges::sort(came);
            auto wanted = awaited(*entry);
            std::ranges::sort(wanted);
            if (came != wanted) {
                say("what it waits for is not what comes", rank);
            }
            if (entry->ring_next) {
                hop(rank, entry->ring_next->index(), wanted);
            }
        }
    }

    void hop(Rank from, Rank to, const std::vector<Rank>& sources) {
        if (domain_of(to) <= domain_of(from)) {
            say("a ring that goes back", from);
        }
        if (held(call_.destination, from) != held(call_.destination, to)) {
            say("a ring to another shard", from);
        }
        const auto first = call_.destination.mesh.first_rank.index();
        if (plan_.path == M2nPath::kSplit && (from - first) % domain_size_ != (to - first) % domain_size_) {
            say("a hop off rail", from);
        }
        if (!sources.empty() && entries_.contains(to) && entries_.at(to)->is_direct) {
            say("a ring into a rank that sources write to", to);
        }
        arrived_[to].insert(arrived_[to].end(), sources.begin(), sources.end());
        passed_ += bytes(sources, from);
        sent_[from] += bytes(sources, from);
        ring_sent_ = std::max(ring_sent_, bytes(sources, from));
    }

    void fan_out() {
        for (const auto& entry : plan_.destinations) {
            const auto rank = entry.rank.index();
            const auto sources = awaited(entry);
            complete_[rank].insert(complete_[rank].end(), sources.begin(), sources.end());
            for (const auto follower : plan_.followers_of(entry)) {
                if (domain_of(follower.index()) != domain_of(rank) || follower == entry.rank) {
                    say("a follower elsewhere", rank);
                }
                if (held(call_.destination, follower.index()) != held(call_.destination, rank)) {
                    say("a follower with another shard", rank);
                }
                auto& has = complete_[follower.index()];
                has.insert(has.end(), sources.begin(), sources.end());
                stored_ += bytes(sources, rank);
                stored_by_[rank] += bytes(sources, rank);
            }
        }
    }

    void count_elements() {
        for (const auto& entry : plan_.destinations) {
            const auto rank = entry.rank.index();
            Elements got;
            for (const auto source : complete_[rank]) {
                const auto& part = shared(source, rank);
                got.insert(got.end(), part.begin(), part.end());
            }
            std::ranges::sort(got);
            if (got != held(call_.destination, rank)) {
                say("elements lost or doubled", rank);
            }
        }
    }

    void compare_totals() {
        const auto& totals = plan_.totals;
        const auto most = [](const std::map<Rank, std::uint64_t>& counts) {
            std::uint64_t value = 0;
            for (const auto& [rank, count] : counts) {
                value = std::max(value, count);
            }
            return value;
        };
        const bool is_lsa = plan_.path == M2nPath::kLsa;
        std::uint64_t received = 0;
        std::set<Rank> senders;
        for (const auto& entry : plan_.destinations) {
            received = std::max(received, bytes(awaited(entry), entry.rank.index()));
        }
        for (const auto& injection : plan_.injections) {
            senders.insert(injection.source.index());
        }
        if (totals.inject_bytes != injected_ || totals.ring_bytes != passed_ ||
            totals.fanout_bytes != stored_ || totals.active_senders != senders.size() ||
            totals.source_ranks != ranks_of(call_.source.mesh) ||
            totals.max_rank_network_tx != (is_lsa ? 0 : most(sent_)) ||
            totals.max_rank_network_rx != (is_lsa ? 0 : received) || totals.max_rank_ring_tx != ring_sent_ ||
            totals.max_rank_fanout_tx != most(stored_by_)) {
            say("wrong totals", 0);
        }
    }

    const M2nCall& call_;
    const M2nPlan& plan_;
    std::uint32_t domain_size_;
    std::map<Rank, const M2nDestination*> entries_;
    std::map<Rank, Elements> held_;
    std::map<std::pair<Rank, Rank>, Elements> shared_;
    std::map<Rank, std::vector<Rank>> arrived_;   ///< Source ranks whose parts came by injection or ring.
    std::map<Rank, std::vector<Rank>> complete_;  ///< With those stored by leaders.
    std::map<Rank, std::uint64_t> sent_;
    std::map<Rank, std::uint64_t> stored_by_;
    std::uint64_t injected_ = 0;
    std::uint64_t passed_ = 0;
    std::uint64_t stored_ = 0;
    std::uint64_t ring_sent_ = 0;
    std::vector<std::string> problems_;
};

}  // namespace refit
