// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "refit/engine_constants.hpp"
#include "refit/engine_options.hpp"
#include "refit/units.hpp"

namespace refit {

/// A way that an engine takes, under the name by which published times tell what was timed.
struct EnginePath {
    std::string name;    ///< "nemo-rl-reshard".
    std::string method;  ///< "hybrid".
    bool is_calibrated = true;  ///< Whether published times determine its costs.
    std::map<std::string, std::string> settings;  ///< Engine options by name that differ from the engine's own.
    EngineOptions options;                        ///< With these settings.
    bool operator==(const EnginePath&) const = default;
};

/// A refit engine of one version.
struct Engine {
    std::string name;     ///< "nemo-rl".
    std::string title;    ///< "NeMo RL".
    std::string version;
    EngineConstants constants;
    EngineOptions options;
    Bytes pack_cap;       ///< Largest pack, whatever the ratio.
    std::vector<EnginePath> paths;

    /// The path by which it runs the method with these options, or none: then no published time speaks of it.
    [[nodiscard]] const EnginePath* path_of(std::string_view method) const noexcept;
    /// The path of that name, or none.
    [[nodiscard]] const EnginePath* find_path(std::string_view path) const noexcept;
    bool operator==(const Engine&) const = default;
};

}  // namespace refit
