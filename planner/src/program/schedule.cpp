// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "digest.hpp"
#include "rank_memory.hpp"
#include "refit/program_schedule.hpp"
#include "step.hpp"

namespace refit::program {

struct Schedule::State {
    const Plan& plan;
    const Workload& workload;
    std::uint32_t train_gpus;
    Settings settings;
    std::uint64_t digest = 0;
    GroupTable groups;
    Steps steps;
    std::uint32_t waves = 0;
    std::vector<std::uint32_t> members;

    State(const Plan& a_plan, const Workload& a_workload, std::uint32_t trainers, const Settings& some)
        : plan{a_plan}, workload{a_workload}, train_gpus{trainers}, settings{some} {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
};

namespace {

Steps steps_of(const Sight& sight) {
    Steps steps;
    const auto& stages = sight.plan.stages;
    const auto is_transfer = [](const PlanStage& stage) { return stage.kind == StageKind::kTransfer; };
    for (std::size_t i = 0; i < stages.size();) {
        auto next = i + 1;
        if (is_transfer(stages[i])) {
            while (next < stages.size() && is_transfer(stages[next])) {
                ++next;
            }
            add_transfer_steps(sight, i, next, steps);
        } else if (stages[i].kind == StageKind::kRelay) {
            add_relay_steps(sight, i, steps);
        } else if (stages[i].kind == StageKind::kGather) {
            const bool has_broadcast = next < stages.size() && stages[next].kind == StageKind::kBroadcast;
            add_gather_steps(sight, i, has_broadcast, steps);
            next += has_broadcast ? 1 : 0;
        }
        i = next;
    }
    return steps;
}

/// Turns what deeds carry into the operations of one rank.
class Assembler {
public:
    Assembler(const Workload& workload,
              const GroupTable& groups,
              std::uint32_t train_gpus,
              std::uint32_t rank)
        : workload_{workload}, groups_{groups}, memory_{workload, train_gpus, rank} {
        program_.rank = rank;
    }

    void add(const Step& step) {
        std::vector<Cargo> cargo;
        step.load(program_.rank, cargo);
        std::ranges::stable_sort(cargo, {}, [&](const Cargo& item) {
            return std::tuple{step.deeds()[item.deed].wave, item.deed, item.owner};
        });
        const auto first_wave = static_cast<std::uint32_t>(program_.waves.size());
        program_.waves.resize(first_wave + step.waves(), {step.stage(), {}});
        for (std::size_t begin = 0; begin < cargo.size();) {
            auto end = begin;
            while (end < cargo.size() && cargo[end].deed == cargo[begin].deed) {
                ++end;
            }
            const auto& deed = step.deeds()[cargo[begin].deed];
            add(deed,
                first_id_ + cargo[begin].deed,
                first_wave + deed.wave,
                std::span{cargo}.subspan(begin, end - begin));
            begin = end;
        }
        first_id_ += static_cast<std::uint32_t>(step.deeds().size());
    }

    RankProgram finish(std::uint64_t digest) && {
        program_.digest = digest;
        auto [regions, sizes] = std::move(memory_).place(static_cast<std::uint32_t>(program_.waves.size()));
        program_.regions = std::move(regions);
        program_.arena_bytes = sizes;
        return std::move(program_);
    }

private:
    void add(const Deed& deed, std::uint32_t id, std::uint32_t wave, std::span<const Cargo> cargo) {
        Operation operation;
        operation.id = id;
        if (deed.kind == OperationKind::kSend) {
            const bool is_source = deed.first == program_.rank;
            operation.kind = is_source ? OperationKind::kSend : OperationKind::kReceive;
            operation.peer = is_source ? deed.second : deed.first;
            operation.lane = deed.lane;
        } else {
            operation.kind = deed.kind;
            operation.group = own_group(deed.first);
            operation.place = groups_.place(deed.first, program_.rank);
        }
        for (const auto& item : cargo) {
            const auto index = static_cast<std::uint32_t>(operation.parts.size());
            const auto width = workload_.classes()[item.tensor.parameter].element_bytes();
            operation.parts.push_back(
                {item.tensor, item.box, static_cast<std::uint32_t>(width), item.owner, operation.bytes});
            operation.bytes += operation.parts.back().bytes();
            if (operation.gives(operation.parts.back())) {
                memory_.give(operation.parts.back(), index, wave, operation.landings);
            } else if (item.is_taken) {
                memory_.take(operation.parts.back(),
                             index,
                             wave,
                             {item.is_kept, item.serves_copies},
                             operation.landings);
            }
        }
        program_.waves[wave].operations.push_back(std::move(operation));
    }

    std::uint32_t own_group(std::uint32_t group) {
        const auto [found, is_new] =
            own_groups_.try_emplace(group, static_cast<std::uint32_t>(program_.groups.size()));
        if (is_new) {
            program_.groups.push_back(groups_.at(group));
        }
        return found->second;
    }

    const Workload& workload_;
    const GroupTable& groups_;
    RankMemory memory_;
    RankProgram program_;
    std::map<std::uint32_t, std::uint32_t> own_groups_;
    std::uint32_t first_id_ = 0;
};

}  // namespace

Schedule::Schedule(const Plan& plan,
                   const Workload& workload,
                   std::uint32_t train_gpus,
                   const Settings& settings) {
    auto state = std::make_unique<State>(plan, workload, train_gpus, settings);
    state->digest = digest_of(plan, workload, train_gpus, settings);
    state->steps = steps_of({state->plan, state->workload, train_gpus, state->settings, state->groups});
    for (const auto& step : state->steps) {
        state->waves += step->waves();
    }
    const auto generators = static_cast<std::uint32_t>(workload.generator_bytes().size());
    state->members = survivors(workload.losses(), train_gpus + generators);
    state_ = std::move(state);
}

Schedule::~Schedule() = default;
Schedule::Schedule(Schedule&&) noexcept = default;
Schedule& Schedule::operator=(Schedule&&) noexcept = default;

std::uint32_t Schedule::ranks() const noexcept {
    return state_->train_gpus + static_cast<std::uint32_t>(state_->workload.generator_bytes().size());
}
const std::vector<std::uint32_t>& Schedule::members() const noexcept {
    return state_->members;
}
std::uint32_t Schedule::waves() const noexcept {
    return state_->waves;
}
std::uint64_t Schedule::digest() const noexcept {
    return state_->digest;
}
const Workload& Schedule::workload() const noexcept {
    return state_->workload;
}
const Plan& Schedule::plan() const noexcept {
    return state_->plan;
}

RankProgram Schedule::program_of(std::uint32_t rank) const {
    Assembler assembler{state_->workload, state_->groups, state_->train_gpus, rank};
    for (const auto& step : state_->steps) {
        assembler.add(*step);
    }
    return std::move(assembler).finish(state_->digest);
}

}  // namespace refit::program
