// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "device.hpp"
#include "refit/exec/transport.hpp"

namespace refit::exec {

/// The transport "cuda" on these devices, at least one.
[[nodiscard]] std::unique_ptr<Transport> make_device_transport(std::vector<std::unique_ptr<Device>> devices);

/// Waits until a device has done all that was begun. Errors: the device's own; "deadline".
[[nodiscard]] Result<void> settle(Device& device, std::chrono::milliseconds deadline);

}  // namespace refit::exec
