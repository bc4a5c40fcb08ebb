// SPDX-License-Identifier: Apache-2.0
#include "step.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "refit/batches.hpp"

namespace refit::program {
namespace {

std::tuple<std::uint32_t, std::uint32_t, std::uint32_t> key_of(const Deed& deed) {
    return {deed.first, deed.second, deed.lane};
}

}  // namespace

std::uint32_t GroupTable::intern(const std::vector<std::uint32_t>& ranks) {
    const auto [found, is_new] = known_.try_emplace(ranks, static_cast<std::uint32_t>(groups_.size()));
    if (is_new) {
        groups_.push_back(ranks);
    }
    return found->second;
}

std::uint32_t GroupTable::place(std::uint32_t index, std::uint32_t rank) const {
    const auto& ranks = groups_.at(index);
    const auto found = std::ranges::find(ranks, rank);
    return found == ranks.end() ? kNone : static_cast<std::uint32_t>(found - ranks.begin());
}

void Step::set_messages(std::vector<Deed> messages, std::uint32_t limit) {
    std::ranges::sort(messages, {}, key_of);
    const auto is_same = [](const Deed& a, const Deed& b) { return key_of(a) == key_of(b); };
    messages.erase(std::unique(messages.begin(), messages.end(), is_same), messages.end());
    Postings postings;
    for (const auto& deed : messages) {
        postings.add(deed.first, deed.second);
    }
    const auto batches = make_batches(postings, limit);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        messages[i].wave = batches.batch[i];
    }
    deeds_ = std::move(messages);
    waves_ = batches.count;
}

void Step::set_collectives(std::vector<Deed> collectives, const GroupTable& groups, std::uint32_t limit) {
    std::unordered_map<std::uint64_t, std::uint32_t> operations;  // By wave and rank.
    const auto count = [&](std::uint32_t wave, std::uint32_t rank) -> std::uint32_t& {
        return operations[(std::uint64_t{wave} << 32U) | rank];
    };
    for (auto& deed : collectives) {
        const auto& ranks = groups.at(deed.first);
        while (
            std::ranges::any_of(ranks, [&](std::uint32_t rank) { return count(deed.wave, rank) >= limit; })) {
            ++deed.wave;
        }
        for (const auto rank : ranks) {
            ++count(deed.wave, rank);
        }
        waves_ = std::max(waves_, deed.wave + 1);
    }
    deeds_ = std::move(collectives);
}

std::uint32_t Step::message(std::uint32_t source, std::uint32_t destination, std::uint32_t lane) const {
    const std::tuple key{source, destination, lane};
    const auto found = std::ranges::lower_bound(deeds_, key, {}, key_of);
    if (found == deeds_.end() || key_of(*found) != key) {
        throw std::logic_error{"Step: no message between these ranks"};
    }
    return static_cast<std::uint32_t>(found - deeds_.begin());
}

}  // namespace refit::program
