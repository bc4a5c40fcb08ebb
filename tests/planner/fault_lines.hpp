// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "refit/result.hpp"

namespace refit::testing_support {

/// "rule: message", a line each, for the message of a test that fails.
inline std::string fault_lines(const Faults& faults) {
    std::string lines;
    for (const auto& fault : faults) {
        lines += fault.rule + ": " + fault.message + "\n";
    }
    return lines;
}

}  // namespace refit::testing_support
