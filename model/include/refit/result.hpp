// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <version>
#if defined(__cpp_lib_expected)
#include <expected>
#else
#include <tl/expected.hpp>
#endif

namespace refit {

/// What kind of thing went wrong; each maps to one process exit code (see cli/src/exit_code.hpp).
enum class ErrorCode : std::uint8_t { kUsage, kInvalidInput, kInfeasible, kUnsupported, kIo };

/// A change of one scenario field that has been applied and found valid before it is offered.
struct Suggestion {
    std::string field;  ///< Dotted scenario field, for example "train.layout".
    std::string value;  ///< What to write there.
    std::string note;   ///< Why it works, or what else would; may be empty.
    bool operator==(const Suggestion&) const = default;
};

/// A failure a caller can act on.
struct Fault {
    ErrorCode code;
    std::string rule;     ///< Short stable name, for example "layout-product".
    std::string message;  ///< One sentence, no trailing full stop: what, and the offending value.
    std::string where;    ///< "file.yaml:12:3", "file.json: /train/gpus", a field name, or empty.
    std::optional<Suggestion> nearest = std::nullopt;
};

/// All faults found at once. Invariant of a failed Result: at least one.
using Faults = std::vector<Fault>;

#if defined(__cpp_lib_expected)
template <class T>
using Result = std::expected<T, Faults>;
using Failure = std::unexpected<Faults>;
#else
template <class T>
using Result = tl::expected<T, Faults>;
using Failure = tl::unexpected<Faults>;
#endif

[[nodiscard]] inline Failure fail(Faults faults) { return Failure{std::move(faults)}; }

[[nodiscard]] inline Failure fail(ErrorCode code, std::string rule, std::string message, std::string where = {}) {
    return Failure{Faults{Fault{code, std::move(rule), std::move(message), std::move(where)}}};
}

/// Moves the value out of `result`, or appends its faults to `faults` and returns nothing.
template <class T>
[[nodiscard]] std::optional<T> take(Result<T> result, Faults& faults) {
    if (result.has_value()) {
        return std::move(*result);
    }
    faults.insert(faults.end(), result.error().begin(), result.error().end());
    return std::nullopt;
}

}  // namespace refit
