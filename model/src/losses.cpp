// SPDX-License-Identifier: Apache-2.0
#include "refit/losses.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "refit/fsdp.hpp"
#include "refit/megatron.hpp"
#include "refit/membership.hpp"
#include "refit/scenario.hpp"
#include "refit/suggest.hpp"

namespace refit {
namespace {

using Ranks = std::vector<std::uint32_t>;

bool has(const Ranks& ranks, std::uint32_t rank) {
    return std::ranges::binary_search(ranks, rank);
}

Ranks less(const Ranks& ranks, const Ranks& without) {
    Ranks rest;
    std::ranges::set_difference(ranks, without, std::back_inserter(rest));
    return rest;
}

/// "rank 3", "ranks 3,7-9".
std::string named(const Ranks& ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + ranks_text(ranks);
}

/// Pipeline stages of trainers that hold a class.
std::set<std::uint32_t> stages_with(const ParameterClass& parameter,
                                    const TrainLayout& train,
                                    const Ranks& stage_of_layer) {
    if (parameter.layers.empty() || parameter.part == ModelPart::kVision) {
        return {parameter.on_last_stage ? train.pp - 1 : 0};
    }
    std::set<std::uint32_t> stages;
    std::ranges::transform(parameter.layers, std::inserter(stages, stages.end()), [&](std::uint32_t layer) {
        return stage_of_layer.at(layer);
    });
    return stages;
}

std::string box_text(const Box& box) {
    std::string text = "[";
    for (const auto& axis : box.axes()) {
        text += (text.size() == 1 ? "" : ", ") + std::to_string(axis.begin) + ":" + std::to_string(axis.end);
    }
    return text + "]";
}

/// What only ranks that are gone held: shards of one stage, with the same holders.
struct Orphans {
    std::string first;  ///< Class.
    Box box;            ///< Of the first.
    std::set<std::string> classes;
};
using OrphanTable = std::map<std::pair<std::uint32_t, Ranks>, Orphans>;  // By stage and holders.

OrphanTable orphans_of(const Scenario& scenario, const Ranks& lost) {
    OrphanTable orphans;
    const auto& train = scenario.train;
    const auto stage_of_layer = stage_of_layers(train);
    for (const auto& parameter : scenario.payload()) {
        const auto held =
            train.is_fsdp() ? fsdp::distribution(parameter, train) : megatron::distribution(parameter, train);
        for (const auto stage : stages_with(parameter, train, stage_of_layer)) {
            for (const auto& shard : held.shards()) {
                auto holders = shard.members;
                std::ranges::for_each(holders,
                                      [&](std::uint32_t& rank) { rank += stage * train.ranks_per_stage(); });
                if (shard.boxes.empty() || !std::ranges::includes(lost, holders)) {
                    continue;
                }
                const auto [found, is_new] = orphans.try_emplace(
                    {stage, std::move(holders)}, Orphans{parameter.name, shard.boxes.front(), {}});
                found->second.classes.insert(parameter.name);
            }
        }
    }
    return orphans;
}

/// The fewest ranks, by greed, of which one is among the holders of each.
Ranks keepers_of(const OrphanTable& orphans) {
    std::vector<Ranks> open;
    std::ranges::transform(
        orphans, std::back_inserter(open), [](const auto& entry) { return entry.first.second; });
    std::set<std::uint32_t> kept;
    while (!open.empty()) {
        std::map<std::uint32_t, std::size_t> counts;
        for (const auto& holders : open) {
            std::ranges::for_each(holders, [&](std::uint32_t rank) { ++counts[rank]; });
        }
        const auto best =
            std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
        kept.insert(best);
        std::erase_if(open, [&](const Ranks& holders) { return has(holders, best); });
    }
    return {kept.begin(), kept.end()};
}

/// Lost generators by the replica that they belong to.
std::map<std::uint32_t, Ranks> lost_replicas(const Scenario& scenario, const Ranks& lost) {
    const auto first = scenario.train.gpus;
    const auto size = replica_gpus(scenario.generate);
    std::map<std::uint32_t, Ranks> replicas;
    for (const auto rank : lost) {
        if (rank >= first) {
            replicas[(rank - first) / size].push_back(rank);
        }
    }
    return replicas;
}

Fault orphan_fault(std::uint32_t stage,
                   const Ranks& holders,
                   const Orphans& orphans,
                   const Scenario& scenario) {
    const auto more = orphans.classes.size() - 1;
    return {ErrorCode::kInfeasible,
            "no-holder-left",
            "without " + named(holders) + " nobody holds elements " + box_text(orphans.box) + " of " +
                orphans.first +
                (more > 0 ? ", and shards of " + std::to_string(more) + " more classes" : "") +
                (scenario.train.pp > 1 ? ", in pipeline stage " + std::to_string(stage) : std::string{}) +
                "; a checkpoint has them",
            "lost"};
}

/// Puts the largest rest that can be left out behind each fault, or the only way that is left.
Faults with_nearest(Faults faults, const Ranks& lost, const Ranks& kept) {
    const auto rest = less(lost, kept);
    const auto back = named(kept) + (kept.size() == 1 ? " is back" : " are back");
    for (auto& fault : faults) {
        if (rest.empty()) {
            fault.message += "; the refit can go on once " + back;
        } else {
            fault.nearest = Suggestion{"lost", ranks_text(rest), "once " + back};
        }
    }
    return faults;
}

std::optional<std::uint32_t> number_in(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

/// One item of a list of ranks, added to `ranks`; a fault where it is none.
std::optional<Fault> add_item(std::string_view item,
                              std::uint32_t train_gpus,
                              std::uint32_t generate_gpus,
                              Ranks& ranks) {
    const auto refuse = [&](const std::string& why) {
        return Fault{ErrorCode::kInvalidInput, "rank-list", "'" + std::string{item} + "' " + why, "lost"};
    };
    const auto colon = item.find(':');
    const auto side = colon == std::string_view::npos ? std::string_view{} : item.substr(0, colon);
    const auto run = item.substr(colon == std::string_view::npos ? 0 : colon + 1);
    const auto dash = run.find('-');
    const auto first = number_in(run.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_in(run.substr(dash + 1));
    const bool has_side = colon == std::string_view::npos || side == "trainer" || side == "generation";
    if (!first || !last || !has_side || *first > *last) {
        return refuse("names no ranks; write 3, 7-9, trainer:2 or generation:0-7, with commas between");
    }
    const auto count = side.empty()        ? train_gpus + generate_gpus
                       : side == "trainer" ? train_gpus
                                           : generate_gpus;
    if (*last >= count) {
        return refuse("names ranks that the job has not: there are " + std::to_string(count) +
                      (side.empty()        ? " ranks, "
                       : side == "trainer" ? " trainers, "
                                           : " generators, ") +
                      "0 to " + std::to_string(count - 1));
    }
    for (auto rank = *first; rank <= *last; ++rank) {
        ranks.push_back(rank + (side == "generation" ? train_gpus : 0));
    }
    return std::nullopt;
}

}  // namespace

bool Losses::is_absent(std::uint32_t rank) const noexcept {
    return has(lost, rank) || has(idle, rank);
}

std::vector<std::uint32_t> Losses::absent() const {
    Ranks all;
    std::ranges::merge(lost, idle, std::back_inserter(all));
    return all;
}

std::vector<std::uint32_t> survivors(const Losses& losses, std::uint32_t ranks) {
    Ranks left;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        if (!losses.is_absent(rank)) {
            left.push_back(rank);
        }
    }
    return left;
}

Result<std::vector<std::uint32_t>> parse_ranks(std::string_view text,
                                               std::uint32_t train_gpus,
                                               std::uint32_t generate_gpus) {
    Ranks ranks;
    Faults faults;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find(',', at), text.size());
        if (auto fault = add_item(text.substr(at, end - at), train_gpus, generate_gpus, ranks)) {
            faults.push_back(std::move(*fault));
        }
        at = end + 1;
    }
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    std::ranges::sort(ranks);
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return ranks;
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
    std::string text;
    for (std::size_t begin = 0; begin < ranks.size();) {
        auto end = begin + 1;
        while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) {
            ++end;
        }
        text += (text.empty() ? "" : ",") + std::to_string(ranks[begin]);
        text += end - begin > 1 ? "-" + std::to_string(ranks[end - 1]) : "";
        begin = end;
    }
    return text;
}

