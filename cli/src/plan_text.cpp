// SPDX-License-Identifier: Apache-2.0
#include "plan_text.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include <nlohmann/json.hpp>

#include "cells.hpp"
#include "fabric_text.hpp"
#include "faults_text.hpp"
#include "refit/quantity.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kShownRows = 5;

std::uint64_t sent(const PortBytes& port) { return port.nic_out + port.nvlink_out; }
std::uint64_t received(const PortBytes& port) { return port.nic_in + port.nvlink_in; }

std::string line(const std::string& name, const std::string& text) {
    return "  " + left(name, 14) + wrap(text, kWidth, 16) + "\n";
}

std::string stages_text(const Plan& plan) {
    std::map<StageKind, std::size_t> counts;
    for (const auto& stage : plan.stages) {
        ++counts[stage.kind];
    }
    std::string text;
    const auto add = [&](StageKind kind, const char* name) {
        if (counts[kind] > 0) {
            text += (text.empty() ? "" : ", ") + std::to_string(counts[kind]) + " " + name + (counts[kind] > 1 ? "s" : "");
        }
    };
    add(StageKind::kTransfer, "transfer stage");
    add(StageKind::kRelay, "relay stage");
    add(StageKind::kGather, "gather");
    add(StageKind::kBroadcast, "broadcast");
    return text;
}

std::string relay_text(const Plan& plan) {
    for (const auto& stage : plan.stages) {
        if (stage.kind == StageKind::kRelay) {
            const auto& relays = stage.relays;
            const auto passed_on = relays.size() - static_cast<std::size_t>(std::ranges::count(relays.follows, RelayTable::kNone));
            if (passed_on == 0) {
                return ", each straight from a holder";
            }
            return ", of which " + grouped(passed_on) + " pass a message on; at most " + std::to_string(relays.depth()) +
                   " in a row, " + std::to_string(relays.chunks) + " chunks a message";
        }
    }
    return "";
}

/// "6.80 GB at trainer 0 in stage 16: packs 3.40 GB, pack lists 3.40 GB".
std::string side_text(const Cluster& cluster, const char* side, const std::vector<StageMemory>& stages) {
    const auto* worst = MemoryAccount::worst(stages);
    if (worst == nullptr) {
        return {};
    }
    std::string uses;
    for (const auto& use : worst->uses) {
        uses += (uses.empty() ? "" : ", ") + std::string{name_of(use.cause)} + " " + size_cell(use.bytes);
    }
    return line(side, size_cell(worst->total()) + " more on " + rank_text(cluster, worst->rank) + " in stage " + std::to_string(worst->stage) + ": " + uses);
}

/// "1.7 GB, any memory ratio fits beside the weights; below 0.0218 the largest tensor, 1.9 GB, fills one alone".
std::string packs_text(const PackSizes& packs) {
    constexpr double kAnyRatio = 0.9999;
    auto text = size_cell(packs.train_target) +
                (packs.agree ? "" : " for trainers and " + size_cell(packs.generate_target) + " for generators, which disagree");
    text += !packs.largest_ratio               ? ", no memory ratio fits"
            : *packs.largest_ratio >= kAnyRatio ? ", any memory ratio fits"
                                                : ", a memory ratio up to " + number_text("%.4f", *packs.largest_ratio) + " fits";
    const auto below = packs.smallest_ratio ? "below " + number_text("%.4f", *packs.smallest_ratio) : "whatever the ratio,";
    return text + " beside the weights; " + below + " the largest tensor, " + size_cell(packs.largest_tensor) + ", fills one alone";
}

std::string memory_text(const ShownPlan& shown) {
    const auto sides = side_text(shown.cluster, "train memory", shown.memory.train) + side_text(shown.cluster, "gen. memory", shown.memory.generation);
    return sides + (shown.packs ? line("packs", packs_text(*shown.packs)) : "");
}

