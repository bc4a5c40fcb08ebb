// SPDX-License-Identifier: Apache-2.0
#include "refit/pipeline_layout.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>

namespace refit {
namespace {

constexpr const char* kField = "train.pipeline.layout";
constexpr std::size_t kLongest = 1U << 16U;  ///< Letters and bars after repetitions are written out.

/// One letter a layer: E embedding, t decoder, m MTP, L loss.
using Chunks = std::vector<std::string>;

Failure malformed(std::string message) {
    return fail(
        ErrorCode::kInvalidInput,
        "layout-string",
        std::string{kField} + ": " + std::move(message) +
            "; write E (embedding), t (decoder layer), m (MTP), L (loss), | between stages, t*n or (tt|)*n",
        kField);
}

/// Writes repetitions out: "x*n", and "(…)*n" without brackets inside.
class Unroller {
public:
    explicit Unroller(std::string_view text) : text_{text} {}

    Result<std::string> run() {
        auto all = items(false);
        if (all && at_ < text_.size()) {
            return malformed("')' at character " + std::to_string(at_ + 1) + " closes nothing");
        }
        return all;
    }

private:
    Result<std::string> items(bool is_group) {
        std::string all;
        while (at_ < text_.size() && text_[at_] != ')') {
            auto next = item(is_group);
            if (!next) {
                return next;
            }
            all += *next;
            if (all.size() > kLongest) {
                return malformed("the repetitions make more than " + std::to_string(kLongest) +
                                 " layers and stages");
            }
        }
        return all;
    }

    Result<std::string> item(bool is_group) {
        const auto begin = at_;
        const char c = text_[at_++];
        if (c != '(') {
            if (std::string_view{"EtmL|"}.find(c) == std::string_view::npos) {
                return malformed("'" + std::string{c} + "' at character " + std::to_string(at_) +
                                 " is no layer");
            }
            return repeated(std::string{c}, begin);
        }
        auto inner = is_group ? Result<std::string>{malformed("brackets stand in brackets")} : items(true);
        if (inner && (at_ == text_.size() || inner->empty())) {
            return malformed("'(' at character " + std::to_string(begin + 1) +
                             " has no end or nothing in it");
        }
        if (inner && (++at_ == text_.size() || text_[at_] != '*')) {
            return malformed("the brackets from character " + std::to_string(begin + 1) +
                             " are not repeated");
        }
        return inner ? repeated(*inner, begin) : inner;
    }

