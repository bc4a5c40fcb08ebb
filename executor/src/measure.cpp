// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/measure.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace refit::exec {
namespace {

std::string hexadecimal(std::uint64_t value) {
    constexpr const char* kDigits = "0123456789abcdef";
    std::string text;
    do {
        text.insert(text.begin(), kDigits[value & 15U]);
        value >>= 4U;
    } while (value > 0);
    return "0x" + text;
}

std::string describe_mismatch(const Mismatch& mismatch, const Workload& workload) {
    auto text = "rank " + std::to_string(mismatch.rank) + " has " + hexadecimal(mismatch.found) +
                " in element " + std::to_string(mismatch.element) + " of " +
                describe(workload, mismatch.tensor) + " in place of " + hexadecimal(mismatch.expected);
    if (mismatch.wave == program::kNone) {
        return text + "; no operation of its program writes it";
    }
    return text + "; operation " + std::to_string(mismatch.operation) + " of wave " +
           std::to_string(mismatch.wave + 1) + " should have brought it from rank " +
           std::to_string(mismatch.giver);
}

Faults check(const Verification& verification, const Job& job) {
    if (verification.mismatch) {
        return {{ErrorCode::kInfeasible,
                 "not-verified",
                 describe_mismatch(*verification.mismatch, job.schedule->workload()),
                 {}}};
    }
    const auto& members = job.schedule->members();
    std::size_t next = 0;
    for (const auto& record : verification.records) {
        if (next == members.size() || record.rank != members[next] || record.digest != job.schedule->digest()) {
            break;
        }
        ++next;
    }
    if (next != members.size()) {
        return {{ErrorCode::kInfeasible,
                 "no-record",
                 "rank " + std::to_string(members[next]) + " left no record that it is done",
                 {}}};
    }
    return {};
}

/// Medians over the runs, by rank.
std::vector<RankTimes> medians(const std::vector<Iteration>& iterations) {
    std::vector<RankTimes> ranks = iterations.front().ranks;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const auto median = [&](auto&& pick) {
            std::vector<Seconds> times;
            for (const auto& iteration : iterations) {
                times.push_back(pick(iteration.ranks[i]));
            }
            return spread_of(std::move(times)).median;
        };
        ranks[i].seconds = median([](const RankTimes& times) { return times.seconds; });
        for (std::size_t stage = 0; stage < ranks[i].stages.size(); ++stage) {
            ranks[i].stages[stage] = median([&](const RankTimes& times) { return times.stages[stage]; });
        }
    }
    return ranks;
}

std::vector<Spread> stage_spreads(const std::vector<Iteration>& iterations) {
    std::size_t stages = 0;
    for (const auto& rank : iterations.front().ranks) {
        stages = std::max(stages, rank.stages.size());
    }
    std::vector<Spread> spreads;
    for (std::size_t stage = 0; stage < stages; ++stage) {
        std::vector<Seconds> slowest;
        for (const auto& iteration : iterations) {
            Seconds most;
            for (const auto& rank : iteration.ranks) {
                most = std::max(most, rank.stages[stage]);
            }
            slowest.push_back(most);
        }
        spreads.push_back(spread_of(std::move(slowest)));
    }
    return spreads;
}

Result<Measurement> run_all(Transport& transport, const Job& job, const Repeats& repeats) {
    if (auto prepared = transport.prepare(job); !prepared) {
        return Failure{std::move(prepared.error())};
    }
    const auto is_absent = [&](const auto& entry) { return job.schedule->workload().losses().is_absent(entry.rank); };
    std::vector<Iteration> iterations;
    const auto count = repeats.warm_up + repeats.runs;
    std::uint64_t version = 1;
    for (std::uint32_t i = 0; i < count; ++i) {
        // The last run moves values that no run before it has moved.
        if (i == 0 || i + 1 == count) {
            version += i == 0 ? 0 : 1;
            if (auto filled = transport.fill(version); !filled) {
                return Failure{std::move(filled.error())};
            }
        }
        if (i >= repeats.warm_up && repeats.between) {
            if (auto called = repeats.between(); !called) {
                return Failure{std::move(called.error())};
            }
        }
        auto iteration = transport.run();
        if (!iteration) {
            return Failure{std::move(iteration.error())};
        }
        std::erase_if(iteration->ranks, is_absent);
        if (i >= repeats.warm_up) {
            iterations.push_back(std::move(*iteration));
        }
    }
    auto verification = transport.verify(version);
    if (!verification) {
        return Failure{std::move(verification.error())};
    }
    std::erase_if(verification->records, is_absent);
    // In every process: one that does not report must not go on where the one that does gives up.
    if (auto faults = check(*verification, job); !faults.empty()) {
        return fail(std::move(faults));
    }
    Measurement measurement;
    if (transport.reports()) {
        for (const auto& iteration : iterations) {
            measurement.runs.push_back(iteration.seconds);
        }
        measurement.seconds = spread_of(measurement.runs);
        measurement.stages = stage_spreads(iterations);
        measurement.ranks = medians(iterations);
    }
    measurement.elements = verification->elements;
    measurement.records = std::move(verification->records);
    if (auto flipped = transport.flip(); !flipped) {
        return Failure{std::move(flipped.error())};
    }
    return measurement;
}

}  // namespace

Spread spread_of(std::vector<Seconds> times) {
    std::ranges::sort(times);
    const auto at = [&](double share) {
        const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(times.size())));
        return times[std::max<std::size_t>(rank, 1) - 1];
    };
    const auto middle = times.size() / 2;
    const auto median = times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) * 0.5;
    return {times.front(), median, at(0.95), times.back()};
}

Result<Measurement> measure(Transport& transport, const Job& job, const Repeats& repeats) {
    auto measured = run_all(transport, job, repeats);
    if (measured) {
        return measured;
    }
    auto faults = std::move(measured.error());
    const auto& rule = faults.front().rule;
    const bool has_served = rule != "too-little-memory" && rule != "out-of-memory" && rule != "other-plan" &&
                            rule != "other-version";
    if (has_served && !transport.old_weights_stand()) {
        faults.push_back({ErrorCode::kInfeasible,
                          "old-weights-lost",
                          "the weights from before the refit have been touched",
                          {}});
    }
    return fail(std::move(faults));
}

}  // namespace refit::exec
