// SPDX-License-Identifier: Apache-2.0
#include "graph_builder.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace refit {
namespace {

/// In place of the rate of a port that is down, over which nothing goes: a link has a rate. Unit: bytes per second.
constexpr double kDown = 1.0;

constexpr std::array<std::string_view, kActivities> kNames = {"control",
                                                              "grouped experts",
                                                              "collective calls",
                                                              "pipeline broadcast",
                                                              "TP all-gather",
                                                              "EP all-gather",
                                                              "staging",
                                                              "device copies",
                                                              "weight broadcast",
                                                              "loading",
                                                              "posting",
                                                              "transfers",
                                                              "replicas",
                                                              "relays",
                                                              "unpacking",
                                                              "finalising"};
constexpr std::array<std::string_view, kActivities> kPhases = {"fixed",
                                                               "bulk",
                                                               "gather",
                                                               "gather",
                                                               "gather",
                                                               "gather",
                                                               "gather",
                                                               "gather",
                                                               "broadcast",
                                                               "load",
                                                               "bulk",
                                                               "bulk",
                                                               "bulk",
                                                               "bulk",
                                                               "bulk",
                                                               "finalize"};

}  // namespace

std::string_view name_of(Activity activity) noexcept {
    return kNames[static_cast<std::size_t>(activity)];
}
std::string_view phase_of(Activity activity) noexcept {
    return kPhases[static_cast<std::size_t>(activity)];
}

bool is_on_links(Activity activity) noexcept {
    switch (activity) {
        case Activity::kPipelineBroadcast:
        case Activity::kTensorAllGather:
        case Activity::kExpertAllGather:
        case Activity::kWeightBroadcast:
        case Activity::kTransfer:
        case Activity::kReplicas:
        case Activity::kRelay:
            return true;
        default:
            return false;
    }
}

std::vector<std::uint32_t> TaskGraph::lane_of_tasks() const {
    std::vector<std::uint32_t> lane_of(tasks.size());
    std::ranges::transform(tasks, lane_of.begin(), &Task::lane);
    return lane_of;
}

GraphBuilder::GraphBuilder(const Plan& plan,
                           const Workload& workload,
                           const Scenario& scenario,
                           const GraphOptions& options,
                           GraphMemo& memo)
    : plan_{plan},
      workload_{workload},
      scenario_{scenario},
      options_{options},
      memo_{memo},
      setting_{make_setting(scenario, workload)},
      routes_{scenario.cluster},
      no_links_{graph_.network.add_way({})} {}

void GraphBuilder::begin_section(std::span<const std::uint32_t> stages) {
    const Fabric fabric{
        cluster(),
        port_rates(cluster(), constants().nic_efficiency.value, constants().nvlink_efficiency.value)};
    first_link_ = graph_.network.links();
    const auto section = static_cast<std::uint32_t>(graph_.sections.size());
    if (section == memo_.sections.size()) {
        memo_.sections.push_back(
            RankClasses::make(plan_, stages, cluster(), fabric, workload_.trainers_per_stage(), reading().replica_ring));
    }
    graph_.sections.push_back(memo_.sections[section]);
    for (std::uint32_t index = 0; index < classes().count(); ++index) {
        const auto rank = classes().members(index).front();
        const auto& ports = fabric.ports(rank.index());
        for (const auto rate : {ports.nic_out,
                                ports.nic_in,
                                ports.nvlink_out,
                                ports.nvlink_in,
                                cluster().system_of(rank).hbm_copy.value.bytes_per_second(),
                                1.0}) {
            const auto port = static_cast<Port>((graph_.links.size() - first_link_) % kPorts);
            graph_.network.add_link(rate > 0.0 ? rate : kDown);
            graph_.links.push_back({port, section, index});
        }
    }
    add_pod_links(fabric);
}

