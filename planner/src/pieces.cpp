// SPDX-License-Identifier: Apache-2.0
#include "pieces.hpp"

#include <algorithm>

namespace refit {
namespace {

/// The outermost axis that is fine enough to cut, so that what is cut stays in long runs; else the longest.
std::size_t cut_axis(const Box& box) {
    constexpr std::uint64_t kFineEnough = 64;
    std::size_t longest = 0;
    for (std::size_t axis = 0; axis < box.axes().size(); ++axis) {
        if (box.axes()[axis].length() >= kFineEnough) {
            return axis;
        }
        longest = box.axes()[axis].length() > box.axes()[longest].length() ? axis : longest;
    }
    return longest;
}

/// A place between two rows of a tensor of a part.
struct Position {
    std::size_t part = 0;
    std::uint32_t tensor = 0;
    std::uint64_t row = 0;
};

class Cutter {
public:
    Cutter(RelayTable& table, std::span<const MessagePart> parts, std::span<const std::uint64_t> element_bytes)
        : table_{table}, parts_{parts} {
        for (const auto& part : parts) {
            const auto axis = cut_axis(part.box);
            const auto rows = part.box.axes()[axis].length();
            axes_.push_back(axis);
            rows_.push_back(rows);
            row_bytes_.push_back(part.box.volume() / rows * element_bytes[part.parameter]);
            total_ += row_bytes_.back() * rows * part.tensors;
        }
    }

    void cut(std::uint64_t messages) {
        Position begin;
        for (std::uint64_t i = 1; i <= messages; ++i) {
            const auto end = i == messages ? Position{parts_.size(), 0, 0} : position(total_ / messages * i);
            emit(begin, end);
            begin = end;
        }
    }

private:
    /// The row nearest to a byte.
    [[nodiscard]] Position position(std::uint64_t byte) const {
        std::size_t part = 0;
        for (; part + 1 < parts_.size() && byte >= bytes_of(part); ++part) {
            byte -= bytes_of(part);
        }
        const auto row = (byte + row_bytes_[part] / 2) / row_bytes_[part];
        const auto tensor = row / rows_[part];
        return tensor >= parts_[part].tensors ? Position{part + 1, 0, 0}
                                              : Position{part, static_cast<std::uint32_t>(tensor), row % rows_[part]};
    }
    [[nodiscard]] std::uint64_t bytes_of(std::size_t part) const { return row_bytes_[part] * rows_[part] * parts_[part].tensors; }

    void emit(const Position& begin, const Position& end) {
        Message message{static_cast<std::uint32_t>(table_.parts.size()), 0, 0};
        for (auto part = begin.part; part < parts_.size() && part <= end.part; ++part) {
            const Position from{part, part == begin.part ? begin.tensor : 0, part == begin.part ? begin.row : 0};
            const Position to{part, part == end.part ? end.tensor : parts_[part].tensors, part == end.part ? end.row : 0};
            message.bytes += emit_part(from, to);
        }
        message.parts = static_cast<std::uint32_t>(table_.parts.size()) - message.first_part;
        if (message.bytes > 0) {
            table_.messages.push_back(message);
        }
    }

    /// Rows from one place to another of the same part: the rest of a tensor, whole tensors, the beginning of one.
    std::uint64_t emit_part(Position from, const Position& to) {
        const auto rows = rows_[from.part];
        std::uint64_t bytes = 0;
        if (from.row > 0 && from.tensor < to.tensor) {
            bytes += add(from.part, from.tensor, 1, {from.row, rows});
            from = {from.part, from.tensor + 1, 0};
        }
        if (from.tensor < to.tensor) {
            bytes += add(from.part, from.tensor, to.tensor - from.tensor, {0, rows});
            from = {from.part, to.tensor, 0};
        }
        if (from.row < to.row) {
            bytes += add(from.part, from.tensor, 1, {from.row, to.row});
        }
        return bytes;
    }

    std::uint64_t add(std::size_t part, std::uint32_t tensor, std::uint32_t tensors, Interval rows) {
        auto copy = parts_[part];
        const auto axis = axes_[part];
        const auto first = copy.box.axes()[axis].begin;
        copy.box = copy.box.with(axis, {first + rows.begin, first + rows.end});
        copy.first_tensor += tensor;
        copy.tensors = tensors;
        table_.parts.push_back(copy);
        return rows.length() * row_bytes_[part] * tensors;
    }

    RelayTable& table_;
    std::span<const MessagePart> parts_;
    std::vector<std::size_t> axes_;
    std::vector<std::uint64_t> rows_;
    std::vector<std::uint64_t> row_bytes_;
    std::uint64_t total_ = 0;
};

}  // namespace

void append_messages(RelayTable& table, std::span<const MessagePart> parts, std::span<const std::uint64_t> element_bytes,
                     std::uint64_t messages) {
    Cutter{table, parts, element_bytes}.cut(messages);
}

}  // namespace refit
