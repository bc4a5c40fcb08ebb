// SPDX-License-Identifier: Apache-2.0
#include "refit/scenario.hpp"

#include "refit/fp8_blocks.hpp"

namespace refit {

std::vector<ParameterClass> Scenario::payload() const {
    return kept_in(model.payload(), dtype);
}

}  // namespace refit
