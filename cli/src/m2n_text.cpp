// SPDX-License-Identifier: Apache-2.0
#include "m2n_text.hpp"

#include <algorithm>

#include "cells.hpp"
#include "faults_text.hpp"

namespace refit::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kLongestName = 56;

std::string shape_text(const std::vector<std::uint64_t>& shape) {
    std::string text;
    for (const auto extent : shape) {
        text += (text.empty() ? "" : "x") + std::to_string(extent);
    }
    return text;
}

Bytes size_of(const M2nTensor& tensor) {
    Bytes size{tensor.element_bytes};
    for (const auto extent : tensor.shape) {
        size *= extent;
    }
    return size;
}

std::string title(const io::M2nRequest& request) {
    auto name = request.name.empty() ? "call" : request.name;
    if (name.size() > kLongestName) {
        name = name.substr(0, kLongestName - 3) + "...";
    }
    const auto& tensor = request.call.source;
    return wrap(name + ": " + shape_text(tensor.shape) + " of " + std::to_string(tensor.element_bytes) +
                    " B, " + size_cell(size_of(tensor)),
                kWidth,
                2) +
           "\n";
}

/// "16 shards of axis 0, each on 2 of ranks 0 to 31".
std::string side_text(const M2nSide& side) {
    const auto first = side.first_rank.index();
    const auto ranks = "ranks " + std::to_string(first) + " to " + std::to_string(first + side.ranks() - 1);
    if (side.is_whole()) {
        return "whole on each of " + ranks;
    }
    return std::to_string(side.shards) + " shards of axis " + std::to_string(side.axis) +
           (side.replicas > 1 ? ", each on " + std::to_string(side.replicas) + " of " : ", on ") + ranks;
}

std::string line(const std::string& what, std::size_t count, std::uint64_t bytes, const std::string& most) {
    return "  " + left(what, 12) + right(grouped(count), 9) + right(size_cell(Bytes{bytes}), 12) + "   " +
           most + "\n";
}

std::string out(std::uint64_t bytes) {
    return size_cell(Bytes{bytes}) + " out";
}
std::string in(std::uint64_t bytes) {
    return size_cell(Bytes{bytes}) + " in";
}

/// Hops and stores that carry anything.
struct Counts {
    std::size_t hops = 0;
    std::size_t stores = 0;
};

Counts counts_of(const M2nPlan& plan) {
    Counts counts;
    for (const auto& entry : plan.destinations) {
        if (entry.sources.size() > 0) {
            counts.hops += entry.ring_next ? 1U : 0U;
            counts.stores += plan.followers_of(entry).size();
        }
    }
    return counts;
}

std::string path_text(const io::M2nRequest& request, const M2nPlan& plan) {
    const auto asked = request.settings.path;
    std::string text = "path " + std::string{name_of(plan.path)};
    text += asked == plan.path ? "" : " (" + std::string{name_of(asked)} + " is closed to this call)";
    text += ", " + std::string{name_of(plan.balance)} + " balance";
    return plan.path == M2nPath::kLsa ? text + ", all ranks in one domain"
                                      : text + ", domains of " + std::to_string(request.settings.domain_size);
}

std::string plan_text(const io::M2nRequest& request, const M2nPlan& plan) {
    const auto& totals = plan.totals;
    const auto counts = counts_of(plan);
    std::string text =
        "  from  " + side_text(plan.source) + "\n  to    " + side_text(plan.destination) + "\n";
    text += "  by    " + wrap(path_text(request, plan), kWidth, 8) + "\n\n";
    text += "  " + left("", 12) + right("transfers", 9) + right("bytes", 12) + "   most on one rank\n";
    text += line("injection",
                 plan.injections.size(),
                 totals.inject_bytes,
                 out(totals.max_rank_inject_tx) + ", " + in(totals.max_rank_inject_rx));
    text += line("ring hops", counts.hops, totals.ring_bytes, out(totals.max_rank_ring_tx));
    text += line("fan-out", counts.stores, totals.fanout_bytes, out(totals.max_rank_fanout_tx));
    const bool is_lsa = plan.path == M2nPath::kLsa;
    const auto network = is_lsa ? 0 : totals.inject_bytes + totals.ring_bytes;
    text += line("on NICs",
                 is_lsa ? 0 : plan.injections.size() + counts.hops,
                 network,
                 out(totals.max_rank_network_tx) + ", " + in(totals.max_rank_network_rx));
    text += "\n  " + std::to_string(totals.active_senders) + " of " + std::to_string(totals.source_ranks) +
            " source ranks send; rank " + std::to_string(totals.busiest.index()) +
            " is the busiest and sends " + size_cell(Bytes{totals.busiest_tx}) + "\n";
    return text;
}

std::string refusal_text(const std::vector<M2nRefusal>& refusals) {
    std::string text;
    for (const auto& refusal : refusals) {
        const auto fault = to_fault(refusal);
        text += "  refused: " + wrap(fault.message + "  [" + fault.rule + "]", kWidth, 11) + "\n";
    }
    return text;
}

std::string sums_text(const std::vector<io::M2nAnswer>& answers) {
    Bytes inject;
    Bytes ring;
    Bytes fanout;
    std::size_t planned = 0;
    for (const auto& answer : answers) {
        if (answer.plan) {
            ++planned;
            inject += Bytes{answer.plan->totals.inject_bytes};
            ring += Bytes{answer.plan->totals.ring_bytes};
            fanout += Bytes{answer.plan->totals.fanout_bytes};
        }
    }
    return std::to_string(answers.size()) + " calls: " + std::to_string(planned) + " planned, " +
           std::to_string(answers.size() - planned) + " refused\n  injection " + size_cell(inject) +
           ", ring hops " + size_cell(ring) + ", fan-out " + size_cell(fanout) + "\n";
}

}  // namespace

std::string m2n_text(const std::vector<io::M2nAnswer>& answers) {
    std::string text;
    for (const auto& answer : answers) {
        text += (text.empty() ? "" : "\n") + title(answer.request);
        text += answer.plan ? plan_text(answer.request, *answer.plan) : refusal_text(answer.refused);
    }
    return answers.size() > 1 ? text + "\n" + sums_text(answers) : text;
}

}  // namespace refit::cli
