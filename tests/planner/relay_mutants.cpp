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

constexpr Mutation kRelayMutations[] = {
    {"drop a hop",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays != nullptr) {
             erase_hop(*relays, dice.index(relays->size()));
         }
         return relays != nullptr;
     }},
    {"repeat a hop",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays != nullptr) {
             const auto i = dice.index(relays->size());
             append_hop(
                 *relays, relays->message[i], relays->source[i], relays->destination[i], relays->follows[i]);
         }
         return relays != nullptr;
     }},
    {"send a hop from another rank",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         if (relays == nullptr) {
             return false;
         }
         const auto i = dice.index(relays->size());
         relays->source[i] = dice.index(refit.cluster.gpus());
         return relays->source[i] != relays->destination[i];
     }},
    {"send a hop to another rank",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         if (relays == nullptr) {
             return false;
         }
         const auto i = dice.index(relays->size());
         relays->destination[i] = dice.index(refit.cluster.gpus());
         return relays->source[i] != relays->destination[i];
     }},
    {"let a hop follow another one, or none",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays != nullptr) {
             relays->follows[dice.index(relays->size())] =
                 dice.once_in(2) ? RelayTable::kNone : dice.index(relays->size());
         }
         return relays != nullptr;
     }},
    {"let a hop follow one that brings another message",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
         for (std::uint32_t hop = 0; relays != nullptr && hop < relays->size(); ++hop) {
             for (std::uint32_t before = 0; before < hop; ++before) {
                 if (relays->destination[before] == relays->source[hop] &&
                     relays->message[before] != relays->message[hop]) {
                     found.emplace_back(before, hop);
                 }
             }
         }
         const auto* pair = any_of(found, dice);
         if (pair != nullptr) {
             relays->follows[pair->second] = pair->first;
         }
         return pair != nullptr;
     }},
    {"let a relay begin a message",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         auto* follows = relays == nullptr ? nullptr : any_that(relays->follows, dice, [](auto hop) {
             return hop != RelayTable::kNone;
         });
         if (follows != nullptr) {
             *follows = RelayTable::kNone;
         }
         return follows != nullptr;
     }},
    {"let a hop wait for itself",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays != nullptr) {
             const auto i = dice.index(relays->size());
             relays->follows[i] = i;
         }
         return relays != nullptr;
     }},
    {"exchange a hop with the one that it follows",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         auto* follows = relays == nullptr ? nullptr : any_that(relays->follows, dice, [](auto hop) {
             return hop != RelayTable::kNone;
         });
         if (follows == nullptr) {
             return false;
         }
         const auto after = static_cast<std::size_t>(follows - relays->follows.data());
         const auto before = *follows;
         std::swap(relays->source[after], relays->source[before]);
         std::swap(relays->destination[after], relays->destination[before]);
         relays->follows[after] = relays->follows[before];
         relays->follows[before] = static_cast<std::uint32_t>(after);
         return true;
     }},
    {"let a hop carry another message",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays != nullptr) {
             relays->message[dice.index(relays->size())] = dice.index(relays->messages.size());
         }
         return relays != nullptr;
     }},
    {"change the box of a part by a row",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* part = relays == nullptr ? nullptr : any_of(relays->parts, dice);
         const bool is_changed =
             part != nullptr && change_box(part->box, class_of(refit, part->parameter).source.shape(), dice);
         if (is_changed) {
             change_message_bytes(*relays, refit);
         }
         return is_changed;
     }},
    {"exchange the boxes of two parts",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays == nullptr) {
             return false;
         }
         auto* a = any_of(relays->parts, dice);
         auto* b = any_that(relays->parts, dice, [&](const MessagePart& part) {
             return part.parameter == a->parameter && part.box != a->box &&
                    part.box.volume() == a->box.volume() && part.tensors == a->tensors;
         });
         if (b != nullptr) {
             std::swap(a->box, b->box);
         }
         return b != nullptr;
     }},
    {"begin a part a tensor later or sooner",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* part = relays == nullptr ? nullptr : any_of(relays->parts, dice);
         if (part == nullptr) {
             return false;
         }
         part->first_tensor += dice.once_in(2) ? 1 : std::uint32_t(-1);
         return std::uint64_t{part->first_tensor} + part->tensors <=
                class_of(refit, part->parameter).slices[part->slice].layers;
     }},
    {"give a part a tensor more or less",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* part = relays == nullptr ? nullptr : any_of(relays->parts, dice);
         if (part == nullptr) {
             return false;
         }
         part->tensors += dice.once_in(3) ? 1 : std::uint32_t(-1);
         change_message_bytes(*relays, refit);
         return part->tensors > 0 && std::uint64_t{part->first_tensor} + part->tensors <=
                                         class_of(refit, part->parameter).slices[part->slice].layers;
     }},
    {"let a part have tensors beyond its slice",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* part = relays == nullptr ? nullptr : any_of(relays->parts, dice);
         if (part != nullptr) {
             part->first_tensor = class_of(refit, part->parameter).slices[part->slice].layers;
         }
         return part != nullptr;
     }},
    {"take a part from another slice",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* part = relays == nullptr ? nullptr : any_of(relays->parts, dice);
         if (part == nullptr) {
             return false;
         }
         const auto& slices = class_of(refit, part->parameter).slices;
         part->slice = dice.index(slices.size());
         return part->first_tensor + part->tensors <= slices[part->slice].layers;
     }},
    {"leave out a part",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* message =
             relays == nullptr
                 ? nullptr
                 : any_that(relays->messages, dice, [](const Message& all) { return all.parts > 1; });
         if (message != nullptr) {
             message->first_part += dice.index(2);
             message->parts -= 1;
             change_message_bytes(*relays, refit);
         }
         return message != nullptr;
     }},
    {"add the next part to a message",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* message = relays == nullptr ? nullptr : any_of(relays->messages, dice);
         if (message == nullptr || message->first_part + message->parts >= relays->parts.size()) {
             return false;
         }
         message->parts += 1;
         change_message_bytes(*relays, refit);
         return true;
     }},
    {"change the bytes of a message",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         auto* message = relays == nullptr ? nullptr : any_of(relays->messages, dice);
         if (message != nullptr) {
             message->bytes += dice.once_in(2) ? 1 : std::uint64_t(-1);
         }
         return message != nullptr;
     }},
    {"send on to a trainer that does not need it",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         if (relays == nullptr) {
             return false;
         }
         const auto hop = dice.index(relays->size());
         append_hop(*relays,
                    relays->message[hop],
                    relays->destination[hop],
                    dice.index(refit.cluster.train_gpus()),
                    hop);
         return relays->source.back() != relays->destination.back();
     }},
};

}  // namespace

std::span<const Mutation> relay_mutations() {
    return kRelayMutations;
}

}  // namespace refit::testing_support
