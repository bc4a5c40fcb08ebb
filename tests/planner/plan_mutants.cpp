// SPDX-License-Identifier: Apache-2.0
#include "plan_mutants.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace refit::testing_support {
namespace {

/// Any element, or nullptr.
template <class T>
T* any_of(std::vector<T>& values, Dice& dice) {
    return values.empty() ? nullptr : &values[dice.index(values.size())];
}

/// Any element of `values` for which `fits` holds, or nullptr.
template <class T, class Fits>
T* any_that(std::vector<T>& values, Dice& dice, Fits fits) {
    std::vector<T*> found;
    for (auto& value : values) {
        if (fits(value)) {
            found.push_back(&value);
        }
    }
    return found.empty() ? nullptr : found[dice.index(found.size())];
}

TransferBlock* any_block(Plan& plan, Dice& dice) {
    return any_that(plan.blocks, dice, [](const TransferBlock& block) { return block.size() > 0; });
}

PlanStage* any_transfer_stage(Plan& plan, Dice& dice) {
    return any_that(plan.stages, dice, [](const PlanStage& stage) { return !stage.transfers.empty(); });
}

RelayTable* relays_of(Plan& plan) {
    for (auto& stage : plan.stages) {
        if (stage.relays.size() > 0) {
            return &stage.relays;
        }
    }
    return nullptr;
}

template <class Fits>
std::pair<PlanStage*, std::size_t> any_collective(Plan& plan, Dice& dice, Fits fits) {
    std::vector<std::pair<PlanStage*, std::size_t>> found;
    for (auto& stage : plan.stages) {
        for (std::size_t i = 0; i < stage.collectives.size(); ++i) {
            if (fits(stage.collectives[i])) {
                found.emplace_back(&stage, i);
            }
        }
    }
    return found.empty() ? std::pair<PlanStage*, std::size_t>{nullptr, 0} : found[dice.index(found.size())];
}

bool is_replicas(const Collective& collective) { return is_among_replicas(collective.role); }
bool is_any(const Collective&) { return true; }

template <class T>
void erase_at(std::vector<T>& values, std::size_t index) {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(index));
}

void erase_transfer(TransferBlock& block, std::size_t index) {
    erase_at(block.source, index);
    erase_at(block.destination, index);
    erase_at(block.box, index);
}

/// Moves one bound of one axis by one, inside the tensor, so that something is left.
bool change_box(Box& box, std::span<const std::uint64_t> shape, Dice& dice) {
    const auto axis = dice.index(shape.size());
    auto rows = box.axes()[axis];
    switch (dice.index(4)) {
        case 0:
            rows = {rows.begin + 1, rows.end};
            break;
        case 1:
            rows = {rows.begin, rows.end - 1};
            break;
        case 2:
            rows = {rows.begin, rows.end + 1};
            break;
        default:
            rows = {rows.begin + 1, rows.end + 1};
    }
    if (rows.begin >= rows.end || rows.end > shape[axis]) {
        return false;
    }
    box = box.with(axis, rows);
    return true;
}

const WorkloadClass& class_of(const RandomRefit& refit, std::uint32_t index) { return refit.workload.classes()[index]; }