void GraphBuilder::add_pod_links(const Fabric& fabric) {
    const auto& spine = fabric.spine();
    const auto section = static_cast<std::uint32_t>(graph_.sections.size() - 1);
    first_pod_link_ = graph_.network.links();
    graph_.pods.assign(spine.pods(), {});
    for (std::uint32_t rank = 0; rank < cluster().gpus() && spine.pods() > 0; ++rank) {
        auto& pod = graph_.pods[fabric.pod_of(fabric.domain_of(rank))];
        if (pod.empty()) {
            pod.emplace_back(rank);
        }
    }
    for (std::uint32_t pod = 0; pod < spine.pods(); ++pod) {
        graph_.network.add_link(spine.up[pod]);
        graph_.links.push_back({Port::kUplink, section, pod});
        graph_.network.add_link(spine.down[pod]);
        graph_.links.push_back({Port::kDownlink, section, pod});
    }
}

std::vector<LinkUse> GraphBuilder::hop_uses(RankId from, RankId to) const {
    std::vector<LinkUse> uses;
    const auto add = [&](Port out, RankId source, Port in, RankId destination) {
        uses.push_back({link(out, classes().class_of(source)), 1.0});
        uses.push_back({link(in, classes().class_of(destination)), 1.0});
    };
    if (cluster().domain_of(from) == cluster().domain_of(to)) {
        add(Port::kNvlinkOut, from, Port::kNvlinkIn, to);
        return uses;
    }
    const auto route = routes_.between(from, to).value();
    add(Port::kNicOut, route.exit, Port::kNicIn, route.landing);
    if (route.exit != from) {
        add(Port::kNvlinkOut, from, Port::kNvlinkIn, route.exit);
    }
    if (route.landing != to) {
        add(Port::kNvlinkOut, route.landing, Port::kNvlinkIn, to);
    }
    const auto leaves = cluster().pod_of(cluster().domain_of(from));
    const auto enters = cluster().pod_of(cluster().domain_of(to));
    if (!graph_.pods.empty() && leaves != enters) {
        uses.push_back({pod_link(Port::kUplink, leaves), 1.0});
        uses.push_back({pod_link(Port::kDownlink, enters), 1.0});
    }
    return uses;
}

void GraphBuilder::add_detours(RingFlow& flow, const RingDetours& detours) const {
    for (const auto& [rank, ports] : detours.helpers) {
        for (std::size_t port = 0; port < kPorts; ++port) {
            if (ports[port] > 0.0) {
                flow.uses.push_back({link(static_cast<Port>(port), classes().class_of(rank)), ports[port]});
            }
        }
    }
    for (std::uint32_t pod = 0; pod < detours.up.size(); ++pod) {
        if (detours.up[pod] > 0.0) {
            flow.uses.push_back({pod_link(Port::kUplink, pod), detours.up[pod]});
        }
        if (detours.down[pod] > 0.0) {
            flow.uses.push_back({pod_link(Port::kDownlink, pod), detours.down[pod]});
        }
    }
}

std::uint32_t GraphBuilder::lane(std::string name) {
    const auto found = std::ranges::find(graph_.lanes, name, &Lane::name);
    if (found != graph_.lanes.end()) {
        return static_cast<std::uint32_t>(found - graph_.lanes.begin());
    }
    graph_.lanes.push_back({std::move(name)});
    return static_cast<std::uint32_t>(graph_.lanes.size() - 1);
}

std::uint32_t GraphBuilder::add(const Task& task,
                                const Flow& flow,
                                std::uint32_t way,
                                std::span<const std::uint32_t> after) {
    graph_.tasks.push_back(task);
    return graph_.network.add_flow_on(way, flow, after);
}

std::uint32_t GraphBuilder::add_delay(const Task& task,
                                      double seconds,
                                      std::span<const std::uint32_t> after,
                                      std::uint32_t way) {
    Flow flow;
    flow.bytes = options_.has_software ? seconds : 0.0;
    if (flow.bytes == 0.0 || this->way(way).empty()) {
        flow.rate_cap = 1.0;
        return add(task, flow, no_links_, after);
    }
    for (const auto& use : this->way(way)) {
        flow.weight = std::min(flow.weight, 1.0 / use.per_byte);
    }
    return add(task, flow, way, after);
}

std::uint32_t GraphBuilder::add_barrier(const Task& task, std::span<const std::uint32_t> after) {
    Flow flow;
    flow.rate_cap = 1.0;
    return add(task, flow, no_links_, after);
}

