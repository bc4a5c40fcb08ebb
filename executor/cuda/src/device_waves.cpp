// SPDX-License-Identifier: Apache-2.0
#include "device_waves.hpp"

#include <map>
#include <stdexcept>
#include <string>

namespace refit::exec {
namespace {

using program::Operation;
using program::OperationKind;

struct End {
    std::uint32_t rank = 0;
    const Operation* operation = nullptr;
    StagedMessage message;
};

void join(const std::vector<End>& ends, std::vector<Carry>& carries) {
    for (const End& giver : ends) {
        const MessageRange range = given_range(*giver.operation);
        for (const End& taker : ends) {
            if (taker.message.bytes != giver.message.bytes) {
                throw std::logic_error{"the ends of operation " + std::to_string(giver.operation->id) +
                                       " disagree"};
            }
            if (taker.rank != giver.rank && range.begin < range.end) {
                carries.push_back({giver.rank,
                                   taker.rank,
                                   giver.message.address + range.begin,
                                   taker.message.address + range.begin,
                                   range.end - range.begin});
            }
        }
    }
}

}  // namespace

MessageRange given_range(const Operation& operation) {
    switch (operation.kind) {
        case OperationKind::kSend:
            return {0, operation.bytes};
        case OperationKind::kBroadcast:
            return {0, operation.place == 0 ? operation.bytes : 0};
        case OperationKind::kAllGather:
            return given_by(operation, operation.place);
        case OperationKind::kReceive:
            break;
    }
    return {};
}

std::vector<Carry> carries_of(std::span<const program::RankProgram> programs,
                              std::span<const std::vector<StagedWave>> staged,
                              std::uint32_t wave) {
    std::map<std::uint32_t, std::vector<End>> ends;
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
        for (const StagedMessage& message : staged[rank][wave].messages) {
            const Operation& operation = programs[rank].waves[wave].operations[message.operation];
            ends[operation.id].push_back({programs[rank].rank, &operation, message});
        }
    }
    std::vector<Carry> carries;
    for (const auto& [id, both] : ends) {
        if (both.size() < 2) {
            throw std::logic_error{"operation " + std::to_string(id) + " has one end"};
        }
        join(both, carries);
    }
    return carries;
}

}  // namespace refit::exec
