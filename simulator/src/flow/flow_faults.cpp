// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "refit/flow_network.hpp"

namespace refit {
namespace {

/// So many faults are told one by one; of the rest, how many.
constexpr std::size_t kMaxFaults = 100;

class FaultList {
public:
    void add(std::string rule, std::string message, std::string where) {
        if (faults_.size() < kMaxFaults) {
            faults_.push_back(
                {ErrorCode::kInvalidInput, std::move(rule), std::move(message), std::move(where)});
        } else {
            ++untold_;
        }
    }

    [[nodiscard]] Faults take() {
        if (untold_ != 0) {
            faults_.push_back(
                {ErrorCode::kInvalidInput, "more-faults", std::to_string(untold_) + " more faults", {}});
        }
        return std::move(faults_);
    }

private:
    Faults faults_;
    std::size_t untold_ = 0;
};

std::string text_of(double value) {
    std::ostringstream text;
    text.precision(17);
    text << value;
    return text.str();
}

bool is_positive(double value) {
    return value > 0.0 && std::isfinite(value);
}
bool is_time(double value) {
    return value >= 0.0 && std::isfinite(value);
}

void check_numbers(const Flow& flow, const std::string& where, FaultList& faults) {
    const auto refuse = [&](const char* rule, const char* what, double value, const char* range) {
        faults.add(rule, std::string{what} + " = " + text_of(value) + " is not " + range, where);
    };
    if (!is_time(flow.bytes)) {
        refuse("flow-bytes", "bytes", flow.bytes, "0 or more and finite");
    }
    if (!is_positive(flow.weight)) {
        refuse("flow-weight", "weight", flow.weight, "above 0 and finite");
    }
    if (!(flow.rate_cap > 0.0)) {  // also NaN; infinity is no cap
        refuse("flow-cap", "rate cap", flow.rate_cap, "above 0");
    }
    if (!is_time(flow.earliest.value())) {
        refuse("flow-time", "earliest", flow.earliest.value(), "0 or more and finite");
    }
    if (!is_time(flow.latency.value())) {
        refuse("flow-time", "latency", flow.latency.value(), "0 or more and finite");
    }
}

void check_uses(const FlowNetwork& network,
                std::uint32_t number,
                const std::string& where,
                FaultList& faults) {
    const auto uses = network.uses(number);
    if (uses.empty() && std::isinf(network.flow(number).rate_cap)) {
        faults.add("flow-path", "the flow has neither a link nor a rate cap", where);
    }
    std::vector<std::uint32_t> links;
    for (const auto& use : uses) {
        links.push_back(use.link);
        if (use.link >= network.links()) {
            faults.add("flow-link", "link " + std::to_string(use.link) + " does not exist", where);
        }
        if (!is_positive(use.per_byte)) {
            faults.add("flow-use",
                       "link " + std::to_string(use.link) + " is used " + text_of(use.per_byte) +
                           " times a byte, which is not above 0 and finite",
                       where);
        }
    }
    std::sort(links.begin(), links.end());
    for (auto twice = links.begin(); (twice = std::adjacent_find(twice, links.end())) != links.end();
         twice = std::upper_bound(twice, links.end(), *twice)) {
        faults.add("flow-link", "link " + std::to_string(*twice) + " is named twice", where);
    }
}

/// Whether the flow may have faults: cheap, since most networks have none.
bool is_suspect(const FlowNetwork& network, std::uint32_t number) {
    const auto& flow = network.flow(number);
    const auto uses = network.uses(number);
    bool is_fine = is_time(flow.bytes) && is_positive(flow.weight) && flow.rate_cap > 0.0 &&
                   is_time(flow.earliest.value()) && is_time(flow.latency.value()) && !uses.empty() &&
                   uses.size() <= 2 && (uses.size() == 1 || uses.front().link != uses.back().link);
    for (const auto& use : uses) {
        is_fine = is_fine && use.link < network.links() && is_positive(use.per_byte);
    }
    return !is_fine;
}

void check_changes(const FlowNetwork& network, FaultList& faults) {
    for (std::size_t i = 0; i < network.changes().size(); ++i) {
        const auto& change = network.changes()[i];
        const auto where = "change " + std::to_string(i);
        if (change.link >= network.links()) {
            faults.add("change-link", "link " + std::to_string(change.link) + " does not exist", where);
        }
        if (!is_time(change.at.value())) {
            faults.add("change-time",
                       "time = " + text_of(change.at.value()) + " is not 0 or more and finite",
                       where);
        }
        if (change.rate && !is_positive(*change.rate)) {
            faults.add(
                "change-rate", "rate = " + text_of(*change.rate) + " is not above 0 and finite", where);
        }
    }
}

/// The flows that are over once each flow that follows only such flows is; the others wait for each other, or
/// for one that does.
std::vector<std::uint32_t> unmet(const FlowNetwork& network) {
    std::vector<std::uint32_t> waits(network.flows(), 0);
    std::vector<std::uint64_t> first(network.flows() + 1, 0);
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        for (const auto before : network.after(flow)) {
            ++first[before + 1];
            ++waits[flow];
        }
    }
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        first[flow + 1] += first[flow];
    }
    std::vector<std::uint32_t> followers(first.back());
    auto next = first;
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        for (const auto before : network.after(flow)) {
            followers[next[before]++] = flow;
        }
    }
    std::vector<std::uint32_t> met;
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        if (waits[flow] == 0) {
            met.push_back(flow);
        }
    }
    for (std::size_t i = 0; i < met.size(); ++i) {
        for (auto j = first[met[i]]; j < first[met[i] + 1]; ++j) {
            if (--waits[followers[j]] == 0) {
                met.push_back(followers[j]);
            }
        }
    }
    return waits;
}

