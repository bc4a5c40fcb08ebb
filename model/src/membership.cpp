// SPDX-License-Identifier: Apache-2.0
#include "refit/membership.hpp"

#include <charconv>
#include <numeric>

namespace refit {
namespace {

constexpr std::uint64_t kMostGpus = 1U << 20U;

std::string counted(std::uint64_t number, const char* what) {
    return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

std::uint64_t rounded_up(std::uint64_t number, std::uint64_t by) {
    return (number + by - 1) / by;
}

/// "2 nodes (16 GPUs) and 8 GPUs".
std::string describe_all(std::span<const GpuRun> runs) {
    std::string text;
    for (const auto& run : runs) {
        text += (text.empty() ? "" : " and ") + describe(run);
    }
    return text;
}

bool are_nodes(std::span<const GpuRun> runs) {
    return !runs.empty() && runs.front().nodes > 0;
}

/// What can be lost at most and leaves a replica, as an option.
std::string most_lost(std::uint64_t gpus, bool in_nodes, std::uint32_t gpus_per_node) {
    const auto nodes = gpus / gpus_per_node;
    return in_nodes && nodes > 0 ? "--lose " + std::to_string(nodes) + "node"
                                 : "--lose " + std::to_string(gpus) + "gpu";
}

std::string least_gain(std::uint64_t gpus, bool in_nodes, std::uint32_t gpus_per_node) {
    return in_nodes ? "--gain " + std::to_string(rounded_up(gpus, gpus_per_node)) + "node"
                    : "--gain " + std::to_string(gpus) + "gpu";
}

}  // namespace

Result<GpuRun> parse_gpu_run(std::string_view text, std::uint32_t gpus_per_node) {
    std::uint64_t number = 0;
    const auto* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    const std::string_view unit{read.ptr, static_cast<std::size_t>(end - read.ptr)};
    const bool is_node = unit == "node" || unit == "nodes";
    const auto quoted = "'" + std::string{text} + "'";
    if (read.ec == std::errc::invalid_argument || (!is_node && unit != "gpu" && unit != "gpus")) {
        const auto example = read.ec == std::errc{} && number > 0 ? std::to_string(number) : std::string{"1"};
        return fail(
            ErrorCode::kInvalidInput,
            "gpu-run",
            quoted + " is no number of nodes or GPUs; write " + example + "node or " + example + "gpu");
    }
    if (read.ec != std::errc{} || number == 0 || number > kMostGpus ||
        number * (is_node ? gpus_per_node : 1U) > kMostGpus) {
        return fail(ErrorCode::kInvalidInput,
                    "gpu-run",
                    quoted + " must be 1 to " + std::to_string(kMostGpus) + " GPUs; write " +
                        (read.ec == std::errc{} && number == 0
                             ? "1"
                             : std::to_string(is_node ? kMostGpus / gpus_per_node : kMostGpus)) +
                        (is_node ? "node" : "gpu"));
    }
    const auto count = static_cast<std::uint32_t>(number);
    return is_node ? GpuRun{count * gpus_per_node, count} : GpuRun{count, 0};
}

std::string describe(const GpuRun& run) {
    const auto gpus = counted(run.gpus, "GPU");
    return run.nodes > 0 ? counted(run.nodes, "node") + " (" + gpus + ")" : gpus;
}

std::uint32_t replica_gpus(const GenerateLayout& layout) noexcept {
    return std::lcm(layout.tp * layout.pp, layout.ep);
}

Result<MembershipChange> change_members(const GenerateLayout& layout,
                                        std::span<const GpuRun> lost,
                                        std::span<const GpuRun> gained,
                                        std::uint32_t gpus_per_node) {
    MembershipChange change;
    const auto size = replica_gpus(layout);
    change.replica_gpus = size;
    change.replicas_before = layout.gpus / size;
    std::uint64_t replicas = 0;
    std::uint64_t idle = 0;
    for (const auto& run : lost) {
        replicas += rounded_up(run.gpus, size);
        idle += rounded_up(run.gpus, size) * size - run.gpus;
    }
    std::uint64_t coming = 0;
    for (const auto& run : gained) {
        coming += run.gpus;
    }
    Faults faults;
    if (replicas >= change.replicas_before) {
        const auto most = std::uint64_t{change.replicas_before - 1} * size;
        faults.push_back(
            {ErrorCode::kInfeasible,
             "last-replica",
             "losing " + describe_all(lost) + " leaves no replica: there " +
                 (change.replicas_before == 1 ? "is 1" : "are " + std::to_string(change.replicas_before)) +
                 " of " + counted(size, "GPU") +
                 (most == 0 ? "; add one first: " + least_gain(size, are_nodes(lost), gpus_per_node) +
                                  " without --lose"
                            : "; at most " + most_lost(most, are_nodes(lost), gpus_per_node) + " leaves one"),
             "--lose"});
    }
    if (coming > 0 && idle + coming < size) {
        faults.push_back(
            {ErrorCode::kInfeasible,
             "no-whole-replica",
             "gaining " + describe_all(gained) +
                 (idle > 0 ? ", with " + std::to_string(idle) + " GPUs left idle by the loss," : "") +
                 " makes no whole replica of " + counted(size, "GPU") + "; " +
                 least_gain(size - idle, are_nodes(gained), gpus_per_node) + " does",
             "--gain"});
    }
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    const auto pool = idle + coming;
    change.lost_replicas = static_cast<std::uint32_t>(replicas);
    change.new_replicas = coming > 0 ? static_cast<std::uint32_t>(pool / size) : 0;
    change.idle_gpus = static_cast<std::uint32_t>(pool - std::uint64_t{change.new_replicas} * size);
    change.after = layout;
    change.after.gpus = change.replicas_after() * size;
    change.after.dp = change.after.gpus / (layout.tp * layout.pp);
    return change;
}

}  // namespace refit
