// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <csignal>

namespace refit::cli {
namespace {

/// The one thing that a signal handler can reach.
volatile std::sig_atomic_t raised_signal = 0;

void note(int signal) {
    raised_signal = signal;
}

/// A signal that was ignored from the start, as under nohup, stays ignored.
void handle(int signal, void (*handler)(int)) {
    if (std::signal(signal, handler) == SIG_IGN) {
        std::signal(signal, SIG_IGN);
    }
}

}  // namespace

Interrupt::Interrupt() {
    raised_signal = 0;
    handle(SIGINT, note);
    handle(SIGTERM, note);
}

Interrupt::~Interrupt() {
    handle(SIGINT, SIG_DFL);
    handle(SIGTERM, SIG_DFL);
    if (raised_signal != 0) {
        std::raise(raised_signal);
    }
}

bool Interrupt::is_raised() const noexcept {
    return raised_signal != 0;
}

}  // namespace refit::cli