/// Makes messages as long as their parts again, so that only what they carry is wrong.
void change_message_bytes(RelayTable& relays, const RandomRefit& refit) {
    for (auto& message : relays.messages) {
        message.bytes = 0;
        for (auto part = message.first_part; part < message.first_part + message.parts; ++part) {
            const auto& moved = relays.parts[part];
            message.bytes += moved.box.volume() * moved.tensors * class_of(refit, moved.parameter).element_bytes();
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

void append_hop(RelayTable& relays, std::uint32_t message, std::uint32_t source, std::uint32_t destination,
                std::uint32_t follows) {
    relays.message.push_back(message);
    relays.source.push_back(source);
    relays.destination.push_back(destination);
    relays.follows.push_back(follows);
}

constexpr Mutation kTransferMutations[] = {
    {"drop a transfer", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             erase_transfer(*block, dice.index(block->size()));
         }
         return block != nullptr;
     }},
    {"repeat a transfer", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             const auto i = dice.index(block->size());
             block->source.push_back(block->source[i]);
             block->destination.push_back(block->destination[i]);
             block->box.push_back(block->box[i]);
         }
         return block != nullptr;
     }},
    {"send from another trainer", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             block->source[dice.index(block->size())] = dice.index(refit.workload.trainers_per_stage());
         }
         return block != nullptr;
     }},
    {"send to another generator", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             block->destination[dice.index(block->size())] = dice.index(refit.workload.generator_bytes().size());
         }
         return block != nullptr;
     }},
    {"change a box by a row", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* block = any_block(plan, dice);
         return block != nullptr &&
                change_box(block->boxes[dice.index(block->boxes.size())], class_of(refit, block->parameter).source.shape(), dice);
     }},
    {"exchange two boxes of one size", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block == nullptr) {
             return false;
         }
         auto& a = block->box[dice.index(block->size())];
         auto& b = block->box[dice.index(block->size())];
         const bool is_fit = block->boxes[a] != block->boxes[b] && block->boxes[a].volume() == block->boxes[b].volume();
         std::swap(a, b);
         return is_fit;
     }},
    {"exchange the destinations of two transfers", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             std::swap(block->destination[dice.index(block->size())], block->destination[dice.index(block->size())]);
         }
         return block != nullptr;
     }},
    {"let a box leave the tensor", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             const auto extent = class_of(refit, block->parameter).source.shape()[0];
             auto& box = block->boxes[dice.index(block->boxes.size())];
             box = box.with(0, {box.axes()[0].begin, extent + 1});
         }
         return block != nullptr;
     }},
    {"change the size of elements", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_of(plan.blocks, dice);
         if (block != nullptr) {
             block->element_bytes += 1;
         }
         return block != nullptr;
     }},
    {"shorten a column", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             (dice.once_in(2) ? block->destination : block->box).pop_back();
         }
         return block != nullptr;
     }},
    {"name a box that does not exist", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             block->box[dice.index(block->size())] = static_cast<std::uint32_t>(block->boxes.size());
         }
         return block != nullptr;
     }},
    {"drop a use of transfers", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* stage = any_transfer_stage(plan, dice);
         if (stage != nullptr) {
             erase_at(stage->transfers, dice.index(stage->transfers.size()));
         }
         return stage != nullptr;
     }},
    {"repeat a use of transfers", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* stage = any_transfer_stage(plan, dice);
         if (stage != nullptr) {
             stage->transfers.push_back(stage->transfers[dice.index(stage->transfers.size())]);
         }
         return stage != nullptr;
     }},
    {"use transfers for a tensor more or less", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* stage = any_transfer_stage(plan, dice);
         if (stage == nullptr) {
             return false;
         }
         auto& tensors = stage->transfers[dice.index(stage->transfers.size())].tensors;
         tensors = dice.once_in(2) || tensors == 1 ? tensors + 1 : tensors - 1;
         return true;
     }},
    {"send from another stage", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* stage = any_transfer_stage(plan, dice);
         if (stage == nullptr) {
             return false;
         }
         stage->transfers[dice.index(stage->transfers.size())].first_source =
             RankId{dice.index(refit.workload.train_stages()) * refit.workload.trainers_per_stage()};
         return true;
     }},
    {"use another block of the class", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* stage = any_transfer_stage(plan, dice);
         if (stage == nullptr) {
             return false;
         }
         auto& use = stage->transfers[dice.index(stage->transfers.size())];
         const auto before = std::exchange(use.block, dice.index(plan.blocks.size()));
         return plan.blocks[before].parameter == plan.blocks[use.block].parameter;
     }},
};

