// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/gui/flow_table.hpp"
#include "refit/gui/scene.hpp"

namespace refit::gui {

/// A group on one side: all that it sends, or receives.
struct SankeyNode {
    std::uint32_t group = 0;
    std::uint64_t bytes = 0;
    Frame frame;
    std::uint64_t other = 0;  ///< Bytes of it that no band shows.
};

/// What goes from a group to another over one kind of link.
struct SankeyBand {
    std::uint32_t from = 0;  ///< Group.
    std::uint32_t to = 0;
    bool is_network = false;
    std::uint64_t bytes = 0;
    Frame start;  ///< On the sender's bar.
    Frame end;    ///< On the receiver's.
};

/// Two columns: senders on the left, receivers on the right; heights are in proportion to bytes.
/// Invariant: the nodes of a side hold all bytes of the matrix; bands and `other` of a node sum to its bytes.
struct Sankey {
    std::vector<SankeyNode> senders;
    std::vector<SankeyNode> receivers;
    std::vector<SankeyBand> bands;  ///< Largest last, so that small ones lie below.
    std::size_t other_bands = 0;    ///< Not drawn.
    std::uint64_t other_bytes = 0;
};

/// `top`: most bands. Groups keep their order; the bands of a group are ordered by their other end, so that few cross.
[[nodiscard]] Sankey make_sankey(const GroupMatrix& matrix, std::size_t top, const Frame& area, double bar_width);

}  // namespace refit::gui
