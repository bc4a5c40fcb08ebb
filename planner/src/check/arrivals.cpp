// SPDX-License-Identifier: Apache-2.0
#include "arrivals.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace refit::proof {
namespace {

/// What a rank got first hand and what others then gave it are two ascending runs, as a rule.
void sort_runs(std::vector<std::uint32_t>& entries) {
    const auto second = std::ranges::is_sorted_until(entries);
    if (std::is_sorted(second, entries.end())) {
        std::inplace_merge(entries.begin(), second, entries.end());
    } else {
        std::ranges::sort(entries);
    }
}

}  // namespace

std::uint32_t Arrivals::region(std::size_t stage, const Region& region) {
    regions_.push_back(region);
    stages_.push_back(stage);
    return static_cast<std::uint32_t>(regions_.size() - 1);
}

void Arrivals::add(std::uint32_t rank, std::uint32_t number, bool is_passing) {
    if (is_passing) {
        // Who wants all of it anyway is treated like its replicas that pass nothing on.
        const auto shard = facts_.wanted_shard(rank, slice_);
        is_passing = shard == ClassFacts::kNone ||
                     !covers(facts_.destination(slice_).shards()[shard].boxes, regions_[number].box);
    }
    at_[rank - train_gpus_].push_back(number * 2 + (is_passing ? 1 : 0));
}

void Arrivals::add(std::uint32_t rank, std::span<const std::uint32_t> numbers) {
    auto& arrived = at_[rank - train_gpus_];
    for (const auto number : numbers) {
        arrived.push_back(number * 2);
    }
}

void Arrivals::prove(FaultLog& log, std::vector<std::uint64_t>& delivered_bytes) {
    for (auto& arrived : at_) {
        sort_runs(arrived);
    }
    for (const auto& shard : facts_.destination(slice_).shards()) {
        prove_shard(log, shard, delivered_bytes);
    }
    for (std::uint32_t i = 0; i < at_.size(); ++i) {
        if (facts_.wanted_shard(train_gpus_ + i, slice_) != ClassFacts::kNone) {
            continue;
        }
        const auto found = std::ranges::find_if(at_[i], [](std::uint32_t entry) { return entry % 2 == 0; });
        if (found != at_[i].end()) {
            Comparison comparison;
            comparison.unwanted = regions_[*found / 2];
            report(log, train_gpus_ + i, comparison);
        }
    }
}

void Arrivals::prove_shard(FaultLog& log, const Shard& shard, std::vector<std::uint64_t>& delivered_bytes) {
    std::vector<Region> wanted;
    for (const auto& box : shard.boxes) {
        wanted.push_back({{0, facts_.entry().slices[slice_].layers}, box});
    }
    const std::vector<std::uint32_t>* previous = nullptr;
    Comparison comparison;
    for (const auto member : shard.members) {
        const auto& arrived = at_[member];
        // Replicas usually get the same, so that one comparison serves them all.
        if (previous == nullptr || *previous != arrived) {
            std::vector<Region> written;
            std::vector<Region> passing;
            for (const auto entry : arrived) {
                (entry % 2 == 0 ? written : passing).push_back(regions_[entry / 2]);
            }
            comparison = compare(wanted, written, passing);
            previous = &arrived;
        }
        delivered_bytes[member] += comparison.delivered * facts_.entry().element_bytes();
        report(log, train_gpus_ + member, comparison);
    }
}

void Arrivals::report(FaultLog& log, std::uint32_t rank, const Comparison& comparison) const {
    Place place{.parameter = facts_.index(), .slice = slice_, .rank = rank};
    const auto add =
        [&](std::string_view rule, const std::optional<Region>& region, const std::string& what) {
            if (region) {
                place.region = region;
                log.add(rule, place, what + stages_of(rank, *region));
            }
        };
    add("missing", comparison.missing, "wanted, never written");
    add("repeated", comparison.repeated, "written more than once");
    add("unwanted", comparison.unwanted, "written, not wanted");
    add("ambiguous", comparison.ambiguous, "in two boxes of the destination");
}

std::string Arrivals::stages_of(std::uint32_t rank, const Region& cell) const {
    std::set<std::size_t> stages;
    for (const auto entry : at_[rank - train_gpus_]) {
        const auto& region = regions_[entry / 2];
        const bool has_tensors =
            region.tensors.begin <= cell.tensors.begin && cell.tensors.end <= region.tensors.end;
        if (has_tensors && covers({&region.box, 1}, cell.box)) {
            stages.insert(stages_[entry / 2]);
        }
    }
    std::string text;
    for (const auto stage : stages) {
        text += (text.empty() ? ", by stage " : " and ") + std::to_string(stage);
    }
    return text;
}

}  // namespace refit::proof