constexpr Mutation kCollectiveMutations[] = {
    {"drop a collective", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, is_any);
         if (stage != nullptr) {
             erase_at(stage->collectives, index);
         }
         return stage != nullptr;
     }},
    {"repeat a collective", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, is_any);
         if (stage != nullptr) {
             const auto copy = stage->collectives[index];
             stage->collectives.push_back(copy);
         }
         return stage != nullptr;
     }},
    {"drop a member of a group", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* groups = any_of(plan.groups, dice);
         auto* group = groups == nullptr ? nullptr : any_that(*groups, dice, [](const auto& ranks) { return ranks.size() > 1; });
         if (group != nullptr) {
             erase_at(*group, dice.index(group->size()));
         }
         return group != nullptr;
     }},
    {"replace a member of a group", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* groups = any_of(plan.groups, dice);
         auto* group = groups == nullptr ? nullptr : any_of(*groups, dice);
         if (group == nullptr) {
             return false;
         }
         const RankId rank{dice.index(refit.cluster.gpus())};
         const bool is_new = std::ranges::none_of(*groups, [&](const auto& ranks) { return std::ranges::find(ranks, rank) != ranks.end(); });
         (*group)[dice.index(group->size())] = rank;
         return is_new;
     }},
    {"name a member twice", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* groups = any_of(plan.groups, dice);
         auto* group = groups == nullptr ? nullptr : any_of(*groups, dice);
         if (group != nullptr) {
             group->push_back((*group)[dice.index(group->size())]);
         }
         return group != nullptr;
     }},
    {"take another root", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, [](const Collective& collective) { return is_broadcast(collective.role); });
         auto* group = stage == nullptr ? nullptr : any_of(plan.groups[stage->collectives[index].groups], dice);
         if (group != nullptr) {
             std::swap(group->front(), (*group)[dice.index(group->size())]);
         }
         return group != nullptr;
     }},
    {"say too few bytes in a collective", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, [](const Collective& collective) { return collective.bytes.front() > 0; });
         if (stage != nullptr) {
             stage->collectives[index].bytes.front() -= 1;
         }
         return stage != nullptr;
     }},
    {"say too many bytes in a collective without padding", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, [](const Collective& collective) {
             return is_among_replicas(collective.role) || collective.role == CollectiveRole::kWeightBroadcast;
         });
         if (stage != nullptr) {
             stage->collectives[index].bytes.back() += 1;
         }
         return stage != nullptr;
     }},
    {"call a collective once more or less", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, is_replicas);
         if (stage != nullptr) {
             stage->collectives[index].calls += dice.once_in(2) ? 1 : std::uint64_t(-1);
         }
         return stage != nullptr;
     }},
    {"exchange gather and broadcast among replicas", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, is_replicas);
         if (stage != nullptr) {
             auto& role = stage->collectives[index].role;
             role = is_broadcast(role) ? CollectiveRole::kReplicaAllGather : CollectiveRole::kReplicaBroadcast;
         }
         return stage != nullptr;
     }},
    {"leave a class out of a collective", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         const auto [stage, index] = any_collective(plan, dice, [](const Collective& collective) { return collective.parameters.size() > 1; });
         if (stage != nullptr) {
             auto& classes = stage->collectives[index].parameters;
             erase_at(classes, dice.index(classes.size()));
         }
         return stage != nullptr;
     }},
    {"let a collective move another class", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         const auto [stage, index] = any_collective(plan, dice, [](const Collective& collective) { return collective.parameters.size() == 1; });
         if (stage == nullptr) {
             return false;
         }
         auto& parameter = stage->collectives[index].parameters.front();
         return std::exchange(parameter, dice.index(refit.workload.classes().size())) != parameter;
     }},
    {"drop a stage", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         if (plan.stages.empty()) {
             return false;
         }
         erase_at(plan.stages, dice.index(plan.stages.size()));
         return true;
     }},
    {"repeat a stage", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         if (plan.stages.empty()) {
             return false;
         }
         const auto copy = plan.stages[dice.index(plan.stages.size())];
         plan.stages.push_back(copy);
         return true;
     }},
    {"broadcast before the gather", Proof::kByElements,
     [](Plan& plan, Dice&, const RandomRefit&) {
         const bool is_fit = plan.method == Method::kGatherBroadcast && plan.stages.size() == 2;
         if (is_fit) {
             std::swap(plan.stages.front(), plan.stages.back());
         }
         return is_fit;
     }},
};

