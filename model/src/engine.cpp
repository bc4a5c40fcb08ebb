// SPDX-License-Identifier: Apache-2.0
#include "refit/engine.hpp"

#include <algorithm>

namespace refit {

const EnginePath* Engine::path_of(std::string_view method) const noexcept {
    const auto found = std::ranges::find_if(paths, [&](const EnginePath& path) {
        return path.method == method && path.options.is_same_variant(options);
    });
    return found == paths.end() ? nullptr : &*found;
}

const EnginePath* Engine::find_path(std::string_view path) const noexcept {
    const auto found = std::ranges::find(paths, path, &EnginePath::name);
    return found == paths.end() ? nullptr : &*found;
}

}  // namespace refit
