// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/control_plane.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace refit::exec {
namespace {

using Clock = std::chrono::steady_clock;

/// The first word of a connection: strangers are sent away.
constexpr std::uint64_t kGreeting = 0x5245464954000001U;
/// In place of a length: a fault follows.
constexpr std::uint64_t kFault = ~std::uint64_t{0};
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30U;

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

int milliseconds_to(Clock::time_point end) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

Outcome wait_for(const Socket& socket, short events, Clock::time_point end) {
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

Outcome send_all(const Socket& socket, std::string_view bytes, Clock::time_point end) {
    return move_all(socket, POLLOUT, bytes.size(), end, [&](std::size_t done) {
        return ::send(socket.number(), bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
}
Outcome receive_all(const Socket& socket, char* bytes, std::size_t size, Clock::time_point end) {
    return move_all(socket, POLLIN, size, end, [&](std::size_t done) {
        return ::recv(socket.number(), bytes + done, size - done, MSG_DONTWAIT);
    });
}

std::string word(std::uint64_t value) {
    std::string bytes(sizeof(value), '\0');
    std::memcpy(bytes.data(), &value, sizeof(value));
    return bytes;
}
Outcome receive_word(const Socket& socket, std::uint64_t& value, Clock::time_point end) {
    return receive_all(socket, reinterpret_cast<char*>(&value), sizeof(value), end);
}
Outcome receive_text(const Socket& socket, std::uint64_t size, std::string& text, Clock::time_point end) {
    if (size > kMostBytes) {
        return Outcome::kClosed;
    }
    text.resize(size);
    return receive_all(socket, text.data(), size, end);
}

Fault fault_of(const std::string& rule, const std::string& message) {
    return {ErrorCode::kInfeasible, rule, message, {}};
}
Fault fault_of(Outcome outcome, const std::string& who, const char* what) {
    return outcome == Outcome::kClosed
               ? fault_of("rank-died", who + " is gone, " + what)
               : fault_of("rank-stalled", who + " did not answer by the deadline, " + what);
}

struct HostPort {
    std::string host;
    std::string port;
};

std::optional<HostPort> host_and_port(const std::string& text) {
    const auto colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) {
        return std::nullopt;
    }
    return HostPort{text.substr(0, colon), text.substr(colon + 1)};
}

/// A socket that listens on a port, 0 for any.
Socket listening(const std::string& port) {
    Socket socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const int on = 1;
    ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    std::uint16_t number = 0;
    std::from_chars(port.data(), port.data() + port.size(), number);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(number);
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    const bool listens =
        ::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
        ::listen(socket.number(), 1024) == 0;
    return listens ? std::move(socket) : Socket{};
}

std::string port_of(const Socket& socket) {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    ::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size);
    return std::to_string(ntohs(address.sin_port));
}

Socket connected(const HostPort& to) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(to.host.c_str(), to.port.c_str(), &hints, &found) != 0) {
        return Socket{};
    }
    Socket socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const bool is_there = ::connect(socket.number(), found->ai_addr, found->ai_addrlen) == 0;
    ::freeaddrinfo(found);
    const int on = 1;
    ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return is_there ? std::move(socket) : Socket{};
}

/// The first process: gathers from all, and tells all.
class FirstPlane final : public ControlPlane {
public:
    explicit FirstPlane(std::uint32_t ranks) : others_(ranks) {}

    std::optional<Fault> accept(const Socket& listener, Clock::time_point end) {
        for (std::size_t missing = others_.size() - 1; missing > 0;) {
            if (wait_for(listener, POLLIN, end) == Outcome::kLate) {
                return fault_of("rank-stalled", "no word by the deadline of" + names_of_missing());
            }
            Socket socket{::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC)};
            std::uint64_t greeting = 0;
            std::uint64_t rank = 0;
            const auto soon = std::min(end, Clock::now() + std::chrono::seconds{1});
            if (receive_word(socket, greeting, soon) == Outcome::kDone && greeting == kGreeting &&
                receive_word(socket, rank, soon) == Outcome::kDone && rank > 0 && rank < others_.size() &&
                !others_[rank].is_open()) {
                const int on = 1;
                ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
                others_[rank] = std::move(socket);
                --missing;
            }
        }
        return std::nullopt;
    }

