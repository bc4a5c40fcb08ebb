// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/flow_table.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "refit/traffic.hpp"

namespace refit::gui {
namespace {

/// Columns that grow, and are put together now and then.
class Collector {
public:
    explicit Collector(const Workload& workload) : workload_{workload} {}

    std::uint32_t cargo(std::vector<std::uint32_t> classes, std::optional<CollectiveRole> role) {
        const auto key = std::pair{classes, role};
        const auto next = static_cast<std::uint32_t>(table_.cargos.size());
        const auto [found, is_new] = numbers_.try_emplace(key, next);
        if (is_new) {
            table_.cargos.push_back({name_of(classes, role), std::move(classes), role});
        }
        return found->second;
    }

    void add(const Hop& hop, std::uint32_t cargo) {
        if (hop.bytes == 0) {
            return;
        }
        rows_.push_back({hop.source.index(), hop.destination.index(), cargo, 1, hop.bytes, hop.is_network});
        if (rows_.size() >= kMostRows && rows_.size() >= 2 * merged_) {
            merge();
        }
    }

    FlowTable finish() {
        merge();
        for (auto* column : {&table_.source, &table_.destination, &table_.cargo, &table_.hops}) {
            column->reserve(rows_.size());
        }
        table_.bytes.reserve(rows_.size());
        table_.is_network.reserve(rows_.size());
        for (const auto& row : rows_) {
            table_.source.push_back(row.source);
            table_.destination.push_back(row.destination);
            table_.cargo.push_back(row.cargo);
            table_.hops.push_back(row.hops);
            table_.bytes.push_back(row.bytes);
            table_.is_network.push_back(row.is_network ? 1 : 0);
        }
        return std::move(table_);
    }

private:
    static constexpr std::size_t kMostRows = 1U << 20U;

    struct Row {
        std::uint32_t source, destination, cargo, hops;
        std::uint64_t bytes;
        bool is_network;

        /// Two words in place of four fields: a million rows are sorted by it.
        [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> key() const {
            return {std::uint64_t{source} << 32U | destination, std::uint64_t{cargo} << 1U | (is_network ? 1U : 0U)};
        }
    };

    [[nodiscard]] std::string name_of(const std::vector<std::uint32_t>& classes, std::optional<CollectiveRole> role) const {
        const auto what = classes.size() == 1 ? short_name(workload_.classes()[classes.front()].parameter.name)
                                              : std::to_string(classes.size()) + " classes together";
        return role ? what + ", " + std::string{title_of(*role)} : what;
    }

    void merge() {
        std::ranges::sort(rows_, {}, &Row::key);
        std::size_t kept = 0;
        for (const auto& row : rows_) {
            if (kept > 0 && rows_[kept - 1].key() == row.key()) {
                rows_[kept - 1].bytes += row.bytes;
                rows_[kept - 1].hops += row.hops;
            } else {
                rows_[kept++] = row;
            }
        }
        rows_.resize(kept);
        merged_ = kept;
    }

