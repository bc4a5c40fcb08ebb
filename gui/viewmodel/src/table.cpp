// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/table.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "canvas.hpp"
#include "refit/holdings.hpp"
#include "refit/quantity.hpp"
#include "refit/traffic.hpp"

namespace refit::gui {
namespace {

TableCell words(std::string text) { return {text, std::move(text), false}; }
TableCell bytes_cell(std::uint64_t bytes) { return {format_bytes(Bytes{bytes}), std::to_string(bytes), true}; }
TableCell count_cell(std::uint64_t count) { return {grouped(count), std::to_string(count), true}; }
TableCell seconds_cell(double seconds) { return {format_seconds(Seconds{seconds}), number("%.9g", seconds), true}; }
TableCell share_cell(double share) { return {percent(share), number("%.6g", share), true, share}; }

Table pairs(const Answer& answer, const ViewState& state) {
    Table table{{"sender", "receiver", "bytes on NICs", "bytes on NVLink", "hops", "share"}, {}};
    if (!answer.a.flows) {
        return table;
    }
    const auto& groups = answer.by(grouping_of(answer, state));
    const auto mask = flow_mask_of(answer, state);
    const auto matrix = aggregate(*answer.a.flows, groups, answer.train_gpus(), state.direction, mask);
    const auto total = static_cast<double>(std::max<std::uint64_t>(1, matrix.total().bytes()));
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < matrix.cells.size(); ++i) {
        if (matrix.cells[i].hops > 0) {
            order.push_back(i);
        }
    }
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return matrix.cells[i].bytes(); });
    for (const auto i : order) {
        const auto from = static_cast<std::uint32_t>(i / matrix.groups);
        const auto to = static_cast<std::uint32_t>(i % matrix.groups);
        const auto& flow = matrix.cells[i];
        table.rows.push_back({{Target::Kind::kPair, groups.grouping(), from, to},
                              {words(groups.name(from)), words(groups.name(to)), bytes_cell(flow.nic), bytes_cell(flow.nvlink), count_cell(flow.hops),
                               share_cell(static_cast<double>(flow.bytes()) / total)}});
    }
    return table;
}

Table ranks(const Answer& answer) {
    Table table{{"GPU", "stage or engine", "NVLink domain", "NIC out bytes", "NIC in bytes", "NVLink out bytes", "NVLink in bytes"}, {}};
    if (!answer.a.plan) {
        return table;
    }
    const auto traffic = refit::traffic(*answer.a.plan, answer.scenario.cluster);
    const auto& stages = answer.by(Grouping::kStage);
    const auto& domains = answer.by(Grouping::kDomain);
    for (std::uint32_t rank = 0; rank < answer.scenario.cluster.gpus(); ++rank) {
        const auto& port = traffic.ports()[rank];
        table.rows.push_back({{Target::Kind::kGroup, Grouping::kRank, rank, 0},
                              {words(short_rank(rank, answer.train_gpus())), words(stages.name(stages.of_rank(rank))), words(domains.name(domains.of_rank(rank))),
                               bytes_cell(port.nic_out), bytes_cell(port.nic_in), bytes_cell(port.nvlink_out), bytes_cell(port.nvlink_in)}});
    }
    return table;
}

Table tensors(const Answer& answer) {
    Table table{{"class of tensors", "shape", "tensors", "bytes", "point-to-point bytes", "travels"}, {}};
    if (!answer.a.plan) {
        return table;
    }
    const auto summary = summarise(*answer.a.plan, answer.workload, answer.scenario.cluster);
    for (std::uint32_t i = 0; i < summary.classes.size(); ++i) {
        const auto& moves = summary.classes[i];
        std::string shape;
        for (const auto length : answer.workload.classes()[i].parameter.shape) {
            shape += (shape.empty() ? "" : " x ") + std::to_string(length);
        }
        table.rows.push_back({{Target::Kind::kTensor, Grouping::kRank, i, 0},
                              {words(moves.name), words(shape), count_cell(moves.tensors), bytes_cell(moves.bytes.count()),
                               bytes_cell(moves.point_to_point.count()), words(moves.is_gathered ? "gathered, broadcast" : "point to point")}});
    }
    std::ranges::stable_sort(table.rows, std::greater{}, [&](const TableRow& row) { return summary.classes[row.target.a].bytes; });
    return table;
}

