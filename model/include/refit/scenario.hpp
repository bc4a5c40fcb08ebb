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
/// Invariant: the layouts fit the model and the GPU counts, and cut no FP8 block; the placement fits the systems.
struct Scenario {
    std::string name;
    Inventory model;
    Dtype dtype = Dtype::kBf16;  ///< Of the parameters that the model stores in BF16, on both sides; FP32 ones stay as
                                 ///< they are. FP8: of its projections, in blocks with scales; the rest stays BF16.
    TrainLayout train;
    GenerateLayout generate;
    Cluster cluster;
    Engine engine;
    RuleSet rules;       ///< What the engine supports.
    SettingFacts facts;  ///< What the rules look at.
    Coverage coverage = Coverage::kNemoRlNames;
    std::vector<std::string> published;  ///< Ids of published timings of just this scenario.
    std::string note;                    ///< For people: where layouts that nobody published come from.

    /// The classes that a refit moves, in the scenario's dtype; in FP8, scales follow their projection. FSDP
    /// fuses none of them.
    [[nodiscard]] std::vector<ParameterClass> payload() const;
};

}  // namespace refit
