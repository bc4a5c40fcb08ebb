// SPDX-License-Identifier: Apache-2.0
#include "refit/rules.hpp"

#include <algorithm>
#include <optional>

namespace refit {
namespace {

/// The value that an allowed text stands for.
std::optional<std::string> meant(const std::string& text, const SettingFacts& facts) {
    if (!text.starts_with('$')) {
        return text;
    }
    const auto found = facts.find(text.substr(1));
    return found == facts.end() ? std::nullopt : std::optional{found->second};
}

bool applies(const SupportRule& rule, const SettingFacts& facts) {
    return std::ranges::all_of(rule.when, [&](const auto& condition) {
        const auto found = facts.find(condition.first);
        return found != facts.end() && found->second == condition.second;
    });
}

bool is_allowed(const SupportRule& rule, const std::string& value, const SettingFacts& facts) {
    return std::ranges::any_of(rule.allowed, [&](const std::string& text) { return meant(text, facts) == value; });
}

}  // namespace

Faults violations(const RuleSet& rules, const SettingFacts& facts) {
    Faults faults;
    for (const auto& rule : rules.rules) {
        const auto fact = facts.find(rule.fact);
        if (fact == facts.end() || !applies(rule, facts) || is_allowed(rule, fact->second, facts)) {
            continue;
        }
        Fault fault{ErrorCode::kInfeasible,
                    rule.id,
                    rule.fact + " = " + fact->second + ": " + rule.message + " [" + rules.name() + " rule " +
                        std::to_string(rule.number) + "]",
                    rule.fact};
        if (!rule.allowed.empty()) {
            if (const auto value = meant(rule.allowed.front(), facts)) {
                fault.nearest = Suggestion{rule.fact, *value, ""};
            }
        }
        faults.push_back(std::move(fault));
    }
    return faults;
}

}  // namespace refit
