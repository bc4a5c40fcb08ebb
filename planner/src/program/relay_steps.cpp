// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "step.hpp"

namespace refit::program {
namespace {

/// A relay stage, cut into chunks that follow each other from hop to hop.
class RelayIndex {
public:
    RelayIndex(const Sight& sight, const RelayTable& relays) : workload_{sight.workload}, relays_{relays} {
        std::map<std::uint32_t, std::uint64_t> sent;
        std::map<std::uint32_t, std::uint64_t> received;
        std::uint64_t busiest = 0;
        is_followed_.resize(relays.size(), false);
        for (std::uint32_t hop = 0; hop < relays.size(); ++hop) {
            const auto before = relays.follows[hop];
            depth_.push_back(before == RelayTable::kNone ? 0 : depth_[before] + 1);
            depths_ = std::max(depths_, depth_.back() + 1);
            if (before != RelayTable::kNone) {
                is_followed_[before] = true;
            }
            add_lane(hop);
            by_rank_[relays.source[hop]].push_back(hop);
            by_rank_[relays.destination[hop]].push_back(hop);
            const auto bytes = relays.messages[relays.message[hop]].bytes;
            busiest = std::max(
                {busiest, sent[relays.source[hop]] += bytes, received[relays.destination[hop]] += bytes});
        }
        set_chunks(sight.settings, busiest);
    }

    [[nodiscard]] std::uint32_t turns() const noexcept { return depths_ + chunks_ - 1; }
    [[nodiscard]] const RelayTable& relays() const noexcept { return relays_; }
    [[nodiscard]] bool is_followed(std::uint32_t hop) const { return is_followed_[hop]; }
    /// Hops of a pair in one lane came the same way, so that a message of them waits for one message only.
    [[nodiscard]] std::uint32_t lane(std::uint32_t hop) const { return lane_[hop]; }
    [[nodiscard]] const std::vector<std::uint32_t>& hops_of(std::uint32_t rank) const {
        const auto found = by_rank_.find(rank);
        return found == by_rank_.end() ? none_ : found->second;
    }

    /// Which chunk of its message a hop carries in a turn, or kNone.
    [[nodiscard]] std::uint32_t chunk(std::uint32_t hop, std::uint32_t turn) const {
        const auto message = relays_.message[hop];
        const auto begin = first_turn_[message] + depth_[hop];
        return turn >= begin && turn < begin + message_chunks_[message] ? turn - begin : kNone;
    }

    /// Calls use(tensor, box) for what a chunk of a message consists of.
    template <class Use>
    void for_each_box(std::uint32_t message, std::uint32_t chunk, Use&& use) const {
        const auto& range = relays_.messages[message];
        const auto bytes = bytes_[message];
        const auto begin = share(bytes, chunk, message_chunks_[message]);
        const auto end = share(bytes, chunk + 1, message_chunks_[message]);
        std::uint64_t at = 0;
        for (auto p = range.first_part; p < range.first_part + range.parts; ++p) {
            const auto& part = relays_.parts[p];
            const auto size = part.box.volume() * workload_.classes()[part.parameter].element_bytes();
            for (std::uint32_t t = 0; t < part.tensors; ++t, at += size) {
                if (at < end && at + size > begin) {
                    const Tensor tensor{part.parameter, part.slice, part.first_tensor + t};
                    cut(part.box,
                        0,
                        {begin > at ? begin - at : 0, std::min(end - at, size)},
                        {bytes / message_chunks_[message] / kGrains, size / part.box.volume()},
                        [&](const Box& box) { use(tensor, box); });
                }
            }
        }
    }

private:
    /// How finely a box may be cut: the same for all chunks of a message, so that they end where the next begins.
    struct Grain {
        std::uint64_t bytes = 0;
        std::uint64_t element_bytes = 1;
    };
    static constexpr std::uint64_t kGrains = 64;  ///< So that chunks differ by 2 % at most.

    void add_lane(std::uint32_t hop) {
        const auto before = relays_.follows[hop];
        const std::pair way{before == RelayTable::kNone ? RelayTable::kNone : relays_.source[before],
                            before == RelayTable::kNone ? 0 : lane_[before]};
        auto& lanes = lanes_[{relays_.source[hop], relays_.destination[hop]}];
        lane_.push_back(lanes.try_emplace(way, static_cast<std::uint32_t>(lanes.size())).first->second);
    }

    /// `part` of `parts` of a number, rounded down; never overflows.
    static std::uint64_t share(std::uint64_t whole, std::uint64_t part, std::uint64_t parts) {
        return whole / parts * part + whole % parts * part / parts;
    }

    /// The boxes that a range of a box's bytes, row-major, consists of: whole rows, and of the rows at its ends what is
    /// inside. Rows of at most `grain` bytes stay whole, and belong to the range where their first byte lies.
    template <class Use>
    static void cut(const Box& box, std::size_t axis, const Interval& bytes, const Grain& grain, Use&& use) {
        while (axis + 1 < box.axes().size() && box.axes()[axis].length() == 1) {
            ++axis;
        }
        const auto rows = box.axes()[axis];
        const auto row_bytes = box.volume() * grain.element_bytes / rows.length();
        const auto row_after = [&](std::uint64_t byte) { return (byte + row_bytes - 1) / row_bytes; };
        if (row_bytes <= grain.bytes || axis + 1 == box.axes().size()) {
            use_rows(box, axis, {row_after(bytes.begin), row_after(bytes.end)}, use);
            return;
        }
        const auto first = bytes.begin / row_bytes;
        const auto last = (bytes.end - 1) / row_bytes;
        const auto in_row = [&](std::uint64_t row) {
            const auto at = row * row_bytes;
            cut(box.with(axis, {rows.begin + row, rows.begin + row + 1}),
                axis + 1,
                {std::max(bytes.begin, at) - at, std::min(bytes.end - at, row_bytes)},
                grain,
                use);
        };
        const bool begins_inside = bytes.begin > first * row_bytes || bytes.end < (first + 1) * row_bytes;
        const bool ends_inside = last > first && bytes.end < (last + 1) * row_bytes;
        if (begins_inside) {
            in_row(first);
        }
        use_rows(box, axis, {first + (begins_inside ? 1 : 0), last + (ends_inside ? 0 : 1)}, use);
        if (ends_inside) {
            in_row(last);
        }
    }

