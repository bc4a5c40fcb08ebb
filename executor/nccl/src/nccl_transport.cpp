// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/nccl_transport.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../src/agreement.hpp"
#include "../../src/compared_words.hpp"
#include "communicators.hpp"
#include "cuda_device.hpp"
#include "device_memory.hpp"
#include "device_transport.hpp"
#include "refit/exec/staged_program.hpp"

namespace refit::exec {
namespace {

using Clock = std::chrono::steady_clock;
using program::Operation;
using program::OperationKind;
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
    const nccl::Library& library_;
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
    NcclTransport(const nccl::Library& library, const ProcessPlace& place, Rendezvous rendezvous)
        : library_{library}, place_{place}, rendezvous_{std::move(rendezvous)}, comms_{library_} {}

    ~NcclTransport() override {
        if (is_sound_ && comms_.all() != nullptr) {
            (void)comms_.finish(job_.deadline);
        }
        comms_.abort();
    }
    NcclTransport(const NcclTransport&) = delete;
    NcclTransport& operator=(const NcclTransport&) = delete;

    Result<void> open(int devices) {
        auto allocator = std::make_unique<MessageAllocator>(library_);
        allocator_ = allocator.get();
        auto device = cuda::open_device(static_cast<int>(place_.local_rank) % devices, std::move(allocator));
        if (!device) {
            return Failure{device.error()};
        }
        device_ = std::move(*device);
        return {};
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "nccl"; }
    [[nodiscard]] bool reports() const noexcept override { return place_.rank == 0; }
    [[nodiscard]] std::string machine() const override {
        int version = 0;
        library_.get_version(&version);
        return std::to_string(place_.ranks) + " processes under NCCL " + std::to_string(version) +
               ", the first on " + device_->describe();
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
        if (auto met = meet(); !met) {
            return Failure{met.error()};
        }
        std::vector<double> times(1 + job_.schedule->plan().stages.size(), 0.0);
        const auto start = Clock::now();
        auto before = start;
        for (std::uint32_t wave = 0; wave < program_.waves.size(); ++wave) {
            if (auto done = watched(begin_wave(wave)); !done) {
                return given_up(done.error());
            }
            const auto now = Clock::now();
            times[1 + program_.waves[wave].stage] += std::chrono::duration<double>(now - before).count();
            before = now;
        }
        times[0] = std::chrono::duration<double>(before - start).count();
        return iteration_of(times);
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
        const std::uint64_t staged = staging_bytes(program_, {program_.regions, {}});
        const auto available = device_->available();
        const Bytes needed = bytes_needed(program_) + Bytes{staged};
        if (!available || needed > Bytes{*available}) {
            return fail(available ? Faults{too_little_memory(needed, Bytes{*available})} : available.error());
        }
        allocator_->set_for_messages(true);
        const auto memory = allocate(*device_, program_);
        const auto staging =
            memory && staged > 0 ? device_->allocate(staged) : Result<std::uint64_t>{std::uint64_t{0}};
        allocator_->set_for_messages(false);
        if (!memory || !staging) {
            return Failure{memory ? staging.error() : memory.error()};
        }
        memory_ = *memory;
        staging_ = *staging;
        staging_bytes_ = staged;
        return {};
    }

