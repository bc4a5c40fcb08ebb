// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "refit/units.hpp"

namespace refit {

/// A figure with its doubt and its origin.
template <class T>
struct Figure {
    T value;
    T low;   ///< Range: low <= value <= high.
    T high;
    std::string source;
    std::string kind = "assumed";  ///< "measured", "vendor", "inferred" or "assumed".
    bool operator==(const Figure&) const = default;
};

/// A kind of machine: GPUs joined by NVLink into domains, and by one or more NICs each to the rest.
/// Rates are line rates in one direction; how much of them software reaches belongs to the engine.
struct System {
    std::string name;          ///< "h100-nvl8".
    std::string title;         ///< "H100 NVL8".
    std::string gpu;           ///< "H100".
    bool is_blackwell = false; ///< Blackwell or later: finalising experts costs extra there.
    std::uint32_t gpus_per_node = 1;
    std::uint32_t gpus_per_domain = 1;
    std::uint32_t nics_per_gpu = 1;
    Figure<Bytes> gpu_memory;      ///< As CUDA reports it.
    Figure<Bandwidth> nic;         ///< One NIC.
    Figure<Bandwidth> nvlink;      ///< One GPU.
    Figure<Bandwidth> hbm_copy;    ///< Payload of a device copy: read and written once each.

    /// All NICs of one GPU.
    [[nodiscard]] Bandwidth nic_per_gpu() const { return nic.value * static_cast<double>(nics_per_gpu); }
    bool operator==(const System&) const = default;
};

}  // namespace refit
