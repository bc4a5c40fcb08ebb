// SPDX-License-Identifier: Apache-2.0
#include "refit/io/flow_list.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace refit::io {
namespace {

constexpr std::size_t kMaxFaults = 100;
constexpr std::uint64_t kMaxGpus = 1U << 20U;
constexpr std::uint64_t kMaxReserved = 1U << 22U;

/// The words of a line; one more than `kCount` where there are more.
template <std::size_t kCount>
struct Words {
    std::array<std::string_view, kCount> word;
    std::size_t count = 0;

    explicit Words(std::string_view line) {
        constexpr std::string_view kBlanks = " \t\r";
        for (auto begin = line.find_first_not_of(kBlanks); begin != std::string_view::npos;
             begin = line.find_first_not_of(kBlanks)) {
            line.remove_prefix(begin);
            const auto end = std::min(line.find_first_of(kBlanks), line.size());
            if (count == kCount) {
                ++count;
                return;
            }
            word[count++] = line.substr(0, end);
            line.remove_prefix(end);
        }
    }
};

template <class Number>
std::optional<Number> parse(std::string_view word) {
    Number number{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc{} || end != word.data() + word.size()) {
        return std::nullopt;
    }
    return number;
}

struct Header {
    std::uint64_t gpus = 0;
    std::uint64_t node = 0;
    double nvlink = 0.0;
    double nic = 0.0;
    std::uint64_t flows = 0;
};

class Reader {
public:
    Reader(std::istream& in, const std::string& origin) : in_{in}, origin_{origin} {}

    Result<FlowNetwork> read() {
        if (!next_line()) {
            refuse("flow-list", "there is no first line 'GPUs node NVLink-rate NIC-rate flows'");
            return end();
        }
        if (!read_header()) {
            return end();
        }
        // GPU by GPU: flows of neighbours then meet links that lie side by side.
        for (const auto rate : {header_.nic, header_.nvlink}) {
            for (std::uint64_t port = 0; port < 2 * header_.gpus; ++port) {
                network_.add_link(rate);
            }
        }
        const auto likely = static_cast<std::size_t>(std::min(header_.flows, kMaxReserved));
        network_.reserve(likely, 2 * likely, 0);
        std::uint64_t flows = 0;
        while (next_line()) {
            if (Words<1>{line_}.count == 0) {
                continue;
            }
            if (++flows > header_.flows) {
                refuse("flow-count",
                       "a flow more than the " + std::to_string(header_.flows) + " of the first line");
                break;
            }
            read_flow();
        }
        if (flows < header_.flows) {
            refuse("flow-count",
                   "the file ends after " + std::to_string(flows) + " of " + std::to_string(header_.flows) +
                       " flows");
        }
        return end();
    }

private:
    bool next_line() {
        ++number_;
        return static_cast<bool>(std::getline(in_, line_));
    }

    void refuse(std::string rule, std::string message) {
        if (faults_.size() < kMaxFaults) {
            faults_.push_back({ErrorCode::kInvalidInput,
                               std::move(rule),
                               std::move(message),
                               origin_ + ":" + std::to_string(number_)});
        } else {
            ++untold_;
        }
    }

    /// Refuses a word, unless its fault is that it is absent.
    void refuse_word(const char* rule, const char* what, std::string_view word, const std::string& range) {
        refuse(rule, std::string{what} + " '" + std::string{word.substr(0, 40)} + "' is not " + range);
    }

    bool read_header() {
        const Words<5> words{line_};
        if (words.count != 5) {
            refuse("flow-list",
                   "the first line takes 5 numbers: GPUs, GPUs in a node, NVLink rate, NIC rate, flows");
            return false;
        }
        const auto gpus = parse<std::uint64_t>(words.word[0]);
        const auto node = parse<std::uint64_t>(words.word[1]);
        const auto nvlink = parse<double>(words.word[2]);
        const auto nic = parse<double>(words.word[3]);
        const auto flows = parse<std::uint64_t>(words.word[4]);
        const auto is_rate = [](const std::optional<double>& rate) {
            return rate && *rate > 0.0 && std::isfinite(*rate);
        };
        if (!gpus || *gpus == 0 || *gpus > kMaxGpus) {
            refuse_word(
                "flow-gpus", "number of GPUs", words.word[0], "from 1 to " + std::to_string(kMaxGpus));
        }
        if (!node || *node == 0) {
            refuse_word("flow-gpus", "GPUs in a node", words.word[1], "a whole number above 0");
        }
        if (!is_rate(nvlink)) {
            refuse_word("link-rate", "NVLink rate", words.word[2], "above 0 and finite");
        }
        if (!is_rate(nic)) {
            refuse_word("link-rate", "NIC rate", words.word[3], "above 0 and finite");
        }
        if (!flows) {
            refuse_word("flow-count", "number of flows", words.word[4], "a whole number");
        }
        if (!faults_.empty()) {
            return false;
        }
        header_ = {*gpus, *node, *nvlink, *nic, *flows};
        return true;
    }

    void read_flow() {
        const Words<3> words{line_};
        if (words.count != 3) {
            refuse("flow-list", "a flow takes 3 numbers: source, destination, bytes");
            return;
        }
        const auto source = parse<std::uint64_t>(words.word[0]);
        const auto destination = parse<std::uint64_t>(words.word[1]);
        const auto bytes = parse<double>(words.word[2]);
        const auto known = faults_.size() + untold_;
        const auto ranks = "a GPU from 0 to " + std::to_string(header_.gpus - 1);
        if (!source || *source >= header_.gpus) {
            refuse_word("flow-rank", "source", words.word[0], ranks);
        }
        if (!destination || *destination >= header_.gpus) {
            refuse_word("flow-rank", "destination", words.word[1], ranks);
        }
        if (source && destination && *source == *destination) {
            refuse("flow-rank", "source and destination are both " + std::to_string(*source));
        }
        if (!bytes || !(*bytes >= 0.0) || std::isinf(*bytes)) {
            refuse_word("flow-bytes", "bytes", words.word[2], "0 or more and finite");
        }
        if (faults_.size() + untold_ == known) {
            const bool is_near = *source / header_.node == *destination / header_.node;
            const std::array uses{LinkUse{port(*source, is_near, false)},
                                  LinkUse{port(*destination, is_near, true)}};
            network_.add_flow({.bytes = *bytes}, uses);
        }
    }

    [[nodiscard]] std::uint32_t port(std::uint64_t gpu, bool is_nvlink, bool is_in) const {
        return static_cast<std::uint32_t>(2 * (gpu + (is_nvlink ? header_.gpus : 0)) + (is_in ? 1 : 0));
    }

    Result<FlowNetwork> end() {
        if (in_.bad()) {
            return fail(ErrorCode::kIo, "read", "cannot read " + origin_, origin_);
        }
        if (untold_ != 0) {
            faults_.push_back(
                {ErrorCode::kInvalidInput, "more-faults", std::to_string(untold_) + " more faults", origin_});
        }
        if (!faults_.empty()) {
            return fail(std::move(faults_));
        }
        return std::move(network_);
    }

    std::istream& in_;
    const std::string& origin_;
    std::string line_;
    std::uint64_t number_ = 0;
    Header header_;
    FlowNetwork network_;
    Faults faults_;
    std::size_t untold_ = 0;
};

}  // namespace

Result<FlowNetwork> read_flow_list(std::istream& in, const std::string& origin) {
    return Reader{in, origin}.read();
}

}  // namespace refit::io
