// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "refit/scenario.hpp"

namespace refit::gui {

/// How ranks are put together, coarsest first.
enum class Grouping : std::uint8_t {
    kSide,    ///< Trainers, generators.
    kStage,   ///< A pipeline stage of trainers (FSDP: a replica); an engine of generators.
    kDomain,  ///< An NVLink domain.
    kNode,
    kRank,
};
inline constexpr std::size_t kGroupings = 5;

/// "side", "stage", "domain", "node", "rank".
[[nodiscard]] std::string_view name_of(Grouping grouping) noexcept;
/// "stage or engine", "NVLink domain" … for people.
[[nodiscard]] std::string_view title_of(Grouping grouping) noexcept;

/// The ranks of a job in groups. Invariant: groups of trainers come first; every group has a member.
class Groups {
public:
    [[nodiscard]] static Groups make(const Scenario& scenario, Grouping grouping);

    [[nodiscard]] Grouping grouping() const noexcept { return grouping_; }
    [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(names_.size()); }
    /// Groups of trainers are below this number, those of generators from it on.
    [[nodiscard]] std::uint32_t train_count() const noexcept { return train_count_; }
    [[nodiscard]] bool is_train(std::uint32_t group) const noexcept { return group < train_count_; }
    [[nodiscard]] std::uint32_t of_rank(std::uint32_t rank) const noexcept { return group_of_[rank]; }
    [[nodiscard]] const std::vector<std::uint32_t>& of_ranks() const noexcept { return group_of_; }
    [[nodiscard]] const std::vector<std::uint32_t>& members(std::uint32_t group) const noexcept { return members_[group]; }
    /// "stage 3", "engine 0", "train node 2", "T13".
    [[nodiscard]] const std::string& name(std::uint32_t group) const noexcept { return names_[group]; }

private:
    Groups(Grouping grouping, std::vector<std::uint32_t> group_of, std::uint32_t train_gpus, std::string train_word,
           std::string generate_word);

    Grouping grouping_;
    std::vector<std::uint32_t> group_of_;
    std::vector<std::vector<std::uint32_t>> members_;
    std::vector<std::string> names_;
    std::uint32_t train_count_ = 0;
};

/// All groupings of a job, by Grouping.
[[nodiscard]] std::vector<Groups> all_groups(const Scenario& scenario);

/// The finest grouping with at most `most` groups.
[[nodiscard]] Grouping finest(const std::vector<Groups>& groups, std::uint32_t most) noexcept;

/// "T13" for a trainer, "G5" for the sixth generator.
[[nodiscard]] std::string short_rank(std::uint32_t rank, std::uint32_t train_gpus);

}  // namespace refit::gui
