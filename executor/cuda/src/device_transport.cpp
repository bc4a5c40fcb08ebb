// SPDX-License-Identifier: Apache-2.0
#include "device_transport.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "../../src/agreement.hpp"
#include "device_memory.hpp"
#include "device_waves.hpp"
#include "refit/exec/staged_program.hpp"

namespace refit::exec {
namespace {

using Clock = std::chrono::steady_clock;
using program::RankProgram;

/// What generators serve before the first refit.
constexpr std::uint64_t kOldVersion = 0;

/// One wave on one device.
struct DeviceWave {
    LoadedTable packs;
    LoadedTable carries;       ///< Between ranks of this device.
    std::vector<Carry> sends;  ///< To ranks of others.
    LoadedTable unpacks;
};

StridedCopy copy_of_carry(const Carry& carry) {
    StridedCopy copy;
    copy.source = carry.from;
    copy.destination = carry.to;
    copy.run = carry.bytes;
    return copy;
}

class DeviceTransport final : public Transport {
public:
    explicit DeviceTransport(std::vector<std::unique_ptr<Device>> devices) : devices_{std::move(devices)} {}

    [[nodiscard]] std::string_view name() const noexcept override { return "cuda"; }
    [[nodiscard]] std::string machine() const override {
        std::string text =
            std::to_string(devices_.size()) + (devices_.size() == 1 ? " GPU: " : " GPUs, the first: ");
        return text + devices_.front()->describe() + (graphs_.empty() ? "" : ", CUDA graphs");
    }

    Result<void> prepare(const Job& job) override {
        job_ = job;
        for (std::uint32_t rank = 0; rank < job.schedule->ranks(); ++rank) {
            programs_.push_back(job.schedule->program_of(rank));
        }
        if (auto faults = agree(programs_, job.injections); !faults.empty()) {
            return fail(std::move(faults));
        }
        if (auto room = check_room(); !room) {
            return room;
        }
        for (const RankProgram& program : programs_) {
            if (strikes(job.injections, InjectionKind::kOutOfMemory, program.rank)) {
                return fail(Faults{cannot_allocate(program)});
            }
            auto memory = allocate(device_of(program.rank), program);
            if (!memory) {
                return Failure{memory.error()};
            }
            memory_.push_back(*memory);
        }
        if (auto made = make_waves(); !made) {
            return made;
        }
        return for_all([&](Device& device, const RankProgram& program) {
            return begin_fill_served(device, program, workload(), memory_[program.rank], kOldVersion);
        });
    }

    Result<void> fill(std::uint64_t version) override {
        return for_all([&](Device& device, const RankProgram& program) {
            return begin_fill(device, program, workload(), memory_[program.rank], version);
        });
    }

    Result<Iteration> run() override {
        if (job_.graphs && runs_++ == 1 && !strikes_waves()) {
            capture();
        }
        const auto begin = Clock::now();
        std::vector<Seconds> stages(job_.schedule->plan().stages.size());
        auto before = begin;
        const auto count = graphs_.empty() ? waves_.size() : graphs_.size();
        for (std::uint32_t part = 0; part < count; ++part) {
            const auto wave = graphs_.empty() ? part : graphs_[part].first;
            if (auto done = graphs_.empty() ? run_wave(wave) : replay(graphs_[part].second); !done) {
                return Failure{done.error()};
            }
            const auto now = Clock::now();
            stages[stage_of(wave)] += seconds_between(before, now);
            before = now;
        }
        Iteration iteration;
        iteration.seconds = seconds_between(begin, Clock::now());
        for (const RankProgram& program : programs_) {
            iteration.ranks.push_back({program.rank, iteration.seconds, stages});
        }
        return iteration;
    }

    Result<Verification> verify(std::uint64_t version) override { return compare_all(false, version); }

    Result<void> flip() override {
        std::ranges::for_each(memory_, [](DeviceMemory& memory) { memory.flip(); });
        has_flipped_ = true;
        return {};
    }

