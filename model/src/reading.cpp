// SPDX-License-Identifier: Apache-2.0
#include "refit/reading.hpp"

#include <algorithm>

namespace refit {
namespace {

/// The chosen value alone, or all of them.
template <class Value>
std::vector<Value> left_open(const std::optional<Value>& chosen, std::vector<Value> all) {
    return chosen ? std::vector{*chosen} : std::move(all);
}

}  // namespace

Reading ReadingChoice::usual() const noexcept {
    const Reading defaults;
    return {finalize.value_or(defaults.finalize),
            bulk_cost.value_or(defaults.bulk_cost),
            replica_ring.value_or(defaults.replica_ring)};
}

std::vector<Reading> ReadingChoice::all() const {
    std::vector<Reading> readings;
    for (const auto ring :
         left_open(replica_ring, {ReplicaRingReading::kOneNic, ReplicaRingReading::kEveryNic})) {
        for (const auto last : left_open(finalize,
                                         {FinalizeReading::kPerExpert,
                                          FinalizeReading::kSlowAllGather,
                                          FinalizeReading::kPerLocalByte})) {
            for (const auto cost : left_open(bulk_cost,
                                             {BulkCostReading::kPerParameter,
                                              BulkCostReading::kFloor,
                                              BulkCostReading::kPerExpert})) {
                const bool is_fitted_together =
                    ring == ReplicaRingReading::kOneNic || cost == BulkCostReading::kPerParameter;
                if (cost == BulkCostReading::kFloor && !is_floor_open && !bulk_cost) {
                    continue;
                }
                if (is_fitted_together || replica_ring || bulk_cost) {
                    readings.push_back({last, cost, ring});
                }
            }
        }
    }
    return readings;
}

std::string_view name_of(FinalizeReading reading) noexcept {
    switch (reading) {
        case FinalizeReading::kSlowAllGather:
            return "slow-all-gather";
        case FinalizeReading::kPerLocalByte:
            return "per-local-byte";
        case FinalizeReading::kPerExpert:
            break;
    }
    return "per-expert";
}

std::string_view name_of(BulkCostReading reading) noexcept {
    switch (reading) {
        case BulkCostReading::kFloor:
            return "floor";
        case BulkCostReading::kPerExpert:
            return "per-expert";
        case BulkCostReading::kPerParameter:
            break;
    }
    return "per-parameter";
}

std::string_view name_of(ReplicaRingReading reading) noexcept {
    return reading == ReplicaRingReading::kEveryNic ? "every-nic" : "one-nic";
}

}  // namespace refit