void GraphBuilder::by_multicast(RingFlow& flow, std::size_t ranks) const {
    // Source: NCCL 2.28.9 takes NVLS for gathers of 5 to 32 ranks of a domain.
    constexpr std::size_t kLeast = 5;
    constexpr std::size_t kMost = 32;
    for (auto& use : flow.uses) {
        if (ranks >= kLeast && ranks <= kMost && owner(use.link).port == Port::kNvlinkOut) {
            use.per_byte /= static_cast<double>(ranks - 1);
        }
    }
}

std::vector<RingFlow> GraphBuilder::ring_flows(const Collective& collective) {
    const auto [found, is_new] = memo_.rings.try_emplace(&collective);
    if (is_new) {
        found->second = make_rings(collective);
    }
    auto rings = found->second;
    for (auto& ring : rings) {
        ring.way = add_way(ring.uses);
    }
    return rings;
}

std::vector<RingFlow> GraphBuilder::make_rings(const Collective& collective) const {
    const auto shares = ring_shares(plan_, collective, cluster(), reading().replica_ring);
    const auto& groups = plan_.groups[collective.groups];
    std::vector<RingFlow> flows;
    std::map<std::vector<std::uint32_t>, std::uint32_t> seen;
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
        if (groups[g].size() < 2 || shares.wire_bytes[g] == 0.0) {
            continue;
        }
        std::vector<std::uint32_t> members;
        for (const auto rank : groups[g]) {
            members.push_back(classes().class_of(rank));
        }
        std::ranges::sort(members);
        const auto repeated = std::unique(members.begin(), members.end());
        members.erase(repeated, members.end());
        if (!seen.try_emplace(members, g).second) {
            continue;
        }
        auto& flow = flows.emplace_back();
        flow.wire_bytes = shares.wire_bytes[g];
        flow.crosses_domains = shares.crosses_domains[g];
        flow.first_group = g;
        double nic = 0.0;
        for (const auto member : members) {
            const auto& ports = shares.of_rank[classes().members(member).front().index()];
            for (std::size_t port = 0; port < kPorts; ++port) {
                if (ports[port] > 0.0) {
                    flow.uses.push_back({link(static_cast<Port>(port), member), ports[port]});
                }
            }
            nic = std::max({nic, ports[0], ports[1]});
        }
        if (!shares.detours.empty()) {
            add_detours(flow, shares.detours[g]);
        }
        if (options_.has_nvls && !flow.crosses_domains && !is_broadcast(collective.role)) {
            by_multicast(flow, groups[g].size());
        }
        // Its channels compete as equals of others': as many as it has NICs, up to what NCCL opens.
        flow.weight = nic > 0.0 ? std::min(1.0 / nic, constants().ring_nics.value) : 1.0;
    }
    return flows;
}

