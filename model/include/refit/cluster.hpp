// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "refit/fabric_settings.hpp"
#include "refit/losses.hpp"
#include "refit/strong_id.hpp"
#include "refit/system.hpp"

namespace refit {

/// How ranks are laid onto NVLink domains.
struct Placement {
    std::uint32_t train_gpus_per_domain = 1;     ///< Used of each trainer domain. Range: 1 to the domain's size.
    std::uint32_t generate_gpus_per_domain = 1;  ///< Used of each generator domain.
    bool generation_starts_new_domain = true;    ///< Else the generators go on where the trainers end.
    bool operator==(const Placement&) const = default;
};

/// GPUs of a domain that jobs use unless told otherwise: the largest multiple of 16 that fits, or all of a domain
/// below 16. The published GB200 timings fit with 64 of 72, not with 72 (docs/cost_model.md).
[[nodiscard]] std::uint32_t usual_gpus_per_domain(const System& system) noexcept;

/// The ranks of a job on their GPUs: trainers 0 to train_gpus - 1, then generators, one rank a GPU, one NIC set a GPU.
/// Invariant: generators share no domain with trainers where the systems differ.
class Cluster {
public:
    /// Pre: GPU counts and the placement's counts are positive; NICs that fall short are those of ranks of the job.
    Cluster(System train, System generate, std::uint32_t train_gpus, std::uint32_t generate_gpus, Placement placement,
            FabricSettings fabric = {});

    /// The same GPUs, of which some take no part. Pre: ranks of the job.
    [[nodiscard]] Cluster without(Losses losses) const;
    [[nodiscard]] const Losses& losses() const noexcept { return losses_; }
    /// Those that take part.
    [[nodiscard]] std::uint32_t active_trainers() const noexcept;
    [[nodiscard]] std::uint32_t active_gpus() const noexcept {
        return gpus() - static_cast<std::uint32_t>(losses_.lost.size() + losses_.idle.size());
    }

    [[nodiscard]] std::uint32_t train_gpus() const noexcept { return train_gpus_; }
    [[nodiscard]] std::uint32_t generate_gpus() const noexcept { return generate_gpus_; }
    [[nodiscard]] std::uint32_t gpus() const noexcept { return train_gpus_ + generate_gpus_; }
    [[nodiscard]] const System& train_system() const noexcept { return train_; }
    [[nodiscard]] const System& generate_system() const noexcept { return generate_; }
    [[nodiscard]] const Placement& placement() const noexcept { return placement_; }
    [[nodiscard]] const FabricSettings& fabric() const noexcept { return fabric_; }
    [[nodiscard]] RankId trainer(std::uint32_t index) const noexcept { return RankId{index}; }
    [[nodiscard]] RankId generator(std::uint32_t index) const noexcept { return RankId{train_gpus_ + index}; }
    [[nodiscard]] bool is_trainer(RankId rank) const noexcept { return rank.index() < train_gpus_; }
    [[nodiscard]] const System& system_of(RankId rank) const noexcept { return is_trainer(rank) ? train_ : generate_; }
    /// Pre: `rank` is one of the job's.
    [[nodiscard]] DomainId domain_of(RankId rank) const noexcept { return domains_[rank.index()]; }
    [[nodiscard]] std::uint32_t domains() const noexcept { return domains_.back().index() + 1; }
    /// The part of its line rate that a rank's NICs reach; 1 for healthy ones, 0 where they are down or the
    /// rank takes no part.
    [[nodiscard]] double nic_share(RankId rank) const;
    /// The rail of a rank's NICs: the place of its GPU in its node. Invariant: domains begin with a node.
    [[nodiscard]] std::uint32_t rail_of(RankId rank) const;
    /// The group of leaf switches of a domain; 0 where the network is one.
    [[nodiscard]] std::uint32_t pod_of(DomainId domain) const noexcept {
        return fabric_.domains_per_pod == 0 ? 0 : domain.index() / fabric_.domains_per_pod;
    }
    [[nodiscard]] std::uint32_t pods() const noexcept { return pod_of(domains_.back()) + 1; }

private:
    System train_;
    System generate_;
    std::uint32_t train_gpus_;
    std::uint32_t generate_gpus_;
    Placement placement_;
    FabricSettings fabric_;
    Losses losses_;
    std::vector<DomainId> domains_;  ///< By rank: asked for at every hop.
};

}  // namespace refit