std::string certificate_text(const ShownPlan& shown) {
    const auto& certificate = shown.certificate;
    const auto bound = certificate.bounds.largest();
    if (!(bound.time > Seconds{})) {
        return line("certificate", "nothing has to move");
    }
    auto text = line("port time",
                     format_seconds(certificate.port_time) + ": " + certificate.resource + " of " +
                         (certificate.pod ? "pod " + std::to_string(*certificate.pod) : rank_text(shown.cluster, certificate.rank)));
    text += line("bound", format_seconds(bound.time) + ": " + std::string{name_of(bound.kind)} + " at " + bound.where);
    text += line("certificate", number_text("%.3f", certificate.ratio()) + " = port time / bound; no plan is below 1");
    for (const auto& cut : certificate.bounds.cuts) {
        if (cut.time > Seconds{} && cut.kind != bound.kind) {
            text += line("", left(std::string{name_of(cut.kind)}, 16) + left(format_seconds(cut.time), 11) + cut.where);
        }
    }
    for (const auto& relaxation : certificate.relaxations) {
        const bool can_be = std::isfinite(relaxation.bound.value());
        text += line("otherwise", (can_be ? format_seconds(relaxation.bound) + " is the bound " : "no plan is possible ") + relaxation.condition);
    }
    return text;
}

std::string ranks_text(const ShownPlan& shown) {
    std::vector<std::uint32_t> order(shown.summary.ranks.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, std::greater{}, [&](std::uint32_t rank) {
        return sent(shown.summary.ranks[rank]) + received(shown.summary.ranks[rank]);
    });
    std::string text = "\n  " + left("busiest ranks", 32) + right("NIC out", 11) + right("NIC in", 11) +
                       right("NVLink out", 11) + right("NVLink in", 11) + "\n";
    for (std::size_t i = 0; i < std::min(kShownRows, order.size()); ++i) {
        const auto& port = shown.summary.ranks[order[i]];
        text += "  " + left(rank_text(shown.cluster, RankId{order[i]}), 32) + right(size_cell(Bytes{port.nic_out}), 11) +
                right(size_cell(Bytes{port.nic_in}), 11) + right(size_cell(Bytes{port.nvlink_out}), 11) +
                right(size_cell(Bytes{port.nvlink_in}), 11) + "\n";
    }
    return text;
}

std::string pairs_text(const ShownPlan& shown) {
    std::string text = "\n  " + left("largest pairs", 50) + right("bytes", 11) + right("hops", 9) + "  link\n";
    for (std::size_t i = 0; i < std::min(kShownRows, shown.summary.pairs.size()); ++i) {
        const auto& pair = shown.summary.pairs[i];
        text += "  " + left(rank_text(shown.cluster, pair.source) + " > " + rank_text(shown.cluster, pair.destination), 50) +
                right(size_cell(Bytes{pair.bytes}), 11) + right(grouped(pair.hops), 9) +
                (pair.is_network ? "  NIC\n" : "  NVLink\n");
    }
    return text + "  " + grouped(shown.summary.pairs.size()) + " pairs in all\n";
}

std::string links_text(const ShownPlan& shown) {
    std::vector<std::uint32_t> order(shown.summary.domains.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, std::greater{}, [&](std::uint32_t domain) {
        return std::max(shown.summary.domains[domain].nic_in, shown.summary.domains[domain].nic_out);
    });
    std::string text = "\n  " + left("busiest NVLink domains", 32) + right("NIC out", 11) + right("NIC in", 11) + right("NVLink", 22) + "\n";
    for (std::size_t i = 0; i < std::min(kShownRows, order.size()); ++i) {
        const auto& port = shown.summary.domains[order[i]];
        text += "  " + left("domain " + std::to_string(order[i]), 32) + right(size_cell(Bytes{port.nic_out}), 11) +
                right(size_cell(Bytes{port.nic_in}), 11) + right(size_cell(Bytes{port.nvlink_out}), 22) + "\n";
    }
    return text;
}

/// The end of a name tells classes apart.
std::string shortened(const std::string& name, std::size_t width) {
    return name.size() <= width ? name : "..." + name.substr(name.size() - width + 3);
}