    [[nodiscard]] bool old_weights_stand() const override {
        const auto compared = compare_all(true, kOldVersion);
        return !has_flipped_ && compared && !compared->mismatch;
    }

private:
    static Seconds seconds_between(Clock::time_point begin, Clock::time_point end) {
        return Seconds{std::chrono::duration<double>(end - begin).count()};
    }
    [[nodiscard]] const Workload& workload() const { return job_.schedule->workload(); }
    [[nodiscard]] std::size_t place_of(std::uint32_t rank) const { return rank % devices_.size(); }
    [[nodiscard]] Device& device_of(std::uint32_t rank) const { return *devices_[place_of(rank)]; }

    /// Begins something on each rank's device, and waits for all of it.
    template <class Begin>
    Result<void> for_all(Begin&& begin) const {
        for (const RankProgram& program : programs_) {
            if (auto begun = begin(device_of(program.rank), program); !begun) {
                return begun;
            }
        }
        return settle_all();
    }

    [[nodiscard]] Result<void> settle_all() const {
        for (const auto& device : devices_) {
            if (auto done = settle(*device, job_.deadline); !done) {
                return done;
            }
        }
        return {};
    }

    /// The buffers and the staging of all ranks of a device, beside what it has.
    [[nodiscard]] Result<void> check_room() const {
        for (std::size_t place = 0; place < devices_.size(); ++place) {
            Bytes needed;
            for (const RankProgram& program : programs_) {
                if (place_of(program.rank) == place) {
                    needed += bytes_needed(program) + Bytes{staging_bytes(program, {program.regions, {}})};
                }
            }
            const auto available = devices_[place]->available();
            if (!available) {
                return Failure{available.error()};
            }
            if (needed > Bytes{*available}) {
                return fail(Faults{too_little_memory(needed, Bytes{*available})});
            }
        }
        return {};
    }

    Result<void> make_waves() {
        std::vector<std::vector<StagedWave>> staged;
        for (const RankProgram& program : programs_) {
            const RankView view = memory_[program.rank].view(program);
            const std::uint64_t bytes = staging_bytes(program, view);
            std::uint64_t staging = 0;
            if (bytes > 0) {
                const auto place = device_of(program.rank).allocate(bytes);
                if (!place) {
                    return Failure{place.error()};
                }
                staging = *place;
            }
            staged.push_back(staged_waves(program, view, staging));
        }
        for (std::uint32_t wave = 0; wave < programs_.front().waves.size(); ++wave) {
            if (auto made = make_wave(staged, wave); !made) {
                return made;
            }
        }
        return {};
    }

    Result<void> make_wave(const std::vector<std::vector<StagedWave>>& staged, std::uint32_t wave) {
        std::vector<DeviceWave>& parts = waves_.emplace_back(devices_.size());
        std::vector<std::vector<StridedCopy>> packs(devices_.size());
        std::vector<std::vector<StridedCopy>> carries(devices_.size());
        std::vector<std::vector<StridedCopy>> unpacks(devices_.size());
        for (const RankProgram& program : programs_) {
            const StagedWave& own = staged[program.rank][wave];
            const std::size_t place = place_of(program.rank);
            packs[place].insert(packs[place].end(), own.packs.begin(), own.packs.end());
            unpacks[place].insert(unpacks[place].end(), own.unpacks.begin(), own.unpacks.end());
        }
        for (const Carry& carry : carries_of(programs_, staged, wave)) {
            const std::size_t place = place_of(carry.giver);
            if (place == place_of(carry.taker)) {
                carries[place].push_back(copy_of_carry(carry));
            } else {
                parts[place].sends.push_back(carry);
            }
        }
        for (std::size_t place = 0; place < devices_.size(); ++place) {
            for (const auto& [copies, table] : {std::pair{&packs[place], &parts[place].packs},
                                                std::pair{&carries[place], &parts[place].carries},
                                                std::pair{&unpacks[place], &parts[place].unpacks}}) {
                const auto loaded = load(*devices_[place], make_copy_table(*copies));
                if (!loaded) {
                    return Failure{loaded.error()};
                }
                *table = *loaded;
            }
        }
        return {};
    }