Table links(const Answer& answer, const ViewState& state) {
    Table table{{"link", "of", "busy share"}, {}};
    const auto grouping = state.grouping.value_or(finest(answer.groups, 26));
    const auto& groups = answer.by(grouping);
    for (const auto& row : port_rows(answer.a.course, groups)) {
        table.rows.push_back({{Target::Kind::kPort, grouping, static_cast<std::uint32_t>(row.port), row.group},
                              {words(std::string{refit::name_of(row.port)}), words(groups.name(row.group)), share_cell(row.share)}});
    }
    return table;
}

Table lanes(const Answer& answer, const ViewState& state) {
    Table table{{"lane", "tasks", "busy seconds", "first start seconds", "last end seconds", "busy share"}, {}};
    const auto& course = answer.a.course;
    for (const auto& lane : course.lanes) {
        if (!matches_words(state.filter, lane.name)) {
            continue;
        }
        const auto usage = std::ranges::find(course.run->lanes, lane.lane, &LaneUsage::lane);
        table.rows.push_back({{Target::Kind::kLane, Grouping::kRank, lane.lane, 0},
                              {words(lane.name), count_cell(lane.tasks.size()), seconds_cell(lane.busy_seconds), seconds_cell(usage->first_start),
                               seconds_cell(usage->last_end), share_cell(lane.busy_seconds / course.seconds())}});
    }
    return table;
}

Table methods(const Answer& answer) {
    Table table{{"method", "predicted seconds", "low", "high", "published seconds", "measured seconds", "bytes on NICs", "bytes on NVLink", "limited by"}, {}};
    for (const auto& method : answer.report.methods) {
        const Target target{Target::Kind::kMethod, Grouping::kRank, static_cast<std::uint32_t>(method.method), 0};
        if (!method.refused.empty()) {
            table.rows.push_back({target, {words(title_of(method.method)), words("cannot run"), words(""), words(""), words(""), words(""), words(""), words(""), words(method.refused.front().message)}});
            continue;
        }
        const auto measured = answer.measured.find(method.method);
        table.rows.push_back({target,
                              {words(title_of(method.method) + (method.is_calibrated ? "" : " (uncalibrated)")), seconds_cell(method.seconds.value()),
                               seconds_cell(method.low.value()), seconds_cell(method.high.value()),
                               method.published && method.published->seconds ? seconds_cell(method.published->seconds->value()) : words(""),
                               measured == answer.measured.end() ? words("") : seconds_cell(measured->second.seconds.value()),
                               bytes_cell(method.network.count()), bytes_cell(method.nvlink.count()), words(method.bottleneck.resource + " at " + method.bottleneck.where)}});
    }
    return table;
}

std::string separated(const Table& table, char separator, const std::vector<Target>& only) {
    const auto field = [&](const std::string& text) {
        if (text.find_first_of("\",\n\t\r") == std::string::npos || (separator == '\t' && text.find_first_of("\t\n") == std::string::npos)) {
            return text;
        }
        std::string quoted = "\"";
        for (const char c : text) {
            quoted += c == '"' ? "\"\"" : std::string{c};
        }
        return quoted + "\"";
    };
    std::string text;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        text += (i == 0 ? "" : std::string{separator}) + field(table.columns[i]);
    }
    text += "\n";
    for (const auto& row : table.rows) {
        if (!only.empty() && std::ranges::find(only, row.target) == only.end()) {
            continue;
        }
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            text += (i == 0 ? "" : std::string{separator}) + field(row.cells[i].exact);
        }
        text += "\n";
    }
    return text;
}

void add_cargo(const Answer& answer, const Groups& groups, std::optional<std::uint32_t> from, std::optional<std::uint32_t> to, const std::vector<std::uint8_t>& mask, Detail& detail) {
    const auto list = cargo_between(*answer.a.flows, groups, from, to, mask);
    constexpr std::size_t kMost = 6;
    for (std::size_t i = 0; i < std::min(kMost, list.size()); ++i) {
        detail.lines.emplace_back(i == 0 ? "carries" : "", answer.a.flows->cargos[list[i].cargo].name + ", " + format_bytes(Bytes{list[i].flow.bytes()}));
    }
    if (list.size() > kMost) {
        detail.lines.emplace_back("", "and " + std::to_string(list.size() - kMost) + " more");
    }
}

