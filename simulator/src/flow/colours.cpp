// SPDX-License-Identifier: Apache-2.0
#include "colours.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "../colour.hpp"

namespace refit::flow {
namespace {

Colour mix(Colour value) noexcept {
    return mixed(value);
}
Colour mix(Colour colour, Colour with) noexcept {
    return mix(colour ^ (mix(with) + (colour << 6U)));
}
Colour bits_of(double value) noexcept {
    return std::bit_cast<Colour>(value);
}

/// Numbers colours in the order in which they come.
class Numbering {
public:
    explicit Numbering(std::size_t most) : most_{most}, table_(1024, kNone), mask_{table_.size() - 1} {}

    /// Nothing where there would be more than `most`.
    std::optional<std::uint32_t> number(Colour colour) {
        auto place = colour & mask_;
        while (table_[place] != kNone) {
            if (colours_[table_[place]] == colour) {
                return table_[place];
            }
            place = (place + 1) & mask_;
        }
        if (colours_.size() == most_) {
            return std::nullopt;
        }
        table_[place] = static_cast<std::uint32_t>(colours_.size());
        colours_.push_back(colour);
        if (2 * colours_.size() > table_.size()) {
            grow();
        }
        return static_cast<std::uint32_t>(colours_.size() - 1);
    }

private:
    static constexpr std::uint32_t kNone = 0xffffffff;

    void grow() {
        table_.assign(4 * table_.size(), kNone);
        mask_ = table_.size() - 1;
        for (std::uint32_t i = 0; i < colours_.size(); ++i) {
            auto place = colours_[i] & mask_;
            while (table_[place] != kNone) {
                place = (place + 1) & mask_;
            }
            table_[place] = i;
        }
    }

    std::size_t most_;
    std::vector<std::uint32_t> table_;
    std::size_t mask_;
    std::vector<Colour> colours_;
};

std::optional<Classes> number_all(const std::vector<Colour>& colours, std::size_t most) {
    Classes classes;
    classes.of.resize(colours.size());
    Numbering numbering{most};
    for (std::uint32_t i = 0; i < colours.size(); ++i) {
        const auto number = numbering.number(colours[i]);
        if (!number) {
            return std::nullopt;
        }
        classes.of[i] = *number;
        if (*number == classes.first.size()) {
            classes.first.push_back(i);
        }
    }
    return classes;
}

std::vector<Colour> own_flow_colours(const FlowNetwork& network) {
    std::vector<Colour> colours(network.flows());
    for (std::uint32_t number = 0; number < network.flows(); ++number) {
        const auto& flow = network.flow(number);
        auto colour = mix(bits_of(flow.bytes), network.uses(number).size());
        colour = mix(colour, network.after(number).size());
        if (flow.weight != 1.0 || flow.rate_cap != Flow{}.rate_cap) {
            colour = mix(mix(colour, bits_of(flow.weight)), bits_of(flow.rate_cap));
        }
        if (flow.earliest != Seconds{} || flow.latency != Seconds{}) {
            colour = mix(mix(colour + 1, bits_of(flow.earliest.value())), bits_of(flow.latency.value()));
        }
        colours[number] = colour;
    }
    return colours;
}

std::vector<Colour> own_link_colours(const FlowNetwork& network) {
    std::vector<Colour> colours(network.links());
    for (std::uint32_t link = 0; link < network.links(); ++link) {
        colours[link] = mix(bits_of(network.rate(link)));
    }
    for (const auto& change : network.changes()) {
        auto& colour = colours[change.link];
        colour = mix(mix(colour, bits_of(change.at.value())), bits_of(change.rate.value_or(-1.0)));
    }
    return colours;
}

/// One round of refinement. Returns false where it was cancelled.
class Refiner {
public:
    Refiner(const FlowNetwork& network, const std::function<bool()>& is_cancelled)
        : network_{network},
          is_cancelled_{is_cancelled},
          flows{own_flow_colours(network)},
          links{own_link_colours(network)} {}