    /// The piece as often as "*n" says, where it stands next.
    Result<std::string> repeated(const std::string& piece, std::size_t begin) {
        if (at_ == text_.size() || text_[at_] != '*') {
            return piece;
        }
        std::size_t times = 0;
        const auto* first = text_.data() + at_ + 1;
        const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), times);
        at_ = static_cast<std::size_t>(end - text_.data());
        if (error == std::errc::invalid_argument) {
            return malformed("'*' at character " + std::to_string(at_) + " has no number");
        }
        if (error != std::errc{} || times > kLongest / piece.size()) {
            return malformed("the repetition at character " + std::to_string(begin + 1) + " is too long");
        }
        std::string all;
        for (std::size_t i = 0; i < times; ++i) {
            all += piece;
        }
        return all;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

Result<Chunks> chunks_of_string(std::string_view text) {
    const auto letters = Unroller{text}.run();
    if (!letters) {
        return Failure{letters.error()};
    }
    Chunks chunks(1);
    for (const char c : *letters) {
        if (c == '|') {
            chunks.emplace_back();
        } else {
            chunks.back() += c;
        }
    }
    return chunks;
}

std::optional<char> letter_of(std::string word) {
    std::ranges::transform(word, word.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    for (const auto& [name, letter] : {std::pair{"embedding", 'E'},
                                       std::pair{"decoder", 't'},
                                       std::pair{"mtp", 'm'},
                                       std::pair{"loss", 'L'}}) {
        if (word == name) {
            return letter;
        }
    }
    return std::nullopt;
}

/// Reads "[[embedding,decoder],[decoder,loss]]", from which blanks and quotes have been taken.
Result<Chunks> chunks_of_list(std::string_view text) {
    if (!text.starts_with("[[") || !text.ends_with("]]") || text.size() > kLongest * 16) {
        return malformed("the list is not a list of lists");
    }
    text = text.substr(1, text.size() - 2);
    Chunks chunks;
    while (true) {
        const auto end = text.find(']');
        auto row = text.substr(1, end - 1);
        chunks.emplace_back();
        while (!row.empty()) {
            const auto comma = row.find(',');
            const std::string word{row.substr(0, comma)};
            const auto letter = letter_of(word);
            if (!letter) {
                return malformed("'" + word + "' is none of embedding, decoder, mtp and loss");
            }
            chunks.back() += *letter;
            row = comma == std::string_view::npos ? std::string_view{} : row.substr(comma + 1);
        }
        text = text.substr(end + 1);
        if (text.empty()) {
            return chunks;
        }
        if (!text.starts_with(",[")) {
            return malformed("the list is not a list of lists");
        }
        text = text.substr(1);
    }
}

Result<Chunks> chunks_of(std::string_view text) {
    const bool is_list = text.starts_with('[');
    std::string plain;
    std::ranges::copy_if(text, std::back_inserter(plain), [&](char c) {
        return is_list ? std::string_view{" \n\t\"'"}.find(c) == std::string_view::npos
                       : c != ',';  // commas are for the eye
    });
    return is_list ? chunks_of_list(plain) : chunks_of_string(plain);
}

std::uint32_t count_in(const Chunks& chunks, char letter) {
    return std::accumulate(
        chunks.begin(), chunks.end(), 0U, [&](std::uint32_t sum, const std::string& chunk) {
            return sum + static_cast<std::uint32_t>(std::ranges::count(chunk, letter));
        });
}

std::vector<std::uint32_t> layers_of(const Chunks& chunks) {
    std::vector<std::uint32_t> layers;
    for (const auto& chunk : chunks) {
        layers.push_back(static_cast<std::uint32_t>(std::ranges::count(chunk, 't')));
    }
    return layers;
}

/// The nearest chunks that fit: their number rounded to a multiple of the stages, then layers taken from the
/// fullest or given to the emptiest until they are as many as the model's.
std::vector<std::uint32_t> mended(std::vector<std::uint32_t> chunks,
                                  std::uint32_t stages,
                                  std::uint32_t layers) {
    constexpr std::uint32_t kMostSteps = 4096;
    const auto rounded = std::max<std::size_t>(1, (chunks.size() + stages / 2) / stages) * stages;
    chunks.resize(rounded, 0);
    auto total = std::accumulate(chunks.begin(), chunks.end(), std::uint64_t{0});
    const auto steps = total > layers ? total - layers : layers - total;
    if (rounded > kMostSteps || steps > kMostSteps) {
        chunks.assign(stages, layers / stages);
        total = std::uint64_t{layers / stages} * stages;
    }
    for (; total > layers; --total) {
        --*std::max_element(chunks.rbegin(), chunks.rend());
    }
    for (; total < layers; ++total) {
        ++*std::ranges::min_element(chunks);
    }
    return chunks;
}

/// The string of the nearest chunks; none where it would be too long to be read.
std::string nearest_text(std::vector<std::uint32_t> chunks,
                         std::uint32_t stages,
                         std::uint32_t layers,
                         std::uint32_t mtp_layers) {
    constexpr std::size_t kMost = kLongest / 4;
    const bool is_readable =
        stages <= kMost && layers <= kMost && mtp_layers <= kMost && chunks.size() <= kMost;
    return is_readable ? pipeline_layout_text(mended(std::move(chunks), stages, layers), mtp_layers)
                       : std::string{};
}

/// What Megatron would refuse of a layout that can be read.
std::vector<std::string> complaints(const Chunks& chunks, std::uint32_t stages, std::uint32_t layers) {
    std::vector<std::string> found;
    if (chunks.size() % stages != 0) {
        found.push_back(std::to_string(chunks.size()) + " stages between bars are no multiple of pp " +
                        std::to_string(stages));
    }
    if (const auto count = count_in(chunks, 't'); count != layers) {
        found.push_back(std::to_string(count) + " decoder layers, but the model has " +
                        std::to_string(layers));
    }
    if (count_in(chunks, 'E') != 1 || !chunks.front().starts_with('E')) {
        found.emplace_back("the embedding (E) must stand once, first in the first stage");
    }
    if (count_in(chunks, 'L') != 1 || !chunks.back().ends_with('L')) {
        found.emplace_back("the loss (L) must stand once, last in the last stage");
    }
    const auto mtp = count_in(chunks, 'm');
    const auto with_mtp = std::ranges::find_if(
        chunks, [](const std::string& chunk) { return chunk.find('m') != std::string::npos; });
    if (mtp == 0) {
        return found;
    }
    const bool is_whole = static_cast<std::uint32_t>(std::ranges::count(*with_mtp, 'm')) == mtp;
    const bool is_last = chunks.end() - with_mtp <= static_cast<std::ptrdiff_t>(stages);
    const auto after = with_mtp->substr(with_mtp->find('m')).find('t') != std::string::npos ||
                       std::any_of(with_mtp + 1, chunks.end(), [](const std::string& chunk) {
                           return chunk.find('t') != std::string::npos;
                       });
    if (!is_whole || !is_last || after) {
        found.emplace_back(
            "MTP layers (m) must stand together behind all decoder layers, in the last chunk of a stage");
    }
    return found;
}

Failure refused(const std::vector<std::string>& complaints, const std::string& nearest) {
    Faults faults;
    for (const auto& complaint : complaints) {
        faults.push_back({ErrorCode::kInfeasible,
                          "layout-string",
                          std::string{kField} + ": " + complaint,
                          kField,
                          Suggestion{kField, nearest, ""}});
    }
    return fail(std::move(faults));
}

}  // namespace

std::string pipeline_layout_text(std::span<const std::uint32_t> chunk_layers, std::uint32_t mtp_layers) {
    const auto layers = [](std::uint32_t count) {
        return count == 0 ? std::string{} : count == 1 ? std::string{"t"} : "t*" + std::to_string(count);
    };
    const auto last = chunk_layers.size() - 1;
    std::string text = "E";
    text += last > 0 ? layers(chunk_layers[0]) + "|" : "";
    for (std::size_t i = 1; i < last;) {
        auto end = i;
        while (end < last && chunk_layers[end] == chunk_layers[i]) {
            ++end;
        }
        const auto stage = layers(chunk_layers[i]) + "|";
        text += end - i == 1 ? stage : "(" + stage + ")*" + std::to_string(end - i);
        i = end;
    }
    text += layers(chunk_layers[last]);
    text += mtp_layers == 0 ? "" : mtp_layers == 1 ? "m" : "m*" + std::to_string(mtp_layers);
    return text + "L";
}

Result<std::vector<std::uint32_t>> read_pipeline_layout(std::string_view text,
                                                        std::uint32_t stages,
                                                        std::uint32_t layers) {
    auto chunks = chunks_of(text);
    if (!chunks) {
        for (auto& fault : chunks.error()) {
            fault.nearest = Suggestion{kField, nearest_text({}, stages, layers, 0), ""};
        }
        return Failure{std::move(chunks.error())};
    }
    const auto found = complaints(*chunks, stages, layers);
    const auto counted = layers_of(*chunks);
    if (!found.empty()) {
        return refused(found, nearest_text(counted, stages, layers, count_in(*chunks, 'm')));
    }
    return counted;
}

}  // namespace refit