Detail pair_detail(const Answer& answer, const ViewState& state) {
    const auto& target = state.selection;
    const auto& groups = answer.by(target.level);
    const auto mask = flow_mask_of(answer, state);
    const auto matrix = aggregate(*answer.a.flows, groups, answer.train_gpus(), Direction::kAll, mask);
    const auto& flow = matrix.at(target.a, target.b);
    Detail detail{groups.name(target.a) + " → " + groups.name(target.b), {}};
    detail.lines.emplace_back("over NICs", format_bytes(Bytes{flow.nic}) + "  (" + grouped(flow.nic) + " B)");
    detail.lines.emplace_back("over NVLink", format_bytes(Bytes{flow.nvlink}) + "  (" + grouped(flow.nvlink) + " B)");
    detail.lines.emplace_back("hops", grouped(flow.hops));
    detail.lines.emplace_back("of all bytes", percent(static_cast<double>(flow.bytes()) / static_cast<double>(std::max<std::uint64_t>(1, matrix.total().bytes()))));
    add_cargo(answer, groups, target.a, target.b, mask, detail);
    return detail;
}

Detail group_detail(const Answer& answer, const Target& target) {
    const auto& groups = answer.by(target.level);
    Detail detail{groups.name(target.a), {}};
    const auto& members = groups.members(target.a);
    const auto train_gpus = answer.train_gpus();
    if (target.level == Grouping::kRank) {
        const bool is_train = target.a < train_gpus;
        detail.title = is_train ? "trainer " + std::to_string(target.a) : "generator " + std::to_string(target.a - train_gpus);
        const auto held = holdings_of(answer.scenario, answer.workload, RankId{target.a});
        detail.lines.emplace_back(is_train ? "holds" : "receives", format_bytes(held.bytes()));
        auto largest = held.holdings;
        std::ranges::stable_sort(largest, std::greater{}, &Holding::bytes);
        for (std::size_t i = 0; i < std::min<std::size_t>(3, largest.size()); ++i) {
            detail.lines.emplace_back(i == 0 ? "most of it" : "", short_name(largest[i].name) + ", " + format_bytes(largest[i].bytes) + (largest[i].replicas > 1 ? ", held " + std::to_string(largest[i].replicas) + " times" : ""));
        }
    } else {
        detail.lines.emplace_back("GPUs", std::to_string(members.size()) + ": " + short_rank(members.front(), train_gpus) + " to " + short_rank(members.back(), train_gpus));
    }
    if (answer.a.flows) {
        const auto& flows = *answer.a.flows;
        PortBytes sum;
        for (std::size_t i = 0; i < flows.size(); ++i) {
            const bool is_network = flows.is_network[i] != 0;
            if (groups.of_rank(flows.source[i]) == target.a) {
                (is_network ? sum.nic_out : sum.nvlink_out) += flows.bytes[i];
            }
            if (groups.of_rank(flows.destination[i]) == target.a) {
                (is_network ? sum.nic_in : sum.nvlink_in) += flows.bytes[i];
            }
        }
        detail.lines.emplace_back("sends", format_bytes(Bytes{sum.nic_out}) + " on NICs, " + format_bytes(Bytes{sum.nvlink_out}) + " on NVLink");
        detail.lines.emplace_back("receives", format_bytes(Bytes{sum.nic_in}) + " on NICs, " + format_bytes(Bytes{sum.nvlink_in}) + " on NVLink");
        add_cargo(answer, groups, target.a, std::nullopt, {}, detail);
    }
    return detail;
}

Detail task_detail(const Answer& answer, std::uint32_t task) {
    const auto& run = *answer.a.course.run;
    const auto& entry = run.graph.tasks[task];
    Detail detail{std::string{refit::name_of(entry.activity)}, {}};
    detail.lines.emplace_back("lane", run.graph.lanes[entry.lane].name);
    detail.lines.emplace_back("from", time_text(run.run.start[task]) + " to " + time_text(run.run.end[task]));
    detail.lines.emplace_back("takes", format_seconds(Seconds{run.run.end[task] - run.run.start[task]}));
    if (entry.bytes > 0.0) {
        detail.lines.emplace_back("moves", format_bytes(Bytes{static_cast<std::uint64_t>(entry.bytes)}) + " by a GPU or ring");
    }
    for (const auto& use : run.graph.network.uses(task)) {
        detail.lines.emplace_back("over", describe_link(run.graph, use.link, answer.scenario.cluster));
    }
    for (const auto& step : run.path) {
        if (step.task == task) {
            detail.lines.emplace_back("bound by", step.limit == RateSegment::kOwnCap ? "its own cost, no link" : describe_link(run.graph, step.limit, answer.scenario.cluster));
            break;
        }
    }
    return detail;
}

