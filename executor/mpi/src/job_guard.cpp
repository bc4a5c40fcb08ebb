// SPDX-License-Identifier: Apache-2.0
#include "job_guard.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>

#include <sys/prctl.h>
#include <unistd.h>

#include "refit/exec/mpi_transport.hpp"
#include "refit/wrap.hpp"
#include "watchdog.hpp"

namespace refit::exec {
namespace {

/// Files of Open MPI's shared memory that this job has mapped, where a signal handler can reach them. Open
/// MPI leaves them where a job ends by force.
struct Segments {
    static constexpr std::size_t kMost = 1024;
    static constexpr std::size_t kLength = 128;
    std::array<std::array<char, kLength>, kMost> paths{};
    volatile std::sig_atomic_t count = 0;
};
Segments segments;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): a handler gets no argument

void remove_segments() noexcept {
    for (std::sig_atomic_t i = 0; i < segments.count; ++i) {
        unlink(segments.paths[static_cast<std::size_t>(i)].data());
    }
}

extern "C" void end_on_signal(int signal) {
    remove_segments();
    std::signal(signal, SIG_DFL);
    raise(signal);
}

void find_segments() {
    constexpr std::string_view kName = "/vader_segment.";
    segments.count = 0;
    std::ifstream maps{"/proc/self/maps"};
    for (std::string line; std::getline(maps, line);) {
        const auto begin = line.find('/');
        if (line.find(kName) == std::string::npos || line.size() - begin >= Segments::kLength) {
            continue;
        }
        const auto count = static_cast<std::size_t>(segments.count);
        if (count < Segments::kMost) {
            std::memcpy(segments.paths[count].data(), line.c_str() + begin, line.size() - begin + 1);
            segments.count = static_cast<std::sig_atomic_t>(count + 1);
        }
    }
}

}  // namespace

struct JobGuard::State {
    State(std::uint32_t a_rank, std::chrono::milliseconds deadline, std::function<std::string()> describe)
        : watchdog{deadline, [a_rank, deadline, describe = std::move(describe)] {
                       const std::string text = "refit-exec: rank " + std::to_string(a_rank) +
                                                ": no progress for " + std::to_string(deadline.count()) +
                                                " ms " + describe();
                       std::fputs((wrap(text, 100, 0) + "\n").c_str(), stderr);
                       std::fflush(stderr);
                       remove_segments();
                       _exit(kNoProgress);
                   }} {}
    Watchdog watchdog;
};

JobGuard::JobGuard(std::uint32_t rank,
                   std::chrono::milliseconds deadline,
                   std::function<std::string()> describe)
    : state_{std::make_unique<State>(rank, deadline, std::move(describe))} {
    find_segments();
    std::signal(SIGTERM, end_on_signal);
    // Without it a rank outlives an mpirun that is killed.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

JobGuard::~JobGuard() {
    std::signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, 0);
    segments.count = 0;
}

void JobGuard::watch() noexcept {
    state_->watchdog.guard(true);
}
void JobGuard::progress() noexcept {
    state_->watchdog.progress();
}
void JobGuard::rest() noexcept {
    state_->watchdog.guard(false);
}

void prepare_mpi() {
    const char* local =
        std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");  // NOLINT(concurrency-mt-unsafe): before any thread
    if (local != nullptr && std::strtoul(local, nullptr, 10) > std::thread::hardware_concurrency()) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
        setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
    }
}

}  // namespace refit::exec
