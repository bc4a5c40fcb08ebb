// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/mpi_transport.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

#include "../../src/agreement.hpp"
#include "../../src/compared_words.hpp"
#include "exchange.hpp"
#include "job_guard.hpp"
#include "outstanding.hpp"
#include "refit/exec/machine.hpp"
#include "refit/exec/rank_storage.hpp"

namespace refit::exec {
namespace {

using program::Arena;
using program::RankProgram;

/// What generators serve before the first refit.
constexpr std::uint64_t kOldVersion = 0;

class MpiTransport final : public Transport {
public:
    MpiTransport() {
        int has_begun = 0;
        MPI_Initialized(&has_begun);
        if (has_begun == 0) {
            prepare_mpi();
            int provided = 0;
            MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
            owns_mpi_ = true;
        }
        int number = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &number);
        process_ = rank_ = static_cast<std::uint32_t>(number);
        MPI_Comm_size(MPI_COMM_WORLD, &number);
        processes_ = static_cast<std::uint32_t>(number);
    }

    ~MpiTransport() override {
        exchange_.reset();
        guard_.reset();
        if (owns_mpi_) {
            MPI_Finalize();
        }
    }
    MpiTransport(const MpiTransport&) = delete;
    MpiTransport& operator=(const MpiTransport&) = delete;

    [[nodiscard]] std::string_view name() const noexcept override { return "mpi"; }
    [[nodiscard]] bool reports() const noexcept override { return process_ == 0; }
    [[nodiscard]] std::string machine() const override {
        return std::to_string(processes_) +
               " processes under MPI; the first one's machine: " + describe(this_machine());
    }

    Result<void> prepare(const Job& job) override {
        job_ = job;
        wire_ = job.packs ? mpi::MpiWire::kPacked : mpi::MpiWire::kDatatypes;
        // A process that leaves out other ranks than the rest must hear of it from them, so all meet first.
        rank_ = process_ < members().size() ? members()[process_] : process_;
        outstanding_ = std::make_unique<Outstanding>(program_);
        guard_ = std::make_unique<JobGuard>(rank_, job.deadline, [this] { return outstanding_->describe(); });
        if (Faults faults = greet(); !faults.empty()) {
            return fail(std::move(faults));
        }
        if (members().size() != processes_) {
            const std::string ranks = std::to_string(members().size());
            return fail(ErrorCode::kInvalidInput,
                        "rank-count",
                        "the plan is for " + ranks + " ranks and this MPI job has " + std::to_string(processes_) +
                            "; start it with mpirun -np " + ranks);
        }
        program_ = job.schedule->program_of(rank_);
        outstanding_ = std::make_unique<Outstanding>(program_);
        if (Faults faults = allocate(); !faults.empty()) {
            return fail(std::move(faults));
        }
        RankView view{program_.regions, {}};
        for (std::size_t arena = 0; arena < program::kArenas; ++arena) {
            view.arenas[arena] = reinterpret_cast<std::uint64_t>(storage_->base(static_cast<Arena>(arena)));
        }
        {
            const Waiting waiting{*this, "the making of communicators"};
            exchange_ = std::make_unique<mpi::Exchange>(
                program_, members(), view, wire_, MPI_COMM_WORLD, [this] { guard_->rest(); });
        }
        fill_served(program_, workload(), kOldVersion, *storage_);
        return {};
    }

    Result<void> fill(std::uint64_t version) override {
        exec::fill(program_, workload(), version, *storage_);
        return {};
    }

    Result<Iteration> run() override {
        meet("the start of a run");
        RunObserver observer{*this};
        outstanding_->begin();
        guard_->watch();
        exchange_->run(observer);
        const auto& times = observer.finish();
        guard_->rest();
        return iteration_of(times);
    }

    Result<Verification> verify(std::uint64_t version) override {
        const Words mine = words_of(compare(program_, workload(), version, *storage_));
        std::vector<Words> all(processes_);
        {
            const Waiting waiting{*this, "the end of verification"};
            MPI_Allgather(mine.words.data(),
                          Words::kCount,
                          MPI_UINT64_T,
                          all.data(),
                          Words::kCount,
                          MPI_UINT64_T,
                          MPI_COMM_WORLD);
        }
        return verification_of(all, members());
    }

    Result<void> flip() override {
        meet("the change to the new weights");
        storage_->flip();
        has_flipped_ = true;
        return {};
    }

