// SPDX-License-Identifier: Apache-2.0
#include "router.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "busy.hpp"
#include "jobs.hpp"
#include "least_loaded.hpp"
#include "members.hpp"

namespace refit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Sums of rounded quotients may exceed what they are exactly.
constexpr double kTolerance = 1.0 + 1e-9;

class Router {
public:
    Router(const SliceTable& slices, const Fabric& fabric, const RouteLimits& limits)
        : Router{fabric, limits.budget, make_job_book(slices, fabric, limits)} {
        reserve_uplinks();
    }

    RelayTable run() {
        std::uint32_t rounds = 0;
        std::size_t hops = 0;
        for (const auto& job : jobs_) {
            rounds = std::max(rounds, job.messages);
            for (const auto& list : {job.targets, job.local}) {
                for (const auto* receivers : list) {
                    hops += job.messages * receivers->ranks.size();
                }
            }
        }
        // As many as there are if nobody lends its NIC.
        table_.message.reserve(hops);
        table_.source.reserve(hops);
        table_.destination.reserve(hops);
        table_.follows.reserve(hops);
        for (std::uint32_t round = 0; round < rounds; ++round) {
            for (const auto& job : jobs_) {
                if (round < job.messages) {
                    route(job, job.first_message + round);
                }
            }
        }
        return std::move(table_);
    }

private:
    Router(const Fabric& fabric, double budget, JobBook book)
        : fabric_{fabric},
          budget_{budget},
          members_{std::move(book.members)},
          lists_{std::move(book.lists)},
          reserves_{std::move(book.reserves)},
          jobs_{std::move(book.jobs)},
          table_{std::move(book.table)},
          ports_(fabric.ranks()),
          reserved_{std::move(book.reserved)},
          local_reserved_{std::move(book.local_reserved)},
          need_{std::move(book.need)},
          domain_out_(fabric.domains(), 0.0),
          domain_reserved_{std::move(book.domain_reserved)},
          pod_up_(std::max(fabric.spine().pods(), 1U), 0.0),
          pod_reserved_(pod_up_.size(), 0.0),
          has_(fabric.ranks(), RelayTable::kNone),
          has_message_(fabric.ranks(), RelayTable::kNone) {}

    /// What has to leave the holders' pods once, in equal shares.
    void reserve_uplinks() {
        for (const auto& job : jobs_) {
            std::set<std::uint32_t> pods;
            for (const auto& members : members_[job.holders]) {
                pods.insert(fabric_.pod_of(members.domain));
            }
            const bool leaves = std::ranges::any_of(
                job.targets, [&](const Members* target) { return !pods.contains(fabric_.pod_of(target->domain)); });
            for (std::uint32_t i = 0; leaves && i < job.messages; ++i) {
                for (const auto pod : pods) {
                    pod_reserved_[pod] += static_cast<double>(table_.messages[job.first_message + i].bytes) / static_cast<double>(pods.size());
                }
            }
        }
    }

    void route(const Job& job, std::uint32_t message) {
        current_ = message;
        bytes_ = static_cast<double>(table_.messages[message].bytes);
        const auto& holders = members_[job.holders];
        for (const auto& members : holders) {
            for (const auto rank : members.ranks) {
                has_[rank] = RelayTable::kNone;
                has_message_[rank] = message;
            }
        }
        // First where a holder is near: its neighbours' NICs may then send the message on.
        for (const auto* receivers : job.local) {
            const auto holder = holder_in(holders, receivers->domain);
            release_local(holders, receivers->domain);
            spread(holder, *receivers);
        }
        if (!job.targets.empty()) {
            route_across(job, holders);
        }
    }

    void release_local(const std::vector<Members>& holders, std::uint32_t domain) {
        const auto& members = *std::ranges::find(holders, domain, &Members::domain);
        for (const auto rank : members.ranks) {
            local_reserved_[rank] -= bytes_ / static_cast<double>(members.ranks.size());
        }
    }

    void route_across(const Job& job, const std::vector<Members>& holders) {
        const auto holder = take_first_copy(*job.reserve, holders);
        if (fabric_.spine().pods() > 0) {
            route_by_pods(job, holders, holder);
            return;
        }
        visit(job.targets, holders, holder);
    }

