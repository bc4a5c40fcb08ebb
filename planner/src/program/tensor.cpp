// SPDX-License-Identifier: Apache-2.0
#include "refit/program.hpp"

namespace refit::program {

std::uint64_t logical_number(const Workload& workload, const Tensor& tensor) {
    const auto& slices = workload.classes()[tensor.parameter].slices;
    std::uint64_t number = tensor.number;
    for (std::uint32_t i = 0; i < tensor.slice && !slices[tensor.slice].is_copy; ++i) {
        number += slices[i].is_copy ? 0 : slices[i].layers;
    }
    return number;
}

std::string describe(const Workload& workload, const Tensor& tensor) {
    return workload.classes()[tensor.parameter].parameter.name + ", tensor " +
           std::to_string(logical_number(workload, tensor));
}

}  // namespace refit::program
