// SPDX-License-Identifier: Apache-2.0
#include "agreement.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

#include "refit/exec/rank_storage.hpp"

namespace refit::exec {
namespace {

/// What most of them say; of equally many, what the lowest rank says.
template <class Value>
Value most_common(const std::vector<Greeting>& greetings, Value Greeting::*member) {
    std::map<Value, std::size_t> counts;
    for (const auto& greeting : greetings) {
        ++counts[greeting.*member];
    }
    auto best = greetings.front().*member;
    for (const auto& greeting : greetings) {
        best = counts[greeting.*member] > counts[best] ? greeting.*member : best;
    }
    return best;
}

std::string hexadecimal(std::uint64_t value) {
    char digits[24];
    std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(value));
    return digits;
}

std::string gibibytes(Bytes bytes) {
    char text[48];
    std::snprintf(
        text, sizeof(text), "%.2f GiB", bytes.as_double() / Bytes{std::uint64_t{1} << 30U}.as_double());
    return text;
}

}  // namespace

Faults agree(const std::vector<Greeting>& greetings) {
    if (greetings.empty()) {
        return {};
    }
    const auto protocol = most_common(greetings, &Greeting::protocol);
    const auto digest = most_common(greetings, &Greeting::digest);
    for (const auto& greeting : greetings) {
        const auto rank = "rank " + std::to_string(greeting.rank);
        if (greeting.protocol != protocol) {
            return {{ErrorCode::kInfeasible,
                     "other-version",
                     rank + " speaks version " + std::to_string(greeting.protocol) +
                         " of the executor's protocol, the others " + std::to_string(protocol) +
                         "; nothing was moved",
                     {}}};
        }
        if (greeting.digest != digest) {
            return {{ErrorCode::kInfeasible,
                     "other-plan",
                     rank + " has a plan of digest " + hexadecimal(greeting.digest) + ", the others " +
                         hexadecimal(digest) + "; nothing was moved",
                     {}}};
        }
    }
    return {};
}

Faults agree(const std::vector<program::RankProgram>& programs, const std::vector<Injection>& injections) {
    std::vector<Greeting> greetings;
    for (const auto& program : programs) {
        auto& greeting = greetings.emplace_back(Greeting{program.rank, kProtocol, program.digest});
        greeting.protocol += strikes(injections, InjectionKind::kOtherVersion, program.rank) ? 1U : 0U;
        greeting.digest ^= strikes(injections, InjectionKind::kOtherPlan, program.rank) ? 1U : 0U;
    }
    return agree(greetings);
}

bool strikes(const std::vector<Injection>& injections, InjectionKind kind, std::uint32_t rank) {
    return std::ranges::any_of(injections, [&](const Injection& injection) {
        return injection.kind == kind && injection.rank == rank;
    });
}

Fault too_little_memory(Bytes needed, Bytes available) {
    // Weights shrink with the square of the divisor.
    std::uint64_t divisor = 2;
    while (needed.as_double() / static_cast<double>(divisor * divisor) > available.as_double() / 2) {
        divisor *= 2;
    }
    return {ErrorCode::kInfeasible,
            "too-little-memory",
            "the buffers of all ranks take " + gibibytes(needed) + " (" + std::to_string(needed.count()) +
                " bytes), of which this machine has " + gibibytes(available) + " (" +
                std::to_string(available.count()) + " bytes) left; a plan for a model of widths divided by " +
                std::to_string(divisor) + " would fit: refit plan … --model MODEL/" + std::to_string(divisor),
            {}};
}

Fault cannot_allocate(const program::RankProgram& program) {
    return {ErrorCode::kInfeasible,
            "out-of-memory",
            "rank " + std::to_string(program.rank) + " cannot allocate its buffers, " +
                gibibytes(bytes_needed(program)),
            {}};
}

}  // namespace refit::exec
