// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>

#include "refit/fabric.hpp"

namespace refit::testing_support {

/// Writes a platform file of SimGrid: a host a rank, with two planes. Ranks of a domain reach each other over
/// their NVLink ports, all others over their NICs; latencies are 0. And beside it, FILE.hosts: the hosts by
/// rank.
inline void write_smpi_platform(const Fabric& fabric, const std::string& file) {
    std::ofstream platform{file};
    std::ofstream hosts{file + ".hosts"};
    platform << "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                "<platform version=\"4.1\">\n<zone id=\"job\" routing=\"Full\">\n";
    platform.precision(17);
    const auto link = [&](const std::string& id, double rate) {
        platform << "<link id=\"" << id << "\" bandwidth=\"" << rate << "Bps\" latency=\"0s\"/>\n";
    };
    for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
        platform << "<host id=\"r" << rank << "\" speed=\"1Gf\"/>\n";
        hosts << "r" << rank << "\n";
    }
    for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
        const std::string id = "r" + std::to_string(rank);
        link(id + "-nic-out", fabric.ports(rank).nic_out);
        link(id + "-nic-in", fabric.ports(rank).nic_in);
        link(id + "-nvlink-out", fabric.ports(rank).nvlink_out);
        link(id + "-nvlink-in", fabric.ports(rank).nvlink_in);
    }
    platform << "<link id=\"self\" bandwidth=\"1e13Bps\" latency=\"0s\" sharing_policy=\"FATPIPE\"/>\n";
    for (std::uint32_t from = 0; from < fabric.ranks(); ++from) {
        for (std::uint32_t to = 0; to < fabric.ranks(); ++to) {
            const char* const plane = fabric.domain_of(from) == fabric.domain_of(to) ? "-nvlink" : "-nic";
            platform << "<route src=\"r" << from << "\" dst=\"r" << to << "\" symmetrical=\"NO\">";
            if (from == to) {
                platform << "<link_ctn id=\"self\"/>";
            } else {
                platform << "<link_ctn id=\"r" << from << plane << "-out\"/><link_ctn id=\"r" << to << plane
                         << "-in\"/>";
            }
            platform << "</route>\n";
        }
    }
    platform << "</zone>\n</platform>\n";
}

}  // namespace refit::testing_support