    template <class Use>
    static void use_rows(const Box& box, std::size_t axis, const Interval& rows, Use&& use) {
        if (rows.begin < rows.end) {
            const auto first = box.axes()[axis].begin;
            use(box.with(axis, {first + rows.begin, first + rows.end}));
        }
    }

    /// As many chunks as the table says where messages are passed on, and as bound what a rank sends in a
    /// turn.
    void set_chunks(const Settings& settings, std::uint64_t busiest) {
        std::uint64_t largest = 0;
        for (const auto& message : relays_.messages) {
            std::uint64_t bytes = 0;
            for (auto p = message.first_part; p < message.first_part + message.parts; ++p) {
                const auto& part = relays_.parts[p];
                bytes +=
                    part.box.volume() * part.tensors * workload_.classes()[part.parameter].element_bytes();
            }
            bytes_.push_back(bytes);
            largest = std::max(largest, bytes);
        }
        const auto least = std::max<std::uint64_t>(settings.least_chunk.count(), 1);
        const auto limit = std::max<std::uint64_t>(settings.wave_bytes.count(), 1);
        const auto to_pipeline = depths_ > 1 ? std::min<std::uint64_t>(relays_.chunks, largest / least) : 1;
        const auto to_bound = (busiest + limit - 1) / limit;
        chunks_ = static_cast<std::uint32_t>(
            std::clamp<std::uint64_t>(std::max(to_pipeline, to_bound), 1, kMostChunks));
        for (std::uint32_t message = 0; message < bytes_.size(); ++message) {
            const auto chunks =
                static_cast<std::uint32_t>(std::clamp<std::uint64_t>(bytes_[message] / least, 1, chunks_));
            message_chunks_.push_back(chunks);
            first_turn_.push_back(message % (chunks_ - chunks + 1));
        }
    }

    static constexpr std::uint64_t kMostChunks = 1U << 16U;

    const Workload& workload_;
    const RelayTable& relays_;
    std::vector<std::uint32_t> depth_;  ///< Hops before each.
    std::uint32_t depths_ = 1;
    std::vector<std::uint32_t> lane_;
    using Way = std::pair<std::uint32_t, std::uint32_t>;  ///< The rank before, and the lane from there.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<Way, std::uint32_t>> lanes_;  ///< By pair of ranks.
    std::vector<bool> is_followed_;
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_rank_;
    std::vector<std::uint32_t> none_;
    std::uint32_t chunks_ = 1;
    std::vector<std::uint64_t> bytes_;           ///< By message.
    std::vector<std::uint32_t> message_chunks_;  ///< By message.
    std::vector<std::uint32_t> first_turn_;      ///< By message: of its first chunk on its first hop.
};

class RelayStep final : public Step {
public:
    RelayStep(std::uint32_t stage,
              std::shared_ptr<const RelayIndex> index,
              std::uint32_t turn,
              std::uint32_t limit)
        : Step{stage}, index_{std::move(index)}, turn_{turn} {
        const auto& relays = index_->relays();
        std::vector<Deed> messages;
        for (std::uint32_t hop = 0; hop < relays.size(); ++hop) {
            if (index_->chunk(hop, turn) != kNone) {
                messages.push_back(
                    {OperationKind::kSend, relays.source[hop], relays.destination[hop], index_->lane(hop)});
            }
        }
        set_messages(std::move(messages), limit);
    }

    void load(std::uint32_t rank, std::vector<Cargo>& cargo) const override {
        const auto& relays = index_->relays();
        for (const auto hop : index_->hops_of(rank)) {
            const auto chunk = index_->chunk(hop, turn_);
            if (chunk == kNone) {
                continue;
            }
            const auto deed = message(relays.source[hop], relays.destination[hop], index_->lane(hop));
            const bool is_kept = index_->is_followed(hop);
            index_->for_each_box(relays.message[hop], chunk, [&](const Tensor& tensor, const Box& box) {
                cargo.push_back({deed, tensor, box, 0, true, is_kept});
            });
        }
    }

private:
    std::shared_ptr<const RelayIndex> index_;
    std::uint32_t turn_;
};

}  // namespace

void add_relay_steps(const Sight& sight, std::size_t stage, Steps& steps) {
    const auto& relays = sight.plan.stages[stage].relays;
    if (relays.size() == 0) {
        return;
    }
    const auto index = std::make_shared<const RelayIndex>(sight, relays);
    for (std::uint32_t turn = 0; turn < index->turns(); ++turn) {
        auto step = std::make_unique<RelayStep>(
            static_cast<std::uint32_t>(stage), index, turn, sight.settings.most_operations);
        if (!step->deeds().empty()) {
            steps.push_back(std::move(step));
        }
    }
}

}  // namespace refit::program
