// SPDX-License-Identifier: Apache-2.0
#include "refit/link_constants.hpp"

#include <algorithm>

#include "refit/quantity.hpp"

namespace refit {
namespace {

/// How near to NVLink's rate a ring over NICs may come before NVLink may be what limits it.
constexpr double kNearNvlink = 0.95;

std::string rate_text(double rate) {
    return format_bandwidth(Bandwidth::bytes_per_second(rate));
}

class LinkReader {
public:
    LinkReader(const System& system, const EngineConstants& constants) : system_{system} {
        result_.constants = constants;
    }

    Result<LinkConstants> run(std::span<const NcclTable> tables) {
        // NVLink first: what NICs reach is told from what NVLink allows.
        for (const bool crosses : {false, true}) {
            for (const auto& table : tables) {
                if (crosses_domains(table) == crosses) {
                    read(table, crosses);
                }
            }
            settle(crosses ? "nic_efficiency" : "nvlink_efficiency");
        }
        if (!faults_.empty()) {
            return fail(std::move(faults_));
        }
        return std::move(result_);
    }

private:
    /// A node is a domain of its own unless domains span nodes; then as many ranks as fit are taken to share
    /// one.
    [[nodiscard]] bool crosses_domains(const NcclTable& table) const {
        const bool is_node_wide = system_.gpus_per_domain == system_.gpus_per_node;
        return table.ranks > system_.gpus_per_domain || (is_node_wide && table.hosts > 1);
    }

    void refuse(const NcclTable& table, std::string message) {
        faults_.push_back({ErrorCode::kInvalidInput, "nccl-tests", std::move(message), table.where});
    }

    void read(const NcclTable& table, bool crosses) {
        LinkReading reading{table.test, table.where, table.ranks, table.hosts, {}, 0.0, fit_link(table), {}};
        const bool is_ring = table.test == "all_gather" || table.test == "broadcast";
        if (table.wrong > 0) {
            refuse(table,
                   std::to_string(table.wrong) +
                       " rows have wrong elements; a transfer that loses bytes times nothing");
        } else if (!is_ring && table.test != "sendrecv") {
            reading.passed_over =
                table.test.empty()
                    ? "the log does not name its test; name the file all_gather_perf.log or the like"
                    : table.test +
                          " does not run as a ring or pairs; all_gather, broadcast and sendrecv tell";
        } else if (table.ranks < 2 || table.hosts == 0) {
            refuse(table,
                   "the log lists " + std::to_string(table.ranks) +
                       " ranks; it needs the lines \"# Rank 0 Group 0 Pid 1 on HOST device 0 ...\" of two or "
                       "more");
        } else {
            measure(table, crosses, is_ring, reading);
        }
        result_.readings.push_back(std::move(reading));
    }

    void measure(const NcclTable& table, bool crosses, bool is_ring, LinkReading& reading) {
        const auto nvlink = system_.nvlink.value.bytes_per_second();
        const auto domains = std::max<std::uint32_t>(
            1,
            system_.gpus_per_domain == system_.gpus_per_node
                ? table.hosts
                : (table.ranks + system_.gpus_per_domain - 1) / system_.gpus_per_domain);
        const auto nics =
            is_ring ? static_cast<double>(std::max<std::uint32_t>(1, table.ranks / domains)) : 1.0;
        const auto line = crosses ? nics * system_.nic_per_gpu().bytes_per_second() : nvlink;
        const auto rate = reading.fit.rate;
        if (crosses && nics > 1.0 &&
            rate > kNearNvlink * result_.constants.nvlink_efficiency.value * nvlink) {
            reading.passed_over = rate_text(rate) + " is what NVLink reaches, so NICs may be faster";
            return;
        }
        if (rate > line) {
            refuse(table,
                   rate_text(rate) + " is above the line rate of " + system_.name + ", " + rate_text(line) +
                       "; is --system right?");
            return;
        }
        reading.constant = crosses ? "nic_efficiency" : "nvlink_efficiency";
        reading.efficiency = rate / line;
    }

    void settle(const std::string& name) {
        const LinkReading* best = nullptr;
        double low = 1.0;
        for (const auto& reading : result_.readings) {
            if (reading.constant == name) {
                best = best == nullptr || reading.efficiency > best->efficiency ? &reading : best;
                low = std::min(low, reading.efficiency / reading.fit.spread);
            }
        }
        if (best == nullptr) {
            return;
        }
        auto& constant =
            name == "nic_efficiency" ? result_.constants.nic_efficiency : result_.constants.nvlink_efficiency;
        constant.value = best->efficiency;
        constant.low = low;
        constant.high = std::min(1.0, best->efficiency * best->fit.spread);
        constant.kind = "measured";
        constant.source = "nccl-tests, " + best->test + " on " + std::to_string(best->ranks) + " GPUs of " +
                          std::to_string(best->hosts) + (best->hosts == 1 ? " host of " : " hosts of ") +
                          system_.name + ": " + rate_text(best->fit.rate);
        constant.identified_by.clear();
        constant.prior.reset();
        constant.bounds.reset();
    }

    const System& system_;
    LinkConstants result_;
    Faults faults_;
};

}  // namespace

Result<LinkConstants> link_constants(std::span<const NcclTable> tables,
                                     const System& system,
                                     const EngineConstants& constants) {
    return LinkReader{system, constants}.run(tables);
}

}  // namespace refit