std::string classes_text(const ShownPlan& shown) {
    auto classes = shown.summary.classes;
    std::ranges::stable_sort(classes, std::greater{}, &ClassMoves::delivered);
    std::string text = "\n  " + left("largest classes", 42) + right("tensors", 9) + right("bytes", 11) + right("delivered", 11) + "\n";
    for (std::size_t i = 0; i < std::min(kShownRows, classes.size()); ++i) {
        const auto& entry = classes[i];
        text += "  " + left(shortened(entry.name, 41), 42) + right(grouped(entry.tensors), 9) +
                right(size_cell(entry.bytes), 11) + right(size_cell(entry.delivered), 11) +
                (entry.is_gathered ? "  *\n" : "\n");
    }
    const bool has_gathered = std::ranges::any_of(classes, &ClassMoves::is_gathered);
    return text + "  " + std::to_string(classes.size()) + " classes in all" +
           (has_gathered ? "; *: gathered and broadcast\n" : "\n");
}

/// Null where dead ports allow no plan.
nlohmann::json finite_seconds(Seconds time) {
    return std::isfinite(time.value()) ? nlohmann::json(time.value()) : nlohmann::json(nullptr);
}

nlohmann::json stage_memory_json(const StageMemory& memory) {
    auto uses = nlohmann::json::array();
    for (const auto& use : memory.uses) {
        uses.push_back({{"cause", name_of(use.cause)}, {"bytes", use.bytes.count()}});
    }
    return {{"stage", memory.stage}, {"rank", memory.rank.index()}, {"bytes", memory.total().count()}, {"uses", std::move(uses)}};
}

nlohmann::json side_json(const std::vector<StageMemory>& stages) {
    auto list = nlohmann::json::array();
    for (const auto& stage : stages) {
        list.push_back(stage_memory_json(stage));
    }
    const auto* worst = MemoryAccount::worst(stages);
    return {{"worst", worst == nullptr ? nlohmann::json(nullptr) : stage_memory_json(*worst)}, {"stages", std::move(list)}};
}

nlohmann::json packs_json(const std::optional<PackSizes>& packs) {
    if (!packs) {
        return nullptr;
    }
    const auto ratio = [](const std::optional<double>& value) { return value ? nlohmann::json(*value) : nlohmann::json(nullptr); };
    return {{"train_target_bytes", packs->train_target.count()},
            {"generation_target_bytes", packs->generate_target.count()},
            {"agree", packs->agree},
            {"largest_tensor_bytes", packs->largest_tensor.count()},
            {"smallest_ratio", ratio(packs->smallest_ratio)},
            {"largest_ratio", ratio(packs->largest_ratio)},
            {"agreeing_ratio", ratio(packs->agreeing_ratio)}};
}

}  // namespace

std::string rank_text(const Cluster& cluster, RankId rank) {
    return cluster.is_trainer(rank) ? "trainer " + std::to_string(rank.index())
                                    : "generator " + std::to_string(rank.index() - cluster.train_gpus());
}

std::string plan_text(const ShownPlan& shown) {
    const auto& summary = shown.summary;
    PortBytes all;
    for (const auto& port : summary.ranks) {
        all.nic_out += port.nic_out;
        all.nvlink_out += port.nvlink_out;
    }
    std::string text = shown.title + " by " + std::string{name_of(shown.plan.method)} + ": " + stages_text(shown.plan) + "\n";
    text += line("delivers", size_cell(shown.workload.delivered_bytes()) + " to " + grouped(shown.cluster.active_gpus() - shown.cluster.active_trainers()) +
                                 " generators, from " + size_cell(shown.workload.payload_bytes()) + " of weights on " +
                                 grouped(shown.cluster.active_trainers()) + " trainers");
    text += line("moves", size_cell(Bytes{all.nic_out}) + " over NICs, " + size_cell(Bytes{all.nvlink_out}) + " over NVLink, in " +
                              grouped(summary.messages) + " messages and " + grouped(summary.hops) + " hops" + relay_text(shown.plan));
    const auto fabric = fabric_text(shown.cluster);
    text += fabric.empty() ? "" : line("fabric", fabric);
    return text + memory_text(shown) + certificate_text(shown) + ranks_text(shown) + pairs_text(shown) + links_text(shown) + classes_text(shown);
}

