// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace refit::cli {

/// While it lives, Ctrl-C (SIGINT) and SIGTERM only raise a flag, so that work can stop where it leaves
/// nothing behind. At most one lives at a time.
class Interrupt {
public:
    Interrupt();
    /// Gives the signals back their meaning. One that came ends the program now, as it would have without.
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    [[nodiscard]] bool is_raised() const noexcept;
};

}  // namespace refit::cli
