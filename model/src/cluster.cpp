// SPDX-License-Identifier: Apache-2.0
#include "refit/cluster.hpp"

#include <stdexcept>
#include <utility>

namespace refit {

std::uint32_t usual_gpus_per_domain(const System& system) noexcept {
    constexpr std::uint32_t kStep = 16;
    const auto size = system.gpus_per_domain;
    return size < kStep ? size : size / kStep * kStep;
}

Cluster::Cluster(System train, System generate, std::uint32_t train_gpus, std::uint32_t generate_gpus, Placement placement)
    : train_{std::move(train)},
      generate_{std::move(generate)},
      train_gpus_{train_gpus},
      generate_gpus_{generate_gpus},
      placement_{placement},
      is_split_{placement.generation_starts_new_domain || train_ != generate_ ||
                placement.train_gpus_per_domain != placement.generate_gpus_per_domain},
      first_generate_domain_{0} {
    if (train_gpus == 0 || generate_gpus == 0 || placement.train_gpus_per_domain == 0 ||
        placement.generate_gpus_per_domain == 0) {
        throw std::logic_error{"Cluster: counts must be positive"};
    }
    first_generate_domain_ = (train_gpus_ - 1) / placement_.train_gpus_per_domain + 1;
}

DomainId Cluster::domain_of(RankId rank) const noexcept {
    if (is_trainer(rank) || !is_split_) {
        return DomainId{rank.index() / placement_.train_gpus_per_domain};
    }
    return DomainId{first_generate_domain_ + (rank.index() - train_gpus_) / placement_.generate_gpus_per_domain};
}

std::uint32_t Cluster::domains() const noexcept { return domain_of(RankId{gpus() - 1}).index() + 1; }

}  // namespace refit