    [[nodiscard]] bool old_weights_stand() const override {
        int stand =
            !has_flipped_ && (!storage_ || serves(program_, workload(), kOldVersion, *storage_)) ? 1 : 0;
        if (guard_) {  // Who got no further knows of no other rank.
            const Waiting waiting{*this, "the check of the old weights"};
            MPI_Allreduce(MPI_IN_PLACE, &stand, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        }
        return stand != 0;
    }

    [[nodiscard]] std::vector<std::uint32_t> failed_ranks() const override { return failed_; }

private:
    /// While it lives, the process waits for others.
    class Waiting {
    public:
        Waiting(const MpiTransport& transport, const char* phase) : guard_{*transport.guard_} {
            transport.outstanding_->enter(phase);
            guard_.watch();
        }
        ~Waiting() { guard_.rest(); }
        Waiting(const Waiting&) = delete;
        Waiting& operator=(const Waiting&) = delete;

    private:
        JobGuard& guard_;
    };
    friend class Waiting;

    /// Times the waves of a run, and makes its faults happen.
    class RunObserver final : public mpi::Exchange::Observer {
    public:
        explicit RunObserver(const MpiTransport& transport)
            : transport_{transport},
              times_(1 + transport.job_.schedule->plan().stages.size(), 0.0),
              start_{MPI_Wtime()},
              before_{start_} {}

        bool begins(const Place& place) override {
            strike_until(place.wave);
            transport_.outstanding_->begin(place);
            if (has_spoiled_ || !transport_.strikes_now(InjectionKind::kCorrupts, place.wave)) {
                return false;
            }
            const program::Operation& operation = transport_.program_.waves[place.wave].operations[place.index];
            has_spoiled_ = std::ranges::any_of(
                operation.parts, [&](const program::Part& part) { return operation.gives(part); });
            return has_spoiled_;
        }

        void ends(const Place& place) override {
            transport_.outstanding_->finish(place);
            transport_.guard_->progress();
        }

        void ends_wave(std::uint32_t wave) override {
            const double now = MPI_Wtime();
            times_[1 + transport_.program_.waves[wave].stage] += now - before_;
            transport_.outstanding_->pass(wave + 1);
            const bool is_slow =
                std::ranges::any_of(transport_.job_.injections, [&](const Injection& injection) {
                    return injection.kind == InjectionKind::kSlows && injection.rank == transport_.rank_ &&
                           injection.wave <= wave;
                });
            if (is_slow) {
                std::this_thread::sleep_for(std::chrono::duration<double>{9 * (now - before_)});
            }
            before_ = MPI_Wtime();
        }

        /// The whole run's time, then each stage's. Unit: s.
        const std::vector<double>& finish() {
            strike_until(static_cast<std::uint32_t>(transport_.program_.waves.size()));
            times_[0] = before_ - start_;
            return times_;
        }

    private:
        void strike_until(std::uint32_t wave) {
            for (; struck_ <= wave; ++struck_) {
                transport_.strike(struck_);
            }
        }

        const MpiTransport& transport_;
        std::vector<double> times_;
        double start_;
        double before_;
        std::uint32_t struck_ = 0;  ///< Waves whose faults have happened.
        bool has_spoiled_ = false;
    };
    friend class RunObserver;

    [[nodiscard]] const Workload& workload() const { return job_.schedule->workload(); }
    /// The ranks that the processes are, in their order.
    [[nodiscard]] const std::vector<std::uint32_t>& members() const { return job_.schedule->members(); }

    void meet(const char* phase) const {
        const Waiting waiting{*this, phase};
        MPI_Barrier(MPI_COMM_WORLD);
    }

    Faults greet() const {
        const Waiting waiting{*this, "the comparison of plans"};
        const bool lies_in_protocol = strikes(job_.injections, InjectionKind::kOtherVersion, rank_);
        const bool lies_in_digest = strikes(job_.injections, InjectionKind::kOtherPlan, rank_);
        const std::array<std::uint64_t, 3> mine{kProtocol + (lies_in_protocol ? 1U : 0U),
                                                job_.schedule->digest() ^ (lies_in_digest ? 1U : 0U),
                                                rank_};
        std::vector<std::array<std::uint64_t, 3>> all(processes_);
        MPI_Allgather(mine.data(), 3, MPI_UINT64_T, all.data(), 3, MPI_UINT64_T, MPI_COMM_WORLD);
        std::vector<Greeting> greetings;
        for (const auto& [protocol, digest, rank] : all) {
            greetings.push_back({static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(protocol), digest});
        }
        return agree(greetings);
    }

    /// All ranks fail where one does, and name the lowest.
    Faults allocate() {
        const Waiting waiting{*this, "the allocation of buffers"};
        if (const auto fault = memory_fault()) {
            return {*fault};
        }
        auto storage = RankStorage::allocate(program_);
        const bool is_struck = strikes(job_.injections, InjectionKind::kOutOfMemory, rank_);
        std::uint32_t failed = storage && !is_struck ? program::kNone : rank_;
        MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_UINT32_T, MPI_MIN, MPI_COMM_WORLD);
        if (failed != program::kNone) {
            failed_ = {failed};
            return {cannot_allocate(failed == rank_ ? program_ : job_.schedule->program_of(failed))};
        }
        storage_.emplace(std::move(*storage));
        return {};
    }