    Result<void> run_wave(std::uint32_t wave) {
        const auto begin = Clock::now();
        if (auto stands = strike(wave); !stands) {
            return stands;
        }
        // No device writes to staging of another that still unpacks.
        auto done = begin_wave(wave);
        done = done ? settle_all() : done;
        if (done && is_slowed(wave)) {
            std::this_thread::sleep_for(9 * (Clock::now() - begin));
        }
        return done ? mend() : done;
    }

    /// Every device begins the same step before any begins the next.
    Result<void> begin_wave(std::uint32_t wave) {
        const std::vector<DeviceWave>& parts = waves_[wave];
        for (std::size_t place = 0; place < devices_.size(); ++place) {
            Device& device = *devices_[place];
            if (auto begun = device.launch(parts[place].packs); !begun) {
                return begun;
            }
            for (const Carry& carry : parts[place].sends) {
                if (auto begun = device.send(carry.from, device_of(carry.taker), carry.to, carry.bytes);
                    !begun) {
                    return begun;
                }
            }
            if (auto begun = device.launch(parts[place].carries); !begun) {
                return begun;
            }
        }
        for (std::size_t place = 0; place < devices_.size(); ++place) {
            for (std::size_t other = 0; other < devices_.size(); ++other) {
                if (other != place && !parts[other].sends.empty()) {
                    if (auto begun = devices_[place]->follow(*devices_[other]); !begun) {
                        return begun;
                    }
                }
            }
        }
        for (std::size_t place = 0; place < devices_.size(); ++place) {
            if (auto begun = devices_[place]->launch(parts[place].unpacks); !begun) {
                return begun;
            }
        }
        return {};
    }

    [[nodiscard]] std::uint32_t stage_of(std::size_t wave) const { return programs_.front().waves[wave].stage; }

    /// Whether a fault is to come in the midst of a run, which a graph would run past.
    [[nodiscard]] bool strikes_waves() const {
        return std::ranges::any_of(job_.injections, [](const Injection& injection) {
            return injection.kind == InjectionKind::kDies || injection.kind == InjectionKind::kStalls ||
                   injection.kind == InjectionKind::kSlows || injection.kind == InjectionKind::kCorrupts;
        });
    }

    /// One graph for the waves of each stage. A device that cannot capture leaves the runs as they are.
    void capture() {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> graphs;
        for (std::uint32_t first = 0; first < waves_.size();) {
            auto end = first;
            while (end < waves_.size() && stage_of(end) == stage_of(first)) {
                ++end;
            }
            if (auto begun = devices_.front()->begin_capture(); !begun) {
                return;
            }
            const auto recorded = record(first, end);
            const auto graph = devices_.front()->end_capture();
            if (!recorded || !graph) {
                return;
            }
            graphs.emplace_back(first, *graph);
            first = end;
        }
        graphs_ = std::move(graphs);
    }

    Result<void> record(std::uint32_t first, std::uint32_t end) {
        auto done = scatter();
        for (auto wave = first; done && wave < end; ++wave) {
            done = begin_wave(wave);
            done = done ? gather() : done;
            done = done && wave + 1 < end ? scatter() : done;
        }
        return done;
    }
    /// All other devices wait for the first, or the first for all others.
    Result<void> scatter() {
        for (std::size_t place = 1; place < devices_.size(); ++place) {
            if (auto done = devices_[place]->follow(*devices_.front()); !done) {
                return done;
            }
        }
        return {};
    }
    Result<void> gather() {
        for (std::size_t place = 1; place < devices_.size(); ++place) {
            if (auto done = devices_.front()->follow(*devices_[place]); !done) {
                return done;
            }
        }
        return {};
    }
    Result<void> replay(std::uint32_t graph) {
        auto done = devices_.front()->replay(graph);
        return done ? settle(*devices_.front(), job_.deadline) : done;
    }

    [[nodiscard]] bool is_slowed(std::uint32_t wave) const {
        return std::ranges::any_of(job_.injections, [&](const Injection& injection) {
            return injection.kind == InjectionKind::kSlows && injection.wave <= wave;
        });
    }