namespace {

bool has_broadcast(const Plan& plan, std::uint32_t gather) {
    return gather + 1 < plan.stages.size() && plan.stages[gather + 1].kind == StageKind::kBroadcast;
}

/// Stages of a plan that run together, by the kind of the first.
struct Section {
    StageKind kind = StageKind::kGather;
    std::vector<std::uint32_t> stages;
};

/// Transfers of all stages first, then relays, then each gather with its broadcast: one after another on both
/// sides. Source: NeMo RL nccl_reshard_weight_synchronizer.py: what is gathered follows the bulk. A gather without a
/// broadcast goes before the transfers, which send from it.
std::vector<Section> sections_of(const Plan& plan) {
    std::vector<Section> sections;
    Section transfers{StageKind::kTransfer, {}};
    for (std::uint32_t i = 0; i < plan.stages.size(); ++i) {
        switch (plan.stages[i].kind) {
            case StageKind::kTransfer:
                transfers.stages.push_back(i);
                break;
            case StageKind::kRelay:
                sections.push_back({StageKind::kRelay, {i}});
                break;
            case StageKind::kGather:
                sections.push_back({StageKind::kGather, {i}});
                if (has_broadcast(plan, i)) {
                    sections.back().stages.push_back(i + 1);
                }
                break;
            case StageKind::kBroadcast:
                break;
        }
    }
    if (!transfers.stages.empty()) {
        const bool is_gathered_first = !sections.empty() && sections.front().stages.size() == 1 &&
                                       sections.front().kind == StageKind::kGather;
        sections.insert(sections.begin() + (is_gathered_first ? 1 : 0), std::move(transfers));
    }
    return sections;
}

GatheredTasks add_section(GraphBuilder& builder, const Section& section, const TaskIds& after) {
    builder.begin_section(section.stages);
    switch (section.kind) {
        case StageKind::kTransfer:
            return {{}, add_transfer_tasks(builder, section.stages, after)};
        case StageKind::kRelay:
            return {{}, add_relay_tasks(builder, section.stages.front(), after)};
        default:
            return add_gather_tasks(builder, section.stages.front(), after);
    }
}

/// Receivers load what method direct brings them while it comes, or once it is there.
void add_direct_loading(GraphBuilder& builder, const TaskIds& before, TaskIds& ends) {
    const auto& setting = builder.setting();
    const auto seconds = loading_seconds(setting, setting.direct_tensors, setting.local_bytes);
    if (builder.plan().method != Method::kDirect || seconds == 0.0 || !builder.options().has_software) {
        return;
    }
    const bool is_pipelined = setting.options.direct_overlap == PackOverlap::kPipelined;
    const auto loaded = builder.add_delay({Activity::kLoading, builder.lane("generators, loading"), 0, 0, 0.0},
                                          seconds,
                                          is_pipelined ? before : ends);
    ends.push_back(loaded);
}

/// Adds section after section. Transfers of gathered parameters begin with the first pack where packs are pipelined.
TaskIds add_sections(GraphBuilder& builder, std::span<const Section> sections, TaskIds last) {
    const bool is_pipelined = builder.scenario().engine.options.direct_overlap == PackOverlap::kPipelined;
    for (const auto& section : sections) {
        const auto added = add_section(builder, section, last);
        if (section.kind == StageKind::kGather && section.stages.size() == 1 && sections.size() > 1 && is_pipelined) {
            auto ends = added.last;
            const auto sent = add_section(builder, sections[1], added.first);
            ends.insert(ends.end(), sent.last.begin(), sent.last.end());
            return ends;
        }
        auto ends = added.last;
        if (sections.front().kind == StageKind::kTransfer) {
            add_direct_loading(builder, last, ends);
        }
        last = std::move(ends);
    }
    return last;
}

void add_finalising(GraphBuilder& builder, const TaskIds& after) {
    const auto& constants = builder.constants();
    const auto& setting = builder.setting();
    const auto finalize = builder.reading().finalize;
    double seconds = 0.0;
    if (finalize == FinalizeReading::kPerExpert && setting.is_blackwell) {
        seconds = constants.finalize_per_expert.value * setting.local_expert_layers;
    } else if (finalize == FinalizeReading::kPerLocalByte) {
        seconds = constants.finalize_per_local_byte.value * setting.local_bytes;
    }
    if (seconds > 0.0) {
        (void)builder.add_delay(
            {Activity::kFinalising, builder.lane("generators, loading"), 0, 0, 0.0}, seconds, after);
    }
}

}  // namespace

TaskGraph make_task_graph(const Plan& plan,
                          const Workload& workload,
                          const Scenario& scenario,
                          const GraphOptions& options) {
    GraphMemo memo;
    return make_task_graph(plan, workload, scenario, options, memo);
}

TaskGraph make_task_graph(const Plan& plan,
                          const Workload& workload,
                          const Scenario& scenario,
                          const GraphOptions& options,
                          GraphMemo& memo) {
    GraphBuilder builder{plan, workload, scenario, options, memo};
    const auto& constants = scenario.engine.constants;
    const auto control =
        constants.fixed_cost.value + constants.fixed_cost_per_gpu.value * builder.setting().gpus;
    TaskIds last{builder.add_delay({Activity::kControl, builder.lane("control"), 0, 0, 0.0}, control, {})};
    add_finalising(builder, add_sections(builder, sections_of(plan), std::move(last)));
    return builder.finish();
}

}  // namespace refit
