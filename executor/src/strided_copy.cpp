// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/strided_copy.hpp"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace refit::exec {
namespace {

/// One axis of a box in both memories.
struct Axis {
    std::uint64_t count;
    std::uint64_t source_step;
    std::uint64_t destination_step;
};

/// The two innermost axes, with runs of a length that the compiler knows.
template <std::size_t Run>
void copy_rows(const std::byte* source,
               std::byte* destination,
               std::uint64_t count,
               std::uint64_t from,
               std::uint64_t to) {
    for (std::uint64_t i = 0; i < count; ++i) {
        std::memcpy(destination + i * to, source + i * from, Run);
    }
}

void copy_rows(const std::byte* source,
               std::byte* destination,
               const StridedCopy& copy,
               std::uint64_t count,
               std::uint64_t from,
               std::uint64_t to) {
    switch (copy.run) {
        case 1:
            return copy_rows<1>(source, destination, count, from, to);
        case 2:
            return copy_rows<2>(source, destination, count, from, to);
        case 4:
            return copy_rows<4>(source, destination, count, from, to);
        case 8:
            return copy_rows<8>(source, destination, count, from, to);
        case 16:
            return copy_rows<16>(source, destination, count, from, to);
        case 32:
            return copy_rows<32>(source, destination, count, from, to);
        case 64:
            return copy_rows<64>(source, destination, count, from, to);
        case 128:
            return copy_rows<128>(source, destination, count, from, to);
        default:
            break;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        std::memcpy(destination + i * to, source + i * from, copy.run);
    }
}

#if defined(__SSE2__)
constexpr std::uint64_t kLine = 64;

/// Whole lines bypass the caches; what is before and after them does not.
void stream_run(const std::byte* source, std::byte* destination, std::uint64_t bytes) {
    const auto before = std::min<std::uint64_t>(
        (kLine - reinterpret_cast<std::uintptr_t>(destination) % kLine) % kLine, bytes);
    std::memcpy(destination, source, before);
    std::uint64_t at = before;
    for (; at + kLine <= bytes; at += kLine) {
        const auto* from = reinterpret_cast<const __m128i*>(source + at);
        auto* to = reinterpret_cast<__m128i*>(destination + at);
        const auto a = _mm_loadu_si128(from);
        const auto b = _mm_loadu_si128(from + 1);
        const auto c = _mm_loadu_si128(from + 2);
        const auto d = _mm_loadu_si128(from + 3);
        _mm_stream_si128(to, a);
        _mm_stream_si128(to + 1, b);
        _mm_stream_si128(to + 2, c);
        _mm_stream_si128(to + 3, d);
    }
    std::memcpy(destination + at, source + at, bytes - at);
}
#endif

/// Calls use(source, destination) at the beginning of each set of innermost rows.
template <class Use>
void for_each_outer(
    const StridedCopy& copy, std::size_t axis, const std::byte* source, std::byte* destination, Use&& use) {
    if (axis + 1 >= copy.axes) {
        use(source, destination);
        return;
    }
    for (std::uint64_t i = 0; i < copy.count[axis]; ++i) {
        for_each_outer(copy,
                       axis + 1,
                       source + i * copy.source_step[axis],
                       destination + i * copy.destination_step[axis],
                       use);
    }
}

}  // namespace

std::uint64_t StridedCopy::bytes() const noexcept {
    auto all = run;
    for (std::size_t axis = 0; axis < axes; ++axis) {
        all *= count[axis];
    }
    return all;
}

std::uint64_t StridedCopy::source_span() const noexcept {
    auto span = run;
    for (std::size_t axis = 0; axis < axes; ++axis) {
        span += (count[axis] - 1) * source_step[axis];
    }
    return span;
}

StridedCopy copy_of(const Box& box, const Box& from, const Box& to, std::uint64_t element_bytes) {
    StridedCopy copy;
    std::array<Axis, StridedCopy::kMostAxes> found{};
    std::size_t count = 0;
    auto source_step = element_bytes;
    auto destination_step = element_bytes;
    copy.run = element_bytes;
    // From the innermost axis out: an axis that goes on where the one inside it ends, on both sides, joins
    // it.
    for (auto axis = box.axes().size(); axis-- > 0;) {
        const auto& taken = box.axes()[axis];
        copy.source += (taken.begin - from.axes()[axis].begin) * source_step;
        copy.destination += (taken.begin - to.axes()[axis].begin) * destination_step;
        if (taken.length() > 1) {
            auto* inner = count > 0 ? &found[count - 1] : nullptr;
            if (inner == nullptr && source_step == copy.run && destination_step == copy.run) {
                copy.run *= taken.length();
            } else if (inner != nullptr && source_step == inner->source_step * inner->count &&
                       destination_step == inner->destination_step * inner->count) {
                inner->count *= taken.length();
            } else {
                found[count++] = {taken.length(), source_step, destination_step};
            }
        }
        source_step *= from.axes()[axis].length();
        destination_step *= to.axes()[axis].length();
    }
    copy.axes = count;
    for (std::size_t i = 0; i < count; ++i) {
        const auto& axis = found[count - 1 - i];
        copy.count[i] = axis.count;
        copy.source_step[i] = axis.source_step;
        copy.destination_step[i] = axis.destination_step;
    }
    return copy;
}

void append_pieces(const StridedCopy& copy, std::uint64_t span, std::vector<StridedCopy>& pieces) {
    if (copy.axes == 0 || copy.source_span() <= span) {
        pieces.push_back(copy);
        return;
    }
    const auto step = copy.source_step[0];
    const auto together = std::max<std::uint64_t>(1, span / step);
    for (std::uint64_t begin = 0; begin < copy.count[0]; begin += together) {
        auto part = copy;
        part.source += begin * step;
        part.destination += begin * copy.destination_step[0];
        part.count[0] = std::min(together, copy.count[0] - begin);
        if (part.count[0] > 1) {
            pieces.push_back(part);
            continue;
        }
        --part.axes;
        std::copy(copy.count.begin() + 1, copy.count.end(), part.count.begin());
        std::copy(copy.source_step.begin() + 1, copy.source_step.end(), part.source_step.begin());
        std::copy(
            copy.destination_step.begin() + 1, copy.destination_step.end(), part.destination_step.begin());
        append_pieces(part, span, pieces);
    }
}

void run_copy(const StridedCopy& copy, const std::byte* source, std::byte* destination, bool streams) {
    const auto rows = copy.axes == 0 ? 1 : copy.count[copy.axes - 1];
    const auto from = copy.axes == 0 ? 0 : copy.source_step[copy.axes - 1];
    const auto to = copy.axes == 0 ? 0 : copy.destination_step[copy.axes - 1];
    for_each_outer(copy,
                   0,
                   source + copy.source,
                   destination + copy.destination,
                   [&](const std::byte* in, std::byte* out) {
#if defined(__SSE2__)
                       if (streams && copy.run >= kLine) {
                           for (std::uint64_t i = 0; i < rows; ++i) {
                               stream_run(in + i * from, out + i * to, copy.run);
                           }
                           return;
                       }
#endif
                       copy_rows(in, out, copy, rows, from, to);
                   });
}

void finish_streams() noexcept {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

}  // namespace refit::exec
