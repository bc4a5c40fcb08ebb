// SPDX-License-Identifier: Apache-2.0
#include "refit/scenario.hpp"

namespace refit {

std::vector<ParameterClass> Scenario::payload() const {
    auto classes = model.payload();
    for (auto& entry : classes) {
        entry.dtype = entry.dtype == Dtype::kBf16 ? dtype : entry.dtype;
        entry.task = train.is_fsdp() ? ExportTask::kOwn : entry.task;
    }
    return classes;
}

}  // namespace refit
