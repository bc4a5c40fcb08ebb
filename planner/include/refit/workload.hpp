// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "refit/distribution.hpp"
#include "refit/losses.hpp"
#include "refit/parameter.hpp"
#include "refit/scenario.hpp"

namespace refit {

/// The layers of a class that go from one trainer stage to one generator stage.
struct WorkloadSlice {
    std::uint32_t train_stage;
    std::uint32_t generate_stage;
    std::uint32_t layers;  ///< Layers, hence logical tensors; 1 for a parameter outside the layers.
    bool is_copy = false;  ///< A second destination of tensors that another slice has: the head of a tied embedding.
    /// Which of the class's logical tensors these are, ascending, where an interleaved pipeline has them; empty: those
    /// after the ones of the slices before.
    std::vector<std::uint32_t> numbers = {};
    bool operator==(const WorkloadSlice&) const = default;
};

/// A parameter class with who holds it before and who wants it after.
struct WorkloadClass {
    ParameterClass parameter;
    Distribution source;                     ///< Members are numbered within a trainer stage.
    std::vector<Distribution> destinations;  ///< By generator stage; members are numbered over all generators.
    std::vector<WorkloadSlice> slices;

    /// Bytes of one element.
    [[nodiscard]] std::uint64_t element_bytes() const noexcept { return size_of(parameter.dtype); }
    /// Logical tensors: layers, or one.
    [[nodiscard]] std::uint64_t logical_tensors() const noexcept;
    /// Which of them is the `tensor`-th of a slice; a copy's is what it copies. Range: below logical_tensors(); the layer
    /// is `parameter.layers` of it.
    [[nodiscard]] std::uint64_t logical_number(std::uint32_t slice, std::uint32_t tensor) const;
};

/// Who holds which box of every parameter that a refit moves, before and after, by classes.
class Workload {
public:
    /// Without the ranks that the scenario's cluster has lost: a class of which one of several pipeline stages has lost a
    /// holder is a class of its own there. Cost: in classes and ranks, not in tensors.
    [[nodiscard]] static Workload make(const Scenario& scenario);
    /// From distributions as they are. Pre: members of sources lie below `trainers_per_stage`, members of destinations
    /// below `generators`; every destination element is held by some source member of each slice's trainer stage; who is
    /// lost holds and wants nothing.
    [[nodiscard]] static Workload of(std::vector<WorkloadClass> classes, std::uint32_t train_stages,
                                     std::uint32_t trainers_per_stage, std::uint32_t generators, Losses losses = {});

    [[nodiscard]] std::span<const WorkloadClass> classes() const noexcept { return classes_; }
    [[nodiscard]] std::uint32_t train_stages() const noexcept { return train_stages_; }
    /// Ranks of one trainer stage; those of stage s begin at rank s times this.
    [[nodiscard]] std::uint32_t trainers_per_stage() const noexcept { return trainers_per_stage_; }
    /// Bytes that each generator holds after the refit, by its index.
    [[nodiscard]] std::span<const std::uint64_t> generator_bytes() const noexcept { return generator_bytes_; }
    /// Ranks of the job that take no part: no plan may name them.
    [[nodiscard]] const Losses& losses() const noexcept { return losses_; }
    /// Sum of all destination boxes.
    [[nodiscard]] Bytes delivered_bytes() const;
    /// Every parameter once.
    [[nodiscard]] Bytes payload_bytes() const;

private:
    Workload(std::vector<WorkloadClass> classes, std::uint32_t train_stages, std::uint32_t trainers_per_stage,
             std::vector<std::uint64_t> generator_bytes, Losses losses);

    std::vector<WorkloadClass> classes_;
    std::uint32_t train_stages_;
    std::uint32_t trainers_per_stage_;
    std::vector<std::uint64_t> generator_bytes_;
    Losses losses_;
};

}  // namespace refit
