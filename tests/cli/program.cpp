// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

namespace refit::testing_cli {
namespace {

/// A file descriptor that closes itself.
class Descriptor {
public:
    explicit Descriptor(int number = -1) : number_{number} {}
    Descriptor(Descriptor&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { reset(); }

    void reset() {
        if (number_ >= 0) {
            ::close(number_);
            number_ = -1;
        }
    }
    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }

private:
    int number_;
};

/// Two connected ends: what the program writes and what the test reads.
struct Channel {
    Descriptor read;
    Descriptor write;
};

void require(bool holds, const char* what) {
    if (!holds) {
        throw std::runtime_error{what};
    }
}

Channel make_pipe() {
    std::array<int, 2> ends{};
    require(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe2");
    return {Descriptor{ends[0]}, Descriptor{ends[1]}};
}

/// A terminal that passes bytes on as they are.
Channel make_terminal() {
    termios raw{};
    ::cfmakeraw(&raw);
    int main_end = -1;
    int program_end = -1;
    require(::openpty(&main_end, &program_end, nullptr, &raw, nullptr) == 0, "openpty");
    ::fcntl(main_end, F_SETFD, FD_CLOEXEC);
    ::fcntl(program_end, F_SETFD, FD_CLOEXEC);
    return {Descriptor{main_end}, Descriptor{program_end}};
}

/// Appends what there is to read. Returns whether more may come; a terminal whose program has ended gives
/// EIO.
bool read_some(const Descriptor& from, std::string& text) {
    std::array<char, 16384> buffer{};
    const auto count = ::read(from.number(), buffer.data(), buffer.size());
    if (count > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return count > 0 || (count < 0 && errno == EINTR);
}

void read_both(Descriptor out_end, Descriptor err_end, Outcome& outcome) {
    while (out_end.is_open() || err_end.is_open()) {
        std::array<pollfd, 2> ends{pollfd{out_end.number(), POLLIN, 0}, pollfd{err_end.number(), POLLIN, 0}};
        require(::poll(ends.data(), ends.size(), -1) >= 0 || errno == EINTR, "poll");
        if (ends[0].revents != 0 && !read_some(out_end, outcome.out)) {
            out_end.reset();
        }
        if (ends[1].revents != 0 && !read_some(err_end, outcome.err)) {
            err_end.reset();
        }
    }
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (auto& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> environment_of(const Setting& setting) {
    const char* path = std::getenv("PATH");
    std::vector<std::string> entries{std::string{"PATH="} + (path == nullptr ? "/usr/bin:/bin" : path)};
    for (const auto& [name, value] : setting.environment) {
        entries.push_back(name + "=" + value);
    }
    return entries;
}

/// In the child: arranges the descriptors and becomes the program. Only calls that are safe after fork.
[[noreturn]] void become(char** words, char** environment, const Setting& setting, int out_end, int err_end) {
    constexpr int kFailed = 127;
    if (::chdir(setting.folder.c_str()) != 0) {
        ::_exit(kFailed);
    }
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(err_end, STDERR_FILENO);
    if (!setting.has_stdout) {
        ::close(STDOUT_FILENO);
    } else if (!setting.stdout_file.empty()) {
        ::dup2(::open(setting.stdout_file.c_str(), O_WRONLY), STDOUT_FILENO);
    } else {
        ::dup2(out_end, STDOUT_FILENO);
    }
    ::execvpe(words[0], words, environment);
    ::_exit(kFailed);
}

}  // namespace

Outcome run_program(const std::vector<std::string>& words, const Setting& setting) {
    auto own_words = words;
    auto own_environment = environment_of(setting);
    const auto word_pointers = pointers_to(own_words);
    const auto environment_pointers = pointers_to(own_environment);
    auto out = setting.on_terminal ? make_terminal() : make_pipe();
    auto err = make_pipe();
    const auto child = ::fork();
    require(child >= 0, "fork");
    if (child == 0) {
        become(const_cast<char**>(word_pointers.data()),
               const_cast<char**>(environment_pointers.data()),
               setting,
               out.write.number(),
               setting.on_terminal ? out.write.number() : err.write.number());
    }
    out.write.reset();
    err.write.reset();
    Outcome outcome;
    read_both(std::move(out.read), std::move(err.read), outcome);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        require(errno == EINTR, "waitpid");
    }
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

Outcome run_refit(std::vector<std::string> arguments, const Setting& setting) {
    arguments.insert(arguments.begin(), REFIT_PROGRAM);
    return run_program(arguments, setting);
}

std::string file_text(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream{file, std::ios::binary}.rdbuf();
    return std::move(text).str();
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream{text};
    for (std::string line; std::getline(stream, line);) {
        lines.push_back(line);
    }
    return lines;
}

std::vector<std::string> shipped_scenarios() {
    std::vector<std::string> names;
    for (const auto& file :
         std::filesystem::directory_iterator{std::filesystem::path{REFIT_DATA_DIR} / "scenarios"}) {
        names.push_back(file.path().stem().string());
    }
    std::ranges::sort(names);
    return names;
}

nlohmann::json compare_json(std::vector<std::string> arguments, const Setting& setting) {
    arguments.insert(arguments.begin(), "compare");
    arguments.insert(arguments.end(), {"-o", "json"});
    const auto outcome = run_refit(arguments, setting);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return nlohmann::json::parse(outcome.out, nullptr, false);
}

nlohmann::json method_of(const nlohmann::json& report, const std::string& name) {
    for (const auto& method : report.at("methods")) {
        if (method.at("method") == name) {
            return method;
        }
    }
    ADD_FAILURE() << "no method " << name;
    return nullptr;
}

bool has_terminals() {
    int main_end = -1;
    int program_end = -1;
    const bool is_open = ::openpty(&main_end, &program_end, nullptr, nullptr, nullptr) == 0;
    const std::array ends{Descriptor{main_end}, Descriptor{program_end}};
    return is_open;
}

}  // namespace refit::testing_cli
