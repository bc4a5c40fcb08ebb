// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "refit/result.hpp"

namespace refit::cli {

/// Exit codes of `refit`; README.md lists them and they do not change.
enum ExitCode : int {
    kOk = 0,
    kInternalError = 1,
    kUsageError = 2,
    kInvalidInput = 3,
    kInfeasible = 4,
    kUnsupported = 5,
    kIoError = 6,
};

[[nodiscard]] constexpr ExitCode exit_code_of(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::kUsage:
            return kUsageError;
        case ErrorCode::kInvalidInput:
            return kInvalidInput;
        case ErrorCode::kInfeasible:
            return kInfeasible;
        case ErrorCode::kUnsupported:
            return kUnsupported;
        case ErrorCode::kIo:
            break;
    }
    return kIoError;
}

/// The code for a list of faults: what could not be read goes before what could not be understood, and that before
/// what cannot run.
[[nodiscard]] inline ExitCode exit_code_of(const Faults& faults) {
    for (const auto code : {ErrorCode::kUsage, ErrorCode::kIo, ErrorCode::kInvalidInput, ErrorCode::kInfeasible}) {
        if (std::ranges::any_of(faults, [&](const Fault& fault) { return fault.code == code; })) {
            return exit_code_of(code);
        }
    }
    return kUnsupported;
}

}  // namespace refit::cli