    /// The first target by `first`, the others by whoever has most room.
    void visit(MemberList targets, const std::vector<Members>& holders, std::uint32_t first) {
        const auto entry = entry_of(targets, current_);
        entered_.clear();
        entered_.push_back(enter(first, *targets[entry]));
        visit_others(targets, holders, entry);
    }
    void visit_others(MemberList targets, const std::vector<Members>& holders, std::size_t entry) {
        freest_.clear();
        idlest_.clear();
        for (std::size_t i = 1; i < targets.size(); ++i) {
            const auto& target = *targets[(entry + i) % targets.size()];
            entered_.push_back(enter(sender(holders, *targets[entry]), target));
        }
    }

    /// Each pod is entered once, over the uplink of a holder's pod or of the pod that was entered first; what is inside
    /// stays inside.
    void route_by_pods(const Job& job, const std::vector<Members>& holders, std::uint32_t first) {
        std::map<std::uint32_t, std::vector<const Members*>> targets;
        std::map<std::uint32_t, std::vector<Members>> held;
        for (const auto* target : job.targets) {
            targets[fabric_.pod_of(target->domain)].push_back(target);
        }
        for (const auto& members : holders) {
            held[fabric_.pod_of(members.domain)].push_back(members);
        }
        std::vector<std::uint32_t> others;
        for (const auto& [pod, list] : targets) {
            if (const auto near = held.find(pod); near != held.end()) {
                visit(list, near->second, freest_holder(near->second));
            } else {
                others.push_back(pod);
            }
        }
        for (const auto& [pod, members] : held) {
            pod_reserved_[pod] -= others.empty() ? 0.0 : bytes_ / static_cast<double>(held.size());
        }
        std::optional<std::uint32_t> root;
        const auto least = [&](std::uint32_t pod) {
            return seconds(pod_up_[pod] + pod_reserved_[pod] + bytes_ * static_cast<double>(others.size() - 1), fabric_.spine().up[pod]);
        };
        const auto turn = others.empty() ? 0 : current_ % others.size();
        std::rotate(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(turn), others.end());
        std::ranges::stable_sort(others, {}, least);
        for (const auto pod : others) {
            const auto sender = root ? crossing_from(holders, *root) : first;
            const auto& list = targets[pod];
            const auto entry = entry_of(list, current_);
            entered_.clear();
            entered_.push_back(enter(sender, *list[entry]));
            root = root ? root : std::optional{entered_.front()};
            visit_others(list, {}, entry);
        }
    }

    /// Who sends to a further pod: a holder while its own NIC, domain and uplink have room, else the GPU that the message
    /// reached in the first pod, or whichever uplink has less to send.
    [[nodiscard]] std::uint32_t crossing_from(const std::vector<Members>& holders, std::uint32_t root) const {
        const auto uplink = [&](std::uint32_t rank) {
            const auto pod = fabric_.pod_of(fabric_.domain_of(rank));
            return seconds(pod_up_[pod] + pod_reserved_[pod] + bytes_, fabric_.spine().up[pod]);
        };
        const auto holder = freest_holder(holders);
        const bool has_room = domain_has_room(fabric_.domain_of(holder)) && uplink(holder) <= budget_;
        if (has_room && own_nic_seconds(holder) <= budget_) {
            return holder;
        }
        if (own_nic_seconds(root) <= budget_ && uplink(root) <= budget_) {
            return root;
        }
        return has_room || uplink(holder) < uplink(root) ? holder : root;
    }

    /// The holder with the most of its reserve left, of the domain with the most left.
    std::uint32_t take_first_copy(Reserve& reserve, const std::vector<Members>& holders) {
        const auto d = static_cast<std::size_t>(std::ranges::max_element(reserve.domains) - reserve.domains.begin());
        auto& left = reserve.holders[d];
        const auto h = static_cast<std::size_t>(std::ranges::max_element(left) - left.begin());
        const auto rank = holders[d].ranks[h];
        release(reserve.domains[d], domain_reserved_[holders[d].domain]);
        release(left[h], reserved_[rank]);
        return rank;
    }
    void release(double& share, double& sum) const {
        sum = std::max(0.0, sum - bytes_);
        share -= bytes_;
    }

