// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "refit/nic_routes.hpp"
#include "refit/task_graph.hpp"

namespace refit {

/// Numbers of tasks.
using TaskIds = std::vector<std::uint32_t>;

/// The rings of a collective that the classes of ranks cannot tell apart, as one flow.
struct RingFlow {
    double wire_bytes = 0.0;  ///< Over all calls.
    double weight = 1.0;
    bool crosses_domains = false;
    std::uint32_t first_group = 0;  ///< One of the collective's groups that it stands for.
    std::vector<LinkUse> uses;
    std::uint32_t way = 0;  ///< Of the network, over these.
};

/// What graphs of one plan have in common, whatever hosts take: found for the first, used for the others. Pre: the
/// options of the graphs differ in `has_software` alone.
struct GraphMemo {
    std::vector<RankClasses> sections;
    std::map<const Collective*, std::vector<RingFlow>> rings;  ///< Their ways are of no graph.
};

/// Adds tasks and links to a graph. Shared by the builders of each kind of stage.
class GraphBuilder {
public:
    GraphBuilder(const Plan& plan,
                 const Workload& workload,
                 const Scenario& scenario,
                 const GraphOptions& options,
                 GraphMemo& memo);

    [[nodiscard]] const Plan& plan() const noexcept { return plan_; }
    [[nodiscard]] const Workload& workload() const noexcept { return workload_; }
    [[nodiscard]] const Scenario& scenario() const noexcept { return scenario_; }
    [[nodiscard]] const Cluster& cluster() const noexcept { return scenario_.cluster; }
    [[nodiscard]] const EngineConstants& constants() const noexcept { return scenario_.engine.constants; }
    /// Of a grouped expert parameter, as the options read the published times. Unit: s.
    [[nodiscard]] double bulk_cost() const noexcept {
        return bulk_parameter_seconds(setting_, reading());
    }
    [[nodiscard]] Reading reading() const noexcept { return setting_.options.reading.usual(); }
    [[nodiscard]] const GraphOptions& options() const noexcept { return options_; }
    [[nodiscard]] bool is_cancelled() const { return options_.is_cancelled && options_.is_cancelled(); }
    /// Of the section under way.
    [[nodiscard]] const RankClasses& classes() const noexcept { return graph_.sections.back(); }
    [[nodiscard]] const Setting& setting() const noexcept { return setting_; }

    /// From here on tasks use links of their own: those of the classes that these stages of the plan make.
    void begin_section(std::span<const std::uint32_t> stages);

    [[nodiscard]] std::uint32_t lane(std::string name);
    [[nodiscard]] std::uint32_t link(Port port, std::uint32_t rank_class) const noexcept {
        return first_link_ + rank_class * static_cast<std::uint32_t>(kPorts) +
               static_cast<std::uint32_t>(port);
    }
    /// Whether every hop takes the ports of its two ends alone.
    [[nodiscard]] bool goes_by_ends() const noexcept { return routes_.is_plain() && graph_.pods.empty(); }
    /// What one hop takes for each of its bytes: ports of both ends, and of the ranks and pods that it goes by.
    /// Pre: each rank is a class of its own, or the fabric is plain.
    [[nodiscard]] std::vector<LinkUse> hop_uses(RankId from, RankId to) const;
    [[nodiscard]] const LinkOwner& owner(std::uint32_t link) const noexcept { return graph_.links[link]; }
    [[nodiscard]] double rate(std::uint32_t link) const noexcept { return graph_.network.rate(link); }

    /// Number of the next task.
    [[nodiscard]] std::uint32_t tasks() const noexcept {
        return static_cast<std::uint32_t>(graph_.tasks.size());
    }
    /// A way for tasks: many share few.
    std::uint32_t add_way(std::span<const LinkUse> uses) { return graph_.network.add_way(uses); }
    [[nodiscard]] std::span<const LinkUse> way(std::uint32_t way) const noexcept {
        return graph_.network.way(way);
    }
    std::uint32_t add(const Task& task,
                      const Flow& flow,
                      std::uint32_t way,
                      std::span<const std::uint32_t> after);
    /// Time on a host; none without software. Nothing slows it.
    std::uint32_t add_delay(const Task& task, double seconds, std::span<const std::uint32_t> after) {
        return add_delay(task, seconds, after, no_links_);
    }
    /// The same, over a host's link, for each second, and links that others share with it meanwhile.
    std::uint32_t add_delay(const Task& task,
                            double seconds,
                            std::span<const std::uint32_t> after,
                            std::uint32_t way);
    /// Takes no time; ends with the last of `after`.
    std::uint32_t add_barrier(const Task& task, std::span<const std::uint32_t> after);
    /// Rings of a collective by what the classes tell apart.
    [[nodiscard]] std::vector<RingFlow> ring_flows(const Collective& collective);

    [[nodiscard]] TaskGraph finish() { return std::move(graph_); }

private:
    [[nodiscard]] std::uint32_t pod_link(Port port, std::uint32_t pod) const noexcept {
        return first_pod_link_ + pod * 2 + (port == Port::kDownlink ? 1 : 0);
    }
    void add_pod_links(const Fabric& fabric);
    [[nodiscard]] std::vector<RingFlow> make_rings(const Collective& collective) const;
    void add_detours(RingFlow& flow, const RingDetours& detours) const;
    /// Each rank sends its part once and the switch copies it: of a ring's bytes out, one part of those of
    /// all others.
    void by_multicast(RingFlow& flow, std::size_t ranks) const;

    const Plan& plan_;
    const Workload& workload_;
    const Scenario& scenario_;
    const GraphOptions& options_;
    GraphMemo& memo_;
    Setting setting_;
    NicRoutes routes_;
    std::uint32_t first_link_ = 0;      ///< Of the section.
    std::uint32_t first_pod_link_ = 0;  ///< The same.
    TaskGraph graph_;
    std::uint32_t no_links_;  ///< The way of tasks on hosts.
};

/// What a gather ends with.
struct GatheredTasks {
    TaskIds first;  ///< Every trainer has the first pack.
    TaskIds last;   ///< All packs are gathered, broadcast where they are, and loaded.
};

/// As make_task_graph; reads and fills the memo.
[[nodiscard]] TaskGraph make_task_graph(const Plan& plan,
                                        const Workload& workload,
                                        const Scenario& scenario,
                                        const GraphOptions& options,
                                        GraphMemo& memo);

/// Each adds the tasks of its stages after the tasks `after`, and returns those that the next must follow. A gather takes
/// its broadcast along.
[[nodiscard]] GatheredTasks add_gather_tasks(GraphBuilder& builder, std::uint32_t gather_stage, const TaskIds& after);
[[nodiscard]] TaskIds add_transfer_tasks(GraphBuilder& builder,
                                         std::span<const std::uint32_t> stages,
                                         const TaskIds& after);
[[nodiscard]] TaskIds add_relay_tasks(GraphBuilder& builder, std::uint32_t stage, const TaskIds& after);

}  // namespace refit
