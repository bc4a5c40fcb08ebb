// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/groups.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "refit/gui/target.hpp"

namespace refit::gui {
namespace {

/// A number for each rank such that ranks of one group share it.
std::uint32_t key_of(const Scenario& scenario, Grouping grouping, std::uint32_t rank, std::uint32_t place_in_domain) {
    const auto& cluster = scenario.cluster;
    const bool is_trainer = rank < cluster.train_gpus();
    switch (grouping) {
        case Grouping::kSide:
            return is_trainer ? 0 : 1;
        case Grouping::kStage: {
            if (is_trainer) {
                const auto& train = scenario.train;
                return rank / (train.is_fsdp() ? train.ranks_per_replica() : train.ranks_per_stage());
            }
            return (rank - cluster.train_gpus()) / (scenario.generate.tp * scenario.generate.pp);
        }
        case Grouping::kDomain:
            return cluster.domain_of(RankId{rank}).index();
        case Grouping::kNode:
            return cluster.domain_of(RankId{rank}).index() * 1024U +
                   place_in_domain / cluster.system_of(RankId{rank}).gpus_per_node;
        case Grouping::kRank:
            break;
    }
    return rank;
}

}  // namespace

std::string_view name_of(Grouping grouping) noexcept {
    switch (grouping) {
        case Grouping::kSide:
            return "side";
        case Grouping::kStage:
            return "stage";
        case Grouping::kDomain:
            return "domain";
        case Grouping::kNode:
            return "node";
        case Grouping::kRank:
            break;
    }
    return "rank";
}

std::string_view title_of(Grouping grouping) noexcept {
    switch (grouping) {
        case Grouping::kSide:
            return "side";
        case Grouping::kStage:
            return "stage or engine";
        case Grouping::kDomain:
            return "NVLink domain";
        case Grouping::kNode:
            return "node";
        case Grouping::kRank:
            break;
    }
    return "rank";
}

Groups::Groups(Grouping grouping, std::vector<std::uint32_t> group_of, std::uint32_t train_gpus, std::string train_word,
               std::string generate_word)
    : grouping_{grouping}, group_of_{std::move(group_of)} {
    const auto count = group_of_.empty() ? 0U : *std::ranges::max_element(group_of_) + 1;
    members_.resize(count);
    for (std::uint32_t rank = 0; rank < group_of_.size(); ++rank) {
        members_[group_of_[rank]].push_back(rank);
    }
    train_count_ = static_cast<std::uint32_t>(
        std::ranges::count_if(members_, [&](const auto& ranks) { return ranks.front() < train_gpus; }));
    for (std::uint32_t group = 0; group < count; ++group) {
        const bool is_train = group < train_count_;
        names_.push_back((is_train ? train_word : generate_word) + std::to_string(is_train ? group : group - train_count_));
    }
    if (grouping == Grouping::kSide) {
        names_ = {"trainers", "generators"};
        names_.resize(count);
    }
}

Groups Groups::make(const Scenario& scenario, Grouping grouping) {
    std::map<std::pair<bool, std::uint32_t>, std::uint32_t> numbers;  // A domain may have ranks of both sides.
    std::vector<std::uint32_t> group_of;
    const auto train_gpus = scenario.cluster.train_gpus();
    std::uint32_t place = 0;
    for (std::uint32_t rank = 0; rank < scenario.cluster.gpus(); ++rank) {
        const bool is_same_domain =
            rank > 0 && scenario.cluster.domain_of(RankId{rank}) == scenario.cluster.domain_of(RankId{rank - 1});
        place = is_same_domain ? place + 1 : 0;
        const auto key = std::pair{rank >= train_gpus, key_of(scenario, grouping, rank, place)};
        const auto next = static_cast<std::uint32_t>(numbers.size());
        group_of.push_back(numbers.try_emplace(key, next).first->second);
    }
    switch (grouping) {
        case Grouping::kStage:
            return {grouping, std::move(group_of), train_gpus, scenario.train.is_fsdp() ? "replica " : "stage ", "engine "};
        case Grouping::kDomain:
            return {grouping, std::move(group_of), train_gpus, "train domain ", "gen domain "};
        case Grouping::kNode:
            return {grouping, std::move(group_of), train_gpus, "train node ", "gen node "};
        case Grouping::kSide:
        case Grouping::kRank:
            break;
    }
    return {grouping, std::move(group_of), train_gpus, "T", "G"};
}

std::vector<Groups> all_groups(const Scenario& scenario) {
    std::vector<Groups> groups;
    for (std::size_t i = 0; i < kGroupings; ++i) {
        groups.push_back(Groups::make(scenario, static_cast<Grouping>(i)));
    }
    return groups;
}

Grouping finest(const std::vector<Groups>& groups, std::uint32_t most) noexcept {
    for (std::size_t i = groups.size(); i-- > 1;) {
        if (groups[i].count() <= most) {
            return groups[i].grouping();
        }
    }
    return Grouping::kSide;
}

std::string short_rank(std::uint32_t rank, std::uint32_t train_gpus) {
    return rank < train_gpus ? "T" + std::to_string(rank) : "G" + std::to_string(rank - train_gpus);
}

std::string id_of(const Target& target) {
    const auto level = std::string{name_of(target.level)};
    const auto a = std::to_string(target.a);
    const auto b = std::to_string(target.b);
    switch (target.kind) {
        case Target::Kind::kNone:
            return {};
        case Target::Kind::kGroup:
            return level + ":" + a;
        case Target::Kind::kPair:
            return "pair:" + level + ":" + a + ">" + b;
        case Target::Kind::kTensor:
            return "tensor:" + a;
        case Target::Kind::kLane:
            return "lane:" + a;
        case Target::Kind::kTask:
            return "task:" + a;
        case Target::Kind::kPort:
            return "port:" + a + ":" + level + ":" + b;
        case Target::Kind::kMethod:
            break;
    }
    return "method:" + a;
}

}  // namespace refit::gui
