// SPDX-License-Identifier: Apache-2.0
#include "nccl_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace refit::io {
namespace {

constexpr std::array kTests{"all_gather",
                            "all_reduce",
                            "alltoall",
                            "broadcast",
                            "gather",
                            "hypercube",
                            "reduce_scatter",
                            "reduce",
                            "scatter",
                            "sendrecv"};
constexpr std::size_t kMostFaults = 100;

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t at = line.find_first_not_of(" \t\r"); at != std::string_view::npos;) {
        const auto end = std::min(line.find_first_of(" \t\r", at), line.size());
        words.push_back(line.substr(at, end - at));
        at = line.find_first_not_of(" \t\r", end);
    }
    return words;
}

/// A number, or a fault's worth of none. "N/A" is none too.
std::optional<double> number_of(std::string_view word) {
    double value = 0.0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool is_whole = error == std::errc{} && end == word.data() + word.size() && std::isfinite(value);
    return is_whole ? std::optional{value} : std::nullopt;
}

/// What mpirun puts before a line: "[0] ", "[1,0]<stdout>:", "<stdout>:", "0: ".
std::string_view without_prefix(std::string_view line) {
    const auto skip = [&](std::size_t count) {
        line.remove_prefix(std::min(count, line.size()));
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    };
    skip(0);
    if (!line.empty() && line.front() == '[' && line.find(']') != std::string_view::npos) {
        skip(line.find(']') + 1);
    }
    for (const std::string_view mark : {"<stdout>:", "<stderr>:", "<stdout>", ":"}) {
        if (line.starts_with(mark)) {
            skip(mark.size());
        }
    }
    const auto colon = line.find(": ");
    if (colon != std::string_view::npos && colon > 0 &&
        line.substr(0, colon).find_first_not_of("0123456789") == std::string_view::npos) {
        skip(colon + 2);
    }
    return line;
}

/// Where the columns of one half of a table are, and what their units count.
struct Half {
    std::optional<std::size_t> time;
    std::optional<std::size_t> bus;
    std::optional<std::size_t> wrong;
    double seconds = 1e-6;
    double bytes_per_second = 1e9;
};

class TextReader {
public:
    TextReader(std::string_view text, const std::string& origin, Faults& faults)
        : text_{text}, origin_{origin}, faults_{faults} {}

    std::vector<NcclTable> run() {
        while (!text_.empty()) {
            ++line_;
            const auto end = text_.find('\n');
            read(without_prefix(text_.substr(0, end)));
            text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
        }
        return std::move(tables_);
    }

private:
    void read(std::string_view line) {
        if (line.starts_with('#')) {
            remark(line);
            return;
        }
        const auto words = words_of(line);
        if (columns_ > 0 && !words.empty() && number_of(words.front())) {
            row(words);
        }
    }

    void remark(std::string_view line) {
        const auto words = words_of(line.substr(1));
        if (words.empty()) {
            return;
        }
        if (words.front() == "Rank") {
            rank(words);
        } else if (words.front() == "nThread" || words.front() == "Using") {
            begin_run(words.front() == "nThread");
        } else if (line.find("est starting:") != std::string_view::npos) {
            announced_ = nccl_test_name(words.back());
            test_ = announced_;
        } else if (words.front() == "size" && std::ranges::find(words, "busbw") != words.end()) {
            header(words);
        } else if (words.front() == "(B)") {
            units(words);
        }
    }

    /// A new run lists its ranks anew.
    void begin_run(bool is_first_line) {
        columns_ = 0;
        if (is_first_line) {
            ranks_ = 0;
            hosts_.clear();
            test_ = std::exchange(announced_, {});
        }
    }

    /// "#  Rank  0 Group  0 Pid 1320 on HOST device  0 [0x00] NAME".
    void rank(const std::vector<std::string_view>& words) {
        const auto on = std::ranges::find(words, "on");
        if (on != words.end() && on + 1 != words.end()) {
            ++ranks_;
            hosts_.insert(std::string{*(on + 1)});
        }
    }

