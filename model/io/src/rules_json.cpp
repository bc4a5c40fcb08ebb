// SPDX-License-Identifier: Apache-2.0
#include "refit/io/rules_json.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

using Json = nlohmann::json;

bool is_text(const Json& rule, const char* key) { return rule.contains(key) && rule.at(key).is_string(); }

bool is_rule(const Json& rule) {
    if (!rule.is_object() || !rule.value("number", Json{}).is_number_unsigned() || !is_text(rule, "id") || !is_text(rule, "fact") ||
        !is_text(rule, "message") || !rule.value("allowed", Json{}).is_array()) {
        return false;
    }
    const auto is_string = [](const Json& value) { return value.is_string(); };
    const auto when = rule.value("when", Json::object());
    return when.is_object() && std::ranges::all_of(rule.at("allowed"), is_string) && std::ranges::all_of(when, is_string);
}

SupportRule rule_from(const Json& json) {
    SupportRule rule;
    rule.number = json.at("number").get<std::uint32_t>();
    rule.id = json.at("id").get<std::string>();
    rule.fact = json.at("fact").get<std::string>();
    rule.allowed = json.at("allowed").get<std::vector<std::string>>();
    rule.message = json.at("message").get<std::string>();
    const auto when = json.value("when", Json::object());
    for (const auto& [fact, value] : when.items()) {
        rule.when.emplace(fact, value.get<std::string>());
    }
    return rule;
}

}  // namespace

Result<RuleSet> read_rules(const std::filesystem::path& file) {
    const auto json = read_json(file);
    if (!json) {
        return Failure{json.error()};
    }
    if (!json->is_object() || json->value("schema", Json{}) != "refit.rules" || !is_text(*json, "engine") ||
        !is_text(*json, "version") || !is_text(*json, "source")) {
        return fail(ErrorCode::kInvalidInput, "schema", "a rule set needs schema \"refit.rules\", engine, version and source", file.string());
    }
    RuleSet set{json->at("engine").get<std::string>(), json->at("version").get<std::string>(), json->at("source").get<std::string>(), {}};
    Faults faults;
    const auto rules = json->value("rules", Json::array());
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (is_rule(rules.at(i))) {
            set.rules.push_back(rule_from(rules.at(i)));
            continue;
        }
        faults.push_back({ErrorCode::kInvalidInput,
                          "rule-shape",
                          "a rule needs number, id, fact, allowed (a list of texts) and message",
                          file.string() + ": /rules/" + std::to_string(i)});
    }
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    return set;
}

}  // namespace refit::io
