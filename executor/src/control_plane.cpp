// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/control_plane.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "socket.hpp"

namespace refit::exec {
namespace {

/// The first word of a connection: strangers are sent away.
constexpr std::uint64_t kGreeting = 0x5245464954000002U;
/// In place of a length: a fault follows.
constexpr std::uint64_t kFault = ~std::uint64_t{0};
/// In place of a length: this process has given up, and waits to hear who is left.
constexpr std::uint64_t kMuster = kFault - 1;
/// In place of a length: who is gone follows.
constexpr std::uint64_t kGone = kFault - 2;
/// How often one who waits looks at the others.
constexpr std::chrono::milliseconds kGlance{5};

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
    explicit FirstPlane(const std::vector<std::uint32_t>& ranks) {
        for (const std::uint32_t rank : ranks) {
            others_.push_back({rank, Socket{}, false});
        }
    }

    std::optional<Fault> accept(const Socket& listener, Clock::time_point end) {
        for (std::size_t missing = others_.size() - 1; missing > 0;) {
            if (wait_for(listener, POLLIN, end) == Outcome::kLate) {
                return fault_of("rank-stalled", "no word by the deadline of" + names_of_missing());
            }
            Socket socket{::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC)};
            std::uint64_t greeting = 0;
            std::uint64_t place = 0;
            const auto soon = std::min(end, Clock::now() + std::chrono::seconds{1});
            if (receive_word(socket, greeting, soon) == Outcome::kDone && greeting == kGreeting &&
                receive_word(socket, place, soon) == Outcome::kDone && place > 0 && place < others_.size() &&
                !others_[place].socket.is_open()) {
                const int on = 1;
                ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
                others_[place].socket = std::move(socket);
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
        for (std::size_t place = 1; place < others_.size(); ++place) {
            const Other& other = others_[place];
            // Whoever gave up waits for all the others.
            while (wait_for(other.socket, POLLIN, std::min(end, Clock::now() + kGlance)) == Outcome::kLate &&
                   Clock::now() < end) {
                if (const Other* gone = broken_one()) {
                    return broken(fault_of_broken(*gone));
                }
            }
            std::uint64_t size = 0;
            Outcome outcome = receive_word(other.socket, size, end);
            if (outcome == Outcome::kDone && size == kMuster) {
                others_[place].has_mustered = true;
                return broken(fault_of_broken(other));
            }
            outcome = outcome == Outcome::kDone ? receive_text(other.socket, size, all[place], end) : outcome;
            if (outcome != Outcome::kDone) {
                return broken(fault_of(outcome, name_of(other), "as all ranks met"));
            }
        }
        std::string answer;
        for (const std::string& text : all) {
            answer += word(text.size()) + text;
        }
        for (std::size_t place = 1; place < others_.size(); ++place) {
            const Outcome outcome = send_all(others_[place].socket, word(answer.size()) + answer, end);
            if (outcome != Outcome::kDone) {
                return broken(fault_of(outcome, name_of(others_[place]), "as all ranks met"));
            }
        }
        return all;
    }

    bool is_broken() override { return broken_one() != nullptr; }

    Result<std::vector<std::uint32_t>> muster(std::chrono::milliseconds patience) override {
        (void)broken(fault_of("rank-died", "another rank gave up"));
        const auto end = Clock::now() + patience;
        std::vector<std::uint32_t> gone;
        std::vector<Other> left;
        for (Other& other : others_) {
            if (&other == &others_.front() || has_come(other, end)) {
                other.has_mustered = false;
                left.push_back(std::move(other));
            } else {
                gone.push_back(other.rank);
            }
        }
        others_ = std::move(left);
        std::string text;
        for (const std::uint32_t rank : gone) {
            text += word(rank);
        }
        for (std::size_t place = 1; place < others_.size(); ++place) {
            // Who goes meanwhile is missed when all meet again.
            (void)send_all(others_[place].socket,
                           word(kGone) + word(text.size()) + text,
                           Clock::now() + std::chrono::seconds{1});
        }
        return gone;
    }

    void keep(std::span<const std::uint32_t> ranks) override {
        std::erase_if(others_, [&](const Other& other) {
            return &other != &others_.front() && !std::ranges::binary_search(ranks, other.rank);
        });
    }

private:
    struct Other {
        std::uint32_t rank = 0;
        Socket socket;  ///< The first's own is closed.
        bool has_mustered = false;
    };

    static std::string name_of(const Other& other) { return "rank " + std::to_string(other.rank); }
    static Fault fault_of_broken(const Other& other) {
        std::uint64_t size = 0;
        return other.has_mustered || look_at(other.socket, size) == Look::kWord
                   ? fault_of("rank-died", name_of(other) + " gave up, as all ranks met")
                   : fault_of(Outcome::kClosed, name_of(other), "as all ranks met");
    }

    [[nodiscard]] std::string names_of_missing() const {
        std::string names;
        for (std::size_t place = 1; place < others_.size(); ++place) {
            names += others_[place].socket.is_open() ? "" : (names.empty() ? " " : ", ") + name_of(others_[place]);
        }
        return names;
    }

    /// One that is gone, or has given up.
    [[nodiscard]] const Other* broken_one() const {
        for (std::size_t place = 1; place < others_.size(); ++place) {
            std::uint64_t size = 0;
            const Look look = look_at(others_[place].socket, size);
            if (look == Look::kClosed || (look == Look::kWord && size == kMuster)) {
                return &others_[place];
            }
        }
        return nullptr;
    }

    /// Reads what a process said before it gave up.
    static bool has_come(const Other& other, Clock::time_point end) {
        bool has_mustered = other.has_mustered;
        for (Outcome outcome = Outcome::kDone; outcome == Outcome::kDone && !has_mustered;) {
            std::uint64_t size = 0;
            std::string text;
            outcome = receive_word(other.socket, size, end);
            has_mustered = outcome == Outcome::kDone && size == kMuster;
            outcome = outcome == Outcome::kDone && !has_mustered ? receive_text(other.socket, size, text, end) : outcome;
        }
        return has_mustered;
    }

    /// Tells all who still listen of the fault.
    [[nodiscard]] Failure broken(const Fault& fault) const {
        const std::string text = fault.rule + "\n" + fault.message;
        for (std::size_t place = 1; place < others_.size(); ++place) {
            (void)send_all(others_[place].socket,
                           word(kFault) + word(text.size()) + text,
                           Clock::now() + std::chrono::seconds{1});
        }
        return fail(Faults{fault});
    }

    std::vector<Other> others_;  ///< Ascending; the first is this process.
};

/// Any other process.
class OtherPlane final : public ControlPlane {
public:
    OtherPlane(Socket first, std::uint32_t rank) : first_{std::move(first)}, rank_of_first_{rank} {}

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
            return fail(Faults{fault_of(outcome, name_of_first(), "as all ranks met")});
        }
        if (is_fault) {
            const auto line = answer.find('\n');
            return fail(Faults{
                fault_of(answer.substr(0, line), answer.substr(std::min(line, answer.size() - 1) + 1))});
        }
        return split(answer);
    }