    Result<void> connect() {
        if (auto made = comms_.make(program_, place_, *control_, job_.deadline); !made) {
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
        waves_ = staged_waves(program_, memory_.view(program_), staging_);
        for (const StagedWave& wave : waves_) {
            const auto packs = load(*device_, make_copy_table(wave.packs));
            const auto unpacks = load(*device_, make_copy_table(wave.unpacks));
            if (!packs || !unpacks) {
                return Failure{packs ? unpacks.error() : packs.error()};
            }
            packs_.push_back(*packs);
            unpacks_.push_back(*unpacks);
        }
        return {};
    }
    Result<void> enroll(std::uint64_t address, std::uint64_t bytes) {
        return bytes == 0 ? Result<void>{} : comms_.enroll(address, bytes);
    }

    /// Packs, one group of NCCL with all messages, and unpacks, on one stream.
    Result<void> begin_wave(std::uint32_t wave) {
        for (const Injection& injection : job_.injections) {
            if (injection.rank == place_.rank && injection.wave == wave) {
                if (injection.kind == InjectionKind::kDies) {
                    raise(SIGKILL);
                } else if (injection.kind == InjectionKind::kStalls) {
                    raise(SIGSTOP);
                }
            }
        }
        if (auto begun = device_->launch(packs_[wave]); !begun) {
            return begun;
        }
        if (!waves_[wave].messages.empty()) {
            auto posted = library_.check(library_.group_start(), "ncclGroupStart");
            for (const StagedMessage& message : waves_[wave].messages) {
                posted = posted ? post(program_.waves[wave].operations[message.operation], message) : posted;
            }
            // Also after a fault: a group that was begun must be ended.
            const auto ended = library_.check(library_.group_end(), "ncclGroupEnd");
            posted = posted ? ended : posted;
            posted = posted ? comms_.settle("ncclGroupEnd", job_.deadline) : posted;
            if (!posted) {
                return posted;
            }
        }
        return device_->launch(unpacks_[wave]);
    }

    Result<void> post(const Operation& operation, const StagedMessage& message) {
        auto* const memory =
            reinterpret_cast<std::byte*>(message.address);  // NOLINT(performance-no-int-to-ptr)
        const auto peer = static_cast<int>(operation.peer);
        switch (operation.kind) {
            case OperationKind::kSend:
                return library_.check(
                    library_.send(memory, message.bytes, ncclInt8, peer, comms_.all(), device_->stream()),
                    "ncclSend");
            case OperationKind::kReceive:
                return library_.check(
                    library_.recv(memory, message.bytes, ncclInt8, peer, comms_.all(), device_->stream()),
                    "ncclRecv");
            case OperationKind::kBroadcast:
                return broadcast(operation, memory, {0, message.bytes}, 0);
            case OperationKind::kAllGather:
                break;
        }
        // Members give parts of unlike length, which NCCL's all-gather does not take.
        for (std::uint32_t member = 0; member < program_.groups[operation.group].size(); ++member) {
            if (auto posted = broadcast(operation, memory, given_by(operation, member), member); !posted) {
                return posted;
            }
        }
        return {};
    }

    Result<void> broadcast(const Operation& operation,
                           std::byte* memory,
                           const MessageRange& range,
                           std::uint32_t root) {
        if (range.begin == range.end) {
            return {};
        }
        std::byte* const place = memory + range.begin;
        return library_.check(library_.broadcast(place,
                                                 place,
                                                 range.end - range.begin,
                                                 ncclInt8,
                                                 static_cast<int>(root),
                                                 comms_.group(operation.group),
                                                 device_->stream()),
                              "ncclBroadcast");
    }

    /// Waits for the stream, never without a look at the clock and at what NCCL says of the peers.
    Result<void> watched(Result<void> begun) const {
        const auto end = Clock::now() + job_.deadline;
        while (begun) {
            const auto is_idle = device_->is_idle();
            if (!is_idle) {
                return Failure{is_idle.error()};
            }
            if (*is_idle) {
                break;
            }
            begun = comms_.health();
            if (begun && Clock::now() >= end) {
                return fail(ErrorCode::kInfeasible,
                            "deadline",
                            "rank " + std::to_string(place_.rank) + " was not done after " +
                                std::to_string(job_.deadline.count()) + " ms");
            }
            std::this_thread::yield();
        }
        return begun;
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
    std::unique_ptr<cuda::StreamDevice> device_;
    MessageAllocator* allocator_ = nullptr;  ///< The device owns it.
    DeviceMemory memory_;
    std::uint64_t staging_ = 0;
    std::uint64_t staging_bytes_ = 0;
    nccl::Communicators comms_;  ///< Goes before the memory that is registered with it.
    std::vector<StagedWave> waves_;
    std::vector<LoadedTable> packs_;
    std::vector<LoadedTable> unpacks_;
    bool is_sound_ = false;
    bool has_flipped_ = false;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_nccl_transport(const ProcessPlace& place, Rendezvous rendezvous) {
    const auto devices = cuda::count_devices();
    if (!devices) {
        return Failure{devices.error()};
    }
    const auto library = nccl::Library::open();
    if (!library) {
        return Failure{library.error()};
    }
    auto transport = std::make_unique<NcclTransport>(*library, place, std::move(rendezvous));
    if (auto opened = transport->open(*devices); !opened) {
        return Failure{opened.error()};
    }
    return transport;
}

}  // namespace refit::exec
