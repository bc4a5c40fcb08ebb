// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/host.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "../agreement.hpp"
#include "../parallel.hpp"
#include "copies.hpp"
#include "refit/exec/machine.hpp"
#include "refit/exec/rank_storage.hpp"
#include "run.hpp"

namespace refit::exec {
namespace {

using program::RankProgram;

/// What generators serve before the first refit.
constexpr std::uint64_t kOldVersion = 0;

class HostTransport final : public Transport {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return "host"; }
    [[nodiscard]] std::string machine() const override { return describe(machine_); }

    Result<void> prepare(const Job& job) override {
        job_ = job;
        threads_ = job.threads == 0 ? machine_.cores : job.threads;
        programs_.resize(job.schedule->ranks());
        parallel_for(threads_, programs_.size(), [&](std::size_t rank) {
            programs_[rank] = job.schedule->program_of(static_cast<std::uint32_t>(rank));
        });
        if (auto faults = agree(programs_, job.injections); !faults.empty()) {
            return fail(std::move(faults));
        }
        Bytes needed;
        for (const auto& program : programs_) {
            needed += bytes_needed(program);
        }
        if (needed > machine_.available) {
            return fail(Faults{too_little_memory(needed, machine_.available)});
        }
        if (auto allocated = allocate(); !allocated) {
            return allocated;
        }
        work_ = host::work_of(programs_, threads_);
        // What they do is in the work now, and takes most of the memory.
        for (auto& program : programs_) {
            records_.push_back(record_of(program));
            program.waves.clear();
        }
        parallel_for(threads_, programs_.size(), [&](std::size_t rank) {
            fill_served(programs_[rank], workload(), kOldVersion, storage_[rank]);
        });
        return {};
    }

    Result<void> fill(std::uint64_t version) override {
        parallel_for(threads_, programs_.size(), [&](std::size_t rank) {
            if (job_.data != nullptr) {
                exec::fill(programs_[rank], workload(), *job_.data, storage_[rank]);
            } else {
                exec::fill(programs_[rank], workload(), version, storage_[rank]);
            }
        });
        return {};
    }

    Result<Iteration> run() override { return host::run_work(work_, storage_, job_, threads_, failed_); }

    Result<Verification> verify(std::uint64_t version) override {
        std::vector<Compared> compared(programs_.size());
        parallel_for(threads_, programs_.size(), [&](std::size_t rank) {
            compared[rank] = compare_one(programs_[rank], version);
        });
        Verification verification;
        for (auto& one : compared) {
            one.record.sent = records_[one.record.rank].sent;
            one.record.received = records_[one.record.rank].received;
            verification.elements += one.record.elements;
            if (!one.mismatch) {
                verification.records.push_back(one.record);
            } else if (!verification.mismatch) {
                // With the operations, to name the one that should have written it.
                const auto whole = job_.schedule->program_of(one.mismatch->rank);
                verification.mismatch = compare_one(whole, version).mismatch;
            }
        }
        return verification;
    }

    Result<void> flip() override {
        std::ranges::for_each(storage_, [](RankStorage& storage) { storage.flip(); });
        has_flipped_ = true;
        return {};
    }

    [[nodiscard]] bool old_weights_stand() const override {
        std::atomic<bool> stand{!has_flipped_};
        parallel_for(threads_, storage_.size(), [&](std::size_t rank) {
            if (!serves(programs_[rank], workload(), kOldVersion, storage_[rank])) {
                stand.store(false, std::memory_order_relaxed);
            }
        });
        return stand.load();
    }

    [[nodiscard]] std::vector<std::uint32_t> failed_ranks() const override { return failed_; }

private:
    [[nodiscard]] const Workload& workload() const { return job_.schedule->workload(); }

    [[nodiscard]] Compared compare_one(const RankProgram& program, std::uint64_t version) const {
        return job_.data != nullptr ? compare(program, workload(), *job_.data, storage_[program.rank])
                                    : compare(program, workload(), version, storage_[program.rank]);
    }

    Result<void> allocate() {
        for (const auto& program : programs_) {
            if (strikes(job_.injections, InjectionKind::kOutOfMemory, program.rank)) {
                failed_ = {program.rank};
                return fail(Faults{cannot_allocate(program)});
            }
            auto storage = RankStorage::allocate(program);
            if (!storage) {
                failed_ = {program.rank};
                return Failure{std::move(storage.error())};
            }
            storage_.push_back(std::move(*storage));
        }
        return {};
    }

    Machine machine_ = this_machine();
    Job job_;
    std::uint32_t threads_ = 1;
    std::vector<RankProgram> programs_;  ///< Without their waves.
    std::vector<RankRecord> records_;    ///< Without what comparing tells.
    std::vector<RankStorage> storage_;
    host::Work work_;
    bool has_flipped_ = false;
    std::vector<std::uint32_t> failed_;
};

}  // namespace

std::unique_ptr<Transport> make_host_transport() {
    return std::make_unique<HostTransport>();
}

}  // namespace refit::exec
