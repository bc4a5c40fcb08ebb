// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/nccl_transport.hpp"

#include <algorithm>
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

namespace refit::exec {
namespace {

using Clock = std::chrono::steady_clock;
using program::RankProgram;

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
        if (messages_.contains(memory)) {
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
                  Rendezvous rendezvous)
        : library_{library},
          place_{place},
          rendezvous_{std::move(rendezvous)},
          device_{std::move(device)},
          for_messages_{std::move(for_messages)},
          comms_{library_},
          runner_{library_, *device_, comms_} {}

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
        const std::string parts = domains_.empty() ? "" : ", a communicator for each domain";
        return std::to_string(place_.ranks) + " processes under NCCL " + std::to_string(version) + parts +
               (runner_.has_graphs() ? ", CUDA graphs" : "") + ", the first on " + device_->describe();
    }

    Result<void> prepare(const Job& job) override {
        job_ = job;
        if (job.schedule->ranks() != place_.ranks) {
            return fail(ErrorCode::kInvalidInput,
                        "rank-count",
                        "the plan is for " + std::to_string(job.schedule->ranks()) +
                            " ranks and this job has " + std::to_string(place_.ranks));
        }
        auto control = join_job(place_, rendezvous_, job.deadline);
        if (!control) {
            return Failure{control.error()};
        }
        control_ = std::move(*control);
        program_ = job.schedule->program_of(place_.rank);
        domains_ = job.one_communicator ? std::vector<std::uint32_t>{}
                                        : domains_to_split(job.domain_starts, place_.ranks);
        groups_ = posted_groups(program_, domains_);
        for (auto step : {&NcclTransport::greet, &NcclTransport::allocate_all, &NcclTransport::connect}) {
            if (auto done = (this->*step)(); !done) {
                return done;
            }
        }
        is_sound_ = true;
        return watched(begin_fill_served(*device_, program_, workload(), memory_, kOldVersion));
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
        return all && std::ranges::count(*all, "1") == place_.ranks;
    }

private:
    [[nodiscard]] const Workload& workload() const { return job_.schedule->workload(); }

    [[nodiscard]] nccl::Suffering suffering() const {
        nccl::Suffering suffering;
        for (const Injection& injection : job_.injections) {
            if (injection.rank != place_.rank) {
                continue;
            }
            if (injection.kind == InjectionKind::kSlows) {
                suffering.slow_from = std::min(suffering.slow_from, injection.wave);
            } else if (injection.kind == InjectionKind::kCorrupts) {
                suffering.corrupt_wave = injection.wave;
            } else if (injection.kind == InjectionKind::kDies || injection.kind == InjectionKind::kStalls) {
                suffering.before_wave = [injection](std::uint32_t wave) {
                    if (wave == injection.wave) {
                        raise(injection.kind == InjectionKind::kDies ? SIGKILL : SIGSTOP);
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
        if (std::ranges::count(*told, "1") != place_.ranks) {
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
        if (std::ranges::count(*all, "1") != place_.ranks) {
            runner_.drop_graphs();
        }
        return {};
    }

    Failure given_up(const Faults& faults) {
        is_sound_ = false;
        comms_.abort();
        return fail(faults);
    }

    Result<void> meet() {
        const auto met = control_->exchange("", job_.deadline);
        return met ? Result<void>{} : Result<void>{given_up(met.error())};
    }

    Result<void> greet() {
        Greeting own{place_.rank, kProtocol, program_.digest};
        own.protocol += strikes(job_.injections, InjectionKind::kOtherVersion, place_.rank) ? 1U : 0U;
        // Ranks that split unlike each other would wait for each other.
        for (const std::uint32_t domain : domains_) {
            own.digest = own.digest * 0x100000001b3U ^ (domain + 1);
        }
        own.digest ^= strikes(job_.injections, InjectionKind::kOtherPlan, place_.rank) ? 1U : 0U;
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
        const auto own = strikes(job_.injections, InjectionKind::kOutOfMemory, place_.rank)
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
        if (auto made = comms_.make(program_, domains_, place_, *control_, job_.deadline); !made) {
            return made;
        }
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
    Result<void> watched(Result<void> begun) const {
        return begun ? runner_.until_idle(Clock::now() + job_.deadline) : begun;
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
        for (std::uint32_t rank = 0; rank < all->size(); ++rank) {
            std::vector<double> times(mine.size());
            std::memcpy(times.data(), (*all)[rank].data(), std::min((*all)[rank].size(), own.size()));
            RankTimes& entry = iteration.ranks.emplace_back(RankTimes{rank, Seconds{times.front()}, {}});
            std::for_each(
                times.begin() + 1, times.end(), [&](double time) { entry.stages.emplace_back(time); });
            iteration.seconds = std::max(iteration.seconds, entry.seconds);
        }
        return iteration;
    }

    nccl::Library library_;
    ProcessPlace place_;
    Rendezvous rendezvous_;
    Job job_;
    RankProgram program_;
    std::unique_ptr<ControlPlane> control_;
    std::unique_ptr<StreamDevice> device_;
    nccl::ForMessages for_messages_;
    std::vector<std::uint32_t> domains_;  ///< By rank; or none.
    std::vector<PostedGroup> groups_;
    DeviceMemory memory_;
    std::uint64_t staging_ = 0;
    std::uint64_t staging_bytes_ = 0;
    nccl::Communicators comms_;  ///< Goes before the memory that is registered with it.
    nccl::GroupRunner runner_;
    std::uint32_t runs_ = 0;
    bool is_sound_ = false;
    bool has_flipped_ = false;
};

}  // namespace

std::unique_ptr<Transport> nccl::make_transport_on(const Library& library,
                                                   std::unique_ptr<StreamDevice> device,
                                                   ForMessages for_messages,
                                                   const ProcessPlace& place,
                                                   Rendezvous rendezvous) {
    return std::make_unique<NcclTransport>(
        library, std::move(device), std::move(for_messages), place, std::move(rendezvous));
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
        std::move(rendezvous));
}

}  // namespace refit::exec
