// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace refit::exec {

using Clock = std::chrono::steady_clock;

/// The longest text that is taken for one. Unit: byte.
inline constexpr std::uint64_t kMostText = std::uint64_t{1} << 30U;

/// Owns a socket.
class Socket {
public:
    explicit Socket(int number = -1) : number_{number} {}
    Socket(Socket&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Socket() {
        if (number_ >= 0) {
            ::close(number_);
        }
    }
    [[nodiscard]] int number() const noexcept { return number_; }
    [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }

private:
    int number_;
};

enum class Outcome : std::uint8_t { kDone, kLate, kClosed };

inline int milliseconds_to(Clock::time_point end) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

inline Outcome wait_for(const Socket& socket, short events, Clock::time_point end) {
    pollfd entry{socket.number(), events, 0};
    return ::poll(&entry, 1, milliseconds_to(end)) > 0 ? Outcome::kDone : Outcome::kLate;
}

/// Moves all bytes, in either direction.
template <class Move>
Outcome move_all(const Socket& socket, short events, std::size_t bytes, Clock::time_point end, Move&& move) {
    for (std::size_t done = 0; done < bytes;) {
        if (wait_for(socket, events, end) == Outcome::kLate) {
            return Outcome::kLate;
        }
        const auto count = move(done);
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
            return Outcome::kClosed;
        }
        done += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    return Outcome::kDone;
}

inline Outcome send_all(const Socket& socket, std::string_view bytes, Clock::time_point end) {
    return move_all(socket, POLLOUT, bytes.size(), end, [&](std::size_t done) {
        return ::send(socket.number(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
}
inline Outcome receive_all(const Socket& socket, char* bytes, std::size_t size, Clock::time_point end) {
    return move_all(socket, POLLIN, size, end, [&](std::size_t done) {
        return ::recv(socket.number(), bytes + done, size - done, MSG_DONTWAIT);
    });
}

inline std::string word(std::uint64_t value) {
    std::string bytes(sizeof(value), '\0');
    std::memcpy(bytes.data(), &value, sizeof(value));
    return bytes;
}
inline Outcome receive_word(const Socket& socket, std::uint64_t& value, Clock::time_point end) {
    return receive_all(socket, reinterpret_cast<char*>(&value), sizeof(value), end);
}
inline Outcome receive_text(const Socket& socket,
                            std::uint64_t size,
                            std::string& text,
                            Clock::time_point end) {
    if (size > kMostText) {
        return Outcome::kClosed;
    }
    text.resize(size);
    return receive_all(socket, text.data(), size, end);
}

/// What a look at a socket finds.
enum class Look : std::uint8_t { kNothing, kClosed, kWord };

/// Looks whether a word is there, and leaves it; never waits.
inline Look look_at(const Socket& socket, std::uint64_t& value) {
    const auto count = ::recv(socket.number(), &value, sizeof(value), MSG_PEEK | MSG_DONTWAIT);
    if (count == static_cast<ssize_t>(sizeof(value))) {
        return Look::kWord;
    }
    const bool is_open = count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
    return is_open ? Look::kNothing : Look::kClosed;
}

}  // namespace refit::exec
