// SPDX-License-Identifier: Apache-2.0
#include "refit/rules.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
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

std::optional<std::int64_t> whole(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

/// The allowed value to offer: the nearest number to a number, else the first.
std::optional<std::string> nearest_allowed(const SupportRule& rule, const std::string& value, const SettingFacts& facts) {
    std::optional<std::string> best;
    const auto wanted = whole(value);
    for (const auto& text : rule.allowed) {
        const auto candidate = meant(text, facts);
        const auto number = candidate ? whole(*candidate) : std::nullopt;
        const auto best_number = best ? whole(*best) : std::nullopt;
        const bool is_nearer = wanted && number && best_number && std::abs(*number - *wanted) < std::abs(*best_number - *wanted);
        if (candidate && (!best || is_nearer)) {
            best = candidate;
        }
    }
    return best;
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
        if (const auto value = nearest_allowed(rule, fact->second, facts)) {
            fault.nearest = Suggestion{rule.fact, *value, ""};
        }
        faults.push_back(std::move(fault));
    }
    return faults;
}

}  // namespace refit
