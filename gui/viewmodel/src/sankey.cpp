// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/sankey.hpp"

#include <algorithm>
#include <functional>
#include <map>

namespace refit::gui {
namespace {

std::vector<SankeyNode> nodes_of(const GroupMatrix& matrix, bool are_senders) {
    std::vector<SankeyNode> nodes;
    for (std::uint32_t group = 0; group < matrix.groups; ++group) {
        const auto bytes = (are_senders ? matrix.row(group) : matrix.column(group)).bytes();
        if (bytes > 0) {
            nodes.push_back({group, bytes, {}, bytes});
        }
    }
    return nodes;
}

/// Pixels a byte, such that bars and gaps fill the height. Bars of less than a pixel and a half get that.
void place(std::vector<SankeyNode>& nodes, double x, double width, const Frame& area, double per_byte, double gap) {
    double height = 0.0;
    for (const auto& node : nodes) {
        height += std::max(1.5, static_cast<double>(node.bytes) * per_byte) + gap;
    }
    auto y = area.y + std::max(0.0, (area.height - height + gap) / 2.0);
    for (auto& node : nodes) {
        node.frame = {x, y, width, std::max(1.5, static_cast<double>(node.bytes) * per_byte)};
        y = node.frame.bottom() + gap;
    }
}

double gap_of(std::size_t nodes, double height) {
    return nodes < 2 ? 0.0 : std::min(10.0, 0.35 * height / static_cast<double>(nodes));
}

std::vector<SankeyBand> bands_of(const GroupMatrix& matrix) {
    std::vector<SankeyBand> bands;
    for (std::uint32_t from = 0; from < matrix.groups; ++from) {
        for (std::uint32_t to = 0; to < matrix.groups; ++to) {
            const auto& cell = matrix.at(from, to);
            if (cell.nic > 0) {
                bands.push_back({from, to, true, cell.nic, {}, {}});
            }
            if (cell.nvlink > 0) {
                bands.push_back({from, to, false, cell.nvlink, {}, {}});
            }
        }
    }
    return bands;
}

/// Puts the ends of bands onto the bars of one side, in the order of the other ends.
void stack(std::vector<SankeyBand>& bands, std::vector<SankeyNode>& nodes, bool are_senders, double per_byte) {
    std::map<std::uint32_t, SankeyNode*> of_group;
    std::map<std::uint32_t, double> next;
    for (auto& node : nodes) {
        of_group[node.group] = &node;
        next[node.group] = node.frame.y;
    }
    std::vector<SankeyBand*> order;
    for (auto& band : bands) {
        order.push_back(&band);
    }
    std::ranges::stable_sort(order, {}, [&](const SankeyBand* band) {
        return std::pair{are_senders ? band->to : band->from, band->is_network};
    });
    for (auto* band : order) {
        const auto group = are_senders ? band->from : band->to;
        auto& node = *of_group[group];
        const auto height = std::max(0.75, static_cast<double>(band->bytes) * per_byte);
        const Frame end{node.frame.x, next[group], node.frame.width, height};
        (are_senders ? band->start : band->end) = end;
        next[group] += static_cast<double>(band->bytes) * per_byte;
        node.other -= band->bytes;
    }
}

}  // namespace

Sankey make_sankey(const GroupMatrix& matrix, std::size_t top, const Frame& area, double bar_width) {
    Sankey sankey{nodes_of(matrix, true), nodes_of(matrix, false), bands_of(matrix), 0, 0};
    std::ranges::stable_sort(sankey.bands, std::greater{}, &SankeyBand::bytes);
    for (std::size_t i = top; i < sankey.bands.size(); ++i) {
        sankey.other_bytes += sankey.bands[i].bytes;
        ++sankey.other_bands;
    }
    sankey.bands.resize(std::min(top, sankey.bands.size()));
    const auto total = static_cast<double>(matrix.total().bytes());
    const auto most = std::max(sankey.senders.size(), sankey.receivers.size());
    if (total <= 0.0) {
        return sankey;
    }
    const auto gap = gap_of(most, area.height);
    auto room = area.height - gap * static_cast<double>(most - 1);
    const auto per_byte = std::max(0.0, room - 1.5 * static_cast<double>(most)) / total;
    place(sankey.senders, area.x, bar_width, area, per_byte, gap);
    place(sankey.receivers, area.right() - bar_width, bar_width, area, per_byte, gap);
    stack(sankey.bands, sankey.senders, true, per_byte);
    stack(sankey.bands, sankey.receivers, false, per_byte);
    std::ranges::reverse(sankey.bands);
    return sankey;
}

}  // namespace refit::gui
