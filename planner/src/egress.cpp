// SPDX-License-Identifier: Apache-2.0
#include "egress.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <lemon/preflow.h>
#include <lemon/smart_graph.h>

namespace refit {
namespace {

/// Flows count in units of 2^-40 of the total: whole numbers, so that cuts are exact.
constexpr double kUnits = 1099511627776.0;

/// Groups that share nodes, directly or through others.
struct Component {
    std::vector<std::uint32_t> groups;
    std::vector<std::uint32_t> nodes;
};

class Components {
public:
    explicit Components(std::size_t nodes) : parent_(nodes) { std::iota(parent_.begin(), parent_.end(), 0U); }
    std::uint32_t find(std::uint32_t node) {
        while (parent_[node] != node) {
            node = parent_[node] = parent_[parent_[node]];
        }
        return node;
    }
    void join(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

private:
    std::vector<std::uint32_t> parent_;
};

std::vector<Component> components_of(const std::vector<EgressGroup>& groups, std::size_t nodes) {
    Components sets{nodes};
    std::vector<bool> is_used(nodes, false);
    for (const auto& group : groups) {
        for (const auto node : group.nodes) {
            sets.join(group.nodes.front(), node);
            is_used[node] = true;
        }
    }
    std::vector<std::int64_t> index(nodes, -1);
    std::vector<Component> components;
    const auto component_of = [&](std::uint32_t node) -> Component& {
        auto& entry = index[sets.find(node)];
        if (entry < 0) {
            entry = static_cast<std::int64_t>(components.size());
            components.emplace_back();
        }
        return components[static_cast<std::size_t>(entry)];
    };
    for (std::uint32_t group = 0; group < groups.size(); ++group) {
        component_of(groups[group].nodes.front()).groups.push_back(group);
    }
    for (std::uint32_t node = 0; node < nodes; ++node) {
        if (is_used[node]) {
            component_of(node).nodes.push_back(node);
        }
    }
    return components;
}

using Graph = lemon::SmartDigraph;

/// One component as a flow from a source over groups and nodes to a sink.
class Network {
public:
    Network(const Component& component, const std::vector<EgressGroup>& groups, const std::vector<double>& rates)
        : component_{component}, capacity_{graph_}, source_{graph_.addNode()}, sink_{graph_.addNode()} {
        for (const auto group : component.groups) {
            bytes_ += groups[group].bytes;
        }
        std::vector<Graph::Node> nodes(rates.size());
        for (const auto node : component.nodes) {
            nodes[node] = graph_.addNode();
            rates_.push_back(rates[node]);
            sinks_.push_back(graph_.addArc(nodes[node], sink_));
            nodes_.push_back(nodes[node]);
        }
        for (const auto group : component.groups) {
            const auto from = graph_.addNode();
            const auto arc = graph_.addArc(source_, from);
            capacity_[arc] = units(groups[group].bytes);
            total_ += capacity_[arc];
            group_nodes_.push_back(from);
            group_units_.push_back(capacity_[arc]);
            auto& arcs = shares_.emplace_back();
            for (const auto node : groups[group].nodes) {
                arcs.push_back(graph_.addArc(from, nodes[node]));
                capacity_[arcs.back()] = capacity_[arc];
            }
        }
    }

    /// Raises the time by the cut that forbids it until the flow fits.
    EgressShares solve() {
        EgressShares shares;
        const auto all_rates = std::accumulate(rates_.begin(), rates_.end(), 0.0);
        shares.seconds = bytes_ / all_rates;
        shares.cut = component_.nodes;
        for (;;) {
            for (std::size_t i = 0; i < sinks_.size(); ++i) {
                // One unit more than the exact capacity, so that rounding forbids nothing.
                capacity_[sinks_[i]] = units(shares.seconds * rates_[i]) + 1;
            }
            lemon::Preflow<Graph, Graph::ArcMap<std::int64_t>> flow{graph_, capacity_, source_, sink_};
            flow.run();
            if (flow.flowValue() >= total_ || !tighten(flow, shares)) {
                fill(flow, shares);
                return shares;
            }
        }
    }

private:
    [[nodiscard]] std::int64_t units(double bytes) const { return static_cast<std::int64_t>(bytes / bytes_ * kUnits); }

    template <class Flow>
    bool tighten(const Flow& flow, EgressShares& shares) const {
        double held = 0.0;
        double rate = 0.0;
        std::vector<std::uint32_t> cut;
        for (std::size_t i = 0; i < group_nodes_.size(); ++i) {
            held += flow.minCut(group_nodes_[i]) ? static_cast<double>(group_units_[i]) / kUnits * bytes_ : 0.0;
        }
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if (flow.minCut(nodes_[i])) {
                rate += rates_[i];
                cut.push_back(component_.nodes[i]);
            }
        }
        const auto seconds = rate > 0.0 ? held / rate : 0.0;
        if (!(seconds > shares.seconds * (1.0 + 1e-12))) {
            return false;
        }
        shares.seconds = seconds;
        shares.cut = std::move(cut);
        return true;
    }

    template <class Flow>
    void fill(const Flow& flow, EgressShares& shares) const {
        for (const auto& arcs : shares_) {
            auto& row = shares.flow.emplace_back();
            for (const auto arc : arcs) {
                row.push_back(static_cast<double>(flow.flow(arc)) / kUnits * bytes_);
            }
        }
    }

    const Component& component_;
    Graph graph_;
    Graph::ArcMap<std::int64_t> capacity_;
    Graph::Node source_;
    Graph::Node sink_;
    std::vector<Graph::Node> nodes_;
    std::vector<Graph::Arc> sinks_;
    std::vector<double> rates_;
    std::vector<Graph::Node> group_nodes_;
    std::vector<std::int64_t> group_units_;
    std::vector<std::vector<Graph::Arc>> shares_;
    double bytes_ = 0.0;
    std::int64_t total_ = 0;
};

/// A single group: its nodes send in the measure of their rates.
EgressShares proportional(const EgressGroup& group, const std::vector<double>& rates) {
    double sum = 0.0;
    for (const auto node : group.nodes) {
        sum += rates[node];
    }
    EgressShares shares{group.bytes / sum, group.nodes, {{}}};
    for (const auto node : group.nodes) {
        shares.flow.front().push_back(group.bytes * rates[node] / sum);
    }
    return shares;
}

}  // namespace

EgressShares least_egress(const std::vector<EgressGroup>& groups, const std::vector<double>& rates) {
    EgressShares all;
    all.flow.resize(groups.size());
    for (const auto& component : components_of(groups, rates.size())) {
        const auto has_bytes = [&](std::uint32_t group) { return groups[group].bytes > 0.0; };
        if (std::ranges::none_of(component.groups, has_bytes)) {
            for (const auto group : component.groups) {
                all.flow[group].assign(groups[group].nodes.size(), 0.0);
            }
            continue;
        }
        auto shares = component.groups.size() == 1 ? proportional(groups[component.groups.front()], rates)
                                                   : Network{component, groups, rates}.solve();
        for (std::size_t i = 0; i < component.groups.size(); ++i) {
            all.flow[component.groups[i]] = std::move(shares.flow[i]);
        }
        if (shares.seconds > all.seconds) {
            all.seconds = shares.seconds;
            all.cut = std::move(shares.cut);
        }
    }
    return all;
}

}  // namespace refit
