// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "refit/plan.hpp"
#include "refit/result.hpp"
#include "refit/scenario.hpp"
#include "refit/workload.hpp"

namespace refit::io {

/// A plan with all that it takes to run or check it: who holds and who wants what, and which ranks share a domain.
/// Invariant (of one that was read): every index is in range; whether the transfers are right, check_plan tells.
struct PlanFile {
    std::string name;  ///< Of the scenario.
    Workload workload;
    Plan plan;
    std::uint32_t train_gpus = 1;
    std::vector<std::uint32_t> domain_starts;  ///< The first rank of each NVLink domain, ascending from 0.
    /// What a scenario file said, and what flags and the environment changed of it: texts by dotted field name, which
    /// resolve to the same scenario again. Empty for plans that were made from no scenario.
    std::map<std::string, std::string> scenario = {};
    std::map<std::string, std::string> changes = {};

    [[nodiscard]] std::uint32_t gpus() const { return train_gpus + static_cast<std::uint32_t>(workload.generator_bytes().size()); }
};

enum class PlanEncoding : std::uint8_t { kJson, kCbor };

/// The first rank of each domain of a cluster.
[[nodiscard]] std::vector<std::uint32_t> domain_starts(const Cluster& cluster);

/// Whether a scenario, with its workload, asks for just what a plan file moves, between the same ranks in the same
/// domains.
[[nodiscard]] bool is_same_job(const PlanFile& file, const Scenario& scenario, const Workload& workload);

/// The file's bytes, form refit.plan 1.2, as data/schema/plan.json describes it: the same plan gives the same bytes.
/// Both encodings hold the same document and hash.
[[nodiscard]] std::string write_plan(const PlanFile& file, PlanEncoding encoding);

/// The same, written piece by piece: nothing is built that grows with the plan's hops.
void write_plan(const PlanFile& file, PlanEncoding encoding, std::ostream& stream);

/// Reads either encoding. `origin` names the source in messages.
/// Errors: kInvalidInput with the place, all at once, where the text is cut off or no JSON or CBOR, the schema is
/// another or of a newer major version, the hash differs, or a member is missing, of another type or out of range.
[[nodiscard]] Result<PlanFile> read_plan(std::string_view bytes, const std::string& origin);
/// The same of a document that is parsed already.
[[nodiscard]] Result<PlanFile> plan_from_json(nlohmann::json document, const std::string& origin);

}  // namespace refit::io
