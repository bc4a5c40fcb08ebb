// SPDX-License-Identifier: Apache-2.0
#include "outstanding.hpp"

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
    std::size_t operations = 0;
    for (const program::Wave& wave : program.waves) {
        first_.push_back(operations);
        operations += wave.operations.size();
    }
    is_open_ = std::make_unique<std::atomic<bool>[]>(operations);
}

void Outstanding::begin() noexcept {
    pass(0);
    phase_.store(nullptr);
}

std::string Outstanding::describe() const {
    if (const char* phase = phase_.load(); phase != nullptr) {
        return std::string{"at "} + phase + ", where all ranks meet";
    }
    const std::uint32_t waves = static_cast<std::uint32_t>(program_.waves.size());
    const std::uint32_t first = wave_.load();
    if (first >= waves) {
        return "after wave " + std::to_string(waves) + " of " + std::to_string(waves);
    }
    std::string text = "in wave " + std::to_string(first) + " of " + std::to_string(waves) + " (stage " +
                       std::to_string(program_.waves[first].stage) + "); outstanding:";
    const char* separator = " ";
    for (Place place{first, 0}; place.wave < waves; ++place.wave) {
        const auto& operations = program_.waves[place.wave].operations;
        for (place.index = 0; place.index < operations.size(); ++place.index) {
            if (is_open_[number_of(place)].load()) {
                text += separator + exec::describe(operations[place.index], program_);
                separator = ", ";
            }
        }
    }
    return text;
}

}  // namespace refit::exec
