// SPDX-License-Identifier: Apache-2.0
#include "outstanding.hpp"

#include <algorithm>

namespace refit::exec {
namespace {

std::string describe(const program::Operation& operation, const program::RankProgram& program) {
    const std::string bytes = std::to_string(operation.bytes) + " B";
    switch (operation.kind) {
        case program::OperationKind::kSend:
            return "send " + bytes + " to rank " + std::to_string(operation.peer);
        case program::OperationKind::kReceive:
            return "receive " + bytes + " from rank " + std::to_string(operation.peer);
        default:
            break;
    }
    const std::string kind =
        operation.kind == program::OperationKind::kBroadcast ? "broadcast " : "all-gather ";
    std::string text = kind + bytes + " among ranks";
    for (const std::uint32_t rank : program.groups[operation.group]) {
        text += " " + std::to_string(rank);
    }
    return text;
}

}  // namespace

Outstanding::Outstanding(const program::RankProgram& program) : program_{program} {
    std::size_t most = 0;
    for (const program::Wave& wave : program.waves) {
        most = std::max(most, wave.operations.size());
    }
    is_open_ = std::make_unique<std::atomic<bool>[]>(most);
}

void Outstanding::begin(std::uint32_t wave) noexcept {
    for (std::size_t index = 0; index < program_.waves[wave].operations.size(); ++index) {
        is_open_[index].store(true);
    }
    wave_.store(wave);
    phase_.store(nullptr);
}

std::string Outstanding::describe() const {
    if (const char* phase = phase_.load(); phase != nullptr) {
        return std::string{"at "} + phase + ", where all ranks meet";
    }
    const std::uint32_t index = wave_.load();
    const program::Wave& wave = program_.waves[index];
    std::string text = "in wave " + std::to_string(index) + " of " + std::to_string(program_.waves.size()) +
                       " (stage " + std::to_string(wave.stage) + "); outstanding:";
    const char* separator = " ";
    for (std::size_t operation = 0; operation < wave.operations.size(); ++operation) {
        if (is_open_[operation].load()) {
            text += separator + exec::describe(wave.operations[operation], program_);
            separator = ", ";
        }
    }
    return text;
}

}  // namespace refit::exec
