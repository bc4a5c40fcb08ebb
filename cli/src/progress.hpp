// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

namespace refit::cli {

/// One line on the terminal's stderr that says what runs and how far it is, for work that takes over half a second.
/// Silent where stderr is no terminal. Updates at most ten times a second, and wipes its line at the end.
class Progress {
public:
    explicit Progress(bool is_wanted);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// `done` in [0, 1].
    void tell(std::string_view what, double done);

private:
    using Clock = std::chrono::steady_clock;
    bool is_active_;
    bool has_line_ = false;
    Clock::time_point started_;
    Clock::time_point last_;
};

}  // namespace refit::cli