    /// The domain that would be done soonest if it passed the message on to all others.
    [[nodiscard]] std::size_t entry_of(MemberList targets, std::uint32_t turn) const {
        const auto copies = static_cast<double>(targets.size() - 1);
        std::size_t best = 0;
        double least = kInfinity;
        for (std::size_t i = 0; i < targets.size(); ++i) {
            const auto index = (i + turn) % targets.size();
            const auto domain = targets[index]->domain;
            const auto load = seconds(domain_out_[domain] + domain_reserved_[domain] + copies * bytes_,
                                      fabric_.domain_ports(domain).nic_out);
            if (load < least * (1.0 - 1e-12) || (i == 0 && least == kInfinity)) {
                least = load;
                best = index;
            }
        }
        return best;
    }

    /// From where the message goes on to a further domain, in this order: a holder by its own NIC, a GPU of the domain
    /// that it entered first by its own NIC, the same two by neighbours' NICs, each while within budget; else the
    /// domain that has least to send.
    [[nodiscard]] std::uint32_t sender(const std::vector<Members>& holders, const Members& entry) {
        if (holders.empty()) {
            return relay_among_entered(entry);
        }
        const auto load = [&](std::uint32_t i) { return domain_seconds(holders[i].domain); };
        freest_.grow(holders.size(), load);
        const auto holder = freest_of(holders[freest_.least(load)]);
        const bool has_room = domain_has_room(fabric_.domain_of(holder));
        if (has_room && own_nic_seconds(holder) <= budget_) {
            return holder;
        }
        if (const auto relay = own_nic_relay(entry, entered_.front())) {
            return *relay;
        }
        if (has_room) {
            return holder;
        }
        if (domain_has_room(fabric_.domain_of(entered_.front()))) {
            return entered_.front();
        }
        const auto rank = idlest_entered();
        return domain_seconds(fabric_.domain_of(rank)) < domain_seconds(fabric_.domain_of(holder)) ? rank : holder;
    }

    /// Of the GPUs that the message reached, where no holder may send.
    [[nodiscard]] std::uint32_t relay_among_entered(const Members& entry) {
        const auto relay = own_nic_relay(entry, entered_.front());
        return relay ? *relay : idlest_entered();
    }

    /// Where the message landed in the domain that has least to send.
    [[nodiscard]] std::uint32_t idlest_entered() {
        const auto load = [&](std::uint32_t i) { return domain_seconds(fabric_.domain_of(entered_[i])); };
        idlest_.grow(entered_.size(), load);
        return entered_[idlest_.least(load)];
    }

    /// Of the domain with most room, the holder whose own NIC has.
    [[nodiscard]] std::uint32_t freest_holder(const std::vector<Members>& holders) const {
        return freest_of(*std::ranges::min_element(holders, {}, [&](const Members& held) { return domain_seconds(held.domain); }));
    }
    [[nodiscard]] std::uint32_t freest_of(const Members& members) const {
        return *std::ranges::min_element(members.ranks, {}, [&](std::uint32_t rank) { return own_nic_seconds(rank); });
    }

    [[nodiscard]] double own_nic_seconds(std::uint32_t rank) const {
        return seconds(ports_[rank].nic_out + reserved_[rank] + bytes_, fabric_.ports(rank).nic_out);
    }
    [[nodiscard]] double domain_seconds(std::uint32_t domain) const {
        return seconds(domain_out_[domain] + domain_reserved_[domain] + bytes_, fabric_.domain_ports(domain).nic_out);
    }
    [[nodiscard]] bool domain_has_room(std::uint32_t domain) const {
        return domain_seconds(domain) <= budget_;
    }

    /// A receiver of the entry domain whose own NIC stays within budget: the one where the message landed, or another.
    [[nodiscard]] std::optional<std::uint32_t> own_nic_relay(const Members& entry, std::uint32_t landed) const {
        const auto fits = [&](std::uint32_t rank) {
            return has_message_[rank] == current_ && own_nic_seconds(rank) <= budget_;
        };
        if (fits(landed)) {
            return landed;
        }
        const auto found = std::ranges::find_if(entry.ranks, fits);
        return found == entry.ranks.end() ? std::nullopt : std::optional{*found};
    }

    /// Brings the message into a domain and to all its receivers; returns where it landed.
    std::uint32_t enter(std::uint32_t holder, const Members& receivers) {
        const auto [exit, landing] = fabric_.spine().rails > 0 ? joined_by_a_rail(holder, receivers)
                                                              : std::pair{exit_of(holder), landing_of(receivers)};
        if (exit != holder && has_message_[exit] != current_) {
            send(holder, exit);
        }
        send(exit, landing);
        spread(landing, receivers);
        return landing;
    }

