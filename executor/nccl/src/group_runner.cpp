// SPDX-License-Identifier: Apache-2.0
#include "group_runner.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "device_transport.hpp"
#include "device_waves.hpp"

namespace refit::exec::nccl {
namespace {

using program::Operation;
using program::OperationKind;

/// Groups that are begun and not over. More than one, so that the next is packed meanwhile; few, so that a
/// fault is seen near where it is.
constexpr std::size_t kAhead = 8;

/// Streams: 0 for what is not part of a run, then three for each channel.
enum class Phase : std::uint8_t { kPack, kWire, kUnpack };
constexpr std::uint32_t kPhases = 3;
constexpr std::uint32_t kStreams = 1 + kPhases * kChannels;

std::uint32_t stream_of(Channel channel, Phase phase) {
    return 1 + kPhases * static_cast<std::uint32_t>(channel) + static_cast<std::uint32_t>(phase);
}

/// Where each channel's two slots begin, and where all end.
using Slots = std::array<std::array<std::uint64_t, kSlots>, kChannels>;
std::pair<Slots, std::uint64_t> slots_of(const program::RankProgram& program,
                                         std::span<const PostedGroup> groups,
                                         const RankView& view) {
    Slots sizes{};
    for (const PostedGroup& group : groups) {
        auto& size = sizes.at(static_cast<std::size_t>(group.channel)).at(group.slot);
        size = std::max(size, exec::staging_bytes(program.waves[group.wave], group.operations, view));
    }
    Slots begins{};
    std::uint64_t end = 0;
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
        for (std::size_t slot = 0; slot < kSlots; ++slot) {
            begins.at(channel).at(slot) = end;
            end += sizes.at(channel).at(slot);
        }
    }
    return {begins, end};
}

}  // namespace

std::uint64_t GroupRunner::staging_bytes(const program::RankProgram& program,
                                         std::span<const PostedGroup> groups,
                                         const RankView& view) {
    return slots_of(program, groups, view).second;
}

Result<void> GroupRunner::prepare(const program::RankProgram& program,
                                  std::vector<PostedGroup> groups,
                                  const RankView& view,
                                  std::uint64_t staging) {
    program_ = &program;
    steps_.clear();
    graphs_.clear();
    joins_.clear();
    spoiled_ = 0;
    for (auto& group : groups) {
        steps_.push_back({std::move(group), {}, {}, {}});
    }
    if (auto opened = device_.open_streams(kStreams); !opened) {
        return opened;
    }
    for (std::uint32_t stream = 0; stream < kStreams; ++stream) {
        const auto mark = device_.make_mark();
        if (!mark) {
            return Failure{mark.error()};
        }
        joins_.push_back(*mark);
    }
    return load_steps(view, staging);
}

Result<void> GroupRunner::load_steps(const RankView& view, std::uint64_t staging) {
    std::vector<PostedGroup> groups;
    std::ranges::transform(steps_, std::back_inserter(groups), &Step::group);
    const Slots slots = slots_of(*program_, groups, view).first;
    for (Step& step : steps_) {
        const auto& group = step.group;
        const auto begin = slots.at(static_cast<std::size_t>(group.channel)).at(group.slot);
        auto staged = staged_operations(program_->waves[group.wave], group.operations, view, staging + begin);
        step.messages = std::move(staged.messages);
        for (const auto& [copies, table] :
             {std::pair{&staged.packs, &step.packs}, std::pair{&staged.unpacks, &step.unpacks}}) {
            const auto loaded = load(device_, make_copy_table(*copies));
            if (!loaded) {
                return Failure{loaded.error()};
            }
            *table = *loaded;
        }
        for (auto* mark : {&step.packed, &step.moved, &step.done}) {
            const auto made = device_.make_mark();
            if (!made) {
                return Failure{made.error()};
            }
            *mark = *made;
        }
    }
    return {};
}

