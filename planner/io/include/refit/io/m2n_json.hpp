// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "refit/m2n.hpp"
#include "refit/m2n_limits.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// One record of a file of explicit tensors.
struct M2nRequest {
    std::string name;  ///< May be empty.
    M2nCall call;
    M2nSettings settings;
    bool operator==(const M2nRequest&) const = default;
};

/// The records of a file: one by itself, or a list.
struct M2nRequests {
    std::vector<M2nRequest> entries;
    bool is_list = false;
    bool operator==(const M2nRequests&) const = default;
};

/// A record with its plan, or with the limits that it exceeds.
struct M2nAnswer {
    M2nRequest request;
    std::optional<M2nPlan> plan;
    std::vector<M2nRefusal> refused;  ///< Empty where there is a plan.
};

/// Reads `tensor_shape`, `element_bytes`, `source` and `destination` (`mesh`, `placements`, `start_rank`) and
/// `domain_size`; also `name`, `path` (split, combined, lsa), `balance` (adaptive, uniform, node-aware),
/// `communicator_ranks`, `single_injection` and `staging_bytes` where they are given. Shape and element size
/// may stand in a side instead. Other fields, such as those of an answer, are passed over. `origin` names the
/// source in messages. Errors: kInvalidInput, all of them, with the place of each: "file.json:
/// /3/source/mesh/0".
[[nodiscard]] Result<M2nRequests> read_m2n_requests(const nlohmann::json& json, const std::string& origin);

/// Plans every record.
[[nodiscard]] std::vector<M2nAnswer> answer(const M2nRequests& requests);

/// The record with `inject`, `destinations`, `split_active` or `lsa_active` (where that path was asked for)
/// and `totals`, or with `refused`: the first limit by name and numbers. An injection is [source rank,
/// destination rank, bytes, bytes of a run, runs].
[[nodiscard]] nlohmann::ordered_json to_json(const M2nAnswer& answer);

}  // namespace refit::io
