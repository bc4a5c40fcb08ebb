// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/plan.hpp"
#include "refit/workload.hpp"

namespace refit {

/// Cuts the parts of a slice, taken one after the other, into nearly equal messages at rows of their boxes.
/// Appends them to the table's parts and messages; messages that would be empty are left out.
/// `element_bytes` by parameter. Pre: at least one part and one message.
void append_messages(RelayTable& table, std::span<const MessagePart> parts, std::span<const std::uint64_t> element_bytes,
                     std::uint64_t messages);

}  // namespace refit