    [[nodiscard]] bool refine() {
        std::vector<Colour> sums(network_.links());
        for (std::uint32_t flow = 0; flow < network_.flows(); ++flow) {
            if (is_to_stop(flow)) {
                return false;
            }
            const auto colour = mix(flows[flow]);
            for (const auto& use : network_.uses(flow)) {
                sums[use.link] += of_use(colour, use.per_byte);
            }
        }
        for (std::uint32_t link = 0; link < network_.links(); ++link) {
            links[link] = mix(links[link], sums[link]);
        }
        for (std::uint32_t flow = 0; flow < network_.flows(); ++flow) {
            if (is_to_stop(flow)) {
                return false;
            }
            Colour sum = 0;
            for (const auto& use : network_.uses(flow)) {
                sum += of_use(links[use.link], use.per_byte);
            }
            // Flows follow earlier ones as a rule, whose colours are of this round already: a chain takes one
            // round.
            for (const auto before : network_.after(flow)) {
                sum += mix(flows[before] + 1);
            }
            flows[flow] = mix(flows[flow], sum);
        }
        return true;
    }

private:
    [[nodiscard]] bool is_to_stop(std::uint32_t flow) const {
        return flow % 65536 == 0 && is_cancelled_ && is_cancelled_();
    }
    static Colour of_use(Colour colour, double per_byte) noexcept {
        return per_byte == 1.0 ? colour : mix(colour, bits_of(per_byte));
    }

    const FlowNetwork& network_;
    const std::function<bool()>& is_cancelled_;

public:
    std::vector<Colour> flows;
    std::vector<Colour> links;
};

bool is_alike(const Flow& a, const Flow& b) {
    return a.bytes == b.bytes && a.weight == b.weight && a.rate_cap == b.rate_cap &&
           a.earliest == b.earliest && a.latency == b.latency;
}

/// Compares each flow with the first of its class.
class FlowCheck {
public:
    FlowCheck(const FlowNetwork& network, const AlikeClasses& classes)
        : network_{network}, classes_{classes} {}

    [[nodiscard]] bool holds() {
        for (std::uint32_t flow = 0; flow < network_.flows(); ++flow) {
            const auto first = classes_.flows.first[classes_.flows.of[flow]];
            if (flow != first &&
                !(is_alike(network_.flow(flow), network_.flow(first)) && has_same_touch(flow, first))) {
                return false;
            }
        }
        return true;
    }

private:
    using Touch = std::pair<std::uint32_t, double>;

    [[nodiscard]] bool has_same_touch(std::uint32_t a, std::uint32_t b) {
        collect(a, mine_);
        collect(b, theirs_);
        return mine_ == theirs_;
    }
    /// The classes that the flow touches, in order; those of flows that it follows with a use of -1.
    void collect(std::uint32_t flow, std::vector<Touch>& touched) const {
        touched.clear();
        for (const auto& use : network_.uses(flow)) {
            touched.emplace_back(classes_.links.of[use.link], use.per_byte);
        }
        for (const auto before : network_.after(flow)) {
            touched.emplace_back(classes_.flows.of[before], -1.0);
        }
        if (touched.size() == 2) {
            if (touched[1] < touched[0]) {
                std::swap(touched[0], touched[1]);
            }
        } else {
            std::sort(touched.begin(), touched.end());
        }
    }

    const FlowNetwork& network_;
    const AlikeClasses& classes_;
    std::vector<Touch> mine_;
    std::vector<Touch> theirs_;
};

/// Compares each link with the first of its class: rate and changes, and a fingerprint of the flows that use
/// it.
bool has_alike_links(const FlowNetwork& network, const AlikeClasses& classes) {
    std::vector<Colour> prints(network.links());
    constexpr Colour kOther = 0x2545f4914f6cdd1dULL;  // unlike the colours of the refinement
    for (std::uint32_t flow = 0; flow < network.flows(); ++flow) {
        const auto print = mix(kOther * (classes.flows.of[flow] + 1));
        for (const auto& use : network.uses(flow)) {
            prints[use.link] += mix(print, bits_of(use.per_byte));
        }
    }
    const auto own = own_link_colours(network);
    for (std::uint32_t link = 0; link < network.links(); ++link) {
        const auto first = classes.links.first[classes.links.of[link]];
        if (prints[link] != prints[first] || own[link] != own[first] ||
            network.rate(link) != network.rate(first)) {
            return false;
        }
    }
    return true;
}

}  // namespace

std::optional<AlikeClasses> find_alike(const FlowNetwork& network,
                                       std::size_t most,
                                       const std::function<bool()>& is_cancelled) {
    Refiner refiner{network, is_cancelled};
    std::size_t before = 0;
    while (true) {
        auto flows = number_all(refiner.flows, most);
        if (!flows) {
            return std::nullopt;
        }
        auto links = number_all(refiner.links, network.links());
        const auto count = flows->first.size() + links->first.size();
        if (count == before) {
            AlikeClasses classes{std::move(*flows), std::move(*links)};
            if (!FlowCheck{network, classes}.holds() || !has_alike_links(network, classes)) {
                return std::nullopt;
            }
            return classes;
        }
        before = count;
        if (!refiner.refine()) {
            return std::nullopt;
        }
    }
}

}  // namespace refit::flow