Detail lane_detail(const Answer& answer, std::uint32_t lane) {
    const auto& run = *answer.a.course.run;
    Detail detail{run.graph.lanes[lane].name, {}};
    const auto usage = std::ranges::find(run.lanes, lane, &LaneUsage::lane);
    if (usage == run.lanes.end()) {
        return detail;
    }
    detail.lines.emplace_back("busy", format_seconds(Seconds{usage->busy_seconds}) + ", " + percent(usage->busy_seconds / run.seconds()));
    detail.lines.emplace_back("works", time_text(usage->first_start) + " to " + time_text(usage->last_end));
    for (std::size_t i = 0; i < kActivities; ++i) {
        if (usage->waited[i] > 1e-9) {
            detail.lines.emplace_back("waits", format_seconds(Seconds{usage->waited[i]}) + " for " + std::string{refit::name_of(static_cast<Activity>(i))});
        }
    }
    return detail;
}

Detail tensor_detail(const Answer& answer, std::uint32_t number) {
    const auto& one = answer.workload.classes()[number];
    Detail detail{short_name(one.parameter.name), {}};
    std::string shape;
    for (const auto length : one.parameter.shape) {
        shape += (shape.empty() ? "" : " x ") + std::to_string(length);
    }
    detail.lines.emplace_back("name", one.parameter.name);
    detail.lines.emplace_back("shape", shape + ", " + std::string{refit::name_of(one.parameter.dtype)});
    detail.lines.emplace_back("tensors", grouped(one.parameter.tensors()) + ", " + format_bytes(one.parameter.bytes()) + " in all");
    detail.lines.emplace_back("train", std::to_string(one.source.shards().size()) + " different parts in a stage");
    detail.lines.emplace_back("generate", std::to_string(one.destinations.front().shards().size()) + " different parts, each wanted by " +
                                              std::to_string(one.destinations.front().shards().empty() ? 0 : one.destinations.front().shards().front().members.size()));
    return detail;
}

/// "generation rank 0" as the views call it, so that a column holds it: "generator 0".
std::string short_place(std::string where) {
    for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{"generation rank ", "generator "}, {"trainer rank ", "trainer "}}) {
        if (const auto at = where.find(from); at != std::string::npos) {
            where.replace(at, from.size(), to);
        }
    }
    return where;
}

/// A constant in the unit that suits it: 0.000311 s are 311 us.
std::string constant_text(double value, const std::string& unit) {
    if (unit == "s") {
        return format_seconds(Seconds{value});
    }
    if (unit == "B" && value >= 0.0) {
        return size_text(value);
    }
    if (unit == "B/s" && value > 0.0) {
        return format_bandwidth(Bandwidth::bytes_per_second(value));
    }
    return number("%.4g", value) + (unit == "1" ? "" : " " + unit);
}

Detail method_detail(const Answer& answer, Method method) {
    Detail detail{title_of(method), {}};
    const auto* entry = answer.report.find(method);
    if (entry == nullptr) {
        return detail;
    }
    for (const auto& fault : entry->refused) {
        detail.lines.emplace_back("cannot run", fault.message);
    }
    for (const auto& term : entry->terms) {
        detail.lines.emplace_back(term.name, format_seconds(term.seconds) + (term.is_hidden ? " (hidden)" : "") + " = " + term.formula);
    }
    for (const auto& term : entry->terms) {
        for (const auto& constant : term.constants) {
            const auto found = std::ranges::find(answer.report.assumptions, constant, &Assumption::name);
            const bool is_told = std::ranges::any_of(detail.lines, [&](const auto& line) { return line.first == constant; });
            if (found != answer.report.assumptions.end() && !is_told) {
                detail.lines.emplace_back(constant, constant_text(found->value, found->unit) + ", " + found->kind + ": " + found->source);
            }
        }
    }
    return detail;
}

}  // namespace

Table make_table(const Answer& answer, const ViewState& state, Listing listing) {
    switch (listing) {
        case Listing::kPairs:
            return pairs(answer, state);
        case Listing::kRanks:
            return ranks(answer);
        case Listing::kTensors:
            return tensors(answer);
        case Listing::kLinks:
            return links(answer, state);
        case Listing::kLanes:
            return lanes(answer, state);
        case Listing::kMethods:
            break;
    }
    return methods(answer);
}

std::string to_csv(const Table& table) { return separated(table, ',', {}); }
std::string to_tsv(const Table& table, const std::vector<Target>& only) { return separated(table, '\t', only); }

