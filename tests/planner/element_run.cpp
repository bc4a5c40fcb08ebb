// SPDX-License-Identifier: Apache-2.0
#include "element_run.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace refit::testing_support {
namespace {

struct Wrong : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void require(bool is_right, const std::string& what) {
    if (!is_right) {
        throw Wrong{what};
    }
}

/// Row-major numbers of the elements of a box.
std::vector<std::size_t> elements_of(const Box& box, std::span<const std::uint64_t> shape) {
    std::vector<std::size_t> elements{0};
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        std::vector<std::size_t> finer;
        for (const auto element : elements) {
            for (auto i = box.axes()[axis].begin; i < box.axes()[axis].end; ++i) {
                finer.push_back(element * shape[axis] + i);
            }
        }
        elements = std::move(finer);
    }
    return elements;
}

/// One tensor of a slice on every rank.
struct Tensor {
    std::vector<std::vector<bool>> has;     ///< By rank and element: may be sent on.
    std::vector<std::vector<bool>> wanted;  ///< By rank and element.
    std::vector<std::vector<int>> writes;   ///< By rank and element: arrivals that count.
};

using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  ///< Class, slice, tensor.

class ElementRun {
public:
    ElementRun(const Plan& plan, const Workload& workload, const Cluster& cluster)
        : plan_{plan}, workload_{workload}, cluster_{cluster} {
        for (std::uint32_t c = 0; c < workload.classes().size(); ++c) {
            for (std::uint32_t s = 0; s < workload.classes()[c].slices.size(); ++s) {
                for (std::uint32_t t = 0; t < workload.classes()[c].slices[s].layers; ++t) {
                    tensors_[{c, s, t}] = at_start(c, s);
                }
            }
            order_uses(c);
        }
    }

    void run() {
        for (const auto& stage : plan_.stages) {
            transfer(stage);
            for (const auto& collective : stage.collectives) {
                if (!is_among_replicas(collective.role)) {
                    collect(collective);
                }
            }
            relay(stage.relays);
        }
        for (const auto& [key, tensor] : tensors_) {
            for (std::size_t rank = 0; rank < tensor.writes.size(); ++rank) {
                for (std::size_t i = 0; i < tensor.writes[rank].size(); ++i) {
                    require(tensor.writes[rank][i] == (tensor.wanted[rank][i] ? 1 : 0),
                            "rank " + std::to_string(rank) + " gets element " + std::to_string(i) + " " +
                                std::to_string(tensor.writes[rank][i]) + " times");
                }
            }
        }
    }

private:
    const WorkloadClass& entry(std::uint32_t index) const { return workload_.classes()[index]; }

    Tensor at_start(std::uint32_t c, std::uint32_t s) const {
        const auto& slice = entry(c).slices[s];
        const auto& shape = entry(c).source.shape();
        const std::vector<bool> none(Box::whole(shape).volume(), false);
        Tensor tensor{std::vector(cluster_.gpus(), none),
                      std::vector(cluster_.gpus(), none),
                      std::vector(cluster_.gpus(), std::vector<int>(none.size(), 0))};
        const auto set = [&](const Distribution& distribution,
                             std::uint32_t first,
                             std::vector<std::vector<bool>>& by_rank) {
            for (const auto& shard : distribution.shards()) {
                for (const auto& box : shard.boxes) {
                    for (const auto element : elements_of(box, shape)) {
                        for (const auto member : shard.members) {
                            by_rank[first + member][element] = true;
                        }
                    }
                }
            }
        };
        set(entry(c).source, slice.train_stage * workload_.trainers_per_stage(), tensor.has);
        set(entry(c).destinations[slice.generate_stage], cluster_.train_gpus(), tensor.wanted);
        return tensor;
    }

    /// In which order the transfers of a class from each trainer stage take its tensors.
    void order_uses(std::uint32_t c) {
        for (std::uint32_t g = 0; g < entry(c).destinations.size(); ++g) {
            for (std::uint32_t s = 0; s < entry(c).slices.size(); ++s) {
                const auto& slice = entry(c).slices[s];
                for (std::uint32_t t = 0; slice.generate_stage == g && t < slice.layers; ++t) {
                    queue_[{c, slice.train_stage}].push_back({c, s, t});
                }
            }
        }
    }

    void transfer(const PlanStage& stage) {
        std::map<std::uint32_t, std::deque<Key>> shared;  // By class: what replicas have to share.
        std::map<Key, Tensor> before;
        for (const auto& use : stage.transfers) {
            const auto& block = plan_.blocks[use.block];
            auto& queue = queue_[{block.parameter, stage.train_stage}];
            for (std::uint64_t t = 0; t < use.tensors; ++t) {
                require(!queue.empty(), "transfers of too many tensors");
                const auto key = queue.front();
                queue.pop_front();
                require(t == 0 || std::get<1>(shared[block.parameter].back()) == std::get<1>(key),
                        "a use crosses slices");
                shared[block.parameter].push_back(key);
                for (std::size_t i = 0; i < block.size(); ++i) {
                    move(tensors_[key],
                         block.parameter,
                         use.first_source.index() + block.source[i],
                         cluster_.train_gpus() + block.destination[i],
                         block.boxes[block.box[i]],
                         true);
                }
            }
        }
        for (auto& brought : shared) {
            const auto c = brought.first;
            std::erase_if(brought.second, [&](const Key& key) {
                const auto& slice = entry(c).slices[std::get<1>(key)];
                return std::ranges::all_of(entry(c).destinations[slice.generate_stage].shards(),
                                           [](const Shard& shard) { return shard.members.size() < 2; });
            });
        }
        for (const auto& collective : stage.collectives) {
            share(collective, shared[collective.parameters.front()]);
        }
    }