Result<std::vector<double>> GroupRunner::run(std::size_t stages,
                                             std::chrono::milliseconds deadline,
                                             const Suffering& suffering) {
    std::vector<double> times(1 + stages, 0.0);
    const auto start = Clock::now();
    const auto end = start + deadline;
    if (has_graphs()) {
        return run_graphs(std::move(times), end);
    }
    auto before = start;
    std::size_t over = 0;
    const auto finish_one = [&]() -> Result<void> {
        const Step& step = steps_[over++];
        auto done = until(step.done, end, step);
        const auto now = Clock::now();
        times[1 + stage_of(step)] += std::chrono::duration<double>(now - before).count();
        before = now;
        return done;
    };
    std::size_t next = 0;
    for (std::uint32_t wave = 0; wave < program_->waves.size(); ++wave) {
        if (suffering.before_wave) {
            suffering.before_wave(wave);
        }
        for (; next < steps_.size() && steps_[next].group.wave == wave; ++next) {
            const auto begun = Clock::now();
            auto done = next - over >= kAhead ? finish_one() : Result<void>{};
            done = done ? begin(next, 0) : done;
            if (done && suffering.corrupt_wave == wave && spoiled_ == 0) {
                done = corrupt(steps_[next], end);
            }
            done = done ? post(steps_[next], end) : done;
            while (done && suffering.slow_from <= wave && over <= next) {
                done = finish_one();
            }
            done = done && suffering.slow_from <= wave
                       ? slow_down(9 * (Clock::now() - begun), end, steps_[next])
                       : done;
            if (!done) {
                return Failure{done.error()};
            }
        }
    }
    while (over < next) {
        if (auto done = finish_one(); !done) {
            return Failure{done.error()};
        }
    }
    times[0] = std::chrono::duration<double>(Clock::now() - start).count();
    if (auto mended = spoiled_ == 0 ? Result<void>{} : flip(std::exchange(spoiled_, 0)); !mended) {
        return Failure{mended.error()};
    }
    return times;
}

Result<void> GroupRunner::begin(std::size_t index, std::size_t first_of_capture) {
    const Step& step = steps_[index];
    const auto pack = stream_of(step.group.channel, Phase::kPack);
    for (const std::uint32_t earlier : step.group.after) {
        if (earlier >= first_of_capture) {  // What is not in this graph was over before it begins.
            if (auto done = device_.await_mark(pack, steps_[earlier].done); !done) {
                return done;
            }
        }
    }
    auto done = device_.launch_on(pack, step.packs);
    return done ? device_.set_mark(step.packed, pack) : done;
}

Result<void> GroupRunner::post(const Step& step, Clock::time_point end) {
    const auto wire = stream_of(step.group.channel, Phase::kWire);
    const auto unpack = stream_of(step.group.channel, Phase::kUnpack);
    if (auto done = device_.await_mark(wire, step.packed); !done) {
        return done;
    }
    auto posted = library_.check(library_.group_start(), "ncclGroupStart");
    const auto& operations = program_->waves[step.group.wave].operations;
    for (const StagedMessage& message : step.messages) {
        posted = posted ? post(operations[message.operation], message, step) : posted;
    }
    // Also after a fault: a group that was begun must be ended.
    const auto ended = library_.check(library_.group_end(), "ncclGroupEnd");
    posted = posted ? ended : posted;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    posted = posted ? library_.settle(comm_of(step.group), "ncclGroupEnd", left, [this] { return health(); })
                    : posted;
    if (!posted && posted.error().front().rule == "deadline") {
        return late(step);
    }
    posted = posted ? device_.set_mark(step.moved, wire) : posted;
    posted = posted ? device_.await_mark(unpack, step.moved) : posted;
    posted = posted ? device_.launch_on(unpack, step.unpacks) : posted;
    return posted ? device_.set_mark(step.done, unpack) : posted;
}

