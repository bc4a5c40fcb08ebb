// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: what is accepted keeps its invariants.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "refit/io/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    // The data need not be there: headers are read alone. The file may claim to be larger.
    for (const auto file_bytes : {std::uint64_t{size}, std::uint64_t{size} + 64, UINT64_MAX}) {
        const auto tensors = refit::io::read_safetensors_header(text, file_bytes, "input.safetensors");
        if (!tensors && tensors.error().empty()) {
            std::abort();
        }
        for (std::size_t i = 0; tensors && i < tensors->size(); ++i) {
            const auto& tensor = (*tensors)[i];
            if (tensor.begin > tensor.end || tensor.end > file_bytes) {
                std::abort();
            }
        }
    }
    return 0;
}
