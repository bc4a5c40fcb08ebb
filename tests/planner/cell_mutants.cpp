// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "mutation_tools.hpp"

namespace refit::testing_support {
namespace {

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

}  // namespace

std::span<const CellMutation> cell_mutations() {
    return kCellMutations;
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

}  // namespace refit::testing_support
