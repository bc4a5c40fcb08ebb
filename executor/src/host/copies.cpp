// SPDX-License-Identifier: Apache-2.0
#include "copies.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace refit::exec::host {
namespace {

using namespace program;

/// One rank's end of an operation.
struct End {
    const RankProgram* program = nullptr;
    const Operation* operation = nullptr;
};

class WorkMaker {
public:
    WorkMaker(const std::vector<RankProgram>& programs, std::uint32_t threads)
        : programs_{programs}, threads_{threads} {}

    Work run() {
        const auto waves = programs_.empty() ? 0 : programs_.front().waves.size();
        work_.takes_part.assign(programs_.size(), std::vector<bool>(waves, false));
        for (std::uint32_t wave = 0; wave < waves; ++wave) {
            work_.first_task.push_back(static_cast<std::uint32_t>(work_.tasks.size()));
            work_.stages.push_back(programs_.front().waves[wave].stage);
            add_wave(wave);
        }
        work_.first_task.push_back(static_cast<std::uint32_t>(work_.tasks.size()));
        return std::move(work_);
    }

private:
    void add_wave(std::uint32_t wave) {
        std::map<std::uint32_t, std::vector<End>> operations;
        for (const auto& program : programs_) {
            for (const auto& operation : program.waves[wave].operations) {
                operations[operation.id].push_back({&program, &operation});
                work_.takes_part[program.rank][wave] = true;
            }
        }
        std::map<std::uint32_t, std::vector<Copy>> by_giver;
        for (const auto& [id, ends] : operations) {
            for (const auto& giver : ends) {
                for (const auto& taker : ends) {
                    if (giver.program != taker.program) {
                        join(giver, taker, by_giver[giver.program->rank]);
                    }
                }
            }
        }
        std::uint64_t bytes = 0;
        for (const auto& [rank, copies] : by_giver) {
            for (const auto& copy : copies) {
                bytes += copy.shape.bytes();
            }
        }
        work_.bytes.push_back(bytes);
        const auto most = std::max<std::uint64_t>(kLeastTask, bytes / (8 * std::uint64_t{threads_}));
        for (auto& [rank, copies] : by_giver) {
            add_tasks(rank, wave, copies, most);
        }
    }

    /// What one rank gives another by an operation, region to region, cut into tiles.
    void join(const End& giver, const End& taker, std::vector<Copy>& copies) {
        auto taken = taker.operation->landings.begin();
        const auto end = taker.operation->landings.end();
        // Landings are in the order of their parts on all ranks.
        for (auto given = giver.operation->landings.begin(); given != giver.operation->landings.end();
             ++given) {
            if (!giver.operation->gives(giver.operation->parts[given->part])) {
                continue;
            }
            while (taken != end && taken->part < given->part) {
                ++taken;
            }
            for (auto other = taken; other != end && other->part == given->part; ++other) {
                const auto common = intersection(given->box, other->box);
                if (common && common->volume() > 0) {
                    add_copy(*giver.program,
                             giver.program->regions[given->region],
                             *taker.program,
                             taker.program->regions[other->region],
                             *common,
                             copies);
                }
            }
        }
    }

    void add_copy(const RankProgram&,
                  const Region& from,
                  const RankProgram& taker,
                  const Region& to,
                  const Box& box,
                  std::vector<Copy>& copies) {
        auto shape = copy_of(box, from.box, to.box, from.element_bytes);
        shape.source += from.offset;
        shape.destination += to.offset;
        pieces_.clear();
        append_pieces(shape, kTile, pieces_);
        for (const auto& piece : pieces_) {
            copies.push_back({piece, taker.rank, from.arena, to.arena});
        }
    }

    void add_tasks(std::uint32_t rank, std::uint32_t wave, std::vector<Copy>& copies, std::uint64_t most) {
        std::ranges::stable_sort(copies, {}, [](const Copy& copy) {
            return std::pair{copy.from, copy.shape.source / kTile};
        });
        std::uint64_t bytes = most;
        for (auto& copy : copies) {
            if (bytes >= most) {
                const auto first = static_cast<std::uint32_t>(work_.copies.size());
                work_.tasks.push_back({rank, wave, first, first});
                bytes = 0;
            }
            bytes += copy.shape.bytes();
            work_.copies.push_back(std::move(copy));
            ++work_.tasks.back().last;
        }
    }

    static constexpr std::uint64_t kLeastTask = 256U << 10U;

    const std::vector<RankProgram>& programs_;
    std::uint32_t threads_;
    Work work_;
    std::vector<StridedCopy> pieces_;
};

}  // namespace

Work work_of(const std::vector<RankProgram>& programs, std::uint32_t threads) {
    return WorkMaker{programs, threads}.run();
}

}  // namespace refit::exec::host
