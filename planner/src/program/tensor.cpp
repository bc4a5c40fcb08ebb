// SPDX-License-Identifier: Apache-2.0
#include "refit/program.hpp"

namespace refit::program {

std::uint64_t logical_number(const Workload& workload, const Tensor& tensor) {
    return workload.classes()[tensor.parameter].logical_number(tensor.slice, tensor.number);
}

std::string describe(const Workload& workload, const Tensor& tensor) {
    return workload.classes()[tensor.parameter].parameter.name + ", tensor " +
           std::to_string(logical_number(workload, tensor));
}

}  // namespace refit::program
