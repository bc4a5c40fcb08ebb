// SPDX-License-Identifier: Apache-2.0
#include "refit/coverage.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "refit/suggest.hpp"

namespace refit {
namespace {

constexpr std::array kCoverages{Coverage::kNemoRlNames, Coverage::kFfn, Coverage::kAll};

constexpr std::array<std::string_view, 5> kBulkEndings{
    "gate_proj.weight", "up_proj.weight", "down_proj.weight", "experts.gate_up_proj", "experts.down_proj"};

bool is_bulk_by_name(std::string_view name) {
    return name.find("shared_expert") == std::string_view::npos && !name.starts_with("mtp.") &&
           std::ranges::any_of(kBulkEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

std::string_view name_of(Coverage coverage) noexcept {
    switch (coverage) {
        case Coverage::kFfn:
            return "ffn";
        case Coverage::kAll:
            return "all";
        case Coverage::kNemoRlNames:
            break;
    }
    return "nemo-rl-names";
}

Result<Coverage> parse_coverage(std::string_view text) {
    std::vector<std::string> names;
    for (const auto coverage : kCoverages) {
        if (name_of(coverage) == text) {
            return coverage;
        }
        names.emplace_back(name_of(coverage));
    }
    const auto nearest = nearest_name(text, names);
    return fail(Faults{{ErrorCode::kInvalidInput,
                        "unknown-coverage",
                        "unknown coverage '" + std::string{text} + "'; the nearest is '" + nearest + "' (known: " +
                            join_names(names) + ")",
                        "",
                        Suggestion{"", nearest, ""}}});
}

bool is_bulk(const ParameterClass& parameter, Coverage coverage) {
    if (parameter.part == ModelPart::kMtp) {
        return false;
    }
    switch (coverage) {
        case Coverage::kFfn:
            return parameter.is_ffn;
        case Coverage::kAll:
            return true;
        case Coverage::kNemoRlNames:
            break;
    }
    return is_bulk_by_name(parameter.name);
}

}  // namespace refit