    void header(const std::vector<std::string_view>& words) {
        halves_.clear();
        columns_ = words.size();
        for (std::size_t at = 0; at < words.size(); ++at) {
            const auto word = words[at];
            if (word == "time" || word == "cputime") {
                halves_.emplace_back().time = at;
            } else if (word == "busbw" && !halves_.empty()) {
                halves_.back().bus = at;
            } else if ((word == "#wrong" || word == "error") && !halves_.empty()) {
                halves_.back().wrong = at;
            }
        }
        tables_.push_back({test_,
                           origin_ + ":" + std::to_string(line_),
                           ranks_,
                           static_cast<std::uint32_t>(hosts_.size()),
                           {},
                           0});
    }

    /// "#  (B) (elements) (us) (GB/s) (GB/s) (us) …": in the order of the columns that have a unit.
    void units(const std::vector<std::string_view>& words) {
        static const std::map<std::string_view, double> kSeconds{
            {"(us)", 1e-6}, {"(ms)", 1e-3}, {"(s)", 1.0}};
        static const std::map<std::string_view, double> kRates{
            {"(GB/s)", 1e9}, {"(MB/s)", 1e6}, {"(TB/s)", 1e12}};
        std::size_t half = 0;
        for (const auto word : words) {
            if (const auto time = kSeconds.find(word); time != kSeconds.end()) {
                if (half < halves_.size()) {
                    halves_[half].seconds = time->second;
                }
                ++half;
            } else if (const auto rate = kRates.find(word);
                       rate != kRates.end() && half > 0 && half <= halves_.size()) {
                halves_[half - 1].bytes_per_second = rate->second;
            }
        }
    }

    void row(const std::vector<std::string_view>& words) {
        if (words.size() != columns_) {
            refuse("has " + std::to_string(words.size()) + " columns, but the header has " +
                   std::to_string(columns_));
            return;
        }
        auto& table = tables_.back();
        const auto size = number_of(words.front()).value_or(0.0);
        for (const auto& half : halves_) {
            const auto time = half.time ? number_of(words[*half.time]) : std::nullopt;
            const auto bus = half.bus ? number_of(words[*half.bus]) : std::nullopt;
            if (!time || !bus || *time < 0.0 || *bus < 0.0) {
                refuse("has no time and bus bandwidth that are numbers");
                continue;
            }
            if (size > 0.0 && *time > 0.0 && *bus > 0.0) {
                const auto seconds = *time * half.seconds;
                table.samples.push_back({*bus * half.bytes_per_second * seconds, size, seconds});
            }
            const auto wrong = half.wrong ? number_of(words[*half.wrong]) : std::nullopt;
            table.wrong += wrong && *wrong > 0.0 ? 1U : 0U;
        }
    }

    void refuse(const std::string& message) {
        if (faults_.size() < kMostFaults) {
            faults_.push_back(
                {ErrorCode::kInvalidInput, "nccl-tests", message, origin_ + ":" + std::to_string(line_)});
        }
    }

    std::string_view text_;
    const std::string& origin_;
    Faults& faults_;
    std::vector<NcclTable> tables_;
    std::vector<Half> halves_;
    std::size_t columns_ = 0;  ///< Of the table that rows belong to; 0: none.
    std::size_t line_ = 0;
    std::string test_;
    std::string announced_;  ///< A test's name, which stands before the first line of its run.
    std::uint32_t ranks_ = 0;
    std::set<std::string> hosts_;
};

}  // namespace

std::string nccl_test_name(std::string_view text) {
    text = text.substr(text.find_last_of('/') + 1);
    // "reduce_scatter" begins as "reduce" does, so the longer name goes first.
    for (const std::string_view test : kTests) {
        const auto at = text.find(test);
        const bool is_word =
            at != std::string_view::npos &&
            (at == 0 || (text[at - 1] != '_' && std::isalpha(static_cast<unsigned char>(text[at - 1])) == 0));
        if (is_word) {
            return std::string{test};
        }
    }
    return {};
}

std::vector<NcclTable> nccl_tables_of_text(std::string_view text, const std::string& origin, Faults& faults) {
    return TextReader{text, origin, faults}.run();
}

}  // namespace refit::io
