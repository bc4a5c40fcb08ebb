// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/readiness.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "region_reuse.hpp"

namespace refit::exec {
namespace {

using program::Arena;
using program::Operation;
using program::OperationKind;
using program::RankProgram;

/// What an operation did to a box of a region.
struct Touch {
    std::uint32_t node = 0;
    const Box* box = nullptr;
    bool changes = false;
};

}  // namespace

Readiness::Readiness(const RankProgram& program, const Ahead& ahead) : program_{program}, ahead_{ahead} {
    if (ahead.waves == 0 || ahead.operations == 0) {
        throw std::logic_error{"Readiness: nothing could ever be posted"};
    }
    add_nodes();
    find_needs();
    restart();
}

void Readiness::add_nodes() {
    for (std::uint32_t wave = 0; wave < program_.waves.size(); ++wave) {
        const auto& operations = program_.waves[wave].operations;
        first_.push_back(static_cast<std::uint32_t>(nodes_.size()));
        node_of_.emplace_back(operations.size());
        // Receives first, so that nothing that arrives has to wait for a place.
        for (const bool is_receive : {true, false}) {
            for (std::uint32_t index = 0; index < operations.size(); ++index) {
                const auto& operation = operations[index];
                if (operation.bytes > 0 && (operation.kind == OperationKind::kReceive) == is_receive) {
                    node_of_[wave][index] = static_cast<std::uint32_t>(nodes_.size());
                    const auto needed = wave < ahead_.waves ? 0 : wave - ahead_.waves + 1;
                    nodes_.push_back({{wave, index}, needed, 0, {}});
                }
            }
        }
    }
    first_.push_back(static_cast<std::uint32_t>(nodes_.size()));
}

void Readiness::find_needs() {
    const auto before = waves_before(program_);
    std::vector<std::vector<Touch>> touches(program_.regions.size());
    // By peer and lane, or group.
    std::map<std::tuple<OperationKind, std::uint32_t, std::uint32_t>, std::uint32_t> last;
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
        const auto& place = nodes_[node].place;
        const auto& operation = program_.waves[place.wave].operations[place.index];
        const std::tuple key{operation.is_collective() ? OperationKind::kAllGather : operation.kind,
                             operation.is_collective() ? operation.group : operation.peer,
                             operation.lane};
        if (const auto [found, is_first] = last.try_emplace(key, node); !is_first) {
            need(node, found->second);
            found->second = node;
        }
        for (const auto& landing : operation.landings) {
            if (program_.regions[landing.region].arena == Arena::kSource) {
                continue;
            }
            const Touch touch{node, &landing.box, !operation.gives(operation.parts[landing.part])};
            for (const auto& other : touches[landing.region]) {
                if ((touch.changes || other.changes) && nodes_[other.node].place.wave < place.wave &&
                    intersection(*other.box, *touch.box)) {
                    need(node, other.node);
                }
            }
            touches[landing.region].push_back(touch);
            nodes_[node].wave_needed = std::max(nodes_[node].wave_needed, before[landing.region]);
        }
    }
    held_.resize(program_.waves.size() + 1);
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
        held_[nodes_[node].wave_needed].push_back(node);
    }
}

void Readiness::need(std::uint32_t later, std::uint32_t earlier) {
    auto& followers = nodes_[earlier].followers;
    if (followers.empty() || followers.back() != later) {  // A later one finds all its needs before the next.
        followers.push_back(later);
        ++nodes_[later].operations_needed;
    }
}

void Readiness::restart() {
    missing_.clear();
    left_.clear();
    ready_ = {};
    open_ = 0;
    waves_done_ = 0;
    for (const auto& node : nodes_) {
        missing_.push_back(node.operations_needed + 1);  // One for the waves.
    }
    for (std::size_t wave = 0; wave + 1 < first_.size(); ++wave) {
        left_.push_back(first_[wave + 1] - first_[wave]);
    }
    std::ranges::for_each(held_.front(), [&](std::uint32_t node) { release(node); });
    pass_waves();
}

std::optional<Place> Readiness::next() {
    if (ready_.empty()) {
        return std::nullopt;
    }
    const auto& place = nodes_[ready_.top()].place;
    if (place.wave > waves_done_ && open_ >= ahead_.operations) {
        return std::nullopt;
    }
    ready_.pop();
    ++open_;
    return place;
}

void Readiness::finish(const Place& place) {
    --open_;
    std::ranges::for_each(nodes_[node_of_[place.wave][place.index]].followers,
                          [&](std::uint32_t node) { release(node); });
    --left_[place.wave];
    pass_waves();
}

void Readiness::release(std::uint32_t node) {
    if (--missing_[node] == 0) {
        ready_.push(node);
    }
}

void Readiness::pass_waves() {
    while (waves_done_ < left_.size() && left_[waves_done_] == 0) {
        ++waves_done_;
        std::ranges::for_each(held_[waves_done_], [&](std::uint32_t node) { release(node); });
    }
}

}  // namespace refit::exec
