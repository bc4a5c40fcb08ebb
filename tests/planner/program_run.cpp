// SPDX-License-Identifier: Apache-2.0
#include "program_run.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

namespace refit::testing_support {
namespace {

using namespace program;

struct Wrong : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void require(bool is_right, const std::string& what) {
    if (!is_right) {
        throw Wrong{what};
    }
}

/// Calls use(index in the tensor, index in the outer box) for each element of a box, row-major.
template <class Use>
void walk(const Box& box, const Box& outer, std::span<const std::uint64_t> shape, Use&& use) {
    std::vector<std::uint64_t> at;
    for (const auto& axis : box.axes()) {
        at.push_back(axis.begin);
    }
    for (std::uint64_t n = 0; n < box.volume(); ++n) {
        std::uint64_t whole = 0;
        std::uint64_t inside = 0;
        for (std::size_t axis = 0; axis < at.size(); ++axis) {
            whole = whole * shape[axis] + at[axis];
            inside = inside * outer.axes()[axis].length() + at[axis] - outer.axes()[axis].begin;
        }
        use(whole, inside);
        for (auto axis = at.size(); axis-- > 0;) {
            if (++at[axis] < box.axes()[axis].end) {
                break;
            }
            at[axis] = box.axes()[axis].begin;
        }
    }
}

/// Which element: of which logical tensor of a class. 0: junk.
using Token = std::uint64_t;

Token token(std::uint64_t parameter, std::uint64_t number, std::uint64_t element) {
    return 1 + element + (number << 36U) + (parameter << 48U);
}

class ProgramRun {
public:
    ProgramRun(const std::vector<RankProgram>& programs,
               const Workload& workload,
               std::uint32_t train_gpus,
               std::uint32_t limit)
        : programs_{programs}, workload_{workload}, train_gpus_{train_gpus}, limit_{limit} {}

    void run() {
        for (const auto& program : programs_) {
            check_regions(program);
            auto& arenas = memory_.emplace_back();
            for (std::size_t arena = 0; arena < kArenas; ++arena) {
                arenas[arena].resize(program.arena_bytes[arena], 0);
            }
            for (const auto& region : program.regions) {
                if (region.arena == Arena::kSource) {
                    check_source(program, region);
                    for_each(region, region.box, [&](std::uint64_t byte, Token is) { arenas[0][byte] = is; });
                }
            }
        }
        const auto waves = programs_.front().waves.size();
        for (const auto& program : programs_) {
            require(program.waves.size() == waves && program.digest == programs_.front().digest,
                    "ranks differ");
        }
        for (std::size_t wave = 0; wave < waves; ++wave) {
            run_wave(wave);
        }
        check_destinations();
    }

private:
    std::string name(const Region& region) const { return describe(workload_, region.tensor); }

    /// Calls use(byte in the arena, token) for the first byte of each element.
    template <class Use>
    void for_each(const Region& region, const Box& box, Use&& use) const {
        const auto number = logical_number(workload_, region.tensor);
        const auto shape = workload_.classes()[region.tensor.parameter].source.shape();
        walk(box, region.box, shape, [&](std::uint64_t element, std::uint64_t inside) {
            use(region.offset + inside * region.element_bytes,
                token(region.tensor.parameter, number, element));
        });
    }

    void check_regions(const RankProgram& program) const {
        for (std::size_t i = 0; i < program.regions.size(); ++i) {
            const auto& a = program.regions[i];
            require(a.offset % kAlignment == 0 && a.offset + a.bytes() <= program.bytes_in(a.arena),
                    "a region lies outside its arena");
            for (std::size_t k = 0; k < i; ++k) {
                const auto& b = program.regions[k];
                const bool share_bytes =
                    a.arena == b.arena && a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes();
                const bool share_waves = a.first_wave <= b.last_wave && b.first_wave <= a.last_wave;
                require(!share_bytes || (a.arena == Arena::kScratch && !share_waves), "regions overlap");
            }
        }
    }