Detail details_of(const Answer& answer, const ViewState& state) {
    const auto& target = state.selection;
    const bool has_plan = answer.a.flows != nullptr;
    const bool has_course = answer.a.course.run != nullptr;
    switch (target.kind) {
        case Target::Kind::kPair:
            return has_plan ? pair_detail(answer, state) : Detail{};
        case Target::Kind::kGroup:
            return has_plan ? group_detail(answer, target) : Detail{};
        case Target::Kind::kTensor:
            return target.a < answer.workload.classes().size() ? tensor_detail(answer, target.a) : Detail{};
        case Target::Kind::kTask:
            return has_course && target.a < answer.a.course.run->graph.tasks.size() ? task_detail(answer, target.a) : Detail{};
        case Target::Kind::kLane:
            return has_course && target.a < answer.a.course.run->graph.lanes.size() ? lane_detail(answer, target.a) : Detail{};
        case Target::Kind::kPort: {
            Detail detail{std::string{refit::name_of(static_cast<Port>(target.a))} + " of " + answer.by(target.level).name(target.b), {}};
            for (const auto& row : port_rows(answer.a.course, answer.by(target.level))) {
                if (row.group == target.b && static_cast<std::uint32_t>(row.port) == target.a) {
                    detail.lines.emplace_back("busy", percent(row.share) + " of what it could carry");
                }
            }
            return detail;
        }
        case Target::Kind::kMethod:
            return method_detail(answer, static_cast<Method>(target.a));
        case Target::Kind::kNone:
            break;
    }
    return method_detail(answer, answer.a.report.method);
}

std::vector<std::string> result_texts(const Answer& answer) {
    const auto one = [](const Shown& shown) {
        if (shown.is_refused()) {
            return title_of(shown.report.method) + ": cannot run";
        }
        return title_of(shown.report.method) + "  " + format_seconds(shown.seconds()) + (shown.report.simulated ? " simulated" : " closed form") + (shown.report.is_calibrated ? "" : ", uncalibrated");
    };
    const std::string gap = "  |  ";
    const auto& a = answer.a.report;
    auto other = gap + "B: " + one(answer.b);
    if (!answer.a.is_refused() && !answer.b.is_refused()) {
        other += number("  (%.1fx)", answer.b.seconds() / answer.a.seconds());
    }
    std::vector<std::string> texts;
    if (!answer.a.is_refused()) {
        const auto bytes = gap + format_bytes(a.network) + " on NICs, " + format_bytes(a.nvlink) + " on NVLink";
        const auto bound = gap + "bound: " + a.bottleneck.resource + " of " + a.bottleneck.where + ", " + percent(a.bottleneck.share) + " of the time";
        texts = {one(answer.a) + bytes + bound + other, one(answer.a) + bound + other};
    }
    texts.push_back(one(answer.a) + other);
    return texts;
}

std::vector<Difference> differences(const Shown& a, const Shown& b, bool only_unequal) {
    std::vector<Difference> list;
    const auto seconds = [&](const char* name, double x, double y) {
        const auto delta = y - x;
        list.push_back({name, format_seconds(Seconds{x}), format_seconds(Seconds{y}), (delta < 0.0 ? "-" : "+") + format_seconds(Seconds{std::abs(delta)}), delta, x == y});
    };
    const auto size = [&](const char* name, Bytes x, Bytes y) {
        const auto delta = y.as_double() - x.as_double();
        list.push_back({name, size_text(x.as_double()), size_text(y.as_double()), (delta < 0.0 ? "-" : "+") + size_text(std::abs(delta)), delta, x == y});
    };
    if (a.is_refused() || b.is_refused()) {
        return list;
    }
    const auto& left = a.report;
    const auto& right = b.report;
    seconds("closed form", left.seconds.value(), right.seconds.value());
    if (left.simulated && right.simulated) {
        seconds("simulated", left.simulated->seconds.value(), right.simulated->seconds.value());
    }
    seconds("links alone", left.transfer.value(), right.transfer.value());
    size("on NICs", left.network, right.network);
    size("on NVLink", left.nvlink, right.nvlink);
    size("a trainer's NICs", left.nic_per_trainer, right.nic_per_trainer);
    size("trainer memory", left.peak.train, right.peak.train);
    size("generator memory", left.peak.generation, right.peak.generation);
    list.push_back({"limited by", left.bottleneck.resource, right.bottleneck.resource, "", 0.0, left.bottleneck.resource == right.bottleneck.resource});
    list.push_back({"where", short_place(left.bottleneck.where), short_place(right.bottleneck.where), "", 0.0, left.bottleneck.where == right.bottleneck.where});
    if (only_unequal) {
        std::erase_if(list, [](const Difference& line) { return line.is_same; });
    }
    return list;
}

}  // namespace refit::gui
