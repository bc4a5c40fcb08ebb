// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "refit/inventory.hpp"
#include "refit/result.hpp"

namespace refit::io {

/// One tensor of a checkpoint on disk.
///
/// Invariant: end - begin are the bytes of shape and dtype, and lie inside the file.
struct StoredTensor {
    std::string name;
    std::string dtype;  ///< As the format spells it: "BF16", "F8_E4M3" …
    std::vector<std::uint64_t> shape;
    std::filesystem::path file;
    std::uint64_t begin = 0;  ///< Unit: byte of the file.
    std::uint64_t end = 0;    ///< One past its last byte.
    bool operator==(const StoredTensor&) const = default;
};

/// Reads the header of one file of `file_bytes` bytes. `head` is its beginning, at least up to the end of the
/// header. Errors: kInvalidInput, all at once, each naming file and tensor: a header that is longer than 100
/// MB or than the file, no JSON, or without a tensor's dtype, shape or offsets; tensors that occur twice,
/// overlap, leave a gap, lie outside the file, or have other sizes than their shape. Source: the safetensors
/// format, 8 bytes of length (little endian) and as many of JSON before the data.
[[nodiscard]] Result<std::vector<StoredTensor>> read_safetensors_header(std::string_view head,
                                                                        std::uint64_t file_bytes,
                                                                        const std::filesystem::path& file);

/// Reads the tensors of a Hugging Face model folder, sorted by name: of the files that
/// `model.safetensors.index.json` lists, or where there is none, of every `*.safetensors`. Only headers are
/// read. Errors: those of the headers and of the index, all at once: kIo for files that are not there;
/// kInvalidInput for tensors that are in two files, in none, or in another than the index says.
[[nodiscard]] Result<std::vector<StoredTensor>> read_safetensors_folder(const std::filesystem::path& folder);

/// How a checkpoint differs from the parameters that a model should have: missing and unexpected tensors,
/// shapes and dtypes; one fault for all tensors of a name pattern. MTP layers may be absent, but not in part.
/// Where the model's own checkpoint is quantised, its weights may be too: FP8 with a `_scale_inv` beside it,
/// or packed FP4. Empty: they agree.
[[nodiscard]] Faults compare_with_inventory(std::span<const StoredTensor> tensors,
                                            const Inventory& inventory);

}  // namespace refit::io