    void check_source(const RankProgram& program, const Region& region) const {
        const auto& entry = workload_.classes()[region.tensor.parameter];
        require(program.rank < train_gpus_ && entry.slices[region.tensor.slice].train_stage ==
                                                  program.rank / workload_.trainers_per_stage(),
                "a source of another stage");
        const auto member = program.rank % workload_.trainers_per_stage();
        require(std::ranges::any_of(entry.source.shards(),
                                    [&](const Shard& shard) {
                                        return std::ranges::binary_search(shard.members, member) &&
                                               std::ranges::find(shard.boxes, region.box) !=
                                                   shard.boxes.end();
                                    }),
                "rank " + std::to_string(program.rank) + " does not hold a source");
    }

    void run_wave(std::size_t wave) {
        std::map<std::uint32_t, std::vector<Token>> messages;  // By id: an entry a byte.
        std::map<std::uint32_t, const Operation*> ends;
        std::map<std::uint32_t, std::size_t> joined;
        for (const auto& program : programs_) {
            std::set<std::tuple<bool, std::uint32_t, std::uint32_t>> peers;  // With lanes.
            std::uint32_t id = 0;
            const auto& operations = program.waves[wave].operations;
            require(operations.size() <= limit_, "more operations in a wave than the limit");
            for (const auto& operation : operations) {
                require(operation.id >= id && !operation.parts.empty(), "operations out of order, or empty");
                id = operation.id + 1;
                require(operation.is_collective() ||
                            peers
                                .insert({operation.kind == OperationKind::kSend, operation.peer, operation.lane})
                                .second,
                        "two messages to one peer in a lane and a wave");
                join(program, operation, ends, joined);
                gather(program, operation, wave, messages[operation.id]);
            }
        }
        for (const auto& [id, count] : joined) {
            const auto& end = *ends.at(id);
            const auto expected = end.is_collective() ? group_size_.at(id) : 2;
            require(count == expected, "operation " + std::to_string(id) + " lacks an end");
            require(std::ranges::find(messages[id], Token{0}) == messages[id].end(),
                    "a message has bytes that nobody gives");
        }
        for (const auto& program : programs_) {
            for (const auto& operation : program.waves[wave].operations) {
                scatter(program, operation, wave, messages.at(operation.id));
            }
        }
    }

    void join(const RankProgram& program,
              const Operation& operation,
              std::map<std::uint32_t, const Operation*>& ends,
              std::map<std::uint32_t, std::size_t>& joined) {
        const auto [found, is_new] = ends.try_emplace(operation.id, &operation);
        ++joined[operation.id];
        if (operation.is_collective()) {
            const auto& group = program.groups.at(operation.group);
            require(group.at(operation.place) == program.rank, "a rank is not at its place in a group");
            require(is_new || group_size_[operation.id] == group.size(), "ends name different groups");
            group_size_[operation.id] = group.size();
        }
        if (!is_new) {
            require(found->second->parts == operation.parts && found->second->bytes == operation.bytes &&
                        found->second->is_collective() == operation.is_collective(),
                    "ends of an operation disagree");
        }
        std::uint64_t offset = 0;
        std::uint32_t owner = 0;
        for (const auto& part : operation.parts) {
            require(part.offset == offset && part.owner >= owner && part.bytes() > 0,
                    "parts do not follow each other");
            offset += part.bytes();
            owner = part.owner;
        }
        require(offset == operation.bytes, "a message is not as long as its parts");
    }

