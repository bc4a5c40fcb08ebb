// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "refit/cluster.hpp"
#include "refit/coverage.hpp"
#include "refit/dtype.hpp"
#include "refit/engine.hpp"
#include "refit/inventory.hpp"
#include "refit/layout.hpp"
#include "refit/rules.hpp"

namespace refit {

/// One refit to look at: which model moves from which trainers to which generators, on what, by what software.
/// Invariant: the layouts fit the model and the GPU counts; the placement fits the systems.
struct Scenario {
    std::string name;
    Inventory model;
    Dtype dtype = Dtype::kBf16;  ///< Of the parameters that the model stores in BF16; FP32 ones stay as they are.
    TrainLayout train;
    GenerateLayout generate;
    Cluster cluster;
    Engine engine;
    RuleSet rules;       ///< What the engine supports.
    SettingFacts facts;  ///< What the rules look at.
    Coverage coverage = Coverage::kNemoRlNames;
    std::vector<std::string> published;  ///< Ids of published timings of just this scenario.
    std::string note;                    ///< For people: where layouts that nobody published come from.

    /// The classes that a refit moves, in the scenario's dtype. FSDP fuses none of them.
    [[nodiscard]] std::vector<ParameterClass> payload() const;
};

}  // namespace refit