void add_plan_json(nlohmann::json& report, const ShownPlan& shown) {
    using Json = nlohmann::json;
    const auto& certificate = shown.certificate;
    const auto bound = certificate.bounds.largest();
    Json cuts = Json::array();
    for (const auto& cut : certificate.bounds.cuts) {
        cuts.push_back({{"kind", name_of(cut.kind)}, {"seconds", cut.time.value()}, {"where", cut.where}});
    }
    Json relaxations = Json::array();
    for (const auto& relaxation : certificate.relaxations) {
        relaxations.push_back({{"condition", relaxation.condition}, {"bound_seconds", finite_seconds(relaxation.bound)}});
    }
    report["certificate"] = {{"ratio", certificate.ratio()},
                             {"port_seconds", certificate.port_time.value()},
                             {"resource", certificate.resource},
                             {"rank", certificate.rank.index()},
                             {"bound", {{"kind", name_of(bound.kind)}, {"seconds", bound.time.value()}, {"where", bound.where}}},
                             {"cuts", std::move(cuts)},
                             {"own_nic_egress_seconds", finite_seconds(certificate.bounds.own_nic_egress.time)},
                             {"relaxations", std::move(relaxations)}};
    if (certificate.pod) {
        report["certificate"]["pod"] = *certificate.pod;
    }
    report["memory"] = {{"train", side_json(shown.memory.train)},
                        {"generation", side_json(shown.memory.generation)},
                        {"packs", packs_json(shown.packs)}};
    auto& ranks = report["ranks"] = Json::array();
    for (std::uint32_t rank = 0; rank < shown.summary.ranks.size(); ++rank) {
        const auto& port = shown.summary.ranks[rank];
        ranks.push_back({{"rank", rank},
                         {"role", shown.cluster.is_trainer(RankId{rank}) ? "train" : "generate"},
                         {"sent_bytes", sent(port)},
                         {"received_bytes", received(port)},
                         {"network_sent_bytes", port.nic_out},
                         {"network_received_bytes", port.nic_in},
                         {"nvlink_sent_bytes", port.nvlink_out},
                         {"nvlink_received_bytes", port.nvlink_in}});
    }
    auto& pairs = report["pairs"] = Json::array();
    for (const auto& pair : shown.summary.pairs) {
        pairs.push_back({{"source", pair.source.index()},
                         {"destination", pair.destination.index()},
                         {"bytes", pair.bytes},
                         {"hops", pair.hops},
                         {"link", pair.is_network ? "network" : "nvlink"}});
    }
    auto& links = report["links"] = Json::array();
    for (std::uint32_t domain = 0; domain < shown.summary.domains.size(); ++domain) {
        const auto& port = shown.summary.domains[domain];
        links.push_back({{"domain", domain},
                         {"network_sent_bytes", port.nic_out},
                         {"network_received_bytes", port.nic_in},
                         {"nvlink_bytes", port.nvlink_out}});
    }
    auto& classes = report["classes"] = Json::array();
    for (const auto& entry : shown.summary.classes) {
        classes.push_back({{"name", entry.name},
                           {"tensors", entry.tensors},
                           {"bytes", entry.bytes.count()},
                           {"delivered_bytes", entry.delivered.count()},
                           {"point_to_point_bytes", entry.point_to_point.count()},
                           {"gathered", entry.is_gathered}});
    }
}

std::string plan_csv(const ShownPlan& shown) {
    std::string text =
        "rank,role,sent_bytes,received_bytes,network_sent_bytes,network_received_bytes,nvlink_sent_bytes,nvlink_received_bytes\n";
    for (std::uint32_t rank = 0; rank < shown.summary.ranks.size(); ++rank) {
        const auto& port = shown.summary.ranks[rank];
        text += std::to_string(rank) + (shown.cluster.is_trainer(RankId{rank}) ? ",train" : ",generate");
        for (const auto bytes : {sent(port), received(port), port.nic_out, port.nic_in, port.nvlink_out, port.nvlink_in}) {
            text += "," + std::to_string(bytes);
        }
        text += "\n";
    }
    return text;
}

}  // namespace refit::cli
