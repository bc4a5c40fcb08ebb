// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <unistd.h>

#include <cmath>
#include <iostream>

namespace refit::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{500};
constexpr std::chrono::milliseconds kInterval{100};

}  // namespace

Progress::Progress(bool is_wanted)
    : is_active_{is_wanted && isatty(STDERR_FILENO) == 1}, started_{Clock::now()}, last_{started_} {}

Progress::~Progress() {
    if (has_line_) {
        std::cerr << "\r\033[K" << std::flush;
    }
}

void Progress::tell(std::string_view what, double done) {
    const auto now = Clock::now();
    if (!is_active_ || now - started_ < kPatience || (has_line_ && now - last_ < kInterval)) {
        return;
    }
    std::cerr << "\r\033[K  " << std::lround(done * 100.0) << " %  " << what << std::flush;
    has_line_ = true;
    last_ = now;
}

}  // namespace refit::cli
