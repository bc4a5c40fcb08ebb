// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "refit/plan.hpp"
#include "refit/result.hpp"
#include "refit/workload.hpp"
#include "region.hpp"

namespace refit::proof {

/// Where in plan and workload something is wrong, as far as it is known.
struct Place {
    std::optional<std::size_t> stage = std::nullopt;
    std::optional<std::uint32_t> parameter = std::nullopt;
    std::optional<std::uint32_t> slice = std::nullopt;
    std::optional<std::uint32_t> rank = std::nullopt;
    std::optional<Region> region = std::nullopt;
};

/// Collects faults in words, up to a number that people still read.
class FaultLog {
public:
    static constexpr std::size_t kMostFaults = 100;

    FaultLog(const Plan& plan, const Workload& workload) : plan_{plan}, workload_{workload} {}

    void add(std::string_view rule, const Place& place, std::string_view what);
    [[nodiscard]] bool is_empty() const noexcept { return faults_.empty(); }
    [[nodiscard]] bool is_full() const noexcept { return faults_.size() >= kMostFaults; }
    [[nodiscard]] Faults take() { return std::move(faults_); }

private:
    const Plan& plan_;
    const Workload& workload_;
    Faults faults_;
};

}  // namespace refit::proof
