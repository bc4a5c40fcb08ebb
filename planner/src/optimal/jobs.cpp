// SPDX-License-Identifier: Apache-2.0
#include "jobs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../egress.hpp"
#include "../pieces.hpp"

namespace refit {
namespace {

class JobMaker {
public:
    JobMaker(const SliceTable& slices, const Fabric& fabric, const RouteLimits& limits)
        : slices_{slices}, fabric_{fabric}, limits_{limits} {
        for (std::uint32_t set = 0; set < slices.rank_sets(); ++set) {
            book_.members.push_back(by_domain(slices.rank_set(set), fabric));
        }
        book_.reserved.resize(fabric.ranks(), 0.0);
        book_.local_reserved.resize(fabric.ranks(), 0.0);
        book_.need.resize(fabric.ranks(), 0.0);
        book_.domain_reserved.resize(fabric.domains(), 0.0);
    }

    JobBook run() {
        make_jobs();
        reserve_first_copies();
        cut_messages();
        return std::move(book_);
    }

private:
    void make_jobs() {
        std::vector<MemberList> whole(slices_.rank_sets());
        std::vector<double> wanted(slices_.rank_sets(), 0.0);
        for (std::uint32_t i = 0; i < slices_.slices().size(); ++i) {
            const auto& slice = slices_.slices()[i];
            if (slice.bytes == 0) {
                continue;
            }
            auto& job = book_.jobs.emplace_back();
            job.slice = i;
            job.holders = slice.holders;
            wanted[slice.receivers] += static_cast<double>(slice.bytes);
            const auto& holders = book_.members[slice.holders];
            const auto& receivers = book_.members[slice.receivers];
            if (holders.back().domain < receivers.front().domain || receivers.back().domain < holders.front().domain) {
                auto& all = whole[slice.receivers];
                all = all.empty() ? list_of(receivers, [](const Members&) { return true; }) : all;
                job.targets = all;
                continue;
            }
            const auto is_held = [&](const Members& members) {
                return std::ranges::binary_search(holders, members.domain, {}, &Members::domain);
            };
            job.local = list_of(receivers, is_held);
            job.targets = list_of(receivers, [&](const Members& members) { return !is_held(members); });
        }
        for (std::uint32_t set = 0; set < slices_.rank_sets(); ++set) {
            for (std::size_t i = 0; wanted[set] > 0.0 && i < slices_.rank_set(set).size(); ++i) {
                book_.need[slices_.rank_set(set)[i]] += wanted[set];
            }
        }
        std::ranges::stable_sort(book_.jobs, std::greater{}, [&](const Job& job) { return slices_.slices()[job.slice].bytes; });
    }

    template <class Fits>
    MemberList list_of(const std::vector<Members>& all, Fits fits) {
        auto& list = book_.lists.emplace_back();
        for (const auto& members : all) {
            if (fits(members)) {
                list.push_back(&members);
            }
        }
        return list;
    }

    /// One flow decides from which domains first copies leave, a second from which holders in them.
    void reserve_first_copies() {
        std::map<std::uint32_t, double> leaving;
        for (const auto& job : book_.jobs) {
            if (!job.targets.empty()) {
                leaving[job.holders] += static_cast<double>(slices_.slices()[job.slice].bytes);
            }
        }
        std::vector<EgressGroup> groups;
        for (const auto& [set, bytes] : leaving) {
            auto& group = groups.emplace_back();
            group.bytes = bytes;
            for (const auto& members : book_.members[set]) {
                group.nodes.push_back(members.domain);
            }
        }
        const auto by_domains = least_egress(groups, domain_rates());
        std::vector<EgressGroup> inner;
        for (std::size_t i = 0; const auto& [set, bytes] : leaving) {
            auto& reserve = book_.reserves[set];
            reserve.domains = by_domains.flow[i++];
            for (std::size_t d = 0; d < reserve.domains.size(); ++d) {
                book_.domain_reserved[book_.members[set][d].domain] += reserve.domains[d];
                inner.push_back({book_.members[set][d].ranks, reserve.domains[d]});
            }
        }
        reserve_holders(inner, leaving);
        for (auto& job : book_.jobs) {
            for (const auto* receivers : job.local) {
                const auto& held = *std::ranges::find(book_.members[job.holders], receivers->domain, &Members::domain);
                for (const auto rank : held.ranks) {
                    book_.local_reserved[rank] +=
                        static_cast<double>(slices_.slices()[job.slice].bytes) / static_cast<double>(held.ranks.size());
                }
            }
            job.reserve = job.targets.empty() ? nullptr : &book_.reserves.at(job.holders);
        }
    }

