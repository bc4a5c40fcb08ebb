// SPDX-License-Identifier: Apache-2.0
#include "refit/parameter.hpp"

#include <limits>
#include <stdexcept>

namespace refit {

std::uint64_t ParameterClass::tensors() const noexcept {
    return tensors_per_layer() * (layers.empty() ? 1 : layers.size());
}

std::uint64_t ParameterClass::elements() const {
    std::uint64_t product = 1;
    for (const auto extent : shape) {
        if (extent != 0 && product > std::numeric_limits<std::uint64_t>::max() / extent) {
            throw std::overflow_error{"ParameterClass: more than 2^64 elements in " + name};
        }
        product *= extent;
    }
    return product;
}

Bytes ParameterClass::tensor_bytes() const { return Bytes{elements()} * size_of(dtype); }

Bytes ParameterClass::bytes() const { return tensor_bytes() * tensors(); }

}  // namespace refit
