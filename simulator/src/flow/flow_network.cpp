// SPDX-License-Identifier: Apache-2.0
#include "refit/flow_network.hpp"

#include <limits>
#include <stdexcept>

namespace refit {

std::uint32_t FlowNetwork::add_link(double rate) {
    if (rates_.size() >= std::numeric_limits<std::uint32_t>::max() - 1) {
        throw std::logic_error{"FlowNetwork: more than 2^32 - 2 links"};
    }
    rates_.push_back(rate);
    return static_cast<std::uint32_t>(rates_.size() - 1);
}

std::uint32_t FlowNetwork::add_flow(const Flow& flow,
                                    std::span<const LinkUse> uses,
                                    std::span<const std::uint32_t> after) {
    if (flows_.size() >= std::numeric_limits<std::uint32_t>::max() - 1) {
        throw std::logic_error{"FlowNetwork: more than 2^32 - 2 flows"};
    }
    flows_.push_back(flow);
    uses_.insert(uses_.end(), uses.begin(), uses.end());
    after_.insert(after_.end(), after.begin(), after.end());
    first_use_.push_back(uses_.size());
    first_after_.push_back(after_.size());
    return static_cast<std::uint32_t>(flows_.size() - 1);
}

void FlowNetwork::reserve(std::size_t flows, std::size_t uses, std::size_t dependencies) {
    flows_.reserve(flows);
    first_use_.reserve(flows + 1);
    first_after_.reserve(flows + 1);
    uses_.reserve(uses);
    after_.reserve(dependencies);
}

std::span<const LinkUse> FlowNetwork::uses(std::uint32_t flow) const noexcept {
    return std::span{uses_}.subspan(first_use_[flow], first_use_[flow + 1] - first_use_[flow]);
}

std::span<const std::uint32_t> FlowNetwork::after(std::uint32_t flow) const noexcept {
    return std::span{after_}.subspan(first_after_[flow], first_after_[flow + 1] - first_after_[flow]);
}

}  // namespace refit