    /// Calls use(byte of the message, byte of the region, token) for the elements of a landing.
    template <class Use>
    void for_each_landed(const RankProgram& program,
                         const Operation& operation,
                         const Landing& landing,
                         Use&& use) const {
        const auto& part = operation.parts.at(landing.part);
        const auto& region = program.regions.at(landing.region);
        require(part.element_bytes == region.element_bytes &&
                    part.tensor.parameter == region.tensor.parameter &&
                    logical_number(workload_, part.tensor) == logical_number(workload_, region.tensor),
                "a landing in a region of another tensor");
        std::vector<std::uint64_t> from;
        const auto shape = workload_.classes()[part.tensor.parameter].source.shape();
        walk(landing.box, part.box, shape, [&](std::uint64_t, std::uint64_t inside) {
            from.push_back(part.offset + inside * part.element_bytes);
        });
        std::size_t i = 0;
        for_each(region, landing.box, [&](std::uint64_t byte, Token is) { use(from[i++], byte, is); });
    }

    void gather(const RankProgram& program,
                const Operation& operation,
                std::size_t wave,
                std::vector<Token>& message) {
        message.resize(operation.bytes, 0);
        for (const auto& landing : operation.landings) {
            const auto& part = operation.parts.at(landing.part);
            if (!operation.gives(part)) {
                continue;
            }
            const auto& region = program.regions[landing.region];
            require(region.arena == Arena::kSource || region.last_wave >= wave,
                    "a region is read after its last wave");
            for_each_landed(program, operation, landing, [&](std::uint64_t to, std::uint64_t byte, Token is) {
                require(memory_[program.rank][static_cast<std::size_t>(region.arena)].at(byte) == is,
                        "rank " + std::to_string(program.rank) + " gives an element of " + name(region) +
                            " that it has not");
                for (std::uint32_t i = 0; i < part.element_bytes; ++i) {
                    require(message.at(to + i) == 0, "a byte of a message is given twice");
                    message[to + i] = is;
                }
            });
        }
    }

    void scatter(const RankProgram& program,
                 const Operation& operation,
                 std::size_t wave,
                 const std::vector<Token>& message) {
        for (const auto& landing : operation.landings) {
            if (operation.gives(operation.parts.at(landing.part))) {
                continue;
            }
            const auto& region = program.regions[landing.region];
            require(region.arena != Arena::kSource && region.first_wave <= wave && region.last_wave >= wave,
                    "a region is written outside its life");
            for_each_landed(
                program, operation, landing, [&](std::uint64_t from, std::uint64_t byte, Token is) {
                    require(message.at(from) == is, "a message brings another element");
                    auto& there = memory_[program.rank][static_cast<std::size_t>(region.arena)].at(byte);
                    require(region.arena == Arena::kScratch || there == 0,
                            "an element of " + name(region) + " arrives twice");
                    there = is;
                });
        }
    }

    void check_destinations() const {
        std::vector<std::uint64_t> delivered(programs_.size(), 0);
        for (const auto& program : programs_) {
            for (const auto& region : program.regions) {
                if (region.arena == Arena::kDestination) {
                    for_each(region, region.box, [&](std::uint64_t byte, Token is) {
                        require(
                            memory_[program.rank][1].at(byte) == is,
                            "rank " + std::to_string(program.rank) + " lacks an element of " + name(region));
                        delivered[program.rank] += region.element_bytes;
                    });
                }
            }
        }
        for (std::size_t i = 0; i < workload_.generator_bytes().size(); ++i) {
            require(delivered[train_gpus_ + i] == workload_.generator_bytes()[i],
                    "not all that is wanted is a destination");
        }
    }

    const std::vector<RankProgram>& programs_;
    const Workload& workload_;
    std::uint32_t train_gpus_;
    std::uint32_t limit_;
    std::vector<std::array<std::vector<Token>, kArenas>> memory_;
    std::map<std::uint32_t, std::size_t> group_size_;
};

}  // namespace

std::string run_programs(const std::vector<RankProgram>& programs,
                         const Workload& workload,
                         std::uint32_t train_gpus,
                         std::uint32_t limit) {
    try {
        ProgramRun{programs, workload, train_gpus, limit}.run();
    } catch (const Wrong& wrong) {
        return wrong.what();
    } catch (const std::logic_error& error) {
        return error.what();
    }
    return {};
}

}  // namespace refit::testing_support
