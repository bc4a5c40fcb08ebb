// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/gui/groups.hpp"
#include "refit/plan.hpp"
#include "refit/workload.hpp"

namespace refit::gui {

/// What travels together: one class of tensors, or several that one collective carries.
struct Cargo {
    std::string name;                     ///< "mlp.experts.*.up_proj.weight", "17 classes, EP all-gather".
    std::vector<std::uint32_t> classes;   ///< Of the workload.
    std::optional<CollectiveRole> role;   ///< None: point to point.
    bool operator==(const Cargo&) const = default;
};

/// All hops of a plan by columns, those of one pair, cargo and link put together.
/// Invariant: the columns have equal length.
struct FlowTable {
    std::vector<std::uint32_t> source;       ///< Rank.
    std::vector<std::uint32_t> destination;  ///< Rank.
    std::vector<std::uint32_t> cargo;        ///< Index into `cargos`.
    std::vector<std::uint32_t> hops;
    std::vector<std::uint64_t> bytes;
    std::vector<std::uint8_t> is_network;    ///< Over NICs, else over NVLink.
    std::vector<Cargo> cargos;

    [[nodiscard]] std::size_t size() const noexcept { return source.size(); }
};

/// Every hop as the planner counts it. Cost: in hops.
[[nodiscard]] FlowTable make_flows(const Plan& plan, const Workload& workload, const Cluster& cluster);

/// A class's name without the part that all layers share: "mlp.experts.*.up_proj.weight".
[[nodiscard]] std::string short_name(const std::string& class_name);

/// "PP broadcast", "EP all-gather" …
[[nodiscard]] std::string_view title_of(CollectiveRole role) noexcept;

/// Which part of the job flows are looked at.
enum class Direction : std::uint8_t { kAll, kTrainToGenerate, kAmongTrainers, kAmongGenerators };
[[nodiscard]] std::string_view title_of(Direction direction) noexcept;

/// What one group sends another.
struct PairFlow {
    std::uint64_t nic = 0;     ///< Unit: byte.
    std::uint64_t nvlink = 0;  ///< Unit: byte.
    std::uint64_t hops = 0;

    [[nodiscard]] std::uint64_t bytes() const noexcept { return nic + nvlink; }
    PairFlow& operator+=(const PairFlow& other) noexcept;
    bool operator==(const PairFlow&) const = default;
};

/// Flows between groups, row by row: rows send, columns receive.
struct GroupMatrix {
    std::uint32_t groups = 0;
    std::vector<PairFlow> cells;

    [[nodiscard]] const PairFlow& at(std::uint32_t from, std::uint32_t to) const noexcept {
        return cells[static_cast<std::size_t>(from) * groups + to];
    }
    [[nodiscard]] PairFlow total() const noexcept;
    [[nodiscard]] PairFlow row(std::uint32_t from) const noexcept;
    [[nodiscard]] PairFlow column(std::uint32_t to) const noexcept;
};

/// Sums over groups. `mask`: which flows count; empty: all. Cost: in flows.
[[nodiscard]] GroupMatrix aggregate(const FlowTable& flows, const Groups& groups, std::uint32_t train_gpus, Direction direction,
                                    std::span<const std::uint8_t> mask = {});

/// Flows between very many groups: of a pair only its bytes, a third of the memory.
struct GroupGrid {
    std::uint32_t groups = 0;
    std::vector<std::uint64_t> bytes;  ///< Row by row: rows send, columns receive.
    std::vector<PairFlow> sent;        ///< By group.
};

/// The bytes of `aggregate`. Cost: in flows.
[[nodiscard]] GroupGrid aggregate_bytes(const FlowTable& flows, const Groups& groups, std::uint32_t train_gpus, Direction direction,
                                        std::span<const std::uint8_t> mask = {});

/// By cargo: what goes from one group to another, most bytes first.
struct CargoFlow {
    std::uint32_t cargo = 0;
    PairFlow flow;
};
/// `from` or `to` may be nothing: any group.
[[nodiscard]] std::vector<CargoFlow> cargo_between(const FlowTable& flows, const Groups& groups, std::optional<std::uint32_t> from,
                                                   std::optional<std::uint32_t> to, std::span<const std::uint8_t> mask = {});

}  // namespace refit::gui
