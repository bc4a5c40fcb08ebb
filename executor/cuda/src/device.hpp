// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "refit/exec/copy_table.hpp"
#include "refit/exec/region_elements.hpp"
#include "refit/result.hpp"

namespace refit::exec {

/// A table of copies where a device reads it.
struct LoadedTable {
    std::uint64_t copies = 0;  ///< Address of the TiledCopy column.
    std::uint64_t first_tiles = 0;
    std::uint32_t count = 0;
    std::uint32_t tiles = 0;
};

/// A GPU with one stream of work, as far as transports need it. What is begun runs in order, and is over when
/// `is_idle` says so. Errors of every call: kInfeasible, "transport", with the device's own words.
class Device {
public:
    virtual ~Device() = default;

    /// "NVIDIA H200, device 0".
    [[nodiscard]] virtual std::string describe() const = 0;
    /// Free memory. Unit: bytes.
    [[nodiscard]] virtual Result<std::uint64_t> available() = 0;
    /// Memory of the device, aligned to 256 bytes; the device frees it when it is destroyed.
    [[nodiscard]] virtual Result<std::uint64_t> allocate(std::uint64_t bytes) = 0;
    /// Returns when the bytes are there.
    [[nodiscard]] virtual Result<void> upload(std::uint64_t address, std::span<const std::byte> bytes) = 0;
    [[nodiscard]] virtual Result<void> download(std::uint64_t address, std::span<std::byte> bytes) = 0;

    /// Begins all copies of a table. Pre: it was loaded on this device.
    [[nodiscard]] virtual Result<void> launch(const LoadedTable& table) = 0;
    /// Begins a copy from this device's memory to another's.
    [[nodiscard]] virtual Result<void> send(std::uint64_t from,
                                            Device& to_device,
                                            std::uint64_t to,
                                            std::uint64_t bytes) = 0;
    /// What is begun here after this waits for all that `other` has begun so far.
    [[nodiscard]] virtual Result<void> follow(Device& other) = 0;
    /// Begins to write the elements' values, or their complements.
    [[nodiscard]] virtual Result<void> fill(const RegionElements& elements, bool is_complemented) = 0;
    /// Begins to compare elements with their values, and to add what it finds to the ElementVerdict at
    /// `verdict`, in device memory.
    [[nodiscard]] virtual Result<void> compare(const RegionElements& elements, std::uint64_t verdict) = 0;
    [[nodiscard]] virtual Result<bool> is_idle() = 0;

    /// From here on, what is begun is kept and not run, also on devices and streams that wait for this one since.
    [[nodiscard]] virtual Result<void> begin_capture() = 0;
    /// Ends that, also after a fault, and returns what `replay` takes. Pre: this device waits for all that joined it.
    [[nodiscard]] virtual Result<std::uint32_t> end_capture() = 0;
    /// Begins all that was captured, each after what it waited for.
    [[nodiscard]] virtual Result<void> replay(std::uint32_t graph) = 0;
};

/// Puts a table into the device's memory. An empty table takes none.
[[nodiscard]] Result<LoadedTable> load(Device& device, const CopyTable& table);

}  // namespace refit::exec
