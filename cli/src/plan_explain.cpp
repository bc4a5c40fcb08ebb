// SPDX-License-Identifier: Apache-2.0
#include "plan_explain.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "cells.hpp"
#include "faults_text.hpp"
#include "refit/hop_role.hpp"
#include "refit/quantity.hpp"
#include "refit/suggest.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kShownPeers = 6;

/// Bytes by what happens to them and why, in the order in which they are told.
struct Reasons {
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> by_text;  ///< Hops and bytes.

    void add(const std::string& text, std::uint64_t bytes, std::uint64_t hops = 1) {
        auto& entry = by_text[text];
        entry.first += hops;
        entry.second += bytes;
    }
    [[nodiscard]] std::string text() const {
        std::string all;
        for (const auto& [what, amount] : by_text) {
            all += "    " + right(size_cell(Bytes{amount.second}), 10) + " in " + grouped(amount.first) + (amount.first == 1 ? " hop: " : " hops: ") +
                   what + "\n";
        }
        return all;
    }
};

std::string_view role_text(CollectiveRole role) {
    switch (role) {
        case CollectiveRole::kPipelineBroadcast:
            return "broadcast of stages over the pipeline";
        case CollectiveRole::kTensorAllGather:
            return "all-gather over tensor-parallel ranks";
        case CollectiveRole::kExpertAllGather:
            return "all-gather over expert-parallel ranks";
        case CollectiveRole::kReplicaAllGather:
            return "all-gather of stripes among replicas";
        case CollectiveRole::kReplicaBroadcast:
            return "broadcast from one replica to the others";
        case CollectiveRole::kWeightBroadcast:
            break;
    }
    return "broadcast of full parameters";
}

/// What the transfers, relays and collectives of a plan do at one rank, or with one class.
class Story {
public:
    explicit Story(const ShownPlan& shown) : shown_{shown} {}

    std::string of_rank(RankId rank) {
        const auto& port = shown_.summary.ranks[rank.index()];
        const auto domain = shown_.cluster.domain_of(rank).index();
        std::string text = rank_text(shown_.cluster, rank) + ", rank " + std::to_string(rank.index()) + ", in NVLink domain " + std::to_string(domain);
        if (shown_.cluster.is_trainer(rank)) {
            text += ", stage " + std::to_string(rank.index() / shown_.workload.trainers_per_stage());
        }
        text += "\n  sends " + size_cell(Bytes{port.nic_out}) + " over NICs and " + size_cell(Bytes{port.nvlink_out}) + " over NVLink\n";
        for (const auto& stage : shown_.plan.stages) {
            add_relays(stage.relays, rank);
            add_transfers(stage, rank);
            add_collectives(stage, rank);
        }
        text += sends_.text() + peers(rank, true);
        text += "  receives " + size_cell(Bytes{port.nic_in}) + " over NICs and " + size_cell(Bytes{port.nvlink_in}) + " over NVLink\n";
        return text + receives_.text() + peers(rank, false) + (takes_part_.by_text.empty() ? "" : "  takes part in\n" + takes_part_.text());
    }

    std::string of_class(std::uint32_t index) {
        const auto& entry = shown_.workload.classes()[index];
        const auto& moves = shown_.summary.classes[index];
        std::string text = entry.parameter.name + ": " + grouped(moves.tensors) + " tensors, " + size_cell(moves.bytes) + ", delivered " + size_cell(moves.delivered) + "\n";
        text += side("held by", entry.source, "trainers of a stage");
        text += side("wanted by", entry.destinations.front(), "generators");
        for (const auto& stage : shown_.plan.stages) {
            add_class_relays(stage.relays, index);
            add_class_transfers(stage, index);
            for (const auto& collective : stage.collectives) {
                if (std::ranges::find(collective.parameters, index) != collective.parameters.end()) {
                    takes_part_.add(std::string{role_text(collective.role)} + " (with " + std::to_string(collective.parameters.size() - 1) + " other classes)",
                                    sum(collective.bytes), collective.calls);
                }
            }
        }
        return text + (sends_.by_text.empty() ? "" : "  point to point\n" + sends_.text()) +
               (takes_part_.by_text.empty() ? "" : "  by collectives\n" + takes_part_.text());
    }

private:
    static std::uint64_t sum(const std::vector<std::uint64_t>& bytes) {
        std::uint64_t all = 0;
        for (const auto entry : bytes) {
            all += entry;
        }
        return all;
    }