Result<void> GroupRunner::post(const Operation& operation, const StagedMessage& message, const Step& step) {
    auto* const memory = reinterpret_cast<std::byte*>(message.address);  // NOLINT(performance-no-int-to-ptr)
    auto* const comm = comm_of(step.group);
    auto* const stream = device_.stream(stream_of(step.group.channel, Phase::kWire));
    const auto peer = step.group.channel == Channel::kDomain ? comms_.in_domain(operation.peer)
                                                             : comms_.in_all(operation.peer);
    switch (operation.kind) {
        case OperationKind::kSend:
            return library_.check(library_.send(memory, message.bytes, ncclInt8, peer, comm, stream),
                                  "ncclSend");
        case OperationKind::kReceive:
            return library_.check(library_.recv(memory, message.bytes, ncclInt8, peer, comm, stream),
                                  "ncclRecv");
        case OperationKind::kBroadcast:
            return broadcast(operation, memory, {0, message.bytes}, 0, step);
        case OperationKind::kAllGather:
            break;
    }
    // Members give parts of unlike length, which NCCL's all-gather does not take.
    for (std::uint32_t member = 0; member < program_->groups[operation.group].size(); ++member) {
        if (auto posted = broadcast(operation, memory, given_by(operation, member), member, step); !posted) {
            return posted;
        }
    }
    return {};
}

Result<void> GroupRunner::broadcast(const Operation& operation,
                                    std::byte* memory,
                                    const MessageRange& range,
                                    std::uint32_t root,
                                    const Step& step) {
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
                                             device_.stream(stream_of(step.group.channel, Phase::kWire))),
                          "ncclBroadcast");
}

ncclComm_t GroupRunner::comm_of(const PostedGroup& group) const {
    switch (group.channel) {
        case Channel::kDomain:
            return comms_.domain();
        case Channel::kAll:
            return comms_.all();
        case Channel::kCollective:
            break;
    }
    return comms_.group(group.group);
}

/// Flips a bit of the first that the group gives, once that is packed. Where it lies in a region it is
/// flipped back after the run, so that the rank's own weights stay what they are.
Result<void> GroupRunner::corrupt(const Step& step, Clock::time_point end) {
    const auto& operations = program_->waves[step.group.wave].operations;
    for (const StagedMessage& message : step.messages) {
        const MessageRange range = given_range(operations[message.operation]);
        if (range.begin < range.end) {
            auto done = until(step.packed, end, step);
            spoiled_ = message.address + range.begin;
            return done ? flip(spoiled_) : done;
        }
    }
    return {};
}

Result<void> GroupRunner::flip(std::uint64_t address) {
    std::byte byte{};
    if (auto done = device_.download(address, {&byte, 1}); !done) {
        return done;
    }
    byte ^= std::byte{1};
    return device_.upload(address, {&byte, 1});
}

Failure GroupRunner::late(const Step& step) const {
    std::string who;
    for (const auto place : step.group.operations) {
        const Operation& operation = program_->waves[step.group.wave].operations[place];
        who += operation.is_collective()
                   ? " a group of " + std::to_string(program_->groups[operation.group].size())
               : operation.kind == OperationKind::kSend ? " to " + std::to_string(operation.peer)
                                                        : " from " + std::to_string(operation.peer);
    }
    return fail(ErrorCode::kInfeasible,
                "deadline",
                "rank " + std::to_string(program_->rank) + " was not done with wave " +
                    std::to_string(step.group.wave + 1) + " of " + std::to_string(program_->waves.size()) +
                    " at the deadline; messages" + who);
}

Result<void> GroupRunner::until(std::uint32_t mark, Clock::time_point end, const Step& step) const {
    while (true) {
        const auto is_passed = device_.is_passed(mark);
        if (!is_passed) {
            return Failure{is_passed.error()};
        }
        if (*is_passed) {
            return {};
        }
        if (auto sound = health(); !sound) {
            return sound;
        }
        if (Clock::now() >= end) {
            return late(step);
        }
        std::this_thread::yield();
    }
}

Result<void> GroupRunner::health() const {
    constexpr std::chrono::milliseconds kGlance{5};
    if (auto sound = comms_.health(); !sound || Clock::now() < looked_ + kGlance) {
        return sound;
    }
    looked_ = Clock::now();
    if (is_broken_()) {
        return fail(ErrorCode::kInfeasible,
                    "rank-died",
                    "rank " + std::to_string(program_ == nullptr ? 0 : program_->rank) +
                        " heard that another one is gone or gave up");
    }
    return {};
}

