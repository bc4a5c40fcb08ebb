// SPDX-License-Identifier: Apache-2.0
#include "faults_text.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "options.hpp"
#include "refit/io/field_options.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kWidth = 100;

/// The suggestions, each once, in order of first use.
std::vector<Suggestion> distinct_suggestions(const Faults& faults) {
    std::vector<Suggestion> distinct;
    for (const auto& fault : faults) {
        if (fault.nearest && std::ranges::find(distinct, *fault.nearest) == distinct.end()) {
            distinct.push_back(*fault.nearest);
        }
    }
    return distinct;
}

std::string headline(const Faults& faults) {
    const auto all = [&](std::initializer_list<ErrorCode> codes) {
        return std::ranges::all_of(faults, [&](const Fault& fault) { return std::ranges::find(codes, fault.code) != codes.end(); });
    };
    const auto count = std::to_string(faults.size()) + (faults.size() == 1 ? " fault" : " faults");
    if (all({ErrorCode::kIo})) {
        return "a file cannot be read or written: " + count + ". Nothing was written.";
    }
    const bool is_infeasible = all({ErrorCode::kInfeasible, ErrorCode::kUnsupported});
    return std::string{is_infeasible ? "this cannot run: " : "this cannot be understood: "} + count +
           ". Nothing was computed or written.";
}

/// The place is worth a line unless the message begins with it or says that it is missing.
bool tells_place(const Fault& fault) {
    return !fault.where.empty() && !fault.message.starts_with(fault.where) && !fault.message.starts_with("'" + fault.where + "'");
}

/// The numbers of the faults that this suggestion answers: "cures 1 and 2", where there are others beside.
std::string cured_by(const Suggestion& suggestion, const Faults& faults) {
    std::string numbers;
    std::size_t cured = 0;
    for (std::size_t i = 0; i < faults.size(); ++i) {
        if (faults[i].nearest == suggestion) {
            numbers += (numbers.empty() ? "" : ", ") + std::to_string(i + 1);
            ++cured;
        }
    }
    return cured > 1 ? "   (cures " + numbers + ")" : "";
}

/// One command that applies every suggestion, where that leaves nothing to complain about.
std::string whole_cure(const Faults& faults, const Asked& asked) {
    const auto suggestions = distinct_suggestions(faults);
    if (asked.draft == nullptr || asked.library == nullptr || suggestions.size() < 2) {
        return {};
    }
    auto mended = *asked.draft;
    auto fields = asked.fields;
    for (const auto& suggestion : suggestions) {
        mended.apply(suggestion);
        if (suggestion.field.starts_with('-')) {
            // A flag may be renamed; a key of a file may not, by a command.
            const auto old = std::ranges::find(fields, suggestion.field.substr(1), [](const auto& field) { return field.first; });
            if (old == fields.end()) {
                return {};
            }
            old->first = suggestion.value;
            continue;
        }
        const bool is_layout = suggestion.field == "train.layout";  // It holds the whole pipeline.
        std::erase_if(fields, [&](const auto& field) {
            return field.first == suggestion.field || (is_layout && field.first.starts_with("train.pipeline."));
        });
        fields.emplace_back(suggestion.field, suggestion.value);
    }
    std::string command = asked.command;
    for (const auto& [field, value] : fields) {
        command += " " + io::flag_for(field, value);
    }
    return io::resolve(mended, *asked.library) ? "All of it:  " + command + "\n            checked just now\n" : "";
}

}  // namespace

std::string flag_for(const Suggestion& suggestion) { return io::flag_for(suggestion.field, suggestion.value); }

std::string describe_warnings(const Faults& warnings) {
    std::string text;
    for (const auto& warning : warnings) {
        std::string cure;
        if (warning.nearest) {
            const auto& note = warning.nearest->note;
            cure = "; " + (note.empty() ? "try " : "or " + note + ": ") + flag_for(*warning.nearest);
        }
        text += wrap("warning: " + warning.message + cure, kWidth, 0) + "\n";
    }
    return text;
}

std::string describe_faults(const Faults& faults, const Asked& asked, bool has_color) {
    const std::string red = has_color ? "\033[1;31m" : "";
    const std::string plain = has_color ? "\033[0m" : "";
    std::string text = red + "refit: " + plain + headline(faults) + "\n\n";
    for (std::size_t i = 0; i < faults.size(); ++i) {
        const auto& fault = faults[i];
        const auto number = std::to_string(i + 1);
        const std::string indent(5, ' ');
        text += std::string(number.size() < 3 ? 3 - number.size() : 0, ' ') + number + "  ";
        text += wrap(fault.message + "  [" + fault.rule + "]", kWidth, indent.size()) + "\n";
        if (tells_place(fault)) {
            text += indent + "where  " + fault.where + "\n";
        }
        const bool is_last_use = fault.nearest && std::none_of(faults.begin() + static_cast<std::ptrdiff_t>(i) + 1, faults.end(), [&](const Fault& other) {
                                     return other.nearest == fault.nearest;
                                 });
        if (is_last_use && fault.nearest->field.starts_with('-')) {
            text += indent + "try    rename '" + fault.nearest->field.substr(1) + "' to '" + fault.nearest->value + "'\n";
        } else if (is_last_use) {
            text += indent + "try    " + flag_for(*fault.nearest) + cured_by(*fault.nearest, faults) + "\n";
        }
    }
    const auto cure = whole_cure(faults, asked);
    return cure.empty() ? text : text + "\n" + cure;
}

}  // namespace refit::cli