constexpr Mutation kRelayMutations[] = {
    {"drop a hop", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays != nullptr) {
             erase_hop(*relays, dice.index(relays->size()));
         }
         return relays != nullptr;
     }},
    {"repeat a hop", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays != nullptr) {
             const auto i = dice.index(relays->size());
             append_hop(*relays, relays->message[i], relays->source[i], relays->destination[i], relays->follows[i]);
         }
         return relays != nullptr;
     }},
    {"send a hop from another rank", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         if (relays == nullptr) {
             return false;
         }
         const auto i = dice.index(relays->size());
         relays->source[i] = dice.index(refit.cluster.gpus());
         return relays->source[i] != relays->destination[i];
     }},
    {"send a hop to another rank", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         if (relays == nullptr) {
             return false;
         }
         const auto i = dice.index(relays->size());
         relays->destination[i] = dice.index(refit.cluster.gpus());
         return relays->source[i] != relays->destination[i];
     }},
    {"let a hop follow another one, or none", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays != nullptr) {
             relays->follows[dice.index(relays->size())] = dice.once_in(2) ? RelayTable::kNone : dice.index(relays->size());
         }
         return relays != nullptr;
     }},
    {"let a relay begin a message", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         auto* follows = relays == nullptr ? nullptr : any_that(relays->follows, dice, [](auto hop) { return hop != RelayTable::kNone; });
         if (follows != nullptr) {
             *follows = RelayTable::kNone;
         }
         return follows != nullptr;
     }},
    {"let a hop wait for itself", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays != nullptr) {
             const auto i = dice.index(relays->size());
             relays->follows[i] = i;
         }
         return relays != nullptr;
     }},
    {"exchange a hop with the one that it follows", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         auto* follows = relays == nullptr ? nullptr : any_that(relays->follows, dice, [](auto hop) { return hop != RelayTable::kNone; });
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
    {"let a hop carry another message", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays != nullptr) {
             relays->message[dice.index(relays->size())] = dice.index(relays->messages.size());
         }
         return relays != nullptr;
     }},
    {"change the box of a part by a row", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* part = relays == nullptr ? nullptr : any_of(relays->parts, dice);
         const bool is_changed = part != nullptr && change_box(part->box, class_of(refit, part->parameter).source.shape(), dice);
         if (is_changed) {
             change_message_bytes(*relays, refit);
         }
         return is_changed;
     }},
    {"exchange the boxes of two parts", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         if (relays == nullptr) {
             return false;
         }
         auto* a = any_of(relays->parts, dice);
         auto* b = any_that(relays->parts, dice, [&](const MessagePart& part) {
             return part.parameter == a->parameter && part.box != a->box && part.box.volume() == a->box.volume() &&
                    part.tensors == a->tensors;
         });
         if (b != nullptr) {
             std::swap(a->box, b->box);
         }
         return b != nullptr;
     }},
    {"begin a part a tensor later or sooner", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* part = relays == nullptr ? nullptr : any_of(relays->parts, dice);
         if (part == nullptr) {
             return false;
         }
         part->first_tensor += dice.once_in(2) ? 1 : std::uint32_t(-1);
         return std::uint64_t{part->first_tensor} + part->tensors <= class_of(refit, part->parameter).slices[part->slice].layers;
     }},
    {"give a part a tensor more or less", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* part = relays == nullptr ? nullptr : any_of(relays->parts, dice);
         if (part == nullptr) {
             return false;
         }
         part->tensors += dice.once_in(3) ? 1 : std::uint32_t(-1);
         change_message_bytes(*relays, refit);
         return part->tensors > 0 && std::uint64_t{part->first_tensor} + part->tensors <= class_of(refit, part->parameter).slices[part->slice].layers;
     }},
    {"let a part have tensors beyond its slice", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* part = relays == nullptr ? nullptr : any_of(relays->parts, dice);
         if (part != nullptr) {
             part->first_tensor = class_of(refit, part->parameter).slices[part->slice].layers;
         }
         return part != nullptr;
     }},
    {"take a part from another slice", Proof::kByElements,
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
    {"leave out a part", Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         auto* message = relays == nullptr ? nullptr : any_that(relays->messages, dice, [](const Message& all) { return all.parts > 1; });
         if (message != nullptr) {
             message->first_part += dice.index(2);
             message->parts -= 1;
             change_message_bytes(*relays, refit);
         }
         return message != nullptr;
     }},
    {"add the next part to a message", Proof::kByElements,
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
    {"change the bytes of a message", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* relays = relays_of(plan);
         auto* message = relays == nullptr ? nullptr : any_of(relays->messages, dice);
         if (message != nullptr) {
             message->bytes += dice.once_in(2) ? 1 : std::uint64_t(-1);
         }
         return message != nullptr;
     }},
    {"send on to a trainer that does not need it", Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* relays = relays_of(plan);
         if (relays == nullptr) {
             return false;
         }
         const auto hop = dice.index(relays->size());
         append_hop(*relays, relays->message[hop], relays->destination[hop], dice.index(refit.cluster.train_gpus()), hop);
         return relays->source.back() != relays->destination.back();
     }},
};

