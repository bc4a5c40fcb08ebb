// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "refit/result.hpp"
#include "refit/units.hpp"

namespace refit {

/// How NCCL M2N moves the bytes of a call.
enum class M2nPath : std::uint8_t {
    kSplit,     ///< Two communicators: injection on the first, ring and fan-out on the second. M2N's default.
    kCombined,  ///< One communicator for all of it.
    kLsa,       ///< Every source writes to every replica over NVLink: only where all ranks share a domain.
};

/// How source replicas are matched with destination replicas.
enum class M2nBalance : std::uint8_t {
    kAdaptive,   ///< Node-aware with split communicators or in large communicators, else uniform. M2N's
                 ///< default.
    kUniform,    ///< Equal shares of the destination replicas.
    kNodeAware,  ///< One source replica for all destination replicas of an NVLink domain.
};

/// What the environment of an M2N call decides. Defaults are those of NCCL M2N 0.2.
/// Source: nccl_m2n/README.md and m2n_config.cc (the names after each).
struct M2nSettings {
    M2nPath path =
        M2nPath::kSplit;  ///< NCCL_RESHARD_SPLIT_COMM; kLsa says that one NVLink domain holds all ranks.
    M2nBalance balance = M2nBalance::kAdaptive;  ///< NCCL_RESHARD_LB_MODE.
    std::uint32_t domain_size = 8;               ///< Ranks of an NVLink domain on the destination side.
    std::uint32_t large_communicator = 200;  ///< NCCL_RESHARD_SPLIT_AUTO_PARENT_THRESHOLD: above it is large.
    std::optional<bool>
        single_injection;        ///< NCCL_RESHARD_SPLIT_SINGLE_REP_INJECT; absent: in large communicators.
    Bytes staging{2ULL << 30U};  ///< Largest bucket of NCCL_RESHARD_PACK_BUFFSIZES.
    bool operator==(const M2nSettings&) const = default;
};

/// "split", "combined", "lsa".
[[nodiscard]] std::string_view name_of(M2nPath path) noexcept;
/// Errors: kInvalidInput naming the nearest.
[[nodiscard]] Result<M2nPath> parse_m2n_path(std::string_view text);

/// "adaptive", "uniform", "node-aware".
[[nodiscard]] std::string_view name_of(M2nBalance balance) noexcept;
/// Errors: kInvalidInput naming the nearest.
[[nodiscard]] Result<M2nBalance> parse_m2n_balance(std::string_view text);

}  // namespace refit