    /// Injected faults of a wave.
    Result<void> strike(std::uint32_t wave) {
        for (const Injection& injection : job_.injections) {
            if (injection.wave != wave || injection.rank >= programs_.size()) {
                continue;
            }
            const std::string where =
                "rank " + std::to_string(injection.rank) + " in wave " + std::to_string(wave);
            if (injection.kind == InjectionKind::kDies) {
                return fail(ErrorCode::kInfeasible,
                            "rank-died",
                            where + " died; all ranks of this process end with it");
            }
            if (injection.kind == InjectionKind::kStalls) {
                std::this_thread::sleep_for(job_.deadline);
                return fail(
                    ErrorCode::kInfeasible, "rank-stalled", where + " did nothing until the deadline");
            }
            if (injection.kind == InjectionKind::kCorrupts) {
                if (auto done = corrupt(injection.rank, wave); !done) {
                    return done;
                }
            }
        }
        return {};
    }

    /// Changes a bit of what a rank gives in a wave; `mend` changes it back.
    Result<void> corrupt(std::uint32_t rank, std::uint32_t wave) {
        const RankProgram& program = programs_[rank];
        for (const program::Operation& operation : program.waves[wave].operations) {
            const MessageCopies copies = copies_of(operation, memory_[rank].view(program), 0);
            if (!copies.gives.empty()) {
                spoiled_ = {rank, copies.gives.front().source};
                return spoil();
            }
        }
        return {};
    }
    Result<void> spoil() {
        std::byte byte{};
        Device& device = device_of(spoiled_.first);
        if (auto done = device.download(spoiled_.second, {&byte, 1}); !done) {
            return done;
        }
        byte ^= std::byte{1};
        return device.upload(spoiled_.second, {&byte, 1});
    }
    Result<void> mend() {
        if (spoiled_.second == 0) {
            return {};
        }
        auto done = spoil();
        spoiled_ = {};
        return done;
    }

    [[nodiscard]] Result<Verification> compare_all(bool is_served, std::uint64_t version) const {
        auto begun = for_all([&](Device& device, const RankProgram& program) {
            return begin_compare(device, program, workload(), memory_[program.rank], is_served, version);
        });
        if (!begun) {
            return Failure{begun.error()};
        }
        Verification verification;
        for (const RankProgram& program : programs_) {
            const auto compared = finish_compare(
                device_of(program.rank), program, workload(), memory_[program.rank], is_served, version);
            if (!compared) {
                return Failure{compared.error()};
            }
            verification.elements += compared->record.elements;
            if (!compared->mismatch) {
                verification.records.push_back(compared->record);
            } else if (!verification.mismatch) {
                verification.mismatch = compared->mismatch;
            }
        }
        return verification;
    }

    std::vector<std::unique_ptr<Device>> devices_;
    Job job_;
    std::vector<RankProgram> programs_;
    std::vector<DeviceMemory> memory_;            ///< By rank.
    std::vector<std::vector<DeviceWave>> waves_;  ///< By wave, then by device.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> graphs_;  ///< The first wave of each, and what to replay.
    std::uint32_t runs_ = 0;
    std::pair<std::uint32_t, std::uint64_t> spoiled_{};
    bool has_flipped_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_device_transport(std::vector<std::unique_ptr<Device>> devices) {
    return std::make_unique<DeviceTransport>(std::move(devices));
}

Result<void> settle(Device& device, std::chrono::milliseconds deadline) {
    const auto end = Clock::now() + deadline;
    while (true) {
        const auto is_idle = device.is_idle();
        if (!is_idle) {
            return Failure{is_idle.error()};
        }
        if (*is_idle) {
            return {};
        }
        if (Clock::now() >= end) {
            return fail(
                ErrorCode::kInfeasible,
                "deadline",
                device.describe() + " was not done after " + std::to_string(deadline.count()) + " ms");
        }
        std::this_thread::yield();
    }
}

}  // namespace refit::exec
