// SPDX-License-Identifier: Apache-2.0
#include "rounds.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace refit {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;

/// Which transfer each rank has in each round.
class RoundTable {
public:
    RoundTable(std::size_t ranks, std::size_t rounds) : rounds_{rounds}, at_(ranks * rounds, kNone) {}

    [[nodiscard]] std::uint32_t& at(std::uint32_t rank, std::size_t round) {
        return at_[rank * rounds_ + round];
    }
    [[nodiscard]] std::size_t first_free(std::uint32_t rank) const {
        const auto begin = at_.begin() + static_cast<std::ptrdiff_t>(rank * rounds_);
        return static_cast<std::size_t>(
            std::find(begin, begin + static_cast<std::ptrdiff_t>(rounds_), kNone) - begin);
    }

private:
    std::size_t rounds_;
    std::vector<std::uint32_t> at_;
};

std::size_t ranks_in(const std::vector<std::uint32_t>& column) {
    return column.empty() ? 0 : std::ranges::max(column) + 1UL;
}

std::size_t busiest(const std::vector<std::uint32_t>& column) {
    std::vector<std::size_t> counts(ranks_in(column), 0);
    for (const auto rank : column) {
        ++counts[rank];
    }
    return counts.empty() ? 0 : std::ranges::max(counts);
}

class Rounds {
public:
    explicit Rounds(const TransferBlock& block)
        : block_{block},
          rounds_{std::max(busiest(block.source), busiest(block.destination))},
          senders_{ranks_in(block.source), rounds_},
          receivers_{ranks_in(block.destination), rounds_},
          round_of_(block.size(), 0) {}

    std::vector<std::size_t> run() {
        for (std::uint32_t transfer = 0; transfer < block_.size(); ++transfer) {
            place(transfer);
        }
        return std::move(round_of_);
    }

private:
    /// In a round where its sender is free and one where its receiver is. Where they differ, the chain of
    /// transfers that holds the receiver in the sender's round changes places between both; it never comes to
    /// the sender.
    void place(std::uint32_t transfer) {
        const auto sender = block_.source[transfer];
        const auto receiver = block_.destination[transfer];
        const auto round = senders_.first_free(sender);
        const auto other = receivers_.first_free(receiver);
        if (round != other) {
            swap_chain(receiver, round, other);
        }
        put(transfer, round);
    }

    void swap_chain(std::uint32_t receiver, std::size_t round, std::size_t other) {
        std::vector<std::uint32_t> chain;
        auto next = receivers_.at(receiver, round);
        for (bool at_sender = true; next != kNone; at_sender = !at_sender) {
            chain.push_back(next);
            next = at_sender ? senders_.at(block_.source[next], other)
                             : receivers_.at(block_.destination[next], round);
        }
        for (const auto transfer : chain) {
            take(transfer);
        }
        for (const auto transfer : chain) {
            put(transfer, round_of_[transfer] == round ? other : round);
        }
    }

    void take(std::uint32_t transfer) {
        senders_.at(block_.source[transfer], round_of_[transfer]) = kNone;
        receivers_.at(block_.destination[transfer], round_of_[transfer]) = kNone;
    }
    void put(std::uint32_t transfer, std::size_t round) {
        senders_.at(block_.source[transfer], round) = transfer;
        receivers_.at(block_.destination[transfer], round) = transfer;
        round_of_[transfer] = round;
    }

    const TransferBlock& block_;
    std::size_t rounds_;
    RoundTable senders_;
    RoundTable receivers_;
    std::vector<std::size_t> round_of_;
};

std::vector<std::uint32_t> reordered(const std::vector<std::uint32_t>& column,
                                     const std::vector<std::size_t>& order) {
    std::vector<std::uint32_t> result;
    for (const auto row : order) {
        result.push_back(column[row]);
    }
    return result;
}

}  // namespace

void put_in_rounds(TransferBlock& block) {
    const auto rounds = Rounds{block}.run();
    std::vector<std::size_t> order(block.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t row) { return rounds[row]; });
    block.source = reordered(block.source, order);
    block.destination = reordered(block.destination, order);
    block.box = reordered(block.box, order);
}

}  // namespace refit
