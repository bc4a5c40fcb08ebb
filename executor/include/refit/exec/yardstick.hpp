// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "refit/result.hpp"
#include "refit/units.hpp"

namespace refit::exec {

/// A copy by which two moments of a machine are compared: long runs, by all threads, beyond the caches.
class Yardstick {
public:
    /// Takes memory of 256 MiB, or of `most_bytes` where that is less. Errors: those of an allocation.
    [[nodiscard]] static Result<Yardstick> make(std::uint32_t threads, Bytes most_bytes);
    Yardstick(Yardstick&&) noexcept;
    Yardstick& operator=(Yardstick&&) noexcept;
    ~Yardstick();

    /// How long the copy takes now. Errors: those of a run.
    [[nodiscard]] Result<Seconds> measure() const;

private:
    class Copy;
    explicit Yardstick(std::unique_ptr<Copy> copy);
    std::unique_ptr<Copy> copy_;
};

}  // namespace refit::exec
