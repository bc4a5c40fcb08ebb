// SPDX-License-Identifier: Apache-2.0
#include "fault_log.hpp"

namespace refit::proof {
namespace {

std::string_view name_of(StageKind kind) {
    switch (kind) {
        case StageKind::kGather:
            return "gather";
        case StageKind::kBroadcast:
            return "broadcast";
        case StageKind::kTransfer:
            return "transfer";
        case StageKind::kRelay:
            break;
    }
    return "relay";
}

}  // namespace

void FaultLog::add(std::string_view rule, const Place& place, std::string_view what) {
    if (is_full()) {
        return;
    }
    auto text = std::string{refit::name_of(plan_.method)};
    std::string where;
    if (place.stage) {
        where = "/stages/" + std::to_string(*place.stage);
        text += ", stage " + std::to_string(*place.stage) + " (" +
                std::string{name_of(plan_.stages[*place.stage].kind)} + ")";
    }
    if (place.parameter && *place.parameter < workload_.classes().size()) {
        const auto& entry = workload_.classes()[*place.parameter];
        text += ", class " + std::to_string(*place.parameter) + " '" + entry.parameter.name + "'";
        if (place.slice && *place.slice < entry.slices.size()) {
            const auto& slice = entry.slices[*place.slice];
            text += ", slice " + std::to_string(*place.slice) + " (trainer stage " +
                    std::to_string(slice.train_stage) + " to generator stage " +
                    std::to_string(slice.generate_stage) + ")";
        }
    }
    if (place.rank) {
        text += ", rank " + std::to_string(*place.rank);
    }
    if (place.region) {
        text += ", " + describe(*place.region);
    }
    faults_.push_back({ErrorCode::kInvalidInput, std::string{rule}, text + ": " + std::string{what}, where});
}

}  // namespace refit::proof
