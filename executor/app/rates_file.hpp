// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "refit/exec/host_rates.hpp"
#include "refit/exec/machine.hpp"
#include "refit/result.hpp"

namespace refit::exec {

/// A system file (data/schema/system.json) of this machine, with what the transport `host` reaches on it in
/// its member "host".
[[nodiscard]] nlohmann::json system_json(const HostRates& rates, const Machine& machine);

/// The member "host" of a system file. Errors: kIo, kInvalidInput.
[[nodiscard]] Result<HostRates> read_host_rates(const std::string& file);

}  // namespace refit::exec
