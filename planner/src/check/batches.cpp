// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <utility>

#include "refit/check.hpp"

namespace refit {
namespace {

void add(Faults& faults, const char* rule, const std::string& message) {
    faults.push_back({ErrorCode::kInvalidInput, rule, message, ""});
}

}  // namespace

Faults check_batches(const Postings& postings, const Batches& batches, std::uint32_t limit) {
    Faults faults;
    if (batches.batch.size() != postings.size() || postings.destination.size() != postings.size() ||
        postings.follows.size() != postings.size()) {
        add(faults, "batch-columns", "columns of postings and batches have unequal lengths");
        return faults;
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> operations;  // By batch and rank.
    for (std::size_t i = 0; i < postings.size(); ++i) {
        const auto batch = batches.batch[i];
        const auto before = postings.follows[i];
        if (batch >= batches.count) {
            add(faults,
                "batch-index",
                "posting " + std::to_string(i) + " lies in batch " + std::to_string(batch) + " of " +
                    std::to_string(batches.count));
        }
        if (before != Postings::kNone && (before >= i || batches.batch[before] >= batch)) {
            add(faults,
                "batch-order",
                "posting " + std::to_string(i) + " lies in no later batch than posting " +
                    std::to_string(before) + ", which it follows");
        }
        ++operations[{batch, postings.source[i]}];
        ++operations[{batch, postings.destination[i]}];
    }
    std::uint32_t next = 0;
    for (const auto& [place, count] : operations) {
        if (count > limit) {
            add(faults,
                "batch-limit",
                "rank " + std::to_string(place.second) + " has " + std::to_string(count) +
                    " operations in batch " + std::to_string(place.first) + ", more than " +
                    std::to_string(limit));
        }
        if (place.first > next) {
            add(faults, "batch-empty", "batch " + std::to_string(next) + " has no posting");
        }
        next = place.first + 1;
    }
    if (next < batches.count) {
        add(faults, "batch-empty", "batch " + std::to_string(next) + " has no posting");
    }
    return faults;
}

}  // namespace refit
