// SPDX-License-Identifier: Apache-2.0
#include "refit/layout_check.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "layout_limits.hpp"
#include "refit/quantity.hpp"

namespace refit {
namespace {

std::vector<std::uint32_t> divisors(std::uint32_t number) {
    std::vector<std::uint32_t> divisors;
    for (std::uint32_t i = 1; std::uint64_t{i} * i <= number; ++i) {
        if (number % i == 0) {
            divisors.push_back(i);
            if (i != number / i) {
                divisors.push_back(number / i);
            }
        }
    }
    std::ranges::sort(divisors);
    return divisors;
}

/// How far a size is from the wanted one: a change counts, and its factor.
double distance(std::uint32_t size, std::uint32_t wanted) {
    return size == wanted ? 0.0 : 1.0 + std::abs(std::log2(static_cast<double>(size) / wanted));
}

using Candidates = std::vector<std::pair<double, LayoutText>>;

Candidates fsdp_candidates(const LayoutText& wanted, std::uint32_t gpus, const ModelLimits& model) {
    Candidates candidates;
    const auto ep_sizes = divisors(std::max(model.experts, 1U));
    for (const auto fsdp : divisors(gpus)) {
        for (const auto ep : ep_sizes) {
            if (gpus % (std::uint64_t{fsdp} * ep) == 0) {
                LayoutText text;
                text.fsdp = fsdp;
                text.ep = ep;
                candidates.emplace_back(distance(fsdp, wanted.fsdp.value()) + distance(ep, wanted.ep.value_or(1)), text);
            }
        }
    }
    return candidates;
}

Candidates train_candidates(const LayoutText& wanted, std::uint32_t gpus, const ModelLimits& model) {
    if (wanted.fsdp) {
        return fsdp_candidates(wanted, gpus, model);
    }
    Candidates candidates;
    const auto sizes = divisors(gpus);
    const auto ep_sizes = divisors(std::max(model.experts, 1U));
    std::vector<std::uint32_t> cp_sizes{1};
    if (wanted.cp.value_or(1) > 1) {
        cp_sizes.push_back(*wanted.cp);
    }
    for (const auto tp : sizes) {
        for (const auto pp : sizes) {
            for (const auto cp : cp_sizes) {
                if (gpus % (std::uint64_t{tp} * pp * cp) != 0) {
                    continue;
                }
                for (const auto ep : ep_sizes) {
                    LayoutText text;
                    text.tp = tp;
                    text.cp = cp;
                    text.pp = pp;
                    text.ep = ep;
                    auto score = distance(tp, wanted.tp.value_or(1)) + distance(cp, wanted.cp.value_or(1)) +
                                 distance(pp, wanted.pp.value_or(1)) + distance(ep, wanted.ep.value_or(1));
                    candidates.emplace_back(score + 0.5, text);
                    if (pp == wanted.pp.value_or(1) &&
                        (wanted.first_stage_layers || wanted.last_stage_layers)) {
                        text.first_stage_layers = wanted.first_stage_layers;
                        text.last_stage_layers = wanted.last_stage_layers;
                        candidates.emplace_back(score, text);
                    }
                }
            }
        }
    }
    return candidates;
}

/// What it weighs to offer pipeline stages to generators that had none: engines refuse to reshard to those.
constexpr double kNewStages = 8.0;

Candidates generate_candidates(const LayoutText& wanted, std::uint32_t gpus) {
    Candidates candidates;
    const auto sizes = divisors(gpus);
    for (const auto tp : sizes) {
        for (const auto pp : sizes) {
            if (gpus % (std::uint64_t{tp} * pp) != 0) {
                continue;
            }
            for (const auto ep : sizes) {
                if (ep != 1 && ep % tp != 0) {
                    continue;
                }
                LayoutText text;
                text.tp = tp;
                text.pp = pp;
                text.ep = ep;
                const auto new_stages = wanted.pp.value_or(1) == 1 && pp > 1 ? kNewStages : 0.0;
                candidates.emplace_back(distance(tp, wanted.tp.value_or(1)) +
                                            distance(pp, wanted.pp.value_or(1)) +
                                            distance(ep, wanted.ep.value_or(1)) + new_stages,
                                        text);
            }
        }
    }
    return candidates;
}

/// The nearest candidate on `gpus` that `works`. Where memory allows none, on twice as many, and so on.
/// `candidates_on` lists them for a number of GPUs; `works` returns the layout as text, or nothing.
template <class CandidatesOn, class Works>
std::optional<FoundLayout> nearest_valid(std::uint32_t gpus,
                                         const ModelLimits& model,
                                         const CandidatesOn& candidates_on,
                                         const Works& works) {
    constexpr std::uint32_t kMostGpus = 1U << 20U;
    constexpr int kMostTries = 6;
    Bytes weights;
    for (const auto& entry : model.payload) {
        weights += entry.bytes();
    }
    int tries = 0;
    for (auto count = gpus; count <= kMostGpus && tries < kMostTries; count *= 2) {
        if (model.memory && model.memory->bytes * count < weights) {
            continue;
        }
        auto candidates = candidates_on(count);
        std::ranges::stable_sort(candidates, {}, &std::pair<double, LayoutText>::first);
        for (const auto& [score, text] : candidates) {
            if (auto found = works(text, count)) {
                return FoundLayout{std::move(*found), count};
            }
        }
        ++tries;
    }
    return std::nullopt;
}

std::optional<FoundLayout> find_train(const LayoutText& text, std::uint32_t gpus, const ModelLimits& model) {
    return nearest_valid(
        gpus,
        model,
        [&](std::uint32_t count) { return train_candidates(text, count, model); },
        [&](const LayoutText& candidate, std::uint32_t count) {
            const auto [layout, faults] = examine_train(candidate, count, model);
            return faults.empty() ? std::optional{to_text(layout)} : std::nullopt;
        });
}

template <class Accepts>
std::optional<FoundLayout> find_generate(const LayoutText& text,
                                         std::uint32_t gpus,
                                         const ModelLimits& model,
                                         const Accepts& accepts) {
    return nearest_valid(
        gpus,
        model,
        [&](std::uint32_t count) { return generate_candidates(text, count); },
        [&](const LayoutText& candidate, std::uint32_t count) {
            const auto [layout, faults] = examine_generate(candidate, count, model);
            return faults.empty() && accepts(layout) ? std::optional{to_text(layout)} : std::nullopt;
        });
}

/// Offers what was found for every fault; more GPUs are a fault of their own.
void suggest(Faults& faults,
             const std::string& side,
             std::uint32_t gpus,
             const ModelLimits& model,
             const std::optional<FoundLayout>& found) {
    if (!found) {
        return;
    }
    const bool is_same = found->gpus == gpus;
    for (auto& fault : faults) {
        fault.nearest = Suggestion{side + ".layout",
                                   found->layout,
                                   "the nearest layout that works on " +
                                       (is_same ? "these" : std::to_string(found->gpus)) + " GPUs"};
    }
    if (!is_same) {
        faults.push_back(
            {ErrorCode::kInfeasible,
             "gpu-memory",
             side + ".gpus = " + std::to_string(gpus) + ": no layout on so few has room for the weights in " +
                 format_bytes(model.memory->bytes) + " of memory each",
             side + ".gpus",
             Suggestion{
                 side + ".gpus", std::to_string(found->gpus), "of the doubled counts the first with room"}});
    }
}

}  // namespace

Result<TrainLayout> make_train_layout(const LayoutText& text,
                                      std::uint32_t gpus,
                                      const Inventory& model,
                                      const std::optional<GpuMemory>& memory) {
    const ModelLimits limits{model, memory};
    auto [layout, faults] = examine_train(text, gpus, limits);
    if (faults.empty()) {
        return layout;
    }
    suggest(faults, "train", gpus, limits, find_train(text, gpus, limits));
    return fail(std::move(faults));
}

Result<GenerateLayout> make_generate_layout(const LayoutText& text,
                                            std::uint32_t gpus,
                                            const Inventory& model,
                                            const std::optional<GpuMemory>& memory) {
    const ModelLimits limits{model, memory};
    auto [layout, faults] = examine_generate(text, gpus, limits);
    if (faults.empty()) {
        return layout;
    }
    const auto found = find_generate(text, gpus, limits, [](const GenerateLayout&) { return true; });
    suggest(faults, "generate", gpus, limits, found);
    return fail(std::move(faults));
}

std::optional<FoundLayout> nearest_train_layout(const LayoutText& text,
                                                std::uint32_t gpus,
                                                const Inventory& model,
                                                const std::optional<GpuMemory>& memory) {
    return find_train(text, gpus, ModelLimits{model, memory});
}

std::optional<FoundLayout> nearest_generate_layout(
    const LayoutText& text,
    std::uint32_t gpus,
    const Inventory& model,
    const std::optional<GpuMemory>& memory,
    const std::function<bool(const GenerateLayout&)>& accepts) {
    return find_generate(text, gpus, ModelLimits{model, memory}, accepts);
}

bool is_possible(const LayoutText& text,
                 std::uint32_t gpus,
                 const Inventory& model,
                 const std::optional<GpuMemory>& memory) {
    return examine_train(text, gpus, ModelLimits{model, memory}).second.empty();
}

Faults check_fp8_blocks(const GenerateLayout& layout,
                        const Inventory& model,
                        const std::optional<GpuMemory>& memory) {
    const ModelLimits limits{model, memory};
    auto faults = broken_fp8_blocks(layout, limits);
    if (faults.empty()) {
        return faults;
    }
    LayoutText wanted;
    wanted.tp = layout.tp;
    wanted.pp = layout.pp;
    wanted.ep = layout.ep;
    const auto found = find_generate(wanted, layout.gpus, limits, [&](const GenerateLayout& candidate) {
        return broken_fp8_blocks(candidate, limits).empty();
    });
    suggest(faults, "generate", layout.gpus, limits, found);
    return faults;
}

}  // namespace refit
