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
      placement_{placement} {
    if (train_gpus == 0 || generate_gpus == 0 || placement.train_gpus_per_domain == 0 ||
        placement.generate_gpus_per_domain == 0) {
        throw std::logic_error{"Cluster: counts must be positive"};
    }
    const bool is_split = placement.generation_starts_new_domain || train_ != generate_ ||
                          placement.train_gpus_per_domain != placement.generate_gpus_per_domain;
    const auto first_generate_domain = (train_gpus - 1) / placement.train_gpus_per_domain + 1;
    domains_.reserve(std::size_t{train_gpus} + generate_gpus);
    for (std::uint32_t rank = 0; rank < gpus(); ++rank) {
        domains_.emplace_back(rank < train_gpus || !is_split
                                  ? rank / placement.train_gpus_per_domain
                                  : first_generate_domain + (rank - train_gpus) / placement.generate_gpus_per_domain);
    }
}

}  // namespace refit
