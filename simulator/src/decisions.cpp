// SPDX-License-Identifier: Apache-2.0
#include "refit/decisions.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace refit {
namespace {

/// Published times that differ by less may be one: two timers of one refit differ by 9 % (docs/fidelity.md).
constexpr double kLeastChange = 0.05;

/// A refit that was timed and is modelled: the first row of its configuration.
struct Timed {
    const ValidationCase* one = nullptr;
    const ValidationRow* row = nullptr;
};

std::vector<Timed> timed(std::span<const ValidationCase> cases, std::span<const ValidationRow> rows) {
    std::vector<Timed> list;
    std::vector<std::size_t> seen;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool is_new = std::ranges::find(seen, rows[i].configuration) == seen.end();
        if (rows[i].error && is_new) {
            seen.push_back(rows[i].configuration);
            list.push_back({&cases[i], &rows[i]});
        }
    }
    return list;
}

Seconds middle(const ValidationRow& row) {
    return (*row.low + *row.high) * 0.5;
}

TrainLayout without_size(TrainLayout layout) {
    layout.gpus = layout.dp = layout.edp = 1;
    return layout;
}
GenerateLayout without_size(GenerateLayout layout) {
    layout.gpus = layout.dp = 1;
    return layout;
}

bool is_same_system(const Scenario& a, const Scenario& b) {
    return a.cluster.train_system() == b.cluster.train_system() &&
           a.cluster.generate_system() == b.cluster.generate_system() &&
           a.cluster.placement() == b.cluster.placement();
}

bool is_same_job(const Scenario& a, const Scenario& b) {
    return a.model.id() == b.model.id() && a.dtype == b.dtype && a.train == b.train &&
           a.generate == b.generate && a.cluster.losses() == b.cluster.losses() && is_same_system(a, b);
}

/// The one thing in which two refits of a model differ, or nothing.
std::optional<std::string> factor_between(const Timed& a, const Timed& b) {
    const auto& x = *a.one->scenario;
    const auto& y = *b.one->scenario;
    std::vector<std::string> factors;
    const auto differ = [&](bool is_same, const char* name) {
        if (!is_same) {
            factors.emplace_back(name);
        }
    };
    differ(a.row->record.engine == b.row->record.engine && x.engine == y.engine, "engine");
    differ(without_size(x.train) == without_size(y.train), "train layout");
    differ(without_size(x.generate) == without_size(y.generate), "generation layout");
    differ(x.train.gpus == y.train.gpus && x.generate.gpus == y.generate.gpus, "GPUs");
    differ(is_same_system(x, y), "system");
    return x.model.id() == y.model.id() && x.dtype == y.dtype && factors.size() == 1
               ? std::optional{factors.front()}
               : std::nullopt;
}

Option option_of(const Timed& one) {
    return {one.row->record.id, one.row->record.engine, middle(*one.row), one.row->prediction->seconds};
}

Decision decided(std::vector<Option> options, std::string model) {
    Decision decision;
    decision.model = std::move(model);
    decision.options = std::move(options);
    const auto shortest = [&](Seconds Option::*time) {
        return static_cast<std::size_t>(std::ranges::min_element(decision.options, {}, time) -
                                        decision.options.begin());
    };
    decision.chosen = shortest(&Option::predicted);
    decision.best = shortest(&Option::published);
    decision.regret =
        decision.options[decision.chosen].published / decision.options[decision.best].published - 1.0;
    return decision;
}

}  // namespace

std::vector<Decision> decisions(std::span<const ValidationCase> cases, std::span<const ValidationRow> rows) {
    auto left = timed(cases, rows);
    std::vector<Decision> list;
    while (!left.empty()) {
        const auto first = left.front();
        std::vector<Option> options;
        std::erase_if(left, [&](const Timed& other) {
            const bool is_same = is_same_job(*first.one->scenario, *other.one->scenario);
            if (is_same) {
                options.push_back(option_of(other));
            }
            return is_same;
        });
        if (options.size() > 1) {
            list.push_back(decided(std::move(options), first.one->scenario->model.title()));
        }
    }
    return list;
}

std::vector<FactorChange> factor_changes(std::span<const ValidationCase> cases,
                                         std::span<const ValidationRow> rows) {
    const auto list = timed(cases, rows);
    std::vector<FactorChange> changes;
    for (std::size_t i = 0; i < list.size(); ++i) {
        for (std::size_t j = i + 1; j < list.size(); ++j) {
            const auto& from = *list[i].row;
            const auto& to = *list[j].row;
            const bool is_apart =
                *from.high * (1.0 + kLeastChange) < *to.low || *to.high * (1.0 + kLeastChange) < *from.low;
            const auto factor = is_apart ? factor_between(list[i], list[j]) : std::nullopt;
            if (factor) {
                changes.push_back({from.record.id,
                                   to.record.id,
                                   *factor,
                                   middle(to) / middle(from),
                                   to.prediction->seconds / from.prediction->seconds});
            }
        }
    }
    return changes;
}

}  // namespace refit