    Result<std::vector<std::string>> exchange(const std::string& mine,
                                              std::chrono::milliseconds deadline) override {
        const auto end = Clock::now() + deadline;
        std::vector<std::string> all(others_.size());
        all.front() = mine;
        for (std::size_t rank = 1; rank < others_.size(); ++rank) {
            std::uint64_t size = 0;
            Outcome outcome = receive_word(others_[rank], size, end);
            outcome = outcome == Outcome::kDone ? receive_text(others_[rank], size, all[rank], end) : outcome;
            if (outcome != Outcome::kDone) {
                return broken(fault_of(outcome, "rank " + std::to_string(rank), "as all ranks met"));
            }
        }
        std::string answer;
        for (const std::string& text : all) {
            answer += word(text.size()) + text;
        }
        for (std::size_t rank = 1; rank < others_.size(); ++rank) {
            const Outcome outcome = send_all(others_[rank], word(answer.size()) + answer, end);
            if (outcome != Outcome::kDone) {
                return broken(fault_of(outcome, "rank " + std::to_string(rank), "as all ranks met"));
            }
        }
        return all;
    }

private:
    [[nodiscard]] std::string names_of_missing() const {
        std::string names;
        for (std::size_t rank = 1; rank < others_.size(); ++rank) {
            names +=
                others_[rank].is_open() ? "" : (names.empty() ? " rank " : ", rank ") + std::to_string(rank);
        }
        return names;
    }

    /// Tells all who still listen of the fault.
    Failure broken(const Fault& fault) const {
        const std::string text = fault.rule + "\n" + fault.message;
        for (std::size_t rank = 1; rank < others_.size(); ++rank) {
            (void)send_all(others_[rank],
                           word(kFault) + word(text.size()) + text,
                           Clock::now() + std::chrono::seconds{1});
        }
        return fail(Faults{fault});
    }

    std::vector<Socket> others_;  ///< By rank; the first's own is closed.
};

/// Any other process.
class OtherPlane final : public ControlPlane {
public:
    explicit OtherPlane(Socket first) : first_{std::move(first)} {}

    Result<std::vector<std::string>> exchange(const std::string& mine,
                                              std::chrono::milliseconds deadline) override {
        // A little more, so that the first can still say who is missing.
        const auto end = Clock::now() + deadline + std::chrono::seconds{2};
        std::string answer;
        std::uint64_t size = 0;
        Outcome outcome = send_all(first_, word(mine.size()) + mine, end);
        outcome = outcome == Outcome::kDone ? receive_word(first_, size, end) : outcome;
        const bool is_fault = outcome == Outcome::kDone && size == kFault;
        outcome = is_fault ? receive_word(first_, size, end) : outcome;
        outcome = outcome == Outcome::kDone ? receive_text(first_, size, answer, end) : outcome;
        if (outcome != Outcome::kDone) {
            return fail(Faults{fault_of(outcome, "rank 0", "as all ranks met")});
        }
        if (is_fault) {
            const auto line = answer.find('\n');
            return fail(Faults{
                fault_of(answer.substr(0, line), answer.substr(std::min(line, answer.size() - 1) + 1))});
        }
        return split(answer);
    }

private:
    static Result<std::vector<std::string>> split(const std::string& answer) {
        std::vector<std::string> all;
        for (std::size_t at = 0; at + sizeof(std::uint64_t) <= answer.size();) {
            std::uint64_t size = 0;
            std::memcpy(&size, answer.data() + at, sizeof(size));
            at += sizeof(size);
            if (size > answer.size() - at) {
                return fail(Faults{fault_of("transport", "rank 0 sent an answer that is cut short")});
            }
            all.push_back(answer.substr(at, size));
            at += size;
        }
        return all;
    }

    Socket first_;
};

constexpr std::string_view kTcp = "tcp://";
constexpr std::string_view kFile = "file://";

bool is_known(const char* host) {
    addrinfo* found = nullptr;
    const bool known = ::getaddrinfo(host, nullptr, nullptr, &found) == 0;
    if (known) {
        ::freeaddrinfo(found);
    }
    return known;
}

/// Where the first listens, for those who share a file or a channel: its name on the network, or this machine where
/// nobody knows that.
std::string own_address(const Socket& listener) {
    char name[256] = "";
    ::gethostname(name, sizeof(name) - 1);
    return std::string{is_known(name) ? name : "127.0.0.1"} + ":" + port_of(listener);
}

/// Written whole or not at all.
bool publish(const std::string& path, const std::string& text) {
    const std::string draft = path + ".draft";
    {
        std::ofstream file{draft};
        file << text << "\n";
    }
    return std::rename(draft.c_str(), path.c_str()) == 0;
}