    /// Exit and landing on one rail: the pair whose NICs are free soonest, those within budget first by how many hands the
    /// message needs on either side.
    [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> joined_by_a_rail(std::uint32_t holder, const Members& receivers) const {
        std::pair best{holder, receivers.ranks.front()};
        std::pair least{kInfinity, kInfinity};
        for (const auto exit : fabric_.members(fabric_.domain_of(holder))) {
            const auto held = exit == holder ? 0.0 : reserved_[exit];
            const auto out = seconds(ports_[exit].nic_out + held + bytes_, fabric_.ports(exit).nic_out);
            for (const auto landing : fabric_.members(receivers.domain)) {
                if (!fabric_.is_connected(exit, landing)) {
                    continue;
                }
                const auto load = std::max(out, seconds(ports_[landing].nic_in + bytes_, fabric_.ports(landing).nic_in));
                const auto hands = (exit == holder || has_message_[exit] == current_ ? 0.0 : 1.0) +
                                   (std::ranges::binary_search(receivers.ranks, landing) ? 0.0 : 1.0);
                const std::pair cost{load <= budget_ ? hands : 3.0 + load, load};
                if (cost < least) {
                    least = cost;
                    best = {exit, landing};
                }
            }
        }
        return best;
    }

    /// Own NIC while within budget, else the least busy of the domain.
    [[nodiscard]] std::uint32_t exit_of(std::uint32_t rank) const {
        const auto load = [&](std::uint32_t candidate) {
            const auto held = candidate == rank ? 0.0 : reserved_[candidate];
            return seconds(ports_[candidate].nic_out + held + bytes_, fabric_.ports(candidate).nic_out);
        };
        if (load(rank) <= budget_) {
            return rank;
        }
        const auto by_proxy = [&](std::uint32_t candidate) {
            const auto nvlink = candidate == rank || has_message_[candidate] == current_
                                    ? 0.0
                                    : seconds(ports_[candidate].nvlink_in + bytes_, fabric_.ports(candidate).nvlink_in);
            return nvlink <= budget_ ? load(candidate) : std::max(load(candidate), nvlink);
        };
        const auto& members = fabric_.members(fabric_.domain_of(rank));
        const auto best = *std::ranges::min_element(members, {}, by_proxy);
        const auto leaving = seconds(ports_[rank].nvlink_out + bytes_, fabric_.ports(rank).nvlink_out);
        return std::max(by_proxy(best), leaving) < load(rank) ? best : rank;
    }

    /// The receiver that has least to do, while its NIC stays within budget; else the least busy NIC of the domain.
    [[nodiscard]] std::uint32_t landing_of(const Members& receivers) const {
        const auto in = [&](std::uint32_t rank) {
            return seconds(ports_[rank].nic_in + bytes_, fabric_.ports(rank).nic_in);
        };
        const auto copies = static_cast<double>(receivers.ranks.size() - 1);
        const auto work = [&](std::uint32_t rank) {
            const auto& ports = fabric_.ports(rank);
            return std::max(in(rank), seconds(ports_[rank].nvlink_out + copies * bytes_, ports.nvlink_out));
        };
        // Who wants more than its NVLink can take in time has to land messages itself.
        const auto pressed = [&](std::uint32_t rank) {
            const auto over_nvlink = seconds(need_[rank] - ports_[rank].nic_in, fabric_.ports(rank).nvlink_in);
            return in(rank) <= budget_ && over_nvlink > budget_ ? over_nvlink : 0.0;
        };
        const auto most_pressed = *std::ranges::max_element(receivers.ranks, {}, pressed);
        if (pressed(most_pressed) > 0.0) {
            return most_pressed;
        }
        const auto best = *std::ranges::min_element(receivers.ranks, {}, work);
        if (in(best) <= budget_) {
            return best;
        }
        const auto by_proxy = [&](std::uint32_t rank) {
            const auto nvlink = seconds(ports_[rank].nvlink_out + bytes_, fabric_.ports(rank).nvlink_out);
            return nvlink <= budget_ ? in(rank) : std::max(in(rank), nvlink);
        };
        const auto& members = fabric_.members(receivers.domain);
        const auto proxy = *std::ranges::min_element(members, {}, by_proxy);
        return by_proxy(proxy) < in(best) ? proxy : best;
    }

    /// From a GPU that has the message to all receivers in its domain. Where the first would exceed the budget, a
    /// receiver passes it on.
    void spread(std::uint32_t from, const Members& receivers) {
        for (std::size_t i = 0; i < receivers.ranks.size(); ++i) {
            const auto to = receivers.ranks[(i + current_) % receivers.ranks.size()];
            if (has_message_[to] == current_) {
                continue;
            }
            send(spreader(from, receivers), to);
            // A neighbour that only lends its NIC hands the message over once.
            from = has_message_[from] == current_ && is_lender(from, receivers) ? to : from;
        }
    }

    [[nodiscard]] bool is_lender(std::uint32_t rank, const Members& receivers) const {
        return has_[rank] != RelayTable::kNone && !std::ranges::binary_search(receivers.ranks, rank);
    }

    [[nodiscard]] std::uint32_t spreader(std::uint32_t from, const Members& receivers) const {
        const auto out = [&](std::uint32_t rank) {
            return seconds(ports_[rank].nvlink_out + local_reserved_[rank] + bytes_, fabric_.ports(rank).nvlink_out);
        };
        if (out(from) <= budget_) {
            return from;
        }
        auto best = from;
        for (const auto rank : receivers.ranks) {
            if (has_message_[rank] == current_ && out(rank) < out(best)) {
                best = rank;
            }
        }
        return best;
    }

    [[nodiscard]] std::uint32_t holder_in(const std::vector<Members>& holders, std::uint32_t domain) const {
        const auto found = std::ranges::find(holders, domain, &Members::domain);
        return *std::ranges::min_element(found->ranks, {}, [&](std::uint32_t rank) {
            return seconds(ports_[rank].nvlink_out, fabric_.ports(rank).nvlink_out);
        });
    }

    void send(std::uint32_t from, std::uint32_t to) {
        table_.message.push_back(current_);
        table_.source.push_back(from);
        table_.destination.push_back(to);
        table_.follows.push_back(has_[from]);
        has_[to] = static_cast<std::uint32_t>(table_.size() - 1);
        has_message_[to] = current_;
        if (fabric_.domain_of(from) == fabric_.domain_of(to)) {
            ports_[from].nvlink_out += bytes_;
            ports_[to].nvlink_in += bytes_;
        } else {
            ports_[from].nic_out += bytes_;
            ports_[to].nic_in += bytes_;
            domain_out_[fabric_.domain_of(from)] += bytes_;
            if (const auto pod = fabric_.pod_of(fabric_.domain_of(from)); pod != fabric_.pod_of(fabric_.domain_of(to))) {
                pod_up_[pod] += bytes_;
            }
        }
    }

    const Fabric& fabric_;
    double budget_;
    std::vector<std::vector<Members>> members_;  ///< By rank set.
    std::vector<std::vector<const Members*>> lists_;  ///< What the jobs' lists lie in.
    std::map<std::uint32_t, Reserve> reserves_;  ///< By rank set of holders.
    std::vector<Job> jobs_;
    RelayTable table_;
    std::vector<PortLoad> ports_;
    std::vector<double> reserved_;          ///< By rank: first copies that it has yet to send. Unit: byte.
    std::vector<double> local_reserved_;    ///< By rank: what it has yet to send over NVLink at least once. Unit: byte.
    std::vector<double> need_;              ///< By rank: what it wants. Unit: byte.
    std::vector<double> domain_out_;        ///< Bytes sent by NICs of the domain.
    std::vector<double> domain_reserved_;   ///< First copies that it has yet to send. Unit: byte.
    std::vector<double> pod_up_;            ///< Bytes sent over the uplinks of the pod.
    std::vector<double> pod_reserved_;      ///< First copies that have yet to leave it. Unit: byte.
    std::vector<std::uint32_t> has_;        ///< By rank: the hop that brought it the message of has_message_.
    std::vector<std::uint32_t> has_message_;
    std::vector<std::uint32_t> entered_;    ///< Where the message landed, in the domain that it entered first, then others.
    LeastLoaded freest_;                    ///< Of the holders' domains, for one message.
    LeastLoaded idlest_;                    ///< Of the domains where the message landed.
    std::uint32_t current_ = 0;
    double bytes_ = 0.0;
};

}  // namespace

RelayTable route_within(const SliceTable& slices, const Fabric& fabric, const RouteLimits& limits) {
    auto tolerant = limits;
    tolerant.budget *= kTolerance;
    return Router{slices, fabric, tolerant}.run();
}

}  // namespace refit