Result<Losses> losses_of(const Scenario& scenario, std::vector<std::uint32_t> lost) {
    Faults faults;
    const auto orphans = orphans_of(scenario, lost);
    for (const auto& [place, entry] : orphans) {
        faults.push_back(orphan_fault(place.first, place.second, entry, scenario));
    }
    const auto size = replica_gpus(scenario.generate);
    const auto replicas = lost_replicas(scenario, lost);
    auto kept = keepers_of(orphans);
    if (replicas.size() == scenario.generate.gpus / size) {
        const auto least =
            std::ranges::min_element(replicas, {}, [](const auto& entry) { return entry.second.size(); });
        faults.push_back(
            {ErrorCode::kInfeasible,
             "last-replica",
             "no engine is left to serve: " +
                 (replicas.size() == 1 ? std::string{"the only replica, "}
                                       : "each of the " + std::to_string(replicas.size()) + " replicas, ") +
                 std::to_string(size) + (size == 1 ? " generator" : " generators") +
                 (replicas.size() == 1 ? "" : " each") + ", has lost a rank, the first " +
                 named(replicas.begin()->second),
             "lost"});
        kept.insert(kept.end(), least->second.begin(), least->second.end());
    }
    if (!faults.empty()) {
        return fail(with_nearest(std::move(faults), lost, kept));
    }
    Losses losses{std::move(lost), {}};
    for (const auto& [replica, ranks] : replicas) {
        const auto first = scenario.train.gpus + replica * size;
        for (auto rank = first; rank < first + size; ++rank) {
            if (!has(losses.lost, rank)) {
                losses.idle.push_back(rank);
            }
        }
    }
    return losses;
}

}  // namespace refit
