// SPDX-License-Identifier: Apache-2.0
#include "plan_mutants.hpp"

#include <utility>

#include "mutation_tools.hpp"

namespace refit::testing_support {
namespace {

/// Both halves of a part, or the part where it has but one row and tensor.
std::vector<MessagePart> halves_of(const MessagePart& part) {
    auto first = part;
    auto second = part;
    const auto rows = part.box.axes()[0];
    if (part.tensors > 1) {
        first.tensors = part.tensors / 2;
        second.first_tensor += first.tensors;
        second.tensors -= first.tensors;
    } else if (rows.length() > 1) {
        const auto middle = rows.begin + rows.length() / 2;
        first.box = part.box.with(0, {rows.begin, middle});
        second.box = part.box.with(0, {middle, rows.end});
    } else {
        return {part};
    }
    return {first, second};
}

}  // namespace

std::vector<Mutation> mutations() {
    std::vector<Mutation> all;
    for (const auto list : {transfer_mutations(), collective_mutations(), relay_mutations()}) {
        all.insert(all.end(), list.begin(), list.end());
    }
    return all;
}

Plan with_finer_parts(Plan plan) {
    for (auto& stage : plan.stages) {
        auto& relays = stage.relays;
        std::vector<MessagePart> parts;
        for (auto& message : relays.messages) {
            const auto first = static_cast<std::uint32_t>(parts.size());
            for (auto part = message.first_part; part < message.first_part + message.parts; ++part) {
                for (const auto& half : halves_of(relays.parts[part])) {
                    parts.push_back(half);
                }
            }
            message.first_part = first;
            message.parts = static_cast<std::uint32_t>(parts.size()) - first;
        }
        relays.parts = std::move(parts);
    }
    return plan;
}

}  // namespace refit::testing_support