    void reserve_holders(const std::vector<EgressGroup>& groups, const std::map<std::uint32_t, double>& leaving) {
        std::vector<double> rates;
        for (std::uint32_t rank = 0; rank < fabric_.ranks(); ++rank) {
            // A holder whose NIC is down still sends, over a neighbour's: it counts as slow, not as absent.
            rates.push_back(std::max(fabric_.ports(rank).nic_out, 1.0));
        }
        const auto shares = least_egress(groups, rates);
        std::size_t group = 0;
        for (const auto& [set, bytes] : leaving) {
            auto& reserve = book_.reserves[set];
            for (const auto& members : book_.members[set]) {
                reserve.holders.push_back(shares.flow[group]);
                for (std::size_t i = 0; i < members.ranks.size(); ++i) {
                    book_.reserved[members.ranks[i]] += shares.flow[group][i];
                }
                ++group;
            }
        }
    }

    [[nodiscard]] std::vector<double> domain_rates() const {
        std::vector<double> rates;
        for (std::uint32_t domain = 0; domain < fabric_.domains(); ++domain) {
            rates.push_back(std::max(fabric_.domain_ports(domain).nic_out, 1.0));
        }
        return rates;
    }

    /// As few messages as give each way into the receivers' domains its share.
    void cut_messages() {
        std::map<std::uint32_t, std::uint64_t> columns;
        for (const auto& job : book_.jobs) {
            ++columns[slices_.slices()[job.slice].receivers];
        }
        for (auto& job : book_.jobs) {
            const auto& slice = slices_.slices()[job.slice];
            const auto bytes = static_cast<double>(slice.bytes);
            std::size_t members = 1;
            for (const auto* list : {&job.targets, &job.local}) {
                for (const auto* receivers : *list) {
                    members = std::max(members, receivers->ranks.size());
                }
            }
            const auto ways = static_cast<double>(std::max<std::size_t>(job.targets.size(), 1) * members);
            const auto wanted = std::ceil(ways / static_cast<double>(columns[slice.receivers]));
            const auto usual = usual_rate(slice);
            // Of a port's time, what one message takes of its relays' NIC and of its landing's NVLink.
            const auto copies = static_cast<double>(std::max<std::size_t>(job.targets.size(), 2) - 1);
            const auto port_bytes = limits_.budget * usual;
            const auto needed = std::min(wanted, std::ceil(bytes * copies / port_bytes / limits_.finest));
            const auto small = std::max(std::ceil(bytes / port_bytes / limits_.largest),
                                        std::ceil(bytes / static_cast<double>(kLargestMessage)));
            const auto most = std::max<std::uint64_t>(slice.bytes / kSmallestMessage, 1);
            const auto messages = std::min(static_cast<std::uint64_t>(std::max({needed, small, 1.0})), most);
            job.first_message = static_cast<std::uint32_t>(book_.table.messages.size());
            append_messages(book_.table, slices_.parts(job.slice), slices_.element_bytes(), messages);
            job.messages = static_cast<std::uint32_t>(book_.table.messages.size()) - job.first_message;
        }
    }

    /// The fastest NIC of the first holder and receiver: scales messages to the work.
    [[nodiscard]] double usual_rate(const Slice& slice) const {
        const auto& from = fabric_.domain_ports(fabric_.domain_of(slices_.rank_set(slice.holders).front()));
        const auto& to = fabric_.domain_ports(fabric_.domain_of(slices_.rank_set(slice.receivers).front()));
        const auto a = from.nic_out / static_cast<double>(fabric_.members(fabric_.domain_of(slices_.rank_set(slice.holders).front())).size());
        const auto b = to.nic_in / static_cast<double>(fabric_.members(fabric_.domain_of(slices_.rank_set(slice.receivers).front())).size());
        return std::max({a, b, 1.0});
    }

    const SliceTable& slices_;
    const Fabric& fabric_;
    const RouteLimits& limits_;
    JobBook book_;
};

}  // namespace

JobBook make_job_book(const SliceTable& slices, const Fabric& fabric, const RouteLimits& limits) {
    return JobMaker{slices, fabric, limits}.run();
}

}  // namespace refit
