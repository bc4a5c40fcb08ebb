// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "refit/plan.hpp"

namespace refit::io {

inline constexpr std::string_view kPlanSchema = "refit.plan";
inline constexpr std::string_view kPlanVersion = "1.2";

/// Names in plan files.
inline constexpr std::array<std::pair<StageKind, std::string_view>, 4> kStageNames{{{StageKind::kGather, "gather"},
                                                                                    {StageKind::kBroadcast, "broadcast"},
                                                                                    {StageKind::kTransfer, "transfer"},
                                                                                    {StageKind::kRelay, "relay"}}};
inline constexpr std::array<std::pair<CollectiveRole, std::string_view>, 6> kRoleNames{
    {{CollectiveRole::kPipelineBroadcast, "pipeline-broadcast"},
     {CollectiveRole::kTensorAllGather, "tensor-all-gather"},
     {CollectiveRole::kExpertAllGather, "expert-all-gather"},
     {CollectiveRole::kWeightBroadcast, "weight-broadcast"},
     {CollectiveRole::kReplicaAllGather, "replica-all-gather"},
     {CollectiveRole::kReplicaBroadcast, "replica-broadcast"}}};

/// Hash of a plan document without its member "hash": XXH3, 128 bits, over its CBOR.
[[nodiscard]] std::string plan_hash(const nlohmann::json& document);

}  // namespace refit::io