Failure bad_rendezvous(const std::string& address) {
    return fail(ErrorCode::kInvalidInput,
                "rendezvous",
                "'" + address + "' says not where the ranks meet: tcp://HOST:PORT or file://PATH",
                "REFIT_RENDEZVOUS");
}

Result<std::unique_ptr<ControlPlane>> lead(const ProcessPlace& place,
                                           const Rendezvous& rendezvous,
                                           Clock::time_point end) {
    const std::string& address = rendezvous.address;
    const auto fixed =
        address.starts_with(kTcp) ? host_and_port(address.substr(kTcp.size())) : HostPort{"", "0"};
    if (!fixed) {
        return bad_rendezvous(address);
    }
    const Socket listener = listening(fixed->port);
    if (!listener.is_open()) {
        return fail(
            ErrorCode::kIo, "rendezvous", "rank 0 cannot listen on port " + fixed->port, "REFIT_RENDEZVOUS");
    }
    if (address.starts_with(kFile) && !publish(address.substr(kFile.size()), own_address(listener))) {
        return fail(ErrorCode::kIo,
                    "rendezvous",
                    "rank 0 cannot write " + address.substr(kFile.size()),
                    "REFIT_RENDEZVOUS");
    }
    if (address.empty()) {
        (void)rendezvous.share(own_address(listener));
    }
    auto plane = std::make_unique<FirstPlane>(place.ranks);
    if (auto fault = plane->accept(listener, end)) {
        return fail(Faults{*fault});
    }
    if (address.starts_with(kFile)) {
        std::remove(address.substr(kFile.size()).c_str());  // The next job must not find it.
    }
    return plane;
}

Result<std::unique_ptr<ControlPlane>> follow(const ProcessPlace& place,
                                             const Rendezvous& rendezvous,
                                             Clock::time_point end) {
    const std::string& address = rendezvous.address;
    std::string where = address.starts_with(kTcp) ? address.substr(kTcp.size()) : "";
    if (address.empty()) {
        where = rendezvous.share("");
    }
    do {
        if (address.starts_with(kFile)) {
            std::ifstream file{address.substr(kFile.size())};
            std::getline(file, where);
        }
        if (const auto first = host_and_port(where)) {
            Socket socket = connected(*first);
            if (socket.is_open() &&
                send_all(socket, word(kGreeting) + word(place.rank), end) == Outcome::kDone) {
                return std::make_unique<OtherPlane>(std::move(socket));
            }
        } else if (!address.starts_with(kFile)) {
            return bad_rendezvous(address);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    } while (Clock::now() < end);
    return fail(Faults{fault_of("rank-stalled", "rank 0 was not found by the deadline at " + address)});
}

std::optional<std::uint32_t> number(const char* text) {
    if (text == nullptr) {
        return std::nullopt;
    }
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
    return error == std::errc{} && *end == '\0' ? std::optional{value} : std::nullopt;
}

}  // namespace

Result<ProcessPlace> process_place(const std::function<const char*(const char*)>& lookup) {
    constexpr const char* kNames[][3] = {
        {"REFIT_RANK", "REFIT_RANKS", "REFIT_LOCAL_RANK"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
        {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}};
    for (const auto& names : kNames) {
        const auto rank = number(lookup(names[0]));
        const auto ranks = number(lookup(names[1]));
        const auto local = number(lookup(names[2]));
        if (rank && ranks && local && *rank < *ranks) {
            return ProcessPlace{*rank, *ranks, *local};
        }
    }
    return fail(ErrorCode::kInvalidInput,
                "launcher",
                "no launcher says which rank this is: start it with mpirun or srun, or set REFIT_RANK, "
                "REFIT_RANKS and "
                "REFIT_LOCAL_RANK",
                "REFIT_RANK");
}

Result<std::unique_ptr<ControlPlane>> join_job(const ProcessPlace& place,
                                               const Rendezvous& rendezvous,
                                               std::chrono::milliseconds deadline) {
    const std::string& address = rendezvous.address;
    const bool is_known = address.empty() ? static_cast<bool>(rendezvous.share)
                                          : address.starts_with(kTcp) || address.starts_with(kFile);
    if (place.ranks > 1 && !is_known) {
        return bad_rendezvous(address);
    }
    const auto end = Clock::now() + deadline;
    if (place.ranks == 1) {
        return std::make_unique<FirstPlane>(1);
    }
    return place.rank == 0 ? lead(place, rendezvous, end) : follow(place, rendezvous, end);
}

}  // namespace refit::exec
