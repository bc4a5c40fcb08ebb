// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/filter.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>

#include "refit/dtype.hpp"
#include "refit/quantity.hpp"
#include "refit/suggest.hpp"

namespace refit::gui {
namespace {

using Field = FilterTerm::Field;

struct Key {
    const char* name;
    Field field;
    const char* example;
};
constexpr std::array kKeys{
    Key{"rank", Field::kRank, "rank:13 or rank:0-7"},   Key{"node", Field::kNode, "node:2"},
    Key{"domain", Field::kDomain, "domain:4"},          Key{"stage", Field::kStage, "stage:0-3 (of trainers)"},
    Key{"engine", Field::kEngine, "engine:1 (of generators)"},
    Key{"tensor", Field::kTensor, "tensor:*q_proj*"},   Key{"layer", Field::kLayer, "layer:0-3"},
    Key{"link", Field::kLink, "link:nic or link:nvlink"}, Key{"dtype", Field::kDtype, "dtype:bf16"},
    Key{"cross", Field::kCross, "cross:domain or cross:side"}, Key{"bytes", Field::kBytes, "bytes>1MiB or bytes<2GB"}};

std::string lower(std::string_view text) {
    std::string result{text};
    std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

Fault wrong(std::string message) { return {ErrorCode::kInvalidInput, "filter", std::move(message), "filter"}; }

bool read_number(std::string_view text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

/// "3" or "0-3".
std::optional<Fault> read_range(std::string_view key, std::string_view text, FilterTerm& term) {
    const auto dash = text.find('-');
    const auto first = text.substr(0, dash);
    const auto last = dash == std::string_view::npos ? first : text.substr(dash + 1);
    if (!read_number(first, term.low) || !read_number(last, term.high) || term.low > term.high) {
        return wrong("'" + std::string{text} + "' is no number or range of " + std::string{key} + "s, for example 3 or 0-3");
    }
    return std::nullopt;
}

std::optional<Fault> read_size(std::string_view word, FilterTerm& term) {
    const bool is_above = word[5] == '>';
    const auto size = parse_bytes(word.substr(6));
    if (!size) {
        return wrong(size.error().front().message + ", in 'bytes' of the filter");
    }
    term.field = Field::kBytes;
    term.low = is_above ? size->count() : 0;
    term.high = is_above ? std::numeric_limits<std::uint64_t>::max() : size->count();
    return std::nullopt;
}

std::optional<Fault> read_value(const Key& key, std::string_view value, FilterTerm& term) {
    term.text = lower(value);
    switch (key.field) {
        case Field::kRank:
        case Field::kNode:
        case Field::kDomain:
        case Field::kStage:
        case Field::kEngine:
        case Field::kLayer:
            return read_range(key.name, value, term);
        case Field::kLink:
            return term.text == "nic" || term.text == "nvlink" ? std::nullopt : std::optional{wrong("'" + term.text + "' is no kind of link; there are nic and nvlink")};
        case Field::kCross:
            return term.text == "domain" || term.text == "side" ? std::nullopt : std::optional{wrong("'" + term.text + "' is no border; there are domain and side")};
        case Field::kDtype: {
            const auto dtype = parse_dtype(term.text);
            return dtype ? std::nullopt : std::optional{wrong(dtype.error().front().message)};
        }
        case Field::kTensor:
        case Field::kWord:
        case Field::kBytes:
            break;
    }
    return value.empty() ? std::optional{wrong(std::string{key.name} + ": what? For example " + key.example)} : std::nullopt;
}

std::optional<Fault> read_word(std::string_view word, FilterTerm& term) {
    if (word.starts_with("bytes>") || word.starts_with("bytes<")) {
        return read_size(word, term);
    }
    const auto colon = word.find(':');
    if (colon == std::string_view::npos) {
        term = {Field::kWord, lower(word)};
        return std::nullopt;
    }
    const auto name = lower(word.substr(0, colon));
    const auto key = std::ranges::find(kKeys, name, [](const Key& known) { return std::string{known.name}; });
    if (key == kKeys.end() || key->field == Field::kBytes) {
        std::vector<std::string> names;
        for (const auto& known : kKeys) {
            names.emplace_back(known.name);
        }
        return wrong("unknown key '" + name + "'; did you mean '" + nearest_name(name, names) + "'?");
    }
    term.field = key->field;
    return read_value(*key, word.substr(colon + 1), term);
}

/// A term with its answers by rank and cargo.
class Judge {
public:
    Judge(const FilterTerm& term, const FlowTable& flows, const Workload& workload, const std::vector<Groups>& groups)
        : term_{term}, flows_{flows}, domains_{groups[static_cast<std::size_t>(Grouping::kDomain)]},
          sides_{groups[static_cast<std::size_t>(Grouping::kSide)]} {
        for (const auto& cargo : flows.cargos) {
            cargo_ok_.push_back(accepts(cargo, workload) ? 1 : 0);
        }
        for (std::uint32_t rank = 0; rank < domains_.of_ranks().size(); ++rank) {
            rank_ok_.push_back(accepts(rank, groups) ? 1 : 0);
        }
    }

    [[nodiscard]] bool operator()(std::size_t flow) const {
        const auto from = flows_.source[flow];
        const auto to = flows_.destination[flow];
        switch (term_.field) {
            case Field::kRank:
            case Field::kNode:
            case Field::kDomain:
            case Field::kStage:
            case Field::kEngine:
                return (rank_ok_[from] | rank_ok_[to]) != 0;
            case Field::kTensor:
            case Field::kLayer:
            case Field::kDtype:
                return cargo_ok_[flows_.cargo[flow]] != 0;
            case Field::kLink:
                return (flows_.is_network[flow] != 0) == (term_.text == "nic");
            case Field::kCross:
                return term_.text == "side" ? sides_.of_rank(from) != sides_.of_rank(to)
                                            : domains_.of_rank(from) != domains_.of_rank(to);
            case Field::kBytes:
                return flows_.bytes[flow] >= term_.low && flows_.bytes[flow] <= term_.high;
            case Field::kWord:
                break;
        }
        return (cargo_ok_[flows_.cargo[flow]] | rank_ok_[from] | rank_ok_[to]) != 0;
    }

private:
    [[nodiscard]] bool in_range(std::uint64_t number) const { return number >= term_.low && number <= term_.high; }

    [[nodiscard]] bool accepts(const Cargo& cargo, const Workload& workload) const {
        if (term_.field == Field::kWord) {
            return lower(cargo.name).find(term_.text) != std::string::npos;
        }
        return std::ranges::any_of(cargo.classes, [&](std::uint32_t number) {
            const auto& parameter = workload.classes()[number].parameter;
            switch (term_.field) {
                case Field::kTensor:
                    return fits(term_.text, parameter.name) || fits(term_.text, short_name(parameter.name));
                case Field::kLayer:
                    return std::ranges::any_of(parameter.layers, [&](std::uint32_t layer) { return in_range(layer); });
                case Field::kDtype:
                    return lower(name_of(parameter.dtype)) == term_.text;
                default:
                    return true;
            }
        });
    }

    [[nodiscard]] bool accepts(std::uint32_t rank, const std::vector<Groups>& groups) const {
        const auto by = [&](Grouping grouping) -> const Groups& { return groups[static_cast<std::size_t>(grouping)]; };
        const auto& stages = by(Grouping::kStage);
        const auto stage = stages.of_rank(rank);
        switch (term_.field) {
            case Field::kRank:
                return in_range(rank);
            case Field::kNode:
                return in_range(by(Grouping::kNode).of_rank(rank));
            case Field::kDomain:
                return in_range(domains_.of_rank(rank));
            case Field::kStage:
                return stages.is_train(stage) && in_range(stage);
            case Field::kEngine:
                return !stages.is_train(stage) && in_range(stage - stages.train_count());
            case Field::kWord:
                return std::ranges::any_of(groups, [&](const Groups& one) {
                    return lower(one.name(one.of_rank(rank))) == term_.text;
                });
            default:
                return true;
        }
    }

    const FilterTerm& term_;
    const FlowTable& flows_;
    const Groups& domains_;
    const Groups& sides_;
    std::vector<std::uint8_t> cargo_ok_;
    std::vector<std::uint8_t> rank_ok_;
};

}  // namespace

Result<Filter> parse_filter(std::string_view text) {
    Filter filter{std::string{text}, {}};
    Faults faults;
    std::size_t at = 0;
    while (at < text.size()) {
        const auto end = std::min(text.find(' ', at), text.size());
        if (end > at) {
            FilterTerm term;
            if (auto fault = read_word(text.substr(at, end - at), term)) {
                faults.push_back(std::move(*fault));
            }
            filter.terms.push_back(std::move(term));
        }
        at = end + 1;
    }
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    return filter;
}

std::string filter_help() {
    std::string text = "words match names;";
    for (const auto& key : kKeys) {
        text += std::string{" "} + key.example + ";";
    }
    text.back() = '.';
    return text;
}

std::vector<std::uint8_t> flow_mask(const Filter& filter, const FlowTable& flows, const Workload& workload,
                                    const std::vector<Groups>& groups) {
    std::vector<std::uint8_t> mask(flows.size(), 1);
    for (const auto& term : filter.terms) {
        const Judge judge{term, flows, workload, groups};
        for (std::size_t i = 0; i < mask.size(); ++i) {
            mask[i] = mask[i] != 0 && judge(i) ? 1 : 0;
        }
    }
    return mask;
}

bool matches_words(const Filter& filter, std::string_view name) {
    bool has_words = false;
    const auto small = lower(name);
    for (const auto& term : filter.terms) {
        if (term.field == Field::kWord) {
            has_words = true;
            if (small.find(term.text) != std::string::npos) {
                return true;
            }
        }
    }
    return !has_words;
}

bool fits(std::string_view pattern, std::string_view text) noexcept {
    const auto same = [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    };
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = std::string_view::npos;
    std::size_t star_text = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            star_text = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || same(pattern[p], text[t]))) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++star_text;
        } else {
            return false;
        }
    }
    return std::ranges::all_of(pattern.substr(p), [](char c) { return c == '*'; });
}

}  // namespace refit::gui
