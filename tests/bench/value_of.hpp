// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <iostream>
#include <utility>

#include "refit/result.hpp"

namespace refit::bench {

/// The value, or the end of the program with the first fault.
template <class T>
T value_of(Result<T> result) {
    if (!result) {
        std::cerr << result.error().front().message << "\n";
        std::exit(1);
    }
    return std::move(*result);
}

}  // namespace refit::bench
