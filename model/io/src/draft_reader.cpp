// SPDX-License-Identifier: Apache-2.0
#include "draft_reader.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "refit/suggest.hpp"

namespace refit::io {

std::string DraftReader::text_of(std::string_view name, const char* fallback, bool is_required) {
    const auto* field = draft_.find(name);
    if (field == nullptr && is_required) {
        refuse(ErrorCode::kInvalidInput,
               "missing-field",
               "'" + std::string{name} + "' is missing",
               name,
               Suggestion{std::string{name}, fallback, "for example"});
    }
    return field == nullptr ? fallback : field->text;
}

std::vector<std::string> DraftReader::list_of(std::string_view name) const {
    std::vector<std::string> items;
    if (const auto* field = draft_.find(name)) {
        std::istringstream stream{field->text};
        for (std::string item; std::getline(stream, item, ',');) {
            items.push_back(item);
        }
    }
    return items;
}

std::string DraftReader::where(std::string_view name) const {
    const auto* field = draft_.find(name);
    return field == nullptr ? std::string{name} : field->origin;
}

void DraftReader::refuse(ErrorCode code,
                         const char* rule,
                         std::string message,
                         std::string_view name,
                         std::optional<Suggestion> nearest) {
    faults_.push_back({code, rule, std::move(message), where(name), std::move(nearest)});
}

void DraftReader::add(Fault fault, std::string_view name, const char* fallback) {
    fault.where = fault.where.empty() || fault.where == name ? where(name) : fault.where;
    if (fault.nearest && fault.nearest->field.empty()) {
        fault.nearest->field = std::string{name};
    }
    if (!fault.nearest && fallback != nullptr) {
        fault.nearest = Suggestion{std::string{name}, fallback, ""};
    }
    const auto side = name.substr(0, name.find('.') + 1);
    if (side.empty() || !fault.message.starts_with(side)) {
        fault.message = std::string{name} + ": " + fault.message;
    }
    faults_.push_back(std::move(fault));
}

std::string DraftReader::one_of(std::string_view name,
                                const char* fallback,
                                const std::vector<std::string>& allowed,
                                ErrorCode code) {
    auto text = text_of(name, fallback);
    if (std::ranges::find(allowed, text) == allowed.end()) {
        const auto nearest = nearest_name(text, allowed);
        refuse(code,
               "unknown-value",
               std::string{name} + ": '" + text + "' is none of " + join_names(allowed),
               name,
               Suggestion{std::string{name}, nearest, ""});
    }
    return text;
}

void DraftReader::refuse_number(std::string_view name,
                                const std::string& text,
                                std::uint32_t most,
                                std::uint32_t nearest) {
    refuse(ErrorCode::kInvalidInput,
           "number-range",
           std::string{name} + ": '" + text + "' is not a whole number from 1 to " + std::to_string(most),
           name,
           Suggestion{std::string{name}, std::to_string(nearest), ""});
}

std::uint32_t DraftReader::whole_number(std::string_view name,
                                        const std::string& text,
                                        std::uint32_t most,
                                        std::uint32_t nearest) {
    const auto value = whole_number_in(text, most);
    if (!value) {
        refuse_number(name, text, most, nearest);
    }
    return value.value_or(nearest);
}

std::optional<std::uint32_t> whole_number_in(const std::string& text, std::uint32_t most) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc{} && end == text.data() + text.size();
    return is_whole && value >= 1 && value <= most ? std::optional{static_cast<std::uint32_t>(value)}
                                                   : std::nullopt;
}

}  // namespace refit::io
