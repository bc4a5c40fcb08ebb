// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "mutation_tools.hpp"

namespace refit::testing_support {
namespace {

RelayTable* relays_of(Plan& plan) {
    for (auto& stage : plan.stages) {
        if (stage.relays.size() > 0) {
            return &stage.relays;
        }
    }
    return nullptr;
}

/// Makes messages as long as their parts again, so that only what they carry is wrong.
void change_message_bytes(RelayTable& relays, const RandomRefit& refit) {
    for (auto& message : relays.messages) {
        message.bytes = 0;
        for (auto part = message.first_part; part < message.first_part + message.parts; ++part) {
            const auto& moved = relays.parts[part];
            message.bytes +=
                moved.box.volume() * moved.tensors * class_of(refit, moved.parameter).element_bytes();
        }
    }
}

void erase_hop(RelayTable& relays, std::uint32_t hop) {
    const auto before = relays.follows[hop];
    erase_at(relays.message, hop);
    erase_at(relays.source, hop);
    erase_at(relays.destination, hop);
    erase_at(relays.follows, hop);
    for (auto& follows : relays.follows) {
        follows = follows == hop ? before : follows;
        follows -= follows != RelayTable::kNone && follows > hop ? 1 : 0;
    }
}

void append_hop(RelayTable& relays,
                std::uint32_t message,
                std::uint32_t source,
                std::uint32_t destination,
                std::uint32_t follows) {
    relays.message.push_back(message);
    relays.source.push_back(source);
    relays.destination.push_back(destination);
    relays.follows.push_back(follows);
}

/// A mutation of relays as one of plans.
template <bool (*Spoil)(RelayTable&, Dice&, const RandomRefit&)>
bool in_relays(Plan& plan, Dice& dice, const RandomRefit& refit) {
    auto* relays = relays_of(plan);
    return relays != nullptr && Spoil(*relays, dice, refit);
}

/// The same of any part of their messages.
template <bool (*Spoil)(RelayTable&, MessagePart&, Dice&, const RandomRefit&)>
bool in_part(Plan& plan, Dice& dice, const RandomRefit& refit) {
    auto* relays = relays_of(plan);
    auto* part = relays == nullptr ? nullptr : any_of(relays->parts, dice);
    return part != nullptr && Spoil(*relays, *part, dice, refit);
}

bool drop_hop(RelayTable& relays, Dice& dice, const RandomRefit&) {
    erase_hop(relays, dice.index(relays.size()));
    return true;
}

bool repeat_hop(RelayTable& relays, Dice& dice, const RandomRefit&) {
    const auto i = dice.index(relays.size());
    append_hop(relays, relays.message[i], relays.source[i], relays.destination[i], relays.follows[i]);
    return true;
}

bool send_from_another(RelayTable& relays, Dice& dice, const RandomRefit& refit) {
    const auto i = dice.index(relays.size());
    relays.source[i] = dice.index(refit.cluster.gpus());
    return relays.source[i] != relays.destination[i];
}

bool send_to_another(RelayTable& relays, Dice& dice, const RandomRefit& refit) {
    const auto i = dice.index(relays.size());
    relays.destination[i] = dice.index(refit.cluster.gpus());
    return relays.source[i] != relays.destination[i];
}

bool follow_another(RelayTable& relays, Dice& dice, const RandomRefit&) {
    relays.follows[dice.index(relays.size())] =
        dice.once_in(2) ? RelayTable::kNone : dice.index(relays.size());
    return true;
}

bool follow_another_message(RelayTable& relays, Dice& dice, const RandomRefit&) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (std::uint32_t hop = 0; hop < relays.size(); ++hop) {
        for (std::uint32_t before = 0; before < hop; ++before) {
            if (relays.destination[before] == relays.source[hop] &&
                relays.message[before] != relays.message[hop]) {
                found.emplace_back(before, hop);
            }
        }
    }
    const auto* pair = any_of(found, dice);
    if (pair != nullptr) {
        relays.follows[pair->second] = pair->first;
    }
    return pair != nullptr;
}

/// Any hop that passes a message on, or nullptr.
std::uint32_t* any_relayed(RelayTable& relays, Dice& dice) {
    return any_that(relays.follows, dice, [](auto hop) { return hop != RelayTable::kNone; });
}

bool begin_at_relay(RelayTable& relays, Dice& dice, const RandomRefit&) {
    auto* follows = any_relayed(relays, dice);
    if (follows != nullptr) {
        *follows = RelayTable::kNone;
    }
    return follows != nullptr;
}

bool wait_for_itself(RelayTable& relays, Dice& dice, const RandomRefit&) {
    const auto i = dice.index(relays.size());
    relays.follows[i] = i;
    return true;
}

bool exchange_with_followed(RelayTable& relays, Dice& dice, const RandomRefit&) {
    auto* follows = any_relayed(relays, dice);
    if (follows == nullptr) {
        return false;
    }
    const auto after = static_cast<std::size_t>(follows - relays.follows.data());
    const auto before = *follows;
    std::swap(relays.source[after], relays.source[before]);
    std::swap(relays.destination[after], relays.destination[before]);
    relays.follows[after] = relays.follows[before];
    relays.follows[before] = static_cast<std::uint32_t>(after);
    return true;
}

bool carry_another(RelayTable& relays, Dice& dice, const RandomRefit&) {
    relays.message[dice.index(relays.size())] = dice.index(relays.messages.size());
    return true;
}

bool move_rows(RelayTable& relays, MessagePart& part, Dice& dice, const RandomRefit& refit) {
    const bool is_changed = change_box(part.box, class_of(refit, part.parameter).source.shape(), dice);
    if (is_changed) {
        change_message_bytes(relays, refit);
    }
    return is_changed;
}

bool exchange_boxes(RelayTable& relays, MessagePart& part, Dice& dice, const RandomRefit&) {
    auto* other = any_that(relays.parts, dice, [&](const MessagePart& candidate) {
        return candidate.parameter == part.parameter && candidate.box != part.box &&
               candidate.box.volume() == part.box.volume() && candidate.tensors == part.tensors;
    });
    if (other != nullptr) {
        std::swap(part.box, other->box);
    }
    return other != nullptr;
}

/// Whether the part's tensors all lie in its slice.
bool is_in_slice(const MessagePart& part, const RandomRefit& refit) {
    return std::uint64_t{part.first_tensor} + part.tensors <=
           class_of(refit, part.parameter).slices[part.slice].layers;
}

bool begin_at_another_tensor(RelayTable&, MessagePart& part, Dice& dice, const RandomRefit& refit) {
    part.first_tensor += dice.once_in(2) ? 1 : std::uint32_t(-1);
    return is_in_slice(part, refit);
}

bool change_tensors(RelayTable& relays, MessagePart& part, Dice& dice, const RandomRefit& refit) {
    part.tensors += dice.once_in(3) ? 1 : std::uint32_t(-1);
    change_message_bytes(relays, refit);
    return part.tensors > 0 && is_in_slice(part, refit);
}

bool begin_beyond_slice(RelayTable&, MessagePart& part, Dice&, const RandomRefit& refit) {
    part.first_tensor = class_of(refit, part.parameter).slices[part.slice].layers;
    return true;
}

bool take_another_slice(RelayTable&, MessagePart& part, Dice& dice, const RandomRefit& refit) {
    part.slice = dice.index(class_of(refit, part.parameter).slices.size());
    return is_in_slice(part, refit);
}

bool leave_out_part(RelayTable& relays, Dice& dice, const RandomRefit& refit) {
    auto* message = any_that(relays.messages, dice, [](const Message& all) { return all.parts > 1; });
    if (message != nullptr) {
        message->first_part += dice.index(2);
        message->parts -= 1;
        change_message_bytes(relays, refit);
    }
    return message != nullptr;
}

bool add_next_part(RelayTable& relays, Dice& dice, const RandomRefit& refit) {
    auto* message = any_of(relays.messages, dice);
    if (message == nullptr || message->first_part + message->parts >= relays.parts.size()) {
        return false;
    }
    message->parts += 1;
    change_message_bytes(relays, refit);
    return true;
}

bool change_bytes(RelayTable& relays, Dice& dice, const RandomRefit&) {
    auto* message = any_of(relays.messages, dice);
    if (message != nullptr) {
        message->bytes += dice.once_in(2) ? 1 : std::uint64_t(-1);
    }
    return message != nullptr;
}

bool send_on_to_trainer(RelayTable& relays, Dice& dice, const RandomRefit& refit) {
    const auto hop = dice.index(relays.size());
    append_hop(
        relays, relays.message[hop], relays.destination[hop], dice.index(refit.cluster.train_gpus()), hop);
    return relays.source.back() != relays.destination.back();
}

constexpr Mutation kRelayMutations[] = {
    {"drop a hop", Proof::kByElements, in_relays<drop_hop>},
    {"repeat a hop", Proof::kByElements, in_relays<repeat_hop>},
    {"send a hop from another rank", Proof::kByElements, in_relays<send_from_another>},
    {"send a hop to another rank", Proof::kByElements, in_relays<send_to_another>},
    {"let a hop follow another one, or none", Proof::kByElements, in_relays<follow_another>},
    {"let a hop follow one that brings another message",
     Proof::kByConstruction,
     in_relays<follow_another_message>},
    {"let a relay begin a message", Proof::kByElements, in_relays<begin_at_relay>},
    {"let a hop wait for itself", Proof::kByConstruction, in_relays<wait_for_itself>},
    {"exchange a hop with the one that it follows", Proof::kByElements, in_relays<exchange_with_followed>},
    {"let a hop carry another message", Proof::kByElements, in_relays<carry_another>},
    {"change the box of a part by a row", Proof::kByElements, in_part<move_rows>},
    {"exchange the boxes of two parts", Proof::kByElements, in_part<exchange_boxes>},
    {"begin a part a tensor later or sooner", Proof::kByElements, in_part<begin_at_another_tensor>},
    {"give a part a tensor more or less", Proof::kByElements, in_part<change_tensors>},
    {"let a part have tensors beyond its slice", Proof::kByConstruction, in_part<begin_beyond_slice>},
    {"take a part from another slice", Proof::kByElements, in_part<take_another_slice>},
    {"leave out a part", Proof::kByElements, in_relays<leave_out_part>},
    {"add the next part to a message", Proof::kByElements, in_relays<add_next_part>},
    {"change the bytes of a message", Proof::kByConstruction, in_relays<change_bytes>},
    {"send on to a trainer that does not need it", Proof::kByConstruction, in_relays<send_on_to_trainer>},
};

}  // namespace

std::span<const Mutation> relay_mutations() {
    return kRelayMutations;
}

}  // namespace refit::testing_support
