// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace refit::exec {

/// The elements of logical tensors, from wherever they are: what is moved in place of made-up values.
class TensorSource {
public:
    virtual ~TensorSource() = default;
    /// Bytes of the elements from row-major `index` on, to the end of their row at least. `parameter`: index
    /// of the class; `number`: as program::logical_number. They stay where they are as long as the source
    /// does. Any thread may call.
    [[nodiscard]] virtual const std::byte* elements(std::uint32_t parameter,
                                                    std::uint64_t number,
                                                    std::uint64_t index) const = 0;
};

}  // namespace refit::exec