    void share(const Collective& collective, std::deque<Key>& keys) {
        for (std::uint64_t call = 0; is_among_replicas(collective.role) && call < collective.calls; ++call) {
            require(!keys.empty(), "replicas share what nobody brought");
            auto& tensor = tensors_[keys.front()];
            keys.pop_front();
            const auto before = tensor.writes;
            for (const auto& group : plan_.groups[collective.groups]) {
                for (const auto from : group) {
                    for (const auto to : group) {
                        for (std::size_t i = 0; from != to && i < before[from.index()].size(); ++i) {
                            tensor.writes[to.index()][i] += before[from.index()][i];
                        }
                    }
                    if (is_broadcast(collective.role)) {
                        break;
                    }
                }
            }
        }
    }

    void move(Tensor& tensor,
              std::uint32_t c,
              std::uint32_t from,
              std::uint32_t to,
              const Box& box,
              bool is_last) const {
        for (const auto element : elements_of(box, entry(c).source.shape())) {
            require(tensor.has[from][element],
                    "rank " + std::to_string(from) + " sends an element that it has not");
            tensor.has[to][element] = tensor.has[to][element] || !is_last;
            tensor.writes[to][element] += is_last || tensor.wanted[to][element] ? 1 : 0;
        }
    }

    void collect(const Collective& collective) {
        for (auto& [key, tensor] : tensors_) {
            if (std::ranges::find(collective.parameters, std::get<0>(key)) == collective.parameters.end()) {
                continue;
            }
            const auto& slice = entry(std::get<0>(key)).slices[std::get<1>(key)];
            for (const auto& group : plan_.groups[collective.groups]) {
                const auto root = group.front().index();
                std::vector<bool> joined = tensor.has[root];
                if (collective.role == CollectiveRole::kWeightBroadcast) {
                    take_own(tensor, group);
                    continue;
                }
                const bool is_gather = !is_broadcast(collective.role);
                if (!is_gather && root / workload_.trainers_per_stage() != slice.train_stage) {
                    continue;
                }
                for (const auto rank : group) {
                    for (std::size_t i = 0; i < joined.size(); ++i) {
                        joined[i] = joined[i] || (is_gather && tensor.has[rank.index()][i]);
                    }
                }
                for (const auto rank : group) {
                    for (std::size_t i = 0; i < joined.size(); ++i) {
                        tensor.has[rank.index()][i] = tensor.has[rank.index()][i] || joined[i];
                    }
                }
            }
        }
    }

    static void take_own(Tensor& tensor, const std::vector<RankId>& group) {
        for (const auto rank : group) {
            for (std::size_t i = 0; i < tensor.wanted[rank.index()].size(); ++i) {
                if (tensor.wanted[rank.index()][i]) {
                    require(tensor.has[group.front().index()][i],
                            "the root broadcasts an element that it has not");
                    ++tensor.writes[rank.index()][i];
                }
            }
        }
    }

    void relay(const RelayTable& relays) {
        for (std::size_t hop = 0; hop < relays.size(); ++hop) {
            const auto before = relays.follows[hop];
            require(before == RelayTable::kNone ||
                        (before < hop && relays.message[before] == relays.message[hop] &&
                         relays.destination[before] == relays.source[hop]),
                    "a hop follows what does not bring its message");
        }
        for (std::size_t hop = 0; hop < relays.size(); ++hop) {
            const bool is_last = std::ranges::find(relays.follows, hop) == relays.follows.end();
            const bool is_first = relays.follows[hop] == RelayTable::kNone;
            require(!is_first || relays.source[hop] < cluster_.train_gpus(),
                    "a message begins at a generator");
            const auto& message = relays.messages[relays.message[hop]];
            for (auto p = message.first_part; p < message.first_part + message.parts; ++p) {
                const auto& part = relays.parts[p];
                for (std::uint64_t t = 0; t < part.tensors; ++t) {
                    auto& tensor = tensors_.at({part.parameter, part.slice, part.first_tensor + t});
                    require(!is_first || entry(part.parameter).slices[part.slice].train_stage ==
                                             relays.source[hop] / workload_.trainers_per_stage(),
                            "a message begins at another stage");
                    move(tensor,
                         part.parameter,
                         relays.source[hop],
                         relays.destination[hop],
                         part.box,
                         is_last);
                }
            }
        }
    }

    const Plan& plan_;
    const Workload& workload_;
    const Cluster& cluster_;
    std::map<Key, Tensor> tensors_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Key>>
        queue_;  ///< By class and trainer stage.
};

}  // namespace

std::string run_elements(const Plan& plan, const Workload& workload, const Cluster& cluster) {
    try {
        ElementRun{plan, workload, cluster}.run();
    } catch (const Wrong& wrong) {
        return wrong.what();
    }
    return {};
}

}  // namespace refit::testing_support
