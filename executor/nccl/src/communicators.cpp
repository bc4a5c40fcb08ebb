// SPDX-License-Identifier: Apache-2.0
#include "communicators.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

namespace refit::exec::nccl {
namespace {

using Clock = std::chrono::steady_clock;

/// Blocks of threads that one communicator may take at most. Three of a rank run beside each other, and must
/// all find room on a GPU of 132 multiprocessors (H100) or more, or ranks could wait for each other's.
/// Source: NCCL's own number of channels for one node of H100 or B200, 2.28.9.
constexpr int kMostBlocks = 32;

ncclConfig_t config_of() {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.maxCTAs = kMostBlocks;
    return config;
}

/// "3 7 11 ", by which all members know a group.
std::string name_of_group(const std::vector<std::uint32_t>& ranks) {
    std::string name;
    for (const std::uint32_t rank : ranks) {
        name += std::to_string(rank) + " ";
    }
    return name;
}

/// Groups that a collective uses, in the order of the first: the same for all members of two groups, so that
/// they never wait for each other crosswise.
std::vector<std::uint32_t> groups_in_order(const program::RankProgram& program) {
    std::vector<std::uint32_t> order;
    for (const program::Wave& wave : program.waves) {
        for (const program::Operation& operation : wave.operations) {
            if (operation.is_collective() && std::ranges::find(order, operation.group) == order.end()) {
                order.push_back(operation.group);
            }
        }
    }
    return order;
}

/// What the first says of the ranks that say something; all hear the same. Some may have waited for all of
/// the deadline by now.
Result<std::string> agreed(const std::string& own,
                           ControlPlane& control,
                           std::chrono::milliseconds deadline) {
    const auto told = control.exchange(own, 2 * deadline);
    if (!told) {
        return Failure{told.error()};
    }
    const auto found = std::ranges::find_if(*told, [](const std::string& text) { return !text.empty(); });
    return found == told->end() ? std::string{} : *found;
}

int place_in(const std::vector<std::uint32_t>& ranks, std::uint32_t rank) {
    return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

}  // namespace

int Communicators::in_all(std::uint32_t rank) const {
    return static_cast<int>(std::ranges::lower_bound(membership_.members, rank) -
                            membership_.members.begin());
}

int Communicators::in_domain(std::uint32_t rank) const {
    return static_cast<int>(std::ranges::lower_bound(of_domain_, rank) - of_domain_.begin());
}

bool Communicators::is_member(std::uint32_t rank) const {
    return std::ranges::binary_search(membership_.members, rank);
}

void Communicators::enter(const program::RankProgram& program, const Membership& membership) {
    membership_ = membership;
    of_domain_.clear();
    if (const auto& domains = membership.domains; !domains.empty()) {
        std::ranges::copy_if(membership.members, std::back_inserter(of_domain_), [&](std::uint32_t rank) {
            return domains[rank] == domains[membership.rank];
        });
    }
    group_ranks_ = program.groups;
    order_ = groups_in_order(program);
    groups_.assign(program.groups.size(), nullptr);
    connecting_ = {};
}

Result<void> Communicators::make(const program::RankProgram& program,
                                 const Membership& membership,
                                 ControlPlane& control,
                                 std::chrono::milliseconds deadline) {
    const auto start = Clock::now();
    enter(program, membership);
    auto done = complete(control, deadline);
    connecting_.seconds = Seconds{std::chrono::duration<double>(Clock::now() - start).count()};
    return done;
}

Result<void> Communicators::make_ids(std::string& ids) const {
    const auto add_id = [&](const std::string& name) -> Result<void> {
        ncclUniqueId id{};
        if (auto made = library_.check(library_.get_unique_id(&id), "ncclGetUniqueId"); !made) {
            return made;
        }
        ids += name + ":" + std::string{id.internal, sizeof(id.internal)};
        return {};
    };
    const bool is_first = membership_.members.front() == membership_.rank;
    Result<void> made = is_first && all_ == nullptr ? add_id("") : Result<void>{};
    for (const std::uint32_t index : order_) {
        const bool is_own = groups_[index] == nullptr && group_ranks_[index].front() == membership_.rank;
        made = made && is_own ? add_id(name_of_group(group_ranks_[index])) : made;
    }
    return made;
}

Result<void> Communicators::complete(ControlPlane& control, std::chrono::milliseconds deadline) {
    // Who is first of a group makes its id: "name:128 bytes" after each other; of all ranks, the first does.
    std::string ids;
    auto made = make_ids(ids);
    const auto told = control.exchange(made ? ids : std::string{}, deadline);
    if (!made) {
        return made;
    }
    if (!told) {
        return Failure{told.error()};
    }
    std::map<std::string, std::string> known;
    for (const std::string& text : *told) {
        for (std::size_t at = 0; at < text.size();) {
            const auto colon = text.find(':', at);
            known[text.substr(at, colon - at)] = text.substr(colon + 1, NCCL_UNIQUE_ID_BYTES);
            at = colon + 1 + NCCL_UNIQUE_ID_BYTES;
        }
    }
    if (all_ == nullptr) {
        const auto ranks = static_cast<int>(membership_.members.size());
        auto all = begin(known[""], in_all(membership_.rank), ranks, deadline);
        if (!all) {
            return Failure{all.error()};
        }
        all_ = *all;
    }
    if (auto done = membership_.domains.empty() ? Result<void>{} : split(deadline); !done) {
        return done;
    }
    for (const std::uint32_t index : order_) {
        const auto& ranks = group_ranks_[index];
        if (groups_[index] != nullptr) {
            continue;
        }
        auto group = begin(known[name_of_group(ranks)],
                           place_in(ranks, membership_.rank),
                           static_cast<int>(ranks.size()),
                           deadline);
        if (!group) {
            return Failure{group.error()};
        }
        groups_[index] = *group;
    }
    return {};
}

Result<void> Communicators::split(std::chrono::milliseconds deadline) {
    const bool has_others = of_domain_.size() > 1;
    const auto own = static_cast<int>(membership_.domains[membership_.rank]);
    ncclConfig_t config = config_of();
    auto done = library_.check(
        library_.comm_split(
            all_, has_others ? own : NCCL_SPLIT_NOCOLOR, in_all(membership_.rank), &domain_, &config),
        "ncclCommSplit");
    // The child is there once the parent has settled.
    done = done ? library_.settle(all_, "ncclCommSplit", deadline) : done;
    connecting_.made += has_others ? 1 : 0;
    return done && domain_ != nullptr ? library_.settle(domain_, "ncclCommSplit", deadline) : done;
}

Result<ncclComm_t> Communicators::begin(const std::string& id,
                                        int rank,
                                        int ranks,
                                        std::chrono::milliseconds deadline) {
    if (id.size() != NCCL_UNIQUE_ID_BYTES) {
        return fail(
            ErrorCode::kInfeasible, "transport", "the first rank of a group could not make NCCL's id for it");
    }
    ncclUniqueId unique{};
    std::memcpy(unique.internal, id.data(), sizeof(unique.internal));
    ncclConfig_t config = config_of();
    ncclComm_t comm = nullptr;
    auto begun = library_.check(library_.comm_init_rank_config(&comm, ranks, unique, rank, &config),
                                "ncclCommInitRankConfig");
    begun = begun ? library_.settle(comm, "ncclCommInitRankConfig", deadline) : begun;
    if (!begun) {
        if (comm != nullptr) {
            library_.comm_abort(comm);
        }
        return Failure{begun.error()};
    }
    ++connecting_.made;
    return comm;
}

Communicators::Parents Communicators::let_go() {
    Parents parents{membership_.members, all_, {}, live()};
    for (const std::uint32_t index : order_) {
        if (groups_[index] != nullptr) {
            parents.groups.emplace_back(group_ranks_[index], groups_[index]);
        }
    }
    enrolled_.clear();
    groups_.clear();
    all_ = domain_ = nullptr;
    return parents;
}

std::string Communicators::obstacle(const Parents& parents,
                                    bool after_failure,
                                    std::chrono::milliseconds deadline) const {
    if (library_.comm_shrink == nullptr) {
        return library_.lacks("ncclCommShrink", kShrinkSince);
    }
    // What one communicator still runs may wait, on the GPU, for what another does; then all must end at
    // once.
    if (after_failure && library_.comm_revoke == nullptr && parents.comms.size() != 1) {
        return library_.lacks("ncclCommRevoke", kRevokeSince);
    }
    if (parents.all == nullptr) {
        return "there was no communicator to shrink";
    }
    // Those that were revoked are at rest once they have settled.
    for (ncclComm_t comm : parents.comms) {
        if (auto settled = library_.settle(comm, "ncclCommRevoke", deadline); !settled) {
            return settled.error().front().message;
        }
    }
    return {};
}

Result<void> Communicators::shrink(const program::RankProgram& program,
                                   const Membership& membership,
                                   bool after_failure,
                                   ControlPlane& control,
                                   std::chrono::milliseconds deadline) {
    const auto start = Clock::now();
    Parents parents = let_go();
    enter(program, membership);
    // A shrink that some ranks refuse the others would wait for, until the deadline; so all agree on it
    // first.
    auto refusal = agreed(obstacle(parents, after_failure, deadline), control, deadline);
    if (refusal && refusal->empty()) {
        const auto derived = derive(parents, after_failure, deadline);
        refusal = agreed(derived ? "" : derived.error().front().message, control, deadline);
    }
    const bool is_refused = !refusal || !refusal->empty();
    if (is_refused) {
        abort();
        groups_.assign(program.groups.size(), nullptr);
        connecting_ = {};
    }
    Result<void> done;
    if (is_refused || after_failure) {
        abort(parents.comms);
    } else {
        done = retire(parents.comms, deadline);
        abort(done ? std::vector<ncclComm_t>{} : parents.comms);
    }
    if (!refusal) {
        return Failure{refusal.error()};
    }
    connecting_.note = *refusal;
    done = done ? complete(control, deadline) : done;
    connecting_.seconds = Seconds{std::chrono::duration<double>(Clock::now() - start).count()};
    return done;
}

Result<void> Communicators::derive(Parents& parents, bool after_failure, std::chrono::milliseconds deadline) {
    auto all = shrunk(parents.all, parents.members, after_failure, deadline);
    if (!all) {
        return Failure{all.error()};
    }
    all_ = *all;
    for (const std::uint32_t index : order_) {
        const Ranks& ranks = group_ranks_[index];
        // All of its members knew the group before, and take the first that fits.
        const auto parent = std::ranges::find_if(parents.groups, [&](const auto& group) {
            Ranks left;
            std::ranges::copy_if(
                group.first, std::back_inserter(left), [&](std::uint32_t rank) { return is_member(rank); });
            return left == ranks && (left != group.first || !after_failure);
        });
        if (parent == parents.groups.end()) {
            continue;
        }
        const auto [before, comm] = *parent;
        parents.groups.erase(parent);
        if (before == ranks) {
            std::erase(parents.comms, comm);
            groups_[index] = comm;
            ++connecting_.shrunk;
            continue;
        }
        auto group = shrunk(comm, before, after_failure, deadline);
        if (!group) {
            return Failure{group.error()};
        }
        groups_[index] = *group;
    }
    return {};
}

Result<ncclComm_t> Communicators::shrunk(ncclComm_t parent,
                                         const Ranks& before,
                                         bool after_failure,
                                         std::chrono::milliseconds deadline) {
    constexpr const char* kCall = "ncclCommShrink";
    std::vector<int> excluded;
    for (std::size_t place = 0; place < before.size(); ++place) {
        if (!is_member(before[place])) {
            excluded.push_back(static_cast<int>(place));
        }
    }
    ncclConfig_t config = config_of();
    ncclComm_t child = nullptr;
    auto done = library_.check(library_.comm_shrink(parent,
                                                    excluded.data(),
                                                    static_cast<int>(excluded.size()),
                                                    &child,
                                                    &config,
                                                    after_failure ? kShrinkAbort : kShrinkDefault),
                               kCall);
    // As after a split, the child is there once the parent has settled.
    done = done ? library_.settle(parent, kCall, deadline) : done;
    done = done && child != nullptr ? library_.settle(child, kCall, deadline) : done;
    if (!done || child == nullptr) {
        abort(std::vector<ncclComm_t>(child == nullptr ? 0 : 1, child));
        return done ? fail(ErrorCode::kInfeasible, "transport", "ncclCommShrink left no communicator")
                    : Failure{done.error()};
    }
    ++connecting_.shrunk;
    return child;
}

std::vector<ncclComm_t> Communicators::live() const {
    std::vector<ncclComm_t> comms;
    std::ranges::copy_if(groups_, std::back_inserter(comms), [](ncclComm_t comm) { return comm != nullptr; });
    for (ncclComm_t comm : {domain_, all_}) {
        if (comm != nullptr) {
            comms.push_back(comm);
        }
    }
    return comms;
}

Result<void> Communicators::enroll(std::uint64_t address, std::uint64_t bytes) {
    void* const memory =
        reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): addresses are numbers
    for (ncclComm_t comm : {domain_, all_}) {
        void* handle = nullptr;
        if (comm == nullptr) {
            continue;
        }
        if (auto done =
                library_.check(library_.comm_register(comm, memory, bytes, &handle), "ncclCommRegister");
            !done) {
            return done;
        }
        enrolled_.emplace_back(comm, handle);
    }
    return {};
}

void Communicators::strike_off() {
    for (const auto& [comm, handle] : enrolled_) {
        library_.comm_deregister(comm, handle);
    }
    enrolled_.clear();
}

Result<void> Communicators::health() const {
    for (ncclComm_t comm : live()) {
        ncclResult_t state = ncclSuccess;
        auto asked = library_.check(library_.comm_get_async_error(comm, &state), "ncclCommGetAsyncError");
        asked = asked ? library_.check(state, "a wave") : asked;
        if (!asked) {
            return asked;
        }
    }
    return {};
}

Result<void> Communicators::finish(std::chrono::milliseconds deadline) {
    strike_off();
    auto done = retire(live(), deadline);
    if (done) {
        (void)let_go();
    }
    return done;
}

Result<void> Communicators::retire(const std::vector<ncclComm_t>& comms,
                                   std::chrono::milliseconds deadline) const {
    for (ncclComm_t comm : comms) {
        auto done = library_.check(library_.comm_finalize(comm), "ncclCommFinalize");
        done = done ? library_.settle(comm, "ncclCommFinalize", deadline) : done;
        if (!done) {
            return done;
        }
    }
    std::ranges::for_each(comms, library_.comm_destroy);
    return {};
}

bool Communicators::revoke() noexcept {
    const auto comms = live();
    if (comms.size() > 1 && library_.comm_revoke == nullptr) {
        abort();
        return false;
    }
    if (library_.comm_revoke != nullptr) {
        std::ranges::for_each(comms, [&](ncclComm_t comm) { library_.comm_revoke(comm, kRevokeDefault); });
    }
    return !comms.empty();
}

void Communicators::abort() noexcept {
    abort(live());
    (void)let_go();
}

// As one group: what one of them runs may wait, on the GPU, for what another does, and the call waits for
// that.
void Communicators::abort(const std::vector<ncclComm_t>& comms) const noexcept {
    if (comms.empty()) {
        return;
    }
    library_.group_start();
    std::ranges::for_each(comms, library_.comm_abort);
    library_.group_end();
}

}  // namespace refit::exec::nccl
