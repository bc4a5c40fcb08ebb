// SPDX-License-Identifier: Apache-2.0
#include "refit/certificate.hpp"

#include <algorithm>

#include "optimal/busy.hpp"
#include "refit/optimal.hpp"
#include "refit/traffic.hpp"

namespace refit {
namespace {

std::vector<PortSeconds> port_seconds(const Traffic& traffic, const Fabric& fabric) {
    std::vector<PortSeconds> ports;
    ports.reserve(fabric.ranks());
    for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
        const auto& bytes = traffic.ports()[rank];
        const auto& rates = fabric.ports(rank);
        ports.push_back({seconds(static_cast<double>(bytes.nic_out), rates.nic_out),
                         seconds(static_cast<double>(bytes.nic_in), rates.nic_in),
                         seconds(static_cast<double>(bytes.nvlink_out), rates.nvlink_out),
                         seconds(static_cast<double>(bytes.nvlink_in), rates.nvlink_in)});
    }
    return ports;
}

/// Takes the busiest uplink where it is busy longer than any port.
void raise_by_uplinks(Certificate& certificate, const Traffic& traffic, const Fabric& fabric) {
    const auto raise = [&](std::uint32_t pod, std::uint64_t bytes, double rate, const char* resource) {
        const Seconds time{seconds(static_cast<double>(bytes), rate)};
        if (time > certificate.port_time) {
            certificate.port_time = time;
            certificate.resource = resource;
            certificate.pod = pod;
        }
    };
    for (std::uint32_t pod = 0; pod < traffic.pods().size(); ++pod) {
        raise(pod, traffic.pods()[pod].up, fabric.spine().up[pod], "spine-up");
        raise(pod, traffic.pods()[pod].down, fabric.spine().down[pod], "spine-down");
    }
    for (std::uint32_t rank = fabric.ranks(); certificate.pod && rank > 0; --rank) {
        const bool is_in_pod = fabric.pod_of(fabric.domain_of(rank - 1)) == *certificate.pod;
        certificate.rank = is_in_pod ? RankId{rank - 1} : certificate.rank;
    }
}

/// The largest bound where proxies may not lend their NICs to holders.
Seconds without_lenders(const CutBounds& bounds) {
    Seconds largest = bounds.own_nic_egress.time;
    for (const auto& cut : bounds.cuts) {
        largest = cut.kind == BoundKind::kSourceEgress ? largest : std::max(largest, cut.time);
    }
    return largest;
}

/// A slice belongs to the stage of its holders.
Seconds one_stage_at_a_time(const Workload& workload, const SliceTable& slices, const Fabric& fabric) {
    std::vector<std::vector<std::uint32_t>> stages(workload.train_stages());
    for (std::uint32_t i = 0; i < slices.slices().size(); ++i) {
        const auto holder = slices.rank_set(slices.slices()[i].holders).front();
        stages[holder / workload.trainers_per_stage()].push_back(i);
    }
    Seconds sum;
    for (const auto& stage : stages) {
        sum += lower_bound(slices, stage, fabric).time;
    }
    return sum;
}

Certificate certify(const Plan& plan, const Cluster& cluster, const Fabric& fabric, const Workload& workload, const SliceTable& slices) {
    Certificate certificate;
    const auto moved = traffic(plan, cluster);
    const auto busiest = busiest_port(port_seconds(moved, fabric));
    certificate.port_time = busiest.time;
    certificate.resource = busiest.resource;
    certificate.rank = RankId{busiest.rank};
    raise_by_uplinks(certificate, moved, fabric);
    certificate.bounds = cut_bounds(slices, fabric);
    certificate.relaxations.push_back({"if only the holders' own NICs send", without_lenders(certificate.bounds)});
    if (workload.train_stages() > 1) {
        certificate.relaxations.push_back({"one training stage at a time", one_stage_at_a_time(workload, slices, fabric)});
    }
    return certificate;
}

}  // namespace

double Certificate::ratio() const {
    const auto bound = bounds.largest().time;
    return bound > Seconds{} ? port_time / bound : 1.0;
}

Certificate certify(const Plan& plan, const Cluster& cluster, const SideRates& rates, const Workload& workload) {
    return certify(plan, cluster, Fabric{cluster, rates}, workload, SliceTable::make(workload, cluster.train_gpus()));
}

Certificate certify(const Plan& plan, const Scenario& scenario, const Workload& workload) {
    const auto& cluster = scenario.cluster;
    const auto& constants = scenario.engine.constants;
    const auto rates = port_rates(cluster, constants.nic_efficiency.value, constants.nvlink_efficiency.value);
    const auto slices = SliceTable::make(workload, cluster.train_gpus());
    auto certificate = certify(plan, cluster, Fabric{cluster, rates}, workload, slices);
    const auto add_placement = [&](const Placement& placement, std::string condition) {
        if (placement == cluster.placement()) {
            return;
        }
        const auto other = Cluster{cluster.train_system(), cluster.generate_system(), cluster.train_gpus(), cluster.generate_gpus(),
                                   placement, cluster.fabric()}
                               .without(cluster.losses());
        certificate.relaxations.push_back(
            {std::move(condition), lower_bound(slices, Fabric{other, rates}).time});
    };
    const auto train = usual_gpus_per_domain(cluster.train_system());
    const auto generate = usual_gpus_per_domain(cluster.generate_system());
    add_placement({train, generate, true}, "with " + std::to_string(generate) + " GPUs of each domain used, sides apart");
    add_placement({cluster.train_system().gpus_per_domain, cluster.generate_system().gpus_per_domain, true},
                  "with all " + std::to_string(cluster.generate_system().gpus_per_domain) + " GPUs of each domain used, sides apart");
    return certificate;
}

}  // namespace refit
