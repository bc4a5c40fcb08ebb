// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "refit/gui/flow_table.hpp"
#include "refit/gui/groups.hpp"
#include "refit/result.hpp"
#include "refit/workload.hpp"

namespace refit::gui {

/// A part of a filter; a flow must satisfy all of them.
struct FilterTerm {
    enum class Field : std::uint8_t { kWord, kRank, kNode, kDomain, kStage, kEngine, kTensor, kLayer, kLink, kDtype, kCross, kBytes };
    Field field = Field::kWord;
    std::string text;        ///< In lower case: a word, a pattern with * and ?, "nic" …
    std::uint64_t low = 0;   ///< Of numbers, and of bytes.
    std::uint64_t high = 0;
    bool operator==(const FilterTerm&) const = default;
};

/// What is looked at: "rank:13 tensor:*q_proj* layer:0-3 link:nic bytes>1MiB dtype:bf16 cross:domain", and plain words.
struct Filter {
    std::string text;
    std::vector<FilterTerm> terms;

    [[nodiscard]] bool is_set() const noexcept { return !terms.empty(); }
    bool operator==(const Filter&) const = default;
};

/// Errors: kInvalidInput for an unknown key (the nearest is named), a number or size that is none, another link or border.
[[nodiscard]] Result<Filter> parse_filter(std::string_view text);

/// The keys that `parse_filter` takes, each with an example.
[[nodiscard]] std::string filter_help();

/// By flow: 1 where it satisfies the filter. Cost: in flows.
[[nodiscard]] std::vector<std::uint8_t> flow_mask(const Filter& filter, const FlowTable& flows, const Workload& workload,
                                                  const std::vector<Groups>& groups);

/// Whether any plain word is in the name, or there is no plain word.
[[nodiscard]] bool matches_words(const Filter& filter, std::string_view name);

/// Whether `text` fits a pattern of *, ? and letters, case aside.
[[nodiscard]] bool fits(std::string_view pattern, std::string_view text) noexcept;

}  // namespace refit::gui