    /// What the ranks of one machine need together, beside what it has.
    [[nodiscard]] std::optional<Fault> memory_fault() const {
        MPI_Comm machine = MPI_COMM_NULL;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
        const mpi::Communicator owner{machine};
        std::uint64_t needed = bytes_needed(program_).count() + mpi::staging_bytes(program_, wire_);
        std::uint64_t available = this_machine().available.count();
        MPI_Allreduce(MPI_IN_PLACE, &needed, 1, MPI_UINT64_T, MPI_SUM, machine);
        MPI_Allreduce(MPI_IN_PLACE, &available, 1, MPI_UINT64_T, MPI_MIN, machine);
        // The worst machine's figures, so that all say the same.
        struct {
            double excess;
            int rank;
        } worst{Bytes{needed}.as_double() - Bytes{available}.as_double(), static_cast<int>(process_)};
        MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
        if (worst.excess <= 0) {
            return std::nullopt;
        }
        std::array<std::uint64_t, 2> figures{needed, available};
        MPI_Bcast(figures.data(), 2, MPI_UINT64_T, worst.rank, MPI_COMM_WORLD);
        return too_little_memory(Bytes{figures[0]}, Bytes{figures[1]});
    }

    [[nodiscard]] bool strikes_now(InjectionKind kind, std::uint32_t wave) const {
        return std::ranges::any_of(job_.injections, [&](const Injection& injection) {
            return injection.kind == kind && injection.rank == rank_ && injection.wave == wave;
        });
    }

    void strike(std::uint32_t wave) const {
        for (const Injection& injection : job_.injections) {
            // A wave beyond the last means after it.
            if (injection.rank != rank_ ||
                std::min<std::size_t>(injection.wave, program_.waves.size()) != wave) {
                continue;
            }
            const bool dies = injection.kind == InjectionKind::kDies;
            if (dies || injection.kind == InjectionKind::kStalls) {
                const auto now = std::chrono::steady_clock::now().time_since_epoch();
                std::fprintf(stderr,
                             "refit-exec: rank %u is made to %s at %.3f s\n",
                             rank_,
                             dies ? "die" : "stall",
                             std::chrono::duration<double>{now}.count());
                raise(dies ? SIGKILL : SIGSTOP);
            }
        }
    }

    Iteration iteration_of(const std::vector<double>& mine) const {
        const Waiting waiting{*this, "the end of a run"};
        const std::size_t width = mine.size();
        std::vector<double> all(width * processes_);
        MPI_Allgather(mine.data(),
                      static_cast<int>(width),
                      MPI_DOUBLE,
                      all.data(),
                      static_cast<int>(width),
                      MPI_DOUBLE,
                      MPI_COMM_WORLD);
        Iteration iteration;
        double slowest = 0;
        for (std::uint32_t i = 0; i < processes_; ++i) {
            const double* times = all.data() + i * width;
            slowest = std::max(slowest, times[0]);
            RankTimes& entry = iteration.ranks.emplace_back(RankTimes{members()[i], Seconds{times[0]}, {}});
            for (std::size_t stage = 1; stage < width; ++stage) {
                entry.stages.emplace_back(times[stage]);
            }
        }
        iteration.seconds = Seconds{slowest};
        return iteration;
    }

    mpi::MpiWire wire_ = mpi::MpiWire::kDatatypes;
    bool owns_mpi_ = false;
    std::uint32_t process_ = 0;
    std::uint32_t processes_ = 1;
    std::uint32_t rank_ = 0;  ///< Of the job: the process's place among those that are left.
    Job job_;
    RankProgram program_;
    std::optional<RankStorage> storage_;
    std::unique_ptr<Outstanding> outstanding_;
    std::unique_ptr<JobGuard> guard_;
    std::unique_ptr<mpi::Exchange> exchange_;
    bool has_flipped_ = false;
    std::vector<std::uint32_t> failed_;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport() {
    return std::make_unique<MpiTransport>();
}

}  // namespace refit::exec