    const Workload& workload_;
    FlowTable table_;
    std::vector<Row> rows_;
    std::size_t merged_ = 0;
    std::map<std::pair<std::vector<std::uint32_t>, std::optional<CollectiveRole>>, std::uint32_t> numbers_;
};

/// Relayed messages one by one: the classes of each.
void add_relays(const Plan& plan, const RelayTable& relays, const Cluster& cluster, Collector& collector) {
    std::map<std::vector<std::uint32_t>, PlanStage> by_classes;
    std::vector<PlanStage*> stage_of(relays.messages.size());
    for (std::size_t m = 0; m < relays.messages.size(); ++m) {
        std::vector<std::uint32_t> classes;
        const auto& message = relays.messages[m];
        for (auto part = message.first_part; part < message.first_part + message.parts; ++part) {
            classes.push_back(relays.parts[part].parameter);
        }
        std::ranges::sort(classes);
        classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
        stage_of[m] = &by_classes.try_emplace(std::move(classes)).first->second;
    }
    for (std::size_t hop = 0; hop < relays.size(); ++hop) {
        auto& own = stage_of[relays.message[hop]]->relays;
        own.message.push_back(relays.message[hop]);
        own.source.push_back(relays.source[hop]);
        own.destination.push_back(relays.destination[hop]);
    }
    for (auto& [classes, stage] : by_classes) {
        stage.relays.messages = relays.messages;
        const auto cargo = collector.cargo(classes, std::nullopt);
        visit_hops(plan, stage, cluster, [&](const Hop& hop) { collector.add(hop, cargo); });
        stage.relays.messages.clear();
    }
}

void add_stage(const Plan& plan, const PlanStage& stage, const Cluster& cluster, Collector& collector) {
    std::map<std::uint32_t, PlanStage> by_class;
    for (const auto& use : stage.transfers) {
        by_class[plan.blocks[use.block].parameter].transfers.push_back(use);
    }
    for (const auto& [parameter, part] : by_class) {
        const auto cargo = collector.cargo({parameter}, std::nullopt);
        visit_hops(plan, part, cluster, [&, number = cargo](const Hop& hop) { collector.add(hop, number); });
    }
    for (const auto& collective : stage.collectives) {
        PlanStage part;
        part.collectives = {collective};
        const auto cargo = collector.cargo(collective.parameters, collective.role);
        visit_hops(plan, part, cluster, [&, number = cargo](const Hop& hop) { collector.add(hop, number); });
    }
    if (stage.relays.size() > 0) {
        add_relays(plan, stage.relays, cluster, collector);
    }
}

bool is_in(Direction direction, bool from_train, bool to_train) noexcept {
    switch (direction) {
        case Direction::kAll:
            break;
        case Direction::kTrainToGenerate:
            return from_train && !to_train;
        case Direction::kAmongTrainers:
            return from_train && to_train;
        case Direction::kAmongGenerators:
            return !from_train && !to_train;
    }
    return true;
}

}  // namespace

std::string short_name(const std::string& class_name) {
    auto name = class_name;
    for (const std::string word : {"{layer}", "{expert}"}) {
        for (auto at = name.find(word); at != std::string::npos; at = name.find(word)) {
            name.replace(at, word.size(), "*");
        }
    }
    const std::string layers = "layers.*.";
    if (const auto at = name.find(layers); at != std::string::npos) {
        return name.substr(at + layers.size());
    }
    const std::string model = "model.";
    return name.starts_with(model) ? name.substr(model.size()) : name;
}

std::string_view title_of(CollectiveRole role) noexcept {
    switch (role) {
        case CollectiveRole::kPipelineBroadcast:
            return "PP broadcast";
        case CollectiveRole::kTensorAllGather:
            return "TP all-gather";
        case CollectiveRole::kExpertAllGather:
            return "EP all-gather";
        case CollectiveRole::kWeightBroadcast:
            return "weight broadcast";
        case CollectiveRole::kReplicaAllGather:
            return "replica all-gather";
        case CollectiveRole::kReplicaBroadcast:
            break;
    }
    return "replica broadcast";
}

std::string_view title_of(Direction direction) noexcept {
    switch (direction) {
        case Direction::kAll:
            break;
        case Direction::kTrainToGenerate:
            return "trainers to generators";
        case Direction::kAmongTrainers:
            return "among trainers";
        case Direction::kAmongGenerators:
            return "among generators";
    }
    return "all";
}

FlowTable make_flows(const Plan& plan, const Workload& workload, const Cluster& cluster) {
    Collector collector{workload};
    for (const auto& stage : plan.stages) {
        add_stage(plan, stage, cluster, collector);
    }
    return collector.finish();
}

PairFlow& PairFlow::operator+=(const PairFlow& other) noexcept {
    nic += other.nic;
    nvlink += other.nvlink;
    hops += other.hops;
    return *this;
}

PairFlow GroupMatrix::total() const noexcept {
    PairFlow sum;
    for (const auto& cell : cells) {
        sum += cell;
    }
    return sum;
}

PairFlow GroupMatrix::row(std::uint32_t from) const noexcept {
    PairFlow sum;
    for (std::uint32_t to = 0; to < groups; ++to) {
        sum += at(from, to);
    }
    return sum;
}

PairFlow GroupMatrix::column(std::uint32_t to) const noexcept {
    PairFlow sum;
    for (std::uint32_t from = 0; from < groups; ++from) {
        sum += at(from, to);
    }
    return sum;
}

namespace {

template <typename Add>
void for_each_between(const FlowTable& flows, const Groups& groups, std::uint32_t train_gpus, Direction direction,
                      std::span<const std::uint8_t> mask, Add add) {
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const auto from = flows.source[i];
        const auto to = flows.destination[i];
        if ((mask.empty() || mask[i] != 0) && is_in(direction, from < train_gpus, to < train_gpus)) {
            add(i, groups.of_rank(from), groups.of_rank(to));
        }
    }
}

void add_flow(const FlowTable& flows, std::size_t flow, PairFlow& sum) {
    (flows.is_network[flow] != 0 ? sum.nic : sum.nvlink) += flows.bytes[flow];
    sum.hops += flows.hops[flow];
}

}  // namespace

GroupMatrix aggregate(const FlowTable& flows, const Groups& groups, std::uint32_t train_gpus, Direction direction,
                      std::span<const std::uint8_t> mask) {
    GroupMatrix matrix{groups.count(), std::vector<PairFlow>(static_cast<std::size_t>(groups.count()) * groups.count())};
    for_each_between(flows, groups, train_gpus, direction, mask, [&](std::size_t flow, std::uint32_t from, std::uint32_t to) {
        add_flow(flows, flow, matrix.cells[static_cast<std::size_t>(from) * matrix.groups + to]);
    });
    return matrix;
}

GroupGrid aggregate_bytes(const FlowTable& flows, const Groups& groups, std::uint32_t train_gpus, Direction direction,
                          std::span<const std::uint8_t> mask) {
    GroupGrid grid{groups.count(), std::vector<std::uint64_t>(static_cast<std::size_t>(groups.count()) * groups.count()),
                   std::vector<PairFlow>(groups.count())};
    for_each_between(flows, groups, train_gpus, direction, mask, [&](std::size_t flow, std::uint32_t from, std::uint32_t to) {
        grid.bytes[static_cast<std::size_t>(from) * grid.groups + to] += flows.bytes[flow];
        add_flow(flows, flow, grid.sent[from]);
    });
    return grid;
}

std::vector<CargoFlow> cargo_between(const FlowTable& flows, const Groups& groups, std::optional<std::uint32_t> from,
                                     std::optional<std::uint32_t> to, std::span<const std::uint8_t> mask) {
    std::vector<CargoFlow> list(flows.cargos.size());
    for (std::uint32_t i = 0; i < list.size(); ++i) {
        list[i].cargo = i;
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
        if ((!mask.empty() && mask[i] == 0) || (from && groups.of_rank(flows.source[i]) != *from) ||
            (to && groups.of_rank(flows.destination[i]) != *to)) {
            continue;
        }
        add_flow(flows, i, list[flows.cargo[i]].flow);
    }
    std::erase_if(list, [](const CargoFlow& entry) { return entry.flow.hops == 0; });
    std::ranges::stable_sort(list, std::greater{}, [](const CargoFlow& entry) { return entry.flow.bytes(); });
    return list;
}

}  // namespace refit::gui
