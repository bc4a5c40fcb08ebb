// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "mutation_tools.hpp"

namespace refit::testing_support {
namespace {

TransferBlock* any_block(Plan& plan, Dice& dice) {
    return any_that(plan.blocks, dice, [](const TransferBlock& block) { return block.size() > 0; });
}

PlanStage* any_transfer_stage(Plan& plan, Dice& dice) {
    return any_that(plan.stages, dice, [](const PlanStage& stage) { return !stage.transfers.empty(); });
}

void erase_transfer(TransferBlock& block, std::size_t index) {
    erase_at(block.source, index);
    erase_at(block.destination, index);
    erase_at(block.box, index);
}

constexpr Mutation kTransferMutations[] = {
    {"drop a transfer",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             erase_transfer(*block, dice.index(block->size()));
         }
         return block != nullptr;
     }},
    {"repeat a transfer",
     Proof::kByElements,
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
    {"send from another trainer",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             block->source[dice.index(block->size())] = dice.index(refit.workload.trainers_per_stage());
         }
         return block != nullptr;
     }},
    {"send to another generator",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             block->destination[dice.index(block->size())] =
                 dice.index(refit.workload.generator_bytes().size());
         }
         return block != nullptr;
     }},
    {"change a box by a row",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* block = any_block(plan, dice);
         return block != nullptr && change_box(block->boxes[dice.index(block->boxes.size())],
                                               class_of(refit, block->parameter).source.shape(),
                                               dice);
     }},
    {"exchange two boxes of one size",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block == nullptr) {
             return false;
         }
         auto& a = block->box[dice.index(block->size())];
         auto& b = block->box[dice.index(block->size())];
         const bool is_fit =
             block->boxes[a] != block->boxes[b] && block->boxes[a].volume() == block->boxes[b].volume();
         std::swap(a, b);
         return is_fit;
     }},
    {"exchange the destinations of two transfers",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             std::swap(block->destination[dice.index(block->size())],
                       block->destination[dice.index(block->size())]);
         }
         return block != nullptr;
     }},
    {"let a box leave the tensor",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             const auto extent = class_of(refit, block->parameter).source.shape()[0];
             auto& box = block->boxes[dice.index(block->boxes.size())];
             box = box.with(0, {box.axes()[0].begin, extent + 1});
         }
         return block != nullptr;
     }},
    {"change the size of elements",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_of(plan.blocks, dice);
         if (block != nullptr) {
             block->element_bytes += 1;
         }
         return block != nullptr;
     }},
    {"shorten a column",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             (dice.once_in(2) ? block->destination : block->box).pop_back();
         }
         return block != nullptr;
     }},
    {"name a box that does not exist",
     Proof::kByConstruction,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* block = any_block(plan, dice);
         if (block != nullptr) {
             block->box[dice.index(block->size())] = static_cast<std::uint32_t>(block->boxes.size());
         }
         return block != nullptr;
     }},
    {"drop a use of transfers",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* stage = any_transfer_stage(plan, dice);
         if (stage != nullptr) {
             erase_at(stage->transfers, dice.index(stage->transfers.size()));
         }
         return stage != nullptr;
     }},
    {"repeat a use of transfers",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* stage = any_transfer_stage(plan, dice);
         if (stage != nullptr) {
             stage->transfers.push_back(stage->transfers[dice.index(stage->transfers.size())]);
         }
         return stage != nullptr;
     }},
    {"use transfers for a tensor more or less",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit&) {
         auto* stage = any_transfer_stage(plan, dice);
         if (stage == nullptr) {
             return false;
         }
         auto& tensors = stage->transfers[dice.index(stage->transfers.size())].tensors;
         tensors = dice.once_in(2) || tensors == 1 ? tensors + 1 : tensors - 1;
         return true;
     }},
    {"send from another stage",
     Proof::kByElements,
     [](Plan& plan, Dice& dice, const RandomRefit& refit) {
         auto* stage = any_transfer_stage(plan, dice);
         if (stage == nullptr) {
             return false;
         }
         stage->transfers[dice.index(stage->transfers.size())].first_source =
             RankId{dice.index(refit.workload.train_stages()) * refit.workload.trainers_per_stage()};
         return true;
     }},
    {"use another block of the class",
     Proof::kByElements,
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

}  // namespace

std::span<const Mutation> transfer_mutations() {
    return kTransferMutations;
}

}  // namespace refit::testing_support
