// SPDX-License-Identifier: Apache-2.0
#include "refit/coverage.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "refit/suggest.hpp"

namespace refit {
namespace {

constexpr std::array kNamed{Coverage::kNemoRlNames, Coverage::kFfn, Coverage::kAll};
constexpr std::string_view kPatternStart = "pattern:";

constexpr std::array<std::string_view, 5> kBulkEndings{
    "gate_proj.weight", "up_proj.weight", "down_proj.weight", "experts.gate_up_proj", "experts.down_proj"};

bool is_bulk_by_name(std::string_view name) {
    return name.find("shared_expert") == std::string_view::npos && !name.starts_with("mtp.") &&
           std::ranges::any_of(kBulkEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Whether the glob matches all of the text. In names "{layer}" and "{expert}" stand for numbers, which `*` matches.
bool matches(std::string_view glob, std::string_view text) {
    std::size_t at = 0;
    std::size_t star = std::string_view::npos;  // the last `*`, which may take more of the text
    std::size_t taken = 0;
    std::size_t next = 0;
    while (next < text.size()) {
        const bool is_like = at < glob.size() && (glob[at] == text[next] || (glob[at] == '?' && text[next] != '{'));
        if (at < glob.size() && glob[at] == '*') {
            star = at++;
            taken = next;
        } else if (is_like) {
            ++at;
            ++next;
        } else if (star != std::string_view::npos) {
            at = star + 1;
            taken = text[taken] == '{' ? text.find('}', taken) + 1 : taken + 1;
            next = taken;
        } else {
            return false;
        }
    }
    return glob.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace

Coverage Coverage::pattern(std::string glob) {
    if (glob.empty()) {
        throw std::logic_error{"Coverage: an empty pattern"};
    }
    Coverage coverage;
    coverage.kind_ = kPattern;
    coverage.glob_ = std::move(glob);
    return coverage;
}

std::string name_of(const Coverage& coverage) {
    switch (coverage.kind()) {
        case Coverage::kFfn:
            return "ffn";
        case Coverage::kAll:
            return "all";
        case Coverage::kPattern:
            return std::string{kPatternStart} + coverage.glob();
        case Coverage::kNemoRlNames:
            break;
    }
    return "nemo-rl-names";
}

Result<Coverage> parse_coverage(std::string_view text) {
    if (text.starts_with(kPatternStart) && text.size() > kPatternStart.size()) {
        return Coverage::pattern(std::string{text.substr(kPatternStart.size())});
    }
    std::vector<std::string> names;
    for (const Coverage coverage : kNamed) {
        names.push_back(name_of(coverage));
        if (names.back() == text) {
            return coverage;
        }
    }
    const auto nearest = nearest_name(text, names);
    return fail(Faults{{ErrorCode::kInvalidInput,
                        "unknown-coverage",
                        "unknown coverage '" + std::string{text} + "'; the nearest is '" + nearest + "' (known: " +
                            join_names(names) + ", or pattern:GLOB over the names of tensors)",
                        "",
                        Suggestion{"", nearest, ""}}});
}

bool is_bulk(const ParameterClass& parameter, const Coverage& coverage) {
    if (parameter.part == ModelPart::kMtp) {
        return false;
    }
    switch (coverage.kind()) {
        case Coverage::kFfn:
            return parameter.is_ffn;
        case Coverage::kAll:
            return true;
        case Coverage::kPattern:
            return matches(coverage.glob(), parameter.name);
        case Coverage::kNemoRlNames:
            break;
    }
    return is_bulk_by_name(parameter.name);
}

}  // namespace refit
