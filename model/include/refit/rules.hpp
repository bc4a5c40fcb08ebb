// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "refit/result.hpp"

namespace refit {

/// What support rules look at: scenario fields and what follows from them ("generate.pp", "train.fp8_param"), as text.
using SettingFacts = std::map<std::string, std::string, std::less<>>;

/// One condition of an engine's documentation or code.
struct SupportRule {
    std::uint32_t number = 0;  ///< As the reference counts them.
    std::string id;
    std::string fact;                  ///< The setting that it restricts.
    std::vector<std::string> allowed;  ///< Values that pass; "$name" means the value of another fact.
    SettingFacts when;                 ///< Holds only where all of these facts have these values.
    std::string message;               ///< Why.
    bool operator==(const SupportRule&) const = default;
};

/// The rules of an engine at a version, for one method.
struct RuleSet {
    std::string engine;
    std::string version;
    std::string source;
    std::vector<SupportRule> rules;

    /// "nemo-rl@2026-11".
    [[nodiscard]] std::string name() const { return engine + "@" + version; }
    bool operator==(const RuleSet&) const = default;
};

/// Every rule that the facts break, in order. Each fault names fact, value and rule set, and suggests an allowed
/// value: the nearest number, else the first. A fact that is absent breaks nothing.
[[nodiscard]] Faults violations(const RuleSet& rules, const SettingFacts& facts);

}  // namespace refit