/// Pre: every flow that another names exists.
/// Flows that all follow earlier ones cannot wait for each other.
bool is_in_order(const FlowNetwork& network) {
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        for (const auto before : network.after(flow)) {
            if (before >= flow) {
                return false;
            }
        }
    }
    return true;
}

void check_order(const FlowNetwork& network, FaultList& faults) {
    if (is_in_order(network)) {
        return;
    }
    const auto waits = unmet(network);
    std::vector<std::uint8_t> is_seen(network.flows(), 0);
    for (std::uint32_t start = 0; start < network.flows(); ++start) {
        // From a flow that waits, over flows that wait, to a flow seen on this walk: a cycle.
        std::vector<std::uint32_t> walk;
        auto flow = start;
        while (waits[flow] != 0 && is_seen[flow] == 0) {
            is_seen[flow] = 1;
            walk.push_back(flow);
            for (const auto before : network.after(flow)) {
                if (waits[before] != 0) {
                    flow = before;
                    break;
                }
            }
        }
        std::size_t first = 0;
        while (first < walk.size() && walk[first] != flow) {
            ++first;
        }
        if (first == walk.size()) {
            continue;
        }
        std::string cycle;
        for (auto i = first; i < walk.size() && i < first + 8; ++i) {
            cycle += std::to_string(walk[i]) + " after ";
        }
        cycle += walk.size() > first + 8 ? "... after " + std::to_string(flow) : std::to_string(flow);
        faults.add("flow-cycle", "flows wait for each other: " + cycle, "flow " + std::to_string(flow));
    }
}

}  // namespace

Faults FlowNetwork::faults() const {
    FaultList faults;
    for (std::uint32_t link = 0; link < links(); ++link) {
        if (!is_positive(rates_[link])) {
            faults.add("link-rate",
                       "rate = " + text_of(rates_[link]) + " is not above 0 and finite",
                       "link " + std::to_string(link));
        }
    }
    bool names_flows = true;
    for (std::uint32_t number = 0; number < flows(); ++number) {
        if (is_suspect(*this, number)) {
            const auto where = "flow " + std::to_string(number);
            check_numbers(flows_[number], where, faults);
            check_uses(*this, number, where, faults);
        }
        for (const auto before : after(number)) {
            if (before >= flows()) {
                const auto place = "flow " + std::to_string(number);
                faults.add("flow-after", "flow " + std::to_string(before) + " does not exist", place);
                names_flows = false;
            }
        }
    }
    check_changes(*this, faults);
    if (names_flows && !after_.empty()) {
        check_order(*this, faults);
    }
    return faults.take();
}

}  // namespace refit
