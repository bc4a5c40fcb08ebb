// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <string>

#include "refit/flow_network.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// Reads a plain list of flows. The first line: number of GPUs, GPUs in a node, NVLink and NIC rate of a GPU
/// in bytes per second, number of flows. Then a line for each flow: source and destination GPU, from 0, and
/// bytes. Each GPU has one port out and one in on its NIC, and the same on NVLink; a flow inside a node takes
/// the NVLink ports of its ends, another one their NIC ports. All flows start at once. Errors: kInvalidInput
/// with `origin:line`, up to a hundred at once; kIo where the stream cannot be read.
[[nodiscard]] Result<FlowNetwork> read_flow_list(std::istream& in, const std::string& origin);

}  // namespace refit::io