    static std::string count_of(std::size_t shards) {
        return shards == 1 ? "whole" : std::to_string(shards) + " shards, each";
    }

    static std::string side(const std::string& verb, const Distribution& distribution, const std::string& whom) {
        std::set<std::size_t> replicas;
        for (const auto& shard : distribution.shards()) {
            replicas.insert(shard.members.size());
        }
        const auto copies = replicas.size() == 1 ? std::to_string(*replicas.begin())
                                                 : std::to_string(*replicas.begin()) + " to " + std::to_string(*replicas.rbegin());
        return "  " + left(verb, 10) + count_of(distribution.shards().size()) + " on " + copies + " of the " + whom + "\n";
    }

    void add_relays(const RelayTable& relays, RankId rank) {
        const auto ends = message_ends(relays, shown_.workload, shown_.cluster.train_gpus());
        for (std::size_t hop = 0; hop < relays.size(); ++hop) {
            const auto bytes = relays.messages[relays.message[hop]].bytes;
            if (relays.source[hop] == rank.index()) {
                sends_.add(std::string{describe(role_of(relays, hop, ends, shown_.cluster))}, bytes);
            }
            if (relays.destination[hop] == rank.index()) {
                const bool is_wanted = std::ranges::binary_search(ends.receivers[relays.message[hop]], rank.index());
                receives_.add(is_wanted ? "wants it" : "lends its NIC", bytes);
            }
        }
    }

    void add_class_relays(const RelayTable& relays, std::uint32_t index) {
        const auto ends = message_ends(relays, shown_.workload, shown_.cluster.train_gpus());
        std::vector<std::uint64_t> bytes(relays.messages.size(), 0);
        for (std::size_t i = 0; i < relays.messages.size(); ++i) {
            for (auto part = relays.messages[i].first_part; part < relays.messages[i].first_part + relays.messages[i].parts; ++part) {
                const auto& entry = relays.parts[part];
                bytes[i] += entry.parameter == index ? entry.box.volume() * shown_.workload.classes()[index].element_bytes() * entry.tensors : 0;
            }
        }
        for (std::size_t hop = 0; hop < relays.size(); ++hop) {
            if (bytes[relays.message[hop]] > 0) {
                sends_.add(std::string{describe(role_of(relays, hop, ends, shown_.cluster))}, bytes[relays.message[hop]]);
            }
        }
    }

    /// "the only holder", or how many others hold the same.
    [[nodiscard]] std::string turn(const TransferBlock& block, std::uint32_t source) const {
        for (const auto& shard : shown_.workload.classes()[block.parameter].source.shards()) {
            if (std::ranges::binary_search(shard.members, source)) {
                return shard.members.size() == 1 ? "the only holder"
                       : shown_.plan.method == Method::kDirect ? "holders of the same take turns, " + std::to_string(shard.members.size()) + " of them"
                                                               : "one of " + std::to_string(shard.members.size()) + " holders";
            }
        }
        return "";
    }

    void add_transfers(const PlanStage& stage, RankId rank) {
        for (const auto& use : stage.transfers) {
            const auto& block = shown_.plan.blocks[use.block];
            for (std::size_t i = 0; i < block.size(); ++i) {
                const auto bytes = block.boxes[block.box[i]].volume() * block.element_bytes * use.tensors;
                if (use.first_source.index() + block.source[i] == rank.index()) {
                    sends_.add(turn(block, block.source[i]), bytes, use.tensors);
                }
                if (shown_.cluster.generator(block.destination[i]) == rank) {
                    receives_.add("wants it", bytes, use.tensors);
                }
            }
        }
    }

    void add_class_transfers(const PlanStage& stage, std::uint32_t index) {
        for (const auto& use : stage.transfers) {
            const auto& block = shown_.plan.blocks[use.block];
            for (std::size_t i = 0; block.parameter == index && i < block.size(); ++i) {
                sends_.add(turn(block, block.source[i]), block.boxes[block.box[i]].volume() * block.element_bytes * use.tensors, use.tensors);
            }
        }
    }