    bool is_broken() override {
        // Unasked, the first says nothing but that something is wrong.
        std::uint64_t size = 0;
        return look_at(first_, size) != Look::kNothing;
    }

    Result<std::vector<std::uint32_t>> muster(std::chrono::milliseconds patience) override {
        // The first may need its own patience before it comes, and again for whoever does not.
        const auto end = Clock::now() + 2 * patience + std::chrono::seconds{2};
        std::uint64_t kind = 0;
        std::string text;
        Outcome outcome = send_all(first_, word(kMuster), end);
        while (outcome == Outcome::kDone && kind != kGone) {
            std::uint64_t size = 0;
            outcome = receive_word(first_, kind, end);
            outcome = outcome == Outcome::kDone ? receive_word(first_, size, end) : outcome;
            outcome = outcome == Outcome::kDone ? receive_text(first_, size, text, end) : outcome;
        }
        if (outcome != Outcome::kDone) {
            return fail(Faults{fault_of(outcome, name_of_first(), "without whom the others cannot go on")});
        }
        std::vector<std::uint32_t> gone;
        for (std::size_t at = 0; at + sizeof(std::uint64_t) <= text.size(); at += sizeof(std::uint64_t)) {
            std::uint64_t rank = 0;
            std::memcpy(&rank, text.data() + at, sizeof(rank));
            gone.push_back(static_cast<std::uint32_t>(rank));
        }
        return gone;
    }

    void keep(std::span<const std::uint32_t> /*ranks*/) override {}

private:
    [[nodiscard]] std::string name_of_first() const { return "rank " + std::to_string(rank_of_first_); }

    static Result<std::vector<std::string>> split(const std::string& answer) {
        std::vector<std::string> all;
        for (std::size_t at = 0; at + sizeof(std::uint64_t) <= answer.size();) {
            std::uint64_t size = 0;
            std::memcpy(&size, answer.data() + at, sizeof(size));
            at += sizeof(size);
            if (size > answer.size() - at) {
                return fail(Faults{fault_of("transport", "the first rank sent an answer that is cut short")});
            }
            all.push_back(answer.substr(at, size));
            at += size;
        }
        return all;
    }

    Socket first_;
    std::uint32_t rank_of_first_;
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

Result<std::unique_ptr<ControlPlane>> lead(const std::vector<std::uint32_t>& ranks,
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
    auto plane = std::make_unique<FirstPlane>(ranks);
    if (auto fault = plane->accept(listener, end)) {
        return fail(Faults{*fault});
    }
    if (address.starts_with(kFile)) {
        std::remove(address.substr(kFile.size()).c_str());  // The next job must not find it.
    }
    return plane;
}

Result<std::unique_ptr<ControlPlane>> follow(const ProcessPlace& place,
                                             std::uint32_t first_rank,
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
                return std::make_unique<OtherPlane>(std::move(socket), first_rank);
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
                                               std::chrono::milliseconds deadline,
                                               std::vector<std::uint32_t> ranks) {
    const std::string& address = rendezvous.address;
    const bool is_known = address.empty() ? static_cast<bool>(rendezvous.share)
                                          : address.starts_with(kTcp) || address.starts_with(kFile);
    if (place.ranks > 1 && !is_known) {
        return bad_rendezvous(address);
    }
    const auto end = Clock::now() + deadline;
    if (ranks.size() != place.ranks) {
        ranks.resize(place.ranks);
        std::iota(ranks.begin(), ranks.end(), 0U);
    }
    if (place.ranks == 1) {
        return std::make_unique<FirstPlane>(ranks);
    }
    return place.rank == 0 ? lead(ranks, rendezvous, end) : follow(place, ranks.front(), rendezvous, end);
}

}  // namespace refit::exec
