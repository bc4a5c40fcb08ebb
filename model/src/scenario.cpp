// SPDX-License-Identifier: Apache-2.0
#include "refit/scenario.hpp"

#include "refit/fp8_blocks.hpp"

namespace refit {

std::vector<ParameterClass> Scenario::payload() const {
    auto classes = kept_in(model.payload(), dtype);
    for (auto& entry : classes) {
        entry.task = train.is_fsdp() ? ExportTask::kOwn : entry.task;
    }
    return classes;
}

}  // namespace refit
