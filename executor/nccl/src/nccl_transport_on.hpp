// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "nccl_library.hpp"
#include "refit/exec/control_plane.hpp"
#include "refit/exec/transport.hpp"
#include "stream_device.hpp"

namespace refit::exec::nccl {

/// Tells whether the device's memory from now on is for messages, which comes from NCCL.
using ForMessages = std::function<void(bool)>;

/// Makes a rank die or stall, for tests of how a run ends.
using Strike = std::function<void(InjectionKind)>;

/// The transport "nccl" on a library and a device that are already there.
[[nodiscard]] std::unique_ptr<Transport> make_transport_on(const Library& library,
                                                           std::unique_ptr<StreamDevice> device,
                                                           ForMessages for_messages,
                                                           const ProcessPlace& place,
                                                           Rendezvous rendezvous,
                                                           Strike strike);

}  // namespace refit::exec::nccl
