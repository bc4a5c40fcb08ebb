// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "refit/exec/transport.hpp"

namespace refit::exec {

/// All ranks in this process: threads copy from region to region, wave by wave, without staging. A rank's
/// bytes are copied by whichever thread comes first.
[[nodiscard]] std::unique_ptr<Transport> make_host_transport();

}  // namespace refit::exec