constexpr CellMutation kCellMutations[] = {
    {"drop a cell",
     [](std::vector<OverlapCell>& cells, Dice& dice, const Distribution&, const Distribution&) {
         erase_at(cells, dice.index(cells.size()));
         return true;
     }},
    {"repeat a cell",
     [](std::vector<OverlapCell>& cells, Dice& dice, const Distribution&, const Distribution&) {
         const auto copy = cells[dice.index(cells.size())];
         cells.push_back(copy);
         return true;
     }},
    {"change the box of a cell by a row",
     [](std::vector<OverlapCell>& cells, Dice& dice, const Distribution& source, const Distribution&) {
         return change_box(cells[dice.index(cells.size())].box, source.shape(), dice);
     }},
    {"take a cell from another shard",
     [](std::vector<OverlapCell>& cells, Dice& dice, const Distribution& source, const Distribution&) {
         cells[dice.index(cells.size())].source = dice.index(source.shards().size());
         return true;
     }},
    {"give a cell to another shard",
     [](std::vector<OverlapCell>& cells, Dice& dice, const Distribution&, const Distribution& destination) {
         cells[dice.index(cells.size())].destination = dice.index(destination.shards().size());
         return true;
     }},
    {"exchange the boxes of two cells",
     [](std::vector<OverlapCell>& cells, Dice& dice, const Distribution&, const Distribution&) {
         std::swap(cells[dice.index(cells.size())].box, cells[dice.index(cells.size())].box);
         return true;
     }},
    {"let a cell be all of the tensor",
     [](std::vector<OverlapCell>& cells, Dice& dice, const Distribution& source, const Distribution&) {
         cells[dice.index(cells.size())].box = Box::whole(source.shape());
         return true;
     }},
};

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

std::span<const CellMutation> cell_mutations() { return kCellMutations; }

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

Cells cells_of(const Workload& workload) {
    Cells cells;
    for (const auto& entry : workload.classes()) {
        auto& of_class = cells.emplace_back();
        for (const auto& destination : entry.destinations) {
            of_class.push_back(overlap(entry.source, destination));
        }
    }
    return cells;
}

Plan plan_of(const Cells& cells, const Workload& workload) {
    Plan plan;
    plan.method = Method::kDirect;
    plan.stages.resize(workload.train_stages());
    for (std::uint32_t stage = 0; stage < workload.train_stages(); ++stage) {
        plan.stages[stage].kind = StageKind::kTransfer;
        plan.stages[stage].train_stage = stage;
    }
    for (std::uint32_t index = 0; index < cells.size(); ++index) {
        const auto& entry = workload.classes()[index];
        for (std::uint32_t generate = 0; generate < entry.destinations.size(); ++generate) {
            TransferBlock block;
            block.parameter = index;
            block.element_bytes = entry.element_bytes();
            for (const auto& cell : cells[index][generate]) {
                for (const auto member : entry.destinations[generate].shards()[cell.destination].members) {
                    block.source.push_back(entry.source.shards()[cell.source].members.front());
                    block.destination.push_back(member);
                    block.box.push_back(static_cast<std::uint32_t>(block.boxes.size()));
                }
                block.boxes.push_back(cell.box);
            }
            for (const auto& slice : entry.slices) {
                if (slice.generate_stage == generate) {
                    plan.stages[slice.train_stage].transfers.push_back(
                        {static_cast<std::uint32_t>(plan.blocks.size()),
                         RankId{slice.train_stage * workload.trainers_per_stage()},
                         slice.layers});
                }
            }
            plan.blocks.push_back(std::move(block));
        }
    }
    return plan;
}

std::span<const Mutation> mutations() {
    static const auto all = [] {
        std::vector<Mutation> joined;
        for (const auto list : {std::span<const Mutation>{kTransferMutations}, std::span<const Mutation>{kCollectiveMutations}, std::span<const Mutation>{kRelayMutations}}) {
            joined.insert(joined.end(), list.begin(), list.end());
        }
        return joined;
    }();
    return all;
}

}  // namespace refit::testing_support
