// SPDX-License-Identifier: Apache-2.0
#include "communicators.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace refit::exec::nccl {
namespace {

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

}  // namespace

Result<void> Communicators::make(const program::RankProgram& program,
                                 std::span<const std::uint32_t> domains,
                                 const ProcessPlace& place,
                                 ControlPlane& control,
                                 std::chrono::milliseconds deadline) {
    // Who is first of a group makes its id: "name:128 bytes" after each other; of all ranks, rank 0 does.
    std::string ids;
    const auto add_id = [&](const std::string& name) -> Result<void> {
        ncclUniqueId id{};
        if (auto made = library_.check(library_.get_unique_id(&id), "ncclGetUniqueId"); !made) {
            return made;
        }
        ids += name + ":" + std::string{id.internal, sizeof(id.internal)};
        return {};
    };
    const std::vector<std::uint32_t> order = groups_in_order(program);
    Result<void> made = place.rank == 0 ? add_id("") : Result<void>{};
    for (std::size_t i = 0; i < order.size() && made; ++i) {
        const auto& ranks = program.groups[order[i]];
        made = ranks.front() == place.rank ? add_id(name_of_group(ranks)) : made;
    }
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
    auto all = begin(known[""], static_cast<int>(place.rank), static_cast<int>(place.ranks), deadline);
    if (!all) {
        return Failure{all.error()};
    }
    all_ = *all;
    if (auto done = domains.empty() ? Result<void>{} : split(domains, place, deadline); !done) {
        return done;
    }
    groups_.assign(program.groups.size(), nullptr);
    for (const std::uint32_t index : order) {
        const auto& ranks = program.groups[index];
        const auto own = std::ranges::find(ranks, place.rank) - ranks.begin();
        auto group = begin(
            known[name_of_group(ranks)], static_cast<int>(own), static_cast<int>(ranks.size()), deadline);
        if (!group) {
            return Failure{group.error()};
        }
        groups_[index] = *group;
    }
    return {};
}

Result<void> Communicators::split(std::span<const std::uint32_t> domains,
                                  const ProcessPlace& place,
                                  std::chrono::milliseconds deadline) {
    const auto own = domains[place.rank];
    first_of_domain_ = static_cast<std::uint32_t>(std::ranges::find(domains, own) - domains.begin());
    const bool has_others = std::ranges::count(domains, own) > 1;
    ncclConfig_t config = config_of();
    auto done = library_.check(library_.comm_split(all_,
                                                   has_others ? static_cast<int>(own) : NCCL_SPLIT_NOCOLOR,
                                                   static_cast<int>(place.rank),
                                                   &domain_,
                                                   &config),
                               "ncclCommSplit");
    // The child is there once the parent has settled.
    done = done ? library_.settle(all_, "ncclCommSplit", deadline) : done;
    return done && domain_ != nullptr ? library_.settle(domain_, "ncclCommSplit", deadline) : done;
}

Result<ncclComm_t> Communicators::begin(const std::string& id,
                                        int rank,
                                        int ranks,
                                        std::chrono::milliseconds deadline) const {
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
    return comm;
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
    for (const auto& [comm, handle] : enrolled_) {
        library_.comm_deregister(comm, handle);
    }
    enrolled_.clear();
    for (ncclComm_t comm : live()) {
        auto done = library_.check(library_.comm_finalize(comm), "ncclCommFinalize");
        done = done ? library_.settle(comm, "ncclCommFinalize", deadline) : done;
        if (!done) {
            return done;
        }
    }
    for (ncclComm_t comm : live()) {
        library_.comm_destroy(comm);
    }
    groups_.clear();
    all_ = domain_ = nullptr;
    return {};
}

void Communicators::abort() noexcept {
    for (ncclComm_t comm : live()) {
        library_.comm_abort(comm);
    }
    groups_.clear();
    all_ = domain_ = nullptr;
}

}  // namespace refit::exec::nccl