    void add_collectives(const PlanStage& stage, RankId rank) {
        for (const auto& collective : stage.collectives) {
            const auto& groups = shown_.plan.groups[collective.groups];
            for (std::size_t i = 0; i < groups.size(); ++i) {
                if (std::ranges::find(groups[i], rank) != groups[i].end()) {
                    takes_part_.add(std::string{role_text(collective.role)} + " of " + std::to_string(groups[i].size()) + " ranks" +
                                        (is_broadcast(collective.role) && groups[i].front() == rank ? ", as its root" : ""),
                                    collective.bytes[i], collective.calls);
                }
            }
        }
    }

    [[nodiscard]] std::string peers(RankId rank, bool is_sender) const {
        std::string names;
        std::size_t count = 0;
        for (const auto& pair : shown_.summary.pairs) {
            if ((is_sender ? pair.source : pair.destination) == rank) {
                const auto other = is_sender ? pair.destination : pair.source;
                names += count < kShownPeers ? (count > 0 ? ", " : "") + rank_text(shown_.cluster, other) + " " + size_cell(Bytes{pair.bytes}) : "";
                ++count;
            }
        }
        if (count == 0) {
            return "";
        }
        const auto more = count > kShownPeers ? " and " + std::to_string(count - kShownPeers) + " more" : std::string{};
        return "    " + wrap((is_sender ? "most to " : "most from ") + names + more, kWidth, 4) + "\n";
    }

    const ShownPlan& shown_;
    Reasons sends_;
    Reasons receives_;
    Reasons takes_part_;
};

/// "q_a_proj" of "model.layers.{layer}.self_attn.q_a_proj.weight".
std::string spoken(const std::string& name) {
    const auto end = name.ends_with(".weight") ? name.size() - 7 : name.size();
    const auto begin = name.rfind('.', end - 1);
    return begin == std::string::npos ? name.substr(0, end) : name.substr(begin + 1, end - begin - 1);
}

}  // namespace

Result<std::string> explain_plan(const ShownPlan& shown, const std::string& what) {
    std::uint32_t rank = 0;
    const auto* end = what.data() + what.size();
    if (const auto [stop, error] = std::from_chars(what.data(), end, rank); error == std::errc{} && stop == end) {
        if (rank >= shown.cluster.gpus()) {
            return fail(ErrorCode::kInvalidInput, "unknown-rank",
                        "there is no rank " + what + "; the job has ranks 0 to " + std::to_string(shown.cluster.gpus() - 1), "--explain");
        }
        return Story{shown}.of_rank(RankId{rank});
    }
    std::vector<std::string> names;
    std::vector<std::string> words;  // The parts of names by which people call tensors.
    std::vector<std::uint32_t> found;
    std::vector<std::uint32_t> exact;
    for (std::uint32_t i = 0; i < shown.workload.classes().size(); ++i) {
        names.push_back(shown.workload.classes()[i].parameter.name);
        words.push_back(spoken(names.back()));
        if (names.back() == what) {
            exact.push_back(i);
        }
        if (names.back().find(what) != std::string::npos) {
            found.push_back(i);
        }
    }
    if (!exact.empty()) {
        found = std::move(exact);
    }
    // Where ranks are lost, stages of a class may be classes of their own.
    if (!found.empty() && std::ranges::all_of(found, [&](std::uint32_t i) { return names[i] == names[found.front()]; })) {
        std::string text;
        for (const auto index : found) {
            text += Story{shown}.of_class(index);
        }
        return text;
    }
    std::vector<std::string> several;
    std::ranges::transform(found, std::back_inserter(several), [&](std::uint32_t index) { return names[index]; });
    return fail(ErrorCode::kInvalidInput, "unknown-class",
                found.empty() ? "no class of tensors is called '" + what + "'; the nearest is '" + nearest_name(what, words) + "'"
                              : "'" + what + "' is part of several names: " + join_names(several),
                "--explain");
}

}  // namespace refit::cli
