// SPDX-License-Identifier: Apache-2.0
#include "refit/parameter.hpp"

#include <limits>
#include <numeric>
#include <stdexcept>

#include "refit/fp8_blocks.hpp"

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

std::uint64_t ParameterClass::parameters() const {
    if (segments.empty() || shape.empty() || shape.front() == 0) {
        return elements();
    }
    const auto rows = std::accumulate(segments.begin(), segments.end(), std::uint64_t{0});
    return elements() / shape.front() * rows;
}

Bytes ParameterClass::tensor_bytes() const { return Bytes{elements()} * size_of(dtype); }

Bytes ParameterClass::bytes() const { return tensor_bytes() * tensors(); }

Bytes ParameterClass::native_bytes() const {
    constexpr std::uint64_t kGroup = 32;
    const auto blocks = [](std::uint64_t extent, std::uint64_t size) { return (extent + size - 1) / size; };
    switch (native) {
        case NativeStorage::kFp8Blocks: {
            const auto scales = fp8_blocks(shape.at(0)) * fp8_blocks(shape.at(1));
            return Bytes{elements() + scales * size_of(Dtype::kFp32)} * tensors();
        }
        case NativeStorage::kMxfp4Groups:
            return Bytes{elements() / 2 + shape.at(0) * blocks(shape.at(1), kGroup)} * tensors();
        case NativeStorage::kPlain:
            break;
    }
    return bytes();
}

}  // namespace refit
