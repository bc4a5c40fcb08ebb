// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/nccl_transport.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../../src/agreement.hpp"
#include "../../src/compared_words.hpp"
#include "communicators.hpp"
#include "cuda_device.hpp"
#include "device_memory.hpp"
#include "device_transport.hpp"
#include "group_runner.hpp"
#include "nccl_transport_on.hpp"
#include "refit/exec/posting.hpp"
#include "refit/losses.hpp"

namespace refit::exec {
namespace {

using Clock = std::chrono::steady_clock;
using program::RankProgram;

/// How long those who are left wait for the others, after one gave up: all look at the clock and at the
/// control plane all the time, so who says nothing for so long is stopped.
constexpr std::chrono::milliseconds kPatience{3000};

/// What generators serve before the first refit.
constexpr std::uint64_t kOldVersion = 0;

/// Memory that messages lie in comes from NCCL, which registers no other; the rest, in small pieces, from
/// CUDA.
class MessageAllocator final : public cuda::Allocator {
public:
    explicit MessageAllocator(const nccl::Library& library)
        : library_{library}, plain_{cuda::plain_allocator()} {}

    Result<void*> allocate(std::uint64_t bytes) override {
        if (!for_messages_) {
            return plain_->allocate(bytes);
        }
        void* memory = nullptr;
        if (auto done = library_.check(library_.mem_alloc(&memory, bytes), "ncclMemAlloc"); !done) {
            return Failure{done.error()};
        }
        messages_.insert(memory);
        return memory;
    }
    void release(void* memory) noexcept override {
        if (messages_.erase(memory) == 1) {
            library_.mem_free(memory);
        } else {
            plain_->release(memory);
        }
    }
    void set_for_messages(bool for_messages) noexcept { for_messages_ = for_messages; }

private:
    nccl::Library library_;
    std::unique_ptr<cuda::Allocator> plain_;
    std::set<void*> messages_;
    bool for_messages_ = false;
};

template <class Value>
std::string bytes_of(const Value& value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
template <class Value>
Value value_of_bytes(const std::string& bytes) {
    Value value{};
    std::memcpy(&value, bytes.data(), std::min(sizeof(value), bytes.size()));
    return value;
}

class NcclTransport final : public Transport {
public:
    NcclTransport(const nccl::Library& library,
                  std::unique_ptr<StreamDevice> device,
                  nccl::ForMessages for_messages,
                  const ProcessPlace& place,
                  Rendezvous rendezvous,
                  nccl::Strike strike)
        : library_{library},
          place_{place},
          strike_{std::move(strike)},
          rendezvous_{std::move(rendezvous)},
          device_{std::move(device)},
          for_messages_{std::move(for_messages)},
          comms_{library_},
          runner_{library_, *device_, comms_, [this] { return control_->is_broken(); }} {}

    ~NcclTransport() override {
        if (is_sound_ && comms_.all() != nullptr) {
            (void)comms_.finish(job_.deadline);
        }
        comms_.abort();
    }
    NcclTransport(const NcclTransport&) = delete;
    NcclTransport& operator=(const NcclTransport&) = delete;

    [[nodiscard]] std::string_view name() const noexcept override { return "nccl"; }
    [[nodiscard]] bool reports() const noexcept override { return place_.rank == 0; }
    [[nodiscard]] std::string machine() const override {
        int version = 0;
        library_.get_version(&version);
        const std::string parts = membership_.domains.empty() ? "" : ", a communicator for each domain";
        return std::to_string(members().size()) + " processes under NCCL " + std::to_string(version) + parts +
               (runner_.has_graphs() ? ", CUDA graphs" : "") + ", the first on " + device_->describe();
    }

    Result<void> prepare(const Job& job) override {
        job_ = job;
        goes_on_ = control_ != nullptr;
        after_failure_ = !failed_.empty();
        failed_.clear();
        is_sound_ = false;
        if (goes_on_) {
            control_->keep(members());
        } else if (auto joined = join_job(place_, rendezvous_, job.deadline, members()); joined) {
            control_ = std::move(*joined);
            membership_.rank = place_.rank < members().size() ? members()[place_.rank] : place_.rank;
        } else {
            return Failure{joined.error()};
        }
        membership_.members = members();
        membership_.domains = job.one_communicator
                                  ? std::vector<std::uint32_t>{}
                                  : domains_to_split(job.domain_starts, job.schedule->ranks(), members());
        // A process that leaves out other ranks than the rest must hear of it from them, so all meet first.
        if (auto done = greet(); !done) {
            return done;
        }
        if (!goes_on_ && members().size() != place_.ranks) {
            return fail(ErrorCode::kInvalidInput,
                        "rank-count",
                        "the plan is for " + std::to_string(members().size()) + " ranks and this job has " +
                            std::to_string(place_.ranks));
        }
        program_ = job.schedule->program_of(membership_.rank);
        groups_ = posted_groups(program_, membership_.domains);
        // Memory of before is free once nothing runs any more, and that ends with the communicators.
        const auto steps =
            goes_on_
                ? std::array{&NcclTransport::connect, &NcclTransport::rest, &NcclTransport::allocate_all}
                : std::array{&NcclTransport::rest, &NcclTransport::allocate_all, &NcclTransport::connect};
        for (auto step : steps) {
            if (auto done = (this->*step)(); !done) {
                return done;
            }
        }
        if (auto done = enroll_all(); !done) {
            return done;
        }
        is_sound_ = true;
        has_flipped_ = false;
        runs_ = 0;
        auto done = watched(begin_fill_served(*device_, program_, workload(), memory_, kOldVersion));
        // Who leaves now must not be missed by others who are not as far.
        return done && job.shrinks ? meet() : done;
    }

    Result<void> fill(std::uint64_t version) override {
        return watched(begin_fill(*device_, program_, workload(), memory_, version));
    }

    Result<Iteration> run() override {
        if (job_.graphs && runs_++ == 1) {
            if (auto done = capture(); !done) {
                return given_up(done.error());
            }
        }
        if (auto met = meet(); !met) {
            return Failure{met.error()};
        }
        const auto times = runner_.run(job_.schedule->plan().stages.size(), job_.deadline, suffering());
        return times ? iteration_of(*times) : Result<Iteration>{given_up(times.error())};
    }

    Result<Verification> verify(std::uint64_t version) override {
        const auto mine = compare_own(false, version);
        if (!mine) {
            return given_up(mine.error());
        }
        const auto all = control_->exchange(bytes_of(words_of(*mine)), job_.deadline);
        if (!all) {
            return given_up(all.error());
        }
        std::vector<Words> words;
        std::ranges::transform(*all, std::back_inserter(words), value_of_bytes<Words>);
        return verification_of(words, job_.schedule->members());
    }

    Result<void> flip() override {
        if (auto met = meet(); !met) {
            return met;
        }
        memory_.flip();
        has_flipped_ = true;
        return {};
    }

    [[nodiscard]] bool old_weights_stand() const override {
        const auto own = compare_own(true, kOldVersion);
        const bool stand = !has_flipped_ && own && !own->mismatch;
        if (!is_sound_) {
            return stand;
        }
        const auto all = control_->exchange(stand ? "1" : "0", job_.deadline);
        return all && std::ranges::count(*all, "1") == std::ssize(*all);
    }

    [[nodiscard]] std::vector<std::uint32_t> failed_ranks() const override { return failed_; }
    [[nodiscard]] std::optional<std::uint32_t> own_rank() const override { return membership_.rank; }
    [[nodiscard]] bool can_go_on() const override {
        return control_ && job_.shrinks && (is_sound_ || !failed_.empty());
    }
    [[nodiscard]] std::optional<Connecting> connecting() const override { return comms_.connecting(); }

private:
    /// The ranks that the processes are, in their order.
    [[nodiscard]] const std::vector<std::uint32_t>& members() const { return job_.schedule->members(); }
    [[nodiscard]] const Workload& workload() const { return job_.schedule->workload(); }

    [[nodiscard]] nccl::Suffering suffering() const {
        nccl::Suffering suffering;
        for (const Injection& injection : job_.injections) {
            if (injection.rank != membership_.rank) {
                continue;
            }
            if (injection.kind == InjectionKind::kSlows) {
                suffering.slow_from = std::min(suffering.slow_from, injection.wave);
            } else if (injection.kind == InjectionKind::kCorrupts) {
                suffering.corrupt_wave = injection.wave;
            } else if (injection.kind == InjectionKind::kDies || injection.kind == InjectionKind::kStalls) {
                suffering.before_wave = [this, injection](std::uint32_t wave) {
                    if (wave == injection.wave) {
                        strike_(injection.kind);
                    }
                };
            }
        }
        return suffering;
    }

    /// All ranks replay graphs, or none does: one that injects a fault into a wave, or that cannot capture,
    /// keeps the others from it too. Source: NCCL's guide, "Using NCCL with CUDA Graphs": capture must be
    /// uniform over all ranks.
    Result<void> capture() {
        const auto own = suffering();
        const bool is_sound =
            !own.before_wave && own.slow_from == program::kNone && own.corrupt_wave == program::kNone;
        const auto told = control_->exchange(is_sound ? "1" : "0", job_.deadline);
        if (!told) {
            return Failure{told.error()};
        }
        if (std::ranges::count(*told, "1") != std::ssize(*told)) {
            return {};
        }
        const auto captured = runner_.capture(job_.deadline);
        if (!captured) {
            return Failure{captured.error()};
        }
        const auto all = control_->exchange(*captured ? "0" : "1", job_.deadline);
        if (!all) {
            return Failure{all.error()};
        }
        if (std::ranges::count(*all, "1") != std::ssize(*all)) {
            runner_.drop_graphs();
        }
        return {};
    }

    /// Asks, with all others who gave up, who is left.
    Failure given_up(Faults faults) {
        is_sound_ = false;
        const bool can_shrink = job_.shrinks && comms_.revoke();
        if (!can_shrink) {
            comms_.abort();
        }
        const auto gone = control_->muster(std::min(job_.deadline, kPatience));
        failed_ = gone ? *gone : std::vector<std::uint32_t>{};
        if (failed_.empty()) {
            comms_.abort();
        } else {
            const std::string who = (failed_.size() == 1 ? "rank " : "ranks ") + ranks_text(failed_);
            faults.insert(
                faults.begin(),
                {ErrorCode::kInfeasible,
                 "rank-died",
                 who + (failed_.size() == 1 ? " is" : " are") + " gone or stopped; the others answer",
                 {}});
        }
        return fail(std::move(faults));
    }

    Result<void> meet() {
        const auto met = control_->exchange("", job_.deadline);
        return met ? Result<void>{} : Result<void>{given_up(met.error())};
    }

    Result<void> greet() {
        const auto rank = membership_.rank;
        Greeting own{rank, kProtocol, job_.schedule->digest()};
        own.protocol += strikes(job_.injections, InjectionKind::kOtherVersion, rank) ? 1U : 0U;
        // Ranks that split unlike each other would wait for each other.
        for (const std::uint32_t domain : membership_.domains) {
            own.digest = own.digest * 0x100000001b3U ^ (domain + 1);
        }
        own.digest ^= strikes(job_.injections, InjectionKind::kOtherPlan, rank) ? 1U : 0U;
        const auto all = control_->exchange(bytes_of(own), job_.deadline);
        if (!all) {
            return Failure{all.error()};
        }
        std::vector<Greeting> greetings;
        std::ranges::transform(*all, std::back_inserter(greetings), value_of_bytes<Greeting>);
        auto faults = agree(greetings);
        return faults.empty() ? Result<void>{} : Result<void>{fail(std::move(faults))};
    }

    /// All ranks fail where one does, and name the lowest.
    Result<void> allocate_all() {
        const auto own = strikes(job_.injections, InjectionKind::kOutOfMemory, membership_.rank)
                             ? Result<void>{fail(Faults{cannot_allocate(program_)})}
                             : allocate_own();
        const auto all = control_->exchange(own ? "" : own.error().front().message, job_.deadline);
        if (!all) {
            return Failure{all.error()};
        }
        const auto failed = std::ranges::find_if(*all, [](const std::string& text) { return !text.empty(); });
        return failed == all->end() ? Result<void>{}
                                    : Result<void>{fail(ErrorCode::kInfeasible, "out-of-memory", *failed)};
    }

    Result<void> allocate_own() {
        const std::uint64_t staged =
            nccl::GroupRunner::staging_bytes(program_, groups_, {program_.regions, {}});
        const auto available = device_->available();
        const Bytes needed = bytes_needed(program_) + Bytes{staged};
        if (!available || needed > Bytes{*available}) {
            return fail(available ? Faults{too_little_memory(needed, Bytes{*available})} : available.error());
        }
        for_messages_(true);
        const auto memory = allocate(*device_, program_);
        const auto staging =
            memory && staged > 0 ? device_->allocate(staged) : Result<std::uint64_t>{std::uint64_t{0}};
        for_messages_(false);
        if (!memory || !staging) {
            return Failure{memory ? staging.error() : memory.error()};
        }
        memory_ = *memory;
        staging_ = *staging;
        staging_bytes_ = staged;
        return {};
    }

    Result<void> connect() {
        comms_.strike_off();
        return goes_on_ && job_.shrinks
                   ? comms_.shrink(program_, membership_, after_failure_, *control_, job_.deadline)
                   : comms_.make(program_, membership_, *control_, job_.deadline);
    }

    /// Frees what was allocated before.
    Result<void> rest() {
        if (goes_on_) {
            if (auto done = runner_.until_at_rest(Clock::now() + job_.deadline); !done) {
                return done;
            }
            device_->clear();
            memory_ = {};
        }
        return {};
    }

    Result<void> enroll_all() {
        for (std::size_t arena = 0; arena < program::kArenas; ++arena) {
            if (auto done = enroll(memory_.arenas[arena], program_.arena_bytes[arena]); !done) {
                return done;
            }
        }
        if (auto done = enroll(memory_.served, program_.bytes_in(program::Arena::kDestination)); !done) {
            return done;
        }
        if (auto done = enroll(staging_, staging_bytes_); !done) {
            return done;
        }
        return runner_.prepare(program_, groups_, memory_.view(program_), staging_);
    }
    Result<void> enroll(std::uint64_t address, std::uint64_t bytes) {
        return bytes == 0 ? Result<void>{} : comms_.enroll(address, bytes);
    }

    /// Waits for stream 0, never without a look at the clock and at what NCCL says of the peers.
    Result<void> watched(Result<void> begun) {
        begun = begun ? runner_.until_idle(Clock::now() + job_.deadline) : begun;
        return begun ? begun : Result<void>{given_up(begun.error())};
    }

    [[nodiscard]] Result<Compared> compare_own(bool is_served, std::uint64_t version) const {
        auto begun = begin_compare(*device_, program_, workload(), memory_, is_served, version);
        begun = begun ? settle(*device_, job_.deadline) : begun;
        if (!begun) {
            return Failure{begun.error()};
        }
        return finish_compare(*device_, program_, workload(), memory_, is_served, version);
    }

    Result<Iteration> iteration_of(const std::vector<double>& mine) {
        const std::string own{reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double)};
        const auto all = control_->exchange(own, job_.deadline);
        if (!all) {
            return given_up(all.error());
        }
        Iteration iteration;
        for (std::size_t place = 0; place < all->size(); ++place) {
            std::vector<double> times(mine.size());
            std::memcpy(times.data(), (*all)[place].data(), std::min((*all)[place].size(), own.size()));
            RankTimes& entry =
                iteration.ranks.emplace_back(RankTimes{members().at(place), Seconds{times.front()}, {}});
            std::for_each(
                times.begin() + 1, times.end(), [&](double time) { entry.stages.emplace_back(time); });
            iteration.seconds = std::max(iteration.seconds, entry.seconds);
        }
        return iteration;
    }

    nccl::Library library_;
    ProcessPlace place_;
    nccl::Strike strike_;
    Rendezvous rendezvous_;
    Job job_;
    RankProgram program_;
    std::unique_ptr<ControlPlane> control_;
    std::unique_ptr<StreamDevice> device_;
    nccl::ForMessages for_messages_;
    nccl::Membership membership_;
    std::vector<PostedGroup> groups_;
    DeviceMemory memory_;
    std::uint64_t staging_ = 0;
    std::uint64_t staging_bytes_ = 0;
    nccl::Communicators comms_;  ///< Goes before the memory that is registered with it.
    nccl::GroupRunner runner_;
    std::uint32_t runs_ = 0;
    std::vector<std::uint32_t> failed_;  ///< Ranks, after a failure.
    bool goes_on_ = false;               ///< With what a larger job has left.
    bool after_failure_ = false;         ///< Of that.
    bool is_sound_ = false;
    bool has_flipped_ = false;
};

}  // namespace

std::unique_ptr<Transport> nccl::make_transport_on(const Library& library,
                                                   std::unique_ptr<StreamDevice> device,
                                                   ForMessages for_messages,
                                                   const ProcessPlace& place,
                                                   Rendezvous rendezvous,
                                                   Strike strike) {
    return std::make_unique<NcclTransport>(
        library, std::move(device), std::move(for_messages), place, std::move(rendezvous), std::move(strike));
}

Result<std::unique_ptr<Transport>> make_nccl_transport(const ProcessPlace& place, Rendezvous rendezvous) {
    const auto devices = cuda::count_devices();
    if (!devices) {
        return Failure{devices.error()};
    }
    const auto library = nccl::Library::open();
    if (!library) {
        return Failure{library.error()};
    }
    auto allocator = std::make_unique<MessageAllocator>(*library);
    auto* const messages = allocator.get();
    auto device = cuda::open_device(static_cast<int>(place.local_rank) % *devices, std::move(allocator));
    if (!device) {
        return Failure{device.error()};
    }
    return nccl::make_transport_on(
        *library,
        std::move(*device),
        [messages](bool for_messages) { messages->set_for_messages(for_messages); },
        place,
        std::move(rendezvous),
        [](InjectionKind kind) { raise(kind == InjectionKind::kDies ? SIGKILL : SIGSTOP); });
}

}  // namespace refit::exec