Result<void> GroupRunner::slow_down(Clock::duration pause, Clock::time_point end, const Step& step) const {
    const auto until = Clock::now() + pause;
    while (Clock::now() < until) {
        if (Clock::now() >= end) {
            return late(step);
        }
        std::this_thread::sleep_for(
            std::min<Clock::duration>(std::chrono::milliseconds{1}, until - Clock::now()));
    }
    return {};
}

Result<void> GroupRunner::until_idle(Clock::time_point end) const {
    while (true) {
        const auto is_idle = device_.is_idle();
        if (!is_idle) {
            return Failure{is_idle.error()};
        }
        if (*is_idle) {
            return {};
        }
        if (auto sound = health(); !sound) {
            return sound;
        }
        if (Clock::now() >= end) {
            return fail(ErrorCode::kInfeasible,
                        "deadline",
                        "rank " + std::to_string(program_ == nullptr ? 0 : program_->rank) +
                            " was not done at the deadline");
        }
        std::this_thread::yield();
    }
}

Result<void> GroupRunner::until_at_rest(Clock::time_point end) const {
    for (std::uint32_t stream = 1; stream < joins_.size(); ++stream) {
        auto done = device_.set_mark(joins_[stream], stream);
        done = done ? device_.await_mark(0, joins_[stream]) : done;
        if (!done) {
            return done;
        }
    }
    return exec::settle(device_, std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()));
}

Result<std::vector<double>> GroupRunner::run_graphs(std::vector<double> times, Clock::time_point end) {
    for (const Graph& graph : graphs_) {
        const Step& last = steps_[graph.end - 1];
        const auto begin = Clock::now();
        auto done = device_.replay(graph.graph);
        done = done ? device_.set_mark(joins_.front(), 0) : done;
        done = done ? until(joins_.front(), end, last) : done;
        if (!done) {
            return Failure{done.error()};
        }
        const auto seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        times[1 + stage_of(last)] += seconds;
        times[0] += seconds;
    }
    return times;
}

Result<std::optional<std::string>> GroupRunner::capture(std::chrono::milliseconds deadline) {
    const auto end = Clock::now() + deadline;
    std::vector<Graph> graphs;
    for (std::size_t first = 0; first < steps_.size();) {
        std::size_t next = first;
        while (next < steps_.size() && stage_of(steps_[next]) == stage_of(steps_[first])) {
            ++next;
        }
        auto made = capture(first, next, end);
        if (!made) {
            // A device that cannot capture is no fault of the communicators.
            auto sound = comms_.health();
            return sound ? Result<std::optional<std::string>>{made.error().front().message}
                         : Failure{sound.error()};
        }
        graphs.push_back(*made);
        first = next;
    }
    graphs_ = std::move(graphs);
    return std::optional<std::string>{};
}

Result<GroupRunner::Graph> GroupRunner::capture(std::size_t first,
                                                std::size_t end,
                                                Clock::time_point deadline) {
    if (auto begun = device_.begin_capture(); !begun) {
        return Failure{begun.error()};
    }
    const auto record = [&]() -> Result<void> {
        // Streams join the capture by waiting for its beginning, and stream 0 waits for all of them at its
        // end.
        auto done = device_.set_mark(joins_.front(), 0);
        for (std::uint32_t stream = 1; done && stream < kStreams; ++stream) {
            done = device_.await_mark(stream, joins_.front());
        }
        for (std::size_t index = first; done && index < end; ++index) {
            done = begin(index, first);
            done = done ? post(steps_[index], deadline) : done;
        }
        for (std::uint32_t stream = 1; done && stream < kStreams; ++stream) {
            done = device_.set_mark(joins_[stream], stream);
            done = done ? device_.await_mark(0, joins_[stream]) : done;
        }
        return done;
    };
    const auto recorded = record();
    const auto graph = device_.end_capture();
    if (!recorded || !graph) {
        return Failure{recorded ? graph.error() : recorded.error()};
    }
    return Graph{first, end, *graph};
}

}  // namespace refit::exec::nccl
