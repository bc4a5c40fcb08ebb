// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/posting.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "region_reuse.hpp"

namespace refit::exec {
namespace {

using program::Operation;
using program::RankProgram;

/// What a group did to a box of a region.
struct GroupTouch {
    std::uint32_t group = 0;
    const Box* box = nullptr;
    bool changes = false;
};

/// The operations of a wave by communicator.
void add_wave(const RankProgram& program,
              std::uint32_t wave,
              std::span<const std::uint32_t> domains,
              std::vector<PostedGroup>& groups) {
    const auto& operations = program.waves[wave].operations;
    const auto first = groups.size();
    for (std::uint32_t index = 0; index < operations.size(); ++index) {
        const Operation& operation = operations[index];
        if (operation.bytes == 0) {
            continue;
        }
        const bool is_inside = !domains.empty() && !operation.is_collective() &&
                               domains[operation.peer] == domains[program.rank];
        const Channel channel = operation.is_collective() ? Channel::kCollective
                                : is_inside               ? Channel::kDomain
                                                          : Channel::kAll;
        const auto found = std::find_if(
            groups.begin() + static_cast<std::ptrdiff_t>(first), groups.end(), [&](const PostedGroup& group) {
                return group.channel == channel && group.group == operation.group;
            });
        if (found != groups.end()) {
            found->operations.push_back(index);
        } else {
            groups.push_back({wave, channel, operation.group, {index}, {}, 0});
        }
    }
    // All members of a collective's group have all its operations, so they agree on which is its first.
    std::stable_sort(
        groups.begin() + static_cast<std::ptrdiff_t>(first),
        groups.end(),
        [](const PostedGroup& one, const PostedGroup& other) { return one.channel < other.channel; });
}

class Needs {
public:
    explicit Needs(const RankProgram& program)
        : program_{program}, before_{waves_before(program)}, touches_(program.regions.size()) {}

    void find(std::vector<PostedGroup>& groups) {
        for (std::uint32_t index = 0; index < groups.size(); ++index) {
            PostedGroup& group = groups[index];
            latest_ = {};
            std::uint32_t waves = 0;
            for (const auto place : group.operations) {
                const auto& operation = program_.waves[group.wave].operations[place];
                for (const auto& landing : operation.landings) {
                    touch(groups, index, operation, landing);
                    waves = std::max(waves, before_[landing.region]);
                }
            }
            for (std::uint32_t earlier = 0; earlier < index && groups[earlier].wave < waves; ++earlier) {
                need(groups, earlier);
            }
            auto& own = of_channel_[static_cast<std::size_t>(group.channel)];
            group.slot = static_cast<std::uint32_t>(own.size()) % kSlots;
            if (own.size() >= kSlots) {
                need(groups, own[own.size() - kSlots]);
            }
            own.push_back(index);
            for (const auto one : latest_) {
                if (one != program::kNone) {
                    group.after.push_back(one);
                }
            }
            std::ranges::sort(group.after);
        }
    }

private:
    void touch(const std::vector<PostedGroup>& groups,
               std::uint32_t index,
               const Operation& operation,
               const program::Landing& landing) {
        if (program_.regions[landing.region].arena == program::Arena::kSource) {
            return;
        }
        const GroupTouch own{index, &landing.box, !operation.gives(operation.parts[landing.part])};
        for (const auto& other : touches_[landing.region]) {
            if (other.group != index && (own.changes || other.changes) &&
                intersection(*other.box, *own.box)) {
                need(groups, other.group);
            }
        }
        touches_[landing.region].push_back(own);
    }

    void need(const std::vector<PostedGroup>& groups, std::uint32_t earlier) {
        auto& latest = latest_[static_cast<std::size_t>(groups[earlier].channel)];
        latest = latest == program::kNone ? earlier : std::max(latest, earlier);
    }

    const RankProgram& program_;
    std::vector<std::uint32_t> before_;
    std::vector<std::vector<GroupTouch>> touches_;  ///< By region.
    std::array<std::vector<std::uint32_t>, kChannels> of_channel_;
    struct Latest : std::array<std::uint32_t, kChannels> {
        Latest() { fill(program::kNone); }
    };
    Latest latest_;
};

}  // namespace

std::vector<std::uint32_t> domains_to_split(std::span<const std::uint32_t> starts,
                                            std::uint32_t ranks,
                                            std::span<const std::uint32_t> members) {
    std::vector<std::uint32_t> domains;
    for (std::uint32_t domain = 0; domain < starts.size(); ++domain) {
        domains.resize(domain + 1 < starts.size() ? starts[domain + 1] : ranks, domain);
    }
    std::set<std::uint32_t> used;
    for (const std::uint32_t member : members) {
        used.insert(domains.empty() ? 0 : domains[member]);
    }
    // As many domains as members: none holds two.
    return used.size() < 2 || used.size() >= members.size() ? std::vector<std::uint32_t>{} : domains;
}

std::vector<PostedGroup> posted_groups(const RankProgram& program, std::span<const std::uint32_t> domains) {
    std::vector<PostedGroup> groups;
    for (std::uint32_t wave = 0; wave < program.waves.size(); ++wave) {
        add_wave(program, wave, domains, groups);
    }
    Needs{program}.find(groups);
    return groups;
}

}  // namespace refit::exec
