// SPDX-License-Identifier: Apache-2.0
#include "refit/cluster.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace refit {

std::uint32_t usual_gpus_per_domain(const System& system) noexcept {
    constexpr std::uint32_t kStep = 16;
    const auto size = system.gpus_per_domain;
    return size < kStep ? size : size / kStep * kStep;
}

Cluster::Cluster(System train, System generate, std::uint32_t train_gpus, std::uint32_t generate_gpus, Placement placement,
                 FabricSettings fabric)
    : train_{std::move(train)},
      generate_{std::move(generate)},
      train_gpus_{train_gpus},
      generate_gpus_{generate_gpus},
      placement_{placement},
      fabric_{std::move(fabric)} {
    if (train_gpus == 0 || generate_gpus == 0 || placement.train_gpus_per_domain == 0 ||
        placement.generate_gpus_per_domain == 0) {
        throw std::logic_error{"Cluster: counts must be positive"};
    }
    if (fabric_.oversubscription < 1.0 || (!fabric_.nics.empty() && fabric_.nics.rbegin()->first >= gpus())) {
        throw std::logic_error{"Cluster: a fabric of ranks of the job, with uplinks that its NICs can fill"};
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

Cluster Cluster::without(Losses losses) const {
    auto rest = *this;
    rest.losses_ = std::move(losses);
    return rest;
}

std::uint32_t Cluster::active_trainers() const noexcept {
    const auto lost = std::ranges::lower_bound(losses_.lost, train_gpus_) - losses_.lost.begin();
    return train_gpus_ - static_cast<std::uint32_t>(lost);
}

double Cluster::nic_share(RankId rank) const {
    if (losses_.is_absent(rank.index())) {
        return 0.0;
    }
    const auto found = fabric_.nics.find(rank.index());
    if (found == fabric_.nics.end()) {
        return 1.0;
    }
    const auto& rate = found->second;
    return rate ? std::min(1.0, rate->bytes_per_second() / system_of(rank).nic_per_gpu().bytes_per_second()) : 0.0;
}

std::uint32_t Cluster::rail_of(RankId rank) const {
    const auto first = std::ranges::lower_bound(domains_, domain_of(rank)) - domains_.begin();
    return (rank.index() - static_cast<std::uint32_t>(first)) % system_of(rank).gpus_per_node;
}

}  // namespace refit
