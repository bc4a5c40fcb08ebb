// SPDX-License-Identifier: Apache-2.0
#include "refit/flow_network.hpp"

#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

namespace refit {
namespace {
constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
}

std::uint32_t FlowNetwork::add_link(double rate) {
    if (rates_.size() >= kMost) {
        throw std::logic_error{"FlowNetwork: more than 2^32 - 2 links"};
    }
    rates_.push_back(rate);
    return static_cast<std::uint32_t>(rates_.size() - 1);
}

std::uint32_t FlowNetwork::add_way(std::span<const LinkUse> uses) {
    share_ways();
    return append_way(uses);
}

void FlowNetwork::share_ways() {
    if (!are_ways_shared_) {
        are_ways_shared_ = true;
        way_of_.resize(flows_.size());
        std::iota(way_of_.begin(), way_of_.end(), 0U);
    }
}

std::uint32_t FlowNetwork::append_way(std::span<const LinkUse> uses) {
    if (uses_.size() + uses.size() > kMost || first_use_.size() > kMost) {
        throw std::logic_error{"FlowNetwork: more than 2^32 - 2 uses of links"};
    }
    uses_.insert(uses_.end(), uses.begin(), uses.end());
    first_use_.push_back(static_cast<std::uint32_t>(uses_.size()));
    return ways() - 1;
}

std::uint32_t FlowNetwork::add_flow(const Flow& flow,
                                    std::span<const LinkUse> uses,
                                    std::span<const std::uint32_t> after) {
    return append_flow(append_way(uses), flow, after);
}

std::uint32_t FlowNetwork::add_flow_on(std::uint32_t way,
                                       const Flow& flow,
                                       std::span<const std::uint32_t> after) {
    if (way >= ways()) {
        throw std::logic_error{"FlowNetwork: way " + std::to_string(way) + " does not exist"};
    }
    share_ways();
    return append_flow(way, flow, after);
}

std::uint32_t FlowNetwork::append_flow(std::uint32_t way,
                                       const Flow& flow,
                                       std::span<const std::uint32_t> after) {
    const auto uses = all_uses_ + std::uint64_t{this->way(way).size()};
    if (flows_.size() >= kMost || uses > kMost || after_.size() + after.size() > kMost) {
        throw std::logic_error{"FlowNetwork: more than 2^32 - 2 flows, uses of links, or flows to follow"};
    }
    all_uses_ = static_cast<std::uint32_t>(uses);
    if (are_ways_shared_) {
        way_of_.push_back(way);
    }
    flows_.push_back(flow);
    if (first_after_.empty() && !after.empty()) {
        first_after_.reserve(flows_.capacity() + 1);
        first_after_.resize(flows_.size(), 0);
    }
    after_.insert(after_.end(), after.begin(), after.end());
    if (!first_after_.empty()) {
        first_after_.push_back(static_cast<std::uint32_t>(after_.size()));
    }
    return static_cast<std::uint32_t>(flows_.size() - 1);
}

void FlowNetwork::reserve(std::size_t flows, std::size_t uses, std::size_t dependencies) {
    flows_.reserve(flows);
    first_use_.reserve(flows + 1);
    uses_.reserve(uses);
    after_.reserve(dependencies);
}

std::span<const std::uint32_t> FlowNetwork::after(std::uint32_t flow) const noexcept {
    if (first_after_.empty()) {
        return {};
    }
    return {after_.data() + first_after_[flow], after_.data() + first_after_[flow + 1]};
}

}  // namespace refit
