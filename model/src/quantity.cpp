// SPDX-License-Identifier: Apache-2.0
#include "refit/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "refit/suggest.hpp"

namespace refit {
namespace {

constexpr std::size_t kLongestQuote = 60;
constexpr std::size_t kLongestUnit = 24;

struct Scale {
    std::string_view name;
    double factor;
};

constexpr std::array<Scale, 11> kPrefixes{{{"", 1.0},
                                           {"k", 1e3},
                                           {"M", 1e6},
                                           {"G", 1e9},
                                           {"T", 1e12},
                                           {"P", 1e15},
                                           {"Ki", 1024.0},
                                           {"Mi", 1048576.0},
                                           {"Gi", 1073741824.0},
                                           {"Ti", 1099511627776.0},
                                           {"Pi", 1125899906842624.0}}};

/// What a text may be multiplied and then divided by, so that powers of ten stay exact.
struct Unit {
    std::string name;
    double factor;
    double divisor;
    std::string preferred;  ///< The spelling that suggestions use: "Gbit/s" for "Gb/s".
};

/// One kind of quantity: its units and the words for its faults.
struct Kind {
    std::string noun;
    std::string fitting;  ///< "B/s or bit/s with ...".
    std::string example;  ///< A text that parses.
    bool is_whole;        ///< Counted in whole bytes.
    std::vector<Unit> units;
    std::vector<std::string> readings;  ///< Units to offer for a bare number, the likeliest first.
    std::vector<std::pair<std::string, std::vector<std::string>>> synonyms;
};

struct Amount {
    double value;
    std::uint64_t whole;  ///< The value in bytes where the kind is counted in whole bytes.
};

Kind make_bandwidth_kind() {
    Kind kind{"a bandwidth",
              "B/s or bit/s with k, M, G, T, P, Ki, Mi, Gi, Ti or Pi",
              "400Gbit/s",
              false,
              {},
              {},
              {}};
    for (const auto& prefix : kPrefixes) {
        const std::string name{prefix.name};
        kind.units.push_back({name + "bit/s", prefix.factor, 8.0, name + "bit/s"});
        kind.units.push_back({name + "B/s", prefix.factor, 1.0, name + "B/s"});
        kind.units.push_back({name + "b/s", prefix.factor, 8.0, name + "bit/s"});
        kind.synonyms.push_back({name + "bps", {name + "bit/s"}});
        kind.synonyms.push_back({name + "Bps", {name + "B/s"}});
    }
    kind.readings = {"Gbit/s", "GB/s"};
    return kind;
}

Kind make_duration_kind() {
    return {"a duration",
            "ns, us, ms, s, min or h",
            "2ms",
            false,
            {{"ns", 1.0, 1e9, "ns"},
             {"us", 1.0, 1e6, "us"},
             {"ms", 1.0, 1e3, "ms"},
             {"s", 1.0, 1.0, "s"},
             {"min", 60.0, 1.0, "min"},
             {"h", 3600.0, 1.0, "h"}},
            {"s", "ms"},
            {{"m", {"min", "ms"}},
             {"\xC2\xB5s", {"us"}},
             {"\xCE\xBCs", {"us"}},
             {"sec", {"s"}},
             {"secs", {"s"}},
             {"second", {"s"}},
             {"seconds", {"s"}},
             {"minutes", {"min"}},
             {"hours", {"h"}}}};
}

Kind make_bytes_kind() {
    Kind kind{"an amount of data", "B with k, M, G, T, P, Ki, Mi, Gi, Ti or Pi", "64MiB", true, {}, {}, {}};
    for (const auto& prefix : kPrefixes) {
        const std::string name{prefix.name};
        kind.units.push_back({name + "B", prefix.factor, 1.0, name + "B"});
    }
    kind.readings = {"MiB", "GB", "B"};
    kind.synonyms = {{"byte", {"B"}}, {"bytes", {"B"}}};
    return kind;
}

const Kind& bandwidth_kind() {
    static const Kind kind = make_bandwidth_kind();
    return kind;
}

const Kind& duration_kind() {
    static const Kind kind = make_duration_kind();
    return kind;
}

const Kind& bytes_kind() {
    static const Kind kind = make_bytes_kind();
    return kind;
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_letters(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The text in quotes, fit for a terminal and for JSON: long texts are cut, other than printable ASCII and
/// the micro sign becomes '?'.
std::string quoted(std::string_view text) {
    std::string out = "'";
    for (std::size_t i = 0; i < text.size() && i < kLongestQuote; ++i) {
        const auto pair = text.substr(i, 2);
        if (pair == "\xC2\xB5" || pair == "\xCE\xBC") {
            out += pair;
            ++i;
        } else {
            out += text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
        }
    }
    return out + (text.size() > kLongestQuote ? "...'" : "'");
}

/// A number at the start of a text and what follows it.
struct Split {
    std::string_view number;
    std::string_view unit;  ///< Without the spaces around it.
    double value{0.0};
    std::errc error{};
};

/// Splits a text that starts with a digit or a point; nothing where it does not hold a number.
std::optional<Split> split(std::string_view text) {
    if (text.empty() || !(is_digit(text.front()) || text.front() == '.')) {
        return std::nullopt;
    }
    Split parts;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parts.value);
    if (error == std::errc::invalid_argument) {
        return std::nullopt;
    }
    const auto length = static_cast<std::size_t>(end - text.data());
    parts.number = text.substr(0, length);
    parts.unit = trimmed(text.substr(length));
    parts.error = error;
    return parts;
}

std::optional<Amount> scaled(const Kind& kind, const Split& parts, const Unit& unit) {
    const double value = parts.value * unit.factor / unit.divisor;
    if (parts.error != std::errc{} || !(value > 0.0) || value > std::numeric_limits<double>::max()) {
        return std::nullopt;
    }
    if (!kind.is_whole) {
        return Amount{value, 0};
    }
    const auto factor = static_cast<std::uint64_t>(unit.factor);
    if (std::ranges::all_of(parts.number, is_digit)) {
        std::uint64_t count = 0;
        const auto* last = parts.number.data() + parts.number.size();
        if (std::from_chars(parts.number.data(), last, count).ec != std::errc{} ||
            count > std::numeric_limits<std::uint64_t>::max() / factor) {
            return std::nullopt;
        }
        return Amount{value, count * factor};
    }
    const double rounded = std::round(value);
    if (rounded < 1.0 || rounded >= 18446744073709551616.0) {
        return std::nullopt;
    }
    return Amount{value, static_cast<std::uint64_t>(rounded)};
}

/// The amount that `text` names, or nothing for any fault.
std::optional<Amount> read(const Kind& kind, std::string_view text) {
    const auto parts = split(trimmed(text));
    if (!parts) {
        return std::nullopt;
    }
    const auto unit = std::ranges::find(kind.units, parts->unit, &Unit::name);
    return unit == kind.units.end() ? std::nullopt : scaled(kind, *parts, *unit);
}

/// "write A or B" with those offers that can be read, or else the example of the kind.
struct Advice {
    Advice(const Kind& kind, std::span<const std::string> offers) {
        for (const auto& offer : offers) {
            if (offer.size() <= kLongestQuote && read(kind, offer) &&
                std::ranges::find(texts, offer) == texts.end()) {
                texts.push_back(offer);
            }
        }
        const bool found = !texts.empty();
        if (!found) {
            texts.push_back(kind.example);
        }
        words = found ? "write " : "write for example ";
        for (std::size_t i = 0; i < texts.size(); ++i) {
            words += (i == 0 ? "" : i + 1 == texts.size() ? " or " : ", ") + texts[i];
            const auto amount = read(kind, texts[i]);
            if (texts[i].ends_with("bit/s") && texts.size() > 1 && amount) {
                words += " = " + format_bandwidth(Bandwidth::bytes_per_second(amount->value));
            }
        }
    }
    std::vector<std::string> texts;
    std::string words;
};

Failure refuse(const Kind& kind,
               std::string rule,
               const std::string& what,
               std::span<const std::string> offers) {
    const Advice advice{kind, offers};
    Fault fault{ErrorCode::kInvalidInput, std::move(rule), what + ": " + advice.words, {}};
    Suggestion nearest{"", advice.texts.front(), {}};
    for (std::size_t i = 1; i < advice.texts.size(); ++i) {
        nearest.note += (i == 1 ? "or " : ", ") + advice.texts[i];
    }
    fault.nearest = std::move(nearest);
    return fail(Faults{std::move(fault)});
}

std::vector<std::string> with_units(std::string_view number, std::span<const std::string> units) {
    std::vector<std::string> texts;
    for (const auto& unit : units) {
        texts.push_back(std::string{number} + unit);
    }
    return texts;
}

/// Preferred names of the units that equal `unit` but for letter case, the fewest changed letters first.
std::vector<std::string> case_readings(const Kind& kind, std::string_view unit) {
    std::vector<std::pair<std::size_t, std::string>> found;
    for (const auto& known : kind.units) {
        if (same_letters(known.name, unit)) {
            std::size_t changed = 0;
            for (std::size_t i = 0; i < unit.size(); ++i) {
                changed += known.name[i] == unit[i] ? 0U : 1U;
            }
            found.emplace_back(changed, known.preferred);
        }
    }
    std::ranges::sort(found);
    std::vector<std::string> names;
    names.reserve(found.size());
    for (const auto& [changed, name] : found) {
        names.push_back(name);
    }
    return names;
}

/// Units that a prefix without a unit may have been meant for: "G" for Gbit/s and GB/s, or for GB and GiB.
std::vector<std::string> prefix_readings(const Kind& kind, std::string_view unit) {
    std::vector<std::string> names;
    const auto* const prefix = std::ranges::find_if(
        kPrefixes, [&](const Scale& scale) { return !scale.name.empty() && same_letters(scale.name, unit); });
    if (prefix == kPrefixes.end()) {
        return names;
    }
    const std::string name{prefix->name};
    for (const auto* ending : {"bit/s", "B/s", "B", "iB"}) {
        if (std::ranges::find(kind.units, name + ending, &Unit::name) != kind.units.end()) {
            names.push_back(name + ending);
        }
    }
    return names;
}

/// Units that an unknown one may have been meant for.
std::vector<std::string> unknown_readings(const Kind& kind, std::string_view unit) {
    for (const auto& [synonym, names] : kind.synonyms) {
        if (synonym == unit) {
            return names;
        }
    }
    std::vector<std::string> known;
    std::string longest;
    for (const auto& candidate : kind.units) {
        known.push_back(candidate.preferred);
        const auto& name = candidate.name;
        const bool ends_there =
            unit.size() > name.size() && unit.starts_with(name) && !is_letter(unit[name.size()]);
        if (ends_there && name.size() > longest.size()) {
            longest = candidate.preferred;
        }
    }
    if (!longest.empty()) {
        return {longest};
    }
    return unit.size() > kLongestUnit ? std::vector<std::string>{}
                                      : std::vector<std::string>{nearest_name(unit, known)};
}

/// Ways to write a broken number: without its sign, its separators or its spaces, with a point for a comma,
/// and without the comma where three digits follow it.
std::vector<std::string> mended_numbers(std::string_view text) {
    std::string joined;
    std::string pointed;
    for (const char c : text) {
        if (c == ',') {
            pointed += '.';
        } else if (c != ' ' && c != '_' && c != '\'' && c != '+') {
            joined += c;
            pointed += c;
        }
    }
    const auto comma = text.find(',');
    const auto tail = comma == std::string_view::npos ? text : text.substr(comma + 1);
    const bool has_groups = std::ranges::find_if_not(tail, is_digit) - tail.begin() == 3;
    return has_groups ? std::vector<std::string>{pointed, joined} : std::vector<std::string>{pointed};
}

Failure refuse_number(const Kind& kind, std::string_view text) {
    const auto quote = quoted(text);
    if (text.starts_with('-') && split(text.substr(1))) {
        const std::vector<std::string> offers{std::string{trimmed(text.substr(1))}};
        return refuse(
            kind, "number-range", quote + " is negative, but " + kind.noun + " is above zero", offers);
    }
    const auto unsigned_text = text.substr(text.starts_with('+') || text.starts_with('-') ? 1 : 0);
    const auto word = unsigned_text.substr(0, unsigned_text.find_first_not_of("aAfFiInNtTyY"));
    if (same_letters(word, "inf") || same_letters(word, "infinity") || same_letters(word, "nan")) {
        return refuse(kind, "number-range", quote + " is not a finite number", {});
    }
    return refuse(
        kind, "number-syntax", quote + " must be a number such as 1.5, and a unit", mended_numbers(text));
}

Failure refuse_range(const Kind& kind, std::string_view text, const Split& parts, const Unit& unit) {
    const auto digits = parts.number.substr(0, parts.number.find_first_of("eE"));
    if (digits.find_first_of("123456789") == std::string_view::npos) {
        const std::vector<std::string> offers{"1" + unit.preferred};
        return refuse(
            kind, "number-range", quoted(text) + " is zero, but " + kind.noun + " is above zero", offers);
    }
    const auto exponent = parts.number.substr(digits.size());
    const bool is_tiny = exponent.empty() ? digits.starts_with('0') || digits.starts_with('.')
                                          : exponent.find('-') != std::string_view::npos;
    const bool is_small =
        parts.error == std::errc{} ? parts.value * unit.factor / unit.divisor < 1.0 : is_tiny;
    const std::vector<std::string> offers{is_small && kind.is_whole ? "1B" : ""};
    return refuse(
        kind, "number-range", quoted(text) + (is_small ? " is too small" : " is too large"), offers);
}

/// Why `text` cannot be read, and what to write instead. Pre: read(kind, text) is empty.
Failure diagnose(const Kind& kind, std::string_view original) {
    const auto text = trimmed(original);
    const auto parts = split(text);
    if (!parts) {
        return refuse_number(kind, text);
    }
    const auto unit = parts->unit;
    if (const auto known = std::ranges::find(kind.units, unit, &Unit::name); known != kind.units.end()) {
        return refuse_range(kind, text, *parts, *known);
    }
    const auto quote = quoted(text);
    if (unit.empty()) {
        const bool counts_bytes = kind.is_whole && parts->value >= 1e6;
        const auto readings = std::span{kind.readings}.subspan(counts_bytes ? 2 : 0, counts_bytes ? 1 : 2);
        return refuse(kind,
                      "unit-missing",
                      quote + " has no unit, and " + kind.noun + " needs one (" + kind.fitting + ")",
                      with_units(parts->number, readings));
    }
    if (is_digit(unit.front()) || std::string_view{".,_'+-"}.find(unit.front()) != std::string_view::npos) {
        return refuse_number(kind, text);
    }
    if (const auto names = prefix_readings(kind, unit); !names.empty()) {
        return refuse(kind,
                      "unit-missing",
                      quote + " has a prefix but no unit (" + kind.fitting + ")",
                      with_units(parts->number, names));
    }
    if (const auto names = case_readings(kind, unit); !names.empty()) {
        const bool is_ambiguous = names.size() > 1;
        return refuse(
            kind,
            "unit-case",
            quote + (is_ambiguous ? " may mean bits or bytes" : " has its unit in the wrong letter case"),
            with_units(parts->number, names));
    }
    return refuse(kind,
                  "unit-unknown",
                  quote + " has no unit that fits " + kind.noun + " (" + kind.fitting + ")",
                  with_units(parts->number, unknown_readings(kind, unit)));
}

}  // namespace

Result<Bandwidth> parse_bandwidth(std::string_view text) {
    const auto& kind = bandwidth_kind();
    if (const auto amount = read(kind, text)) {
        return Bandwidth::bytes_per_second(amount->value);
    }
    return diagnose(kind, text);
}

Result<Seconds> parse_duration(std::string_view text) {
    const auto& kind = duration_kind();
    if (const auto amount = read(kind, text)) {
        return Seconds{amount->value};
    }
    return diagnose(kind, text);
}

Result<Bytes> parse_bytes(std::string_view text) {
    const auto& kind = bytes_kind();
    if (const auto amount = read(kind, text)) {
        return Bytes{amount->whole};
    }
    return diagnose(kind, text);
}

}  // namespace refit
