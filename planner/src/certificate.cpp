// SPDX-License-Identifier: Apache-2.0
#include "refit/certificate.hpp"

#include <algorithm>

#include "refit/traffic.hpp"

namespace refit {
namespace {

void find_busiest(Certificate& certificate, const Traffic& traffic, const Fabric& fabric) {
    for (std::uint32_t rank = 0; rank < fabric.ranks(); ++rank) {
        const auto& bytes = traffic.ports()[rank];
        const auto& rates = fabric.ports(rank);
        const auto raise = [&](std::uint64_t amount, double rate, const char* resource) {
            const Seconds time{amount > 0 ? static_cast<double>(amount) / rate : 0.0};
            if (time > certificate.port_time) {
                certificate.port_time = time;
                certificate.resource = resource;
                certificate.rank = RankId{rank};
            }
        };
        raise(bytes.nic_out, rates.nic_out, "nic-out");
        raise(bytes.nic_in, rates.nic_in, "nic-in");
        raise(bytes.nvlink_out, rates.nvlink_out, "nvlink-out");
        raise(bytes.nvlink_in, rates.nvlink_in, "nvlink-in");
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

/// The slices of one training stage.
Workload of_stage(const Workload& workload, std::uint32_t stage) {
    std::vector<WorkloadClass> classes{workload.classes().begin(), workload.classes().end()};
    for (auto& entry : classes) {
        std::erase_if(entry.slices, [&](const WorkloadSlice& slice) { return slice.train_stage != stage; });
    }
    return Workload::of(std::move(classes), workload.train_stages(), workload.trainers_per_stage(),
                        static_cast<std::uint32_t>(workload.generator_bytes().size()));
}

Seconds one_stage_at_a_time(const Workload& workload, const Cluster& cluster, const Fabric& fabric) {
    Seconds sum;
    for (std::uint32_t stage = 0; stage < workload.train_stages(); ++stage) {
        sum += lower_bound(SliceTable::make(of_stage(workload, stage), cluster.train_gpus()), fabric).time;
    }
    return sum;
}

}  // namespace

double Certificate::ratio() const {
    const auto bound = bounds.largest().time;
    return bound > Seconds{} ? port_time / bound : 1.0;
}

Certificate certify(const Plan& plan, const Cluster& cluster, const SideRates& rates, const Workload& workload) {
    const Fabric fabric{cluster, rates};
    Certificate certificate;
    find_busiest(certificate, traffic(plan, cluster), fabric);
    certificate.bounds = cut_bounds(SliceTable::make(workload, cluster.train_gpus()), fabric);
    certificate.relaxations.push_back({"if only the holders' own NICs send", without_lenders(certificate.bounds)});
    if (workload.train_stages() > 1) {
        certificate.relaxations.push_back({"one training stage at a time", one_stage_at_a_time(workload, cluster, fabric)});
    }
    return certificate;
}

Certificate certify(const Plan& plan, const Scenario& scenario, const Workload& workload) {
    const auto& cluster = scenario.cluster;
    const auto& constants = scenario.engine.constants;
    const auto rates = port_rates(cluster, constants.nic_efficiency.value, constants.nvlink_efficiency.value);
    auto certificate = certify(plan, cluster, rates, workload);
    const auto add_placement = [&](const Placement& placement, std::string condition) {
        if (placement == cluster.placement()) {
            return;
        }
        const Cluster other{cluster.train_system(), cluster.generate_system(), cluster.train_gpus(), cluster.generate_gpus(), placement};
        certificate.relaxations.push_back(
            {std::move(condition), lower_bound(SliceTable::make(workload, cluster.train_gpus()), Fabric{other, rates}).time});
    };
    const auto train = usual_gpus_per_domain(cluster.train_system());
    const auto generate = usual_gpus_per_domain(cluster.generate_system());
    add_placement({train, generate, true}, "with " + std::to_string(generate) + " GPUs of each domain used, sides apart");
    add_placement({cluster.train_system().gpus_per_domain, cluster.generate_system().gpus_per_domain, true},
                  "with all " + std::to_string(cluster.generate_system().gpus_per_domain) + " GPUs of each domain used, sides apart");
    return certificate;
}

}  // namespace refit
