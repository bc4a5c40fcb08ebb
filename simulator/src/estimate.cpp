// SPDX-License-Identifier: Apache-2.0
#include "refit/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

#include "refit/quantity.hpp"

namespace refit {
namespace {

std::string bytes_text(double bytes) { return format_bytes(Bytes{static_cast<std::uint64_t>(std::llround(bytes))}); }
std::string rate_text(double rate) { return format_bandwidth(Bandwidth::bytes_per_second(rate)); }
std::string cost_text(double seconds) { return format_seconds(Seconds{seconds}); }

class Estimator {
public:
    Estimator(const PlanLoads& loads, const Setting& setting, const Reading& reading, bool has_terms)
        : loads_{loads}, setting_{setting}, reading_{reading}, has_terms_{has_terms} {}

    Estimate run() {
        add_fixed();
        if (is_gathered_first()) {
            add_gather_and_transfers();
        } else {
            add_bulk();
        }
        for (const auto& stage : loads_.stages) {
            if (stage.kind == StageKind::kRelay) {
                add_relays(stage);
            }
        }
        for (std::size_t i = 0; i + 1 < loads_.stages.size(); ++i) {
            if (loads_.stages[i].kind == StageKind::kGather && loads_.stages[i + 1].kind == StageKind::kBroadcast) {
                add_gather_and_broadcast(loads_.stages[i], loads_.stages[i + 1]);
            }
        }
        add_finalize();
        return std::move(result_);
    }

private:
    [[nodiscard]] const EngineConstants& constants() const noexcept { return setting_.constants; }

    /// `formula` makes a text, and is only called where terms are wanted.
    template <class Formula>
    void term(const char* phase, const char* name, double seconds, const Formula& formula,
              std::initializer_list<const char*> names, bool is_hidden = false) {
        if (has_terms_ && seconds > 0.0) {
            result_.terms.push_back({name, phase, Seconds{seconds}, formula(), {names.begin(), names.end()}, is_hidden});
        }
    }
    void phase(const char* name, double seconds, bool is_hidden = false) {
        if (seconds > 0.0) {
            result_.total += Seconds{is_hidden ? 0.0 : seconds};
            if (has_terms_) {
                result_.phases.push_back({name, Seconds{seconds}, is_hidden});
            }
        }
    }

    [[nodiscard]] double ring_rate(const RingLoad& ring) const {
        auto nvlink = ring.nvlink * constants().nvlink_efficiency.value;
        if (!ring.crosses_domains) {
            const bool is_slow = reading_.finalize == FinalizeReading::kSlowAllGather && is_among_replicas(ring.role);
            return nvlink * (is_slow ? constants().finalize_slow_allgather_factor.value : 1.0);
        }
        const bool has_one_nic =
            is_among_replicas(ring.role) && reading_.replica_ring == ReplicaRingReading::kOneNic;
        return std::min(nvlink, (has_one_nic ? 1.0 : ring.channels) * ring.nic * constants().nic_efficiency.value);
    }
    [[nodiscard]] double ring_seconds(const RingLoad& ring) const {
        return std::max(ring.wire_bytes / ring_rate(ring), fabric_seconds(ring.fabric));
    }

    [[nodiscard]] double nic_seconds(const FabricLoad& load) const { return load.nic / constants().nic_efficiency.value; }
    [[nodiscard]] double spine_seconds(const FabricLoad& load) const { return load.spine / constants().nic_efficiency.value; }
    [[nodiscard]] double fabric_seconds(const FabricLoad& load) const {
        return std::max({nic_seconds(load), load.nvlink / constants().nvlink_efficiency.value, spine_seconds(load)});
    }
    /// What binds, where healthy ports would be done after `plain` seconds: ", at the uplink of pod 2".
    [[nodiscard]] std::string limit_text(const FabricLoad& load, double plain) const {
        const auto slowest = std::max(nic_seconds(load), spine_seconds(load));
        if (!has_terms_ || slowest <= plain * (1.0 + 1e-9)) {
            return {};
        }
        return ", at the " + (spine_seconds(load) >= slowest ? load.spine_name : load.nic_name);
    }

    void add_fixed() {
        const auto once = constants().fixed_cost.value;
        const auto growth = constants().fixed_cost_per_gpu.value * setting_.gpus;
        term("fixed",
             "control",
             once + growth,
             [&] { return cost_text(once) + " + " + std::to_string(setting_.gpus) + " GPUs x " + cost_text(constants().fixed_cost_per_gpu.value); },
             {"fixed_cost", "fixed_cost_per_gpu"});
        phase("fixed", once + growth);
        result_.software += Seconds{once + growth};
    }

    /// One role's collectives in a gather stage.
    struct RoleSum {
        double seconds = 0.0;
        double bytes = 0.0;
        double rate = 0.0;
        double calls = 0.0;
        bool crosses = false;
        std::string limit;  ///< What the network does to the rate.
    };
    [[nodiscard]] RoleSum sum_of(const StageLoads& stage, CollectiveRole role) const {
        RoleSum sum;
        for (const auto& ring : stage.rings) {
            if (ring.role == role) {
                sum.seconds += ring_seconds(ring);
                sum.bytes += ring.wire_bytes;
                const auto plain = ring.wire_bytes / ring_rate(ring);
                sum.rate = ring_seconds(ring) > plain ? ring.wire_bytes / ring_seconds(ring) : ring_rate(ring);
                sum.limit = limit_text(ring.fabric, plain);
                sum.calls += static_cast<double>(ring.calls);
                sum.crosses = sum.crosses || ring.crosses_domains;
            }
        }
        return sum;
    }

    /// Adds one role's term and returns its sum.
    RoleSum add_role(const StageLoads& stage, CollectiveRole role, const char* name) {
        auto sum = sum_of(stage, role);
        if (sum.seconds > 0.0) {
            term("gather",
                 name,
                 sum.seconds,
                 [&] { return bytes_text(sum.bytes) + " a rank / " + rate_text(sum.rate) + sum.limit; },
                 {sum.crosses ? "nic_efficiency" : "nvlink_efficiency"});
        }
        return sum;
    }

    /// In turns, several broadcasts last as long as all of them. Else they run at once: as long as the longest, as the busiest NIC, and as NVLink, over which every
    /// receiver takes all of them.
    [[nodiscard]] RoleSum broadcasts_of(const StageLoads& stage) const {
        auto sum = sum_of(stage, CollectiveRole::kWeightBroadcast);
        if (stage.rings.size() < 2) {
            return sum;
        }
        if (setting_.options.broadcast_in_turns) {
            sum.rate = sum.bytes / sum.seconds;
            return sum;
        }
        const auto nic = constants().nic_efficiency.value;
        sum.seconds = std::max(std::max(stage.train.nic_out, stage.train.nic_in) / (setting_.train_nic * nic),
                               std::max(stage.generate.nic_out, stage.generate.nic_in) / (setting_.generate_nic * nic));
        double on_nvlink = 0.0;
        for (const auto& ring : stage.rings) {
            sum.seconds = std::max(sum.seconds, ring_seconds(ring));
            on_nvlink += ring.wire_bytes / (ring.nvlink * constants().nvlink_efficiency.value);
        }
        sum.seconds = std::max(sum.seconds, on_nvlink);
        sum.limit = limit_text(stage.fabric, sum.seconds);
        sum.seconds = std::max(sum.seconds, fabric_seconds(stage.fabric));
        sum.rate = sum.bytes / sum.seconds;
        return sum;
    }

    /// What trainers do, one after another, until a full parameter can be sent.
    struct Chain {
        double links = 0.0;
        double on_nics = 0.0;  ///< Of these, what crosses NICs.
        double total = 0.0;
    };
    Chain add_chain(const StageLoads& gather) {
        const auto pipeline = add_role(gather, CollectiveRole::kPipelineBroadcast, "pipeline broadcast");
        const auto tensor = add_role(gather, CollectiveRole::kTensorAllGather, "TP all-gather");
        const auto expert = add_role(gather, CollectiveRole::kExpertAllGather, "EP all-gather");
        const auto copy = gather.copied / setting_.hbm_copy;
        term("gather", "device copies", copy, [&] { return bytes_text(gather.copied) + " / " + rate_text(setting_.hbm_copy); }, {});
        const auto calls = pipeline.calls + tensor.calls + expert.calls;
        const auto call_seconds = calls * constants().call_cost.value;
        term("gather",
             "collective calls",
             call_seconds,
             [&] { return std::to_string(std::llround(calls)) + " calls x " + cost_text(constants().call_cost.value); },
             {"call_cost"});
        Chain chain;
        chain.links = pipeline.seconds + tensor.seconds + expert.seconds;
        chain.on_nics = (pipeline.crosses ? pipeline.seconds : 0.0) + (tensor.crosses ? tensor.seconds : 0.0) +
                        (expert.crosses ? expert.seconds : 0.0);
        chain.total = chain.links + copy + call_seconds;
        return chain;
    }

    /// What the hosts of the trainers that gather most do with it before they send.
    double add_staging(const StageLoads& gather) {
        const auto bytes = gather.payload * setting_.exported_share;
        const auto tensors = static_cast<double>(gather.loaded_tensors) * setting_.exported_tensors;
        const auto& per_byte = constants().staging_cost_per_byte.value;
        const auto& per_tensor = constants().staging_tensor_cost.value;
        term("gather",
             "staging",
             per_byte * bytes + per_tensor * tensors,
             [&] {
                 return bytes_text(bytes) + " x " + cost_text(per_byte * 1e9) + "/GB + " + std::to_string(std::llround(tensors)) +
                        " tensors x " + cost_text(per_tensor);
             },
             {"staging_cost_per_byte", "staging_tensor_cost"});
        return per_byte * bytes + per_tensor * tensors;
    }

    /// What the receivers' hosts do with what reached each of them.
    double add_loading(double tensors, double bytes) {
        const auto per_tensor = tensor_seconds(setting_);
        const auto per_byte = constants().load_cost_per_byte.value;
        const auto loading = loading_seconds(setting_, tensors, bytes);
        const auto by_tensor = [&] { return std::to_string(std::llround(tensors)) + " tensors x " + cost_text(per_tensor); };
        if (per_byte > 0.0) {
            term("load",
                 "loading",
                 loading,
                 [&] { return by_tensor() + " + " + bytes_text(bytes) + " x " + cost_text(per_byte * 1e9) + "/GB"; },
                 {"tensor_cost", "tensor_cost_per_expert", "load_cost_per_byte"});
        } else {
            term("load", "loading", loading, by_tensor, {"tensor_cost", "tensor_cost_per_expert"});
        }
        return loading;
    }

    void hide(std::string_view phase) {
        for (auto& entry : result_.terms) {
            entry.is_hidden = entry.is_hidden || entry.phase == phase;
        }
    }

    void add_gather_and_broadcast(const StageLoads& gather, const StageLoads& broadcast) {
        const auto chain = add_chain(gather);
        const auto sending = broadcasts_of(broadcast);
        const auto roots = broadcast.rings.size();
        term("broadcast",
             "weight broadcast",
             sending.seconds,
             [&] {
                 return bytes_text(sending.bytes) + " / " + rate_text(sending.rate) +
                        (roots > 1 ? " from " + std::to_string(roots) + " roots " + (setting_.options.broadcast_in_turns ? "in turns" : "at once") : "") +
                        sending.limit;
             },
             {sending.crosses ? "nic_efficiency" : "nvlink_efficiency", "nvlink_efficiency"});
        const auto loading = add_loading(static_cast<double>(gather.loaded_tensors), broadcast.payload);
        if (setting_.options.pack_overlap == PackOverlap::kSerial) {
            phase("gather", chain.total);
            phase("broadcast", sending.seconds);
            phase("load", loading);
            result_.transfer += Seconds{chain.links + sending.seconds};
            return;
        }
        // A broadcast hides behind work on NVLink, but not behind work on the same NICs.
        const auto shared = sending.crosses ? constants().nic_sharing.value * std::min(sending.seconds, chain.on_nics) : 0.0;
        add_pipelined(loading, chain.total, sending.seconds, shared);
        result_.transfer += Seconds{std::max(chain.links, sending.seconds) + shared};
    }

    /// Gather, broadcast and load run as a pipeline over packs.
    void add_pipelined(double loading, double chain, double sending, double shared) {
        const bool loading_binds = loading > std::max(chain, sending) + shared;
        if (loading_binds) {
            hide("gather");
            hide("broadcast");
        } else {
            hide("load");
        }
        const bool broadcast_leads = sending > chain;
        phase("gather", broadcast_leads ? shared : chain, loading_binds);
        phase("broadcast", broadcast_leads ? sending : shared, loading_binds);
        phase("load", loading, !loading_binds);
    }

    [[nodiscard]] bool is_gathered_first() const {
        return loads_.stages.size() > 1 && loads_.stages[0].kind == StageKind::kGather &&
               loads_.stages[1].kind == StageKind::kTransfer;
    }

    /// Trainers gather full parameters, of which receivers then get the pieces that they want.
    void add_gather_and_transfers() {
        const auto& gather = loads_.stages[0];
        auto chain = add_chain(gather);
        chain.total += add_staging(gather);
        const auto wire = add_wire(bulk_sums());
        const auto loading = add_loading(setting_.direct_tensors, setting_.local_bytes);
        result_.software += Seconds{chain.total - chain.links + loading};
        if (setting_.options.direct_overlap == PackOverlap::kSerial) {
            phase("gather", chain.total);
            phase("bulk", wire);
            phase("load", loading);
            result_.transfer += Seconds{chain.links + wire};
            return;
        }
        const auto longest = std::max({chain.total, wire, loading});
        for (const auto& [name, seconds] : {std::pair{"gather", chain.total}, std::pair{"bulk", wire}, std::pair{"load", loading}}) {
            phase(name, seconds, seconds < longest);
            if (seconds < longest) {
                hide(name);
            }
        }
        result_.transfer += Seconds{std::max(chain.links, wire)};
    }

    /// Times of the transfer stages, summed as their schedule needs.
    struct BulkSums {
        double all = 0.0;       ///< Transfers and replica collectives of every stage.
        double longest = 0.0;   ///< Of one stage.
        double send = 0.0;      ///< Parts of the sums: busiest sender, receiver, replicas.
        double receive_on_nic = 0.0;
        double receive_on_nvlink = 0.0;
        double on_spine = 0.0;
        double replicas_on_nic = 0.0;
        double replicas_on_nvlink = 0.0;
        double stages = 0.0;
        double experts = 0.0;
        double others = 0.0;
    };
    [[nodiscard]] BulkSums bulk_sums() const {
        BulkSums sums;
        const auto nic = constants().nic_efficiency.value;
        const auto nvlink = constants().nvlink_efficiency.value;
        for (const auto& stage : loads_.stages) {
            if (stage.kind != StageKind::kTransfer) {
                continue;
            }
            const auto send = std::max(stage.train.nic_out / (setting_.train_nic * nic),
                                       stage.train.nvlink_out / (setting_.train_nvlink * nvlink));
            const auto on_nic = stage.generate.nic_in / (setting_.generate_nic * nic);
            const auto on_nvlink = stage.generate.nvlink_in / (setting_.generate_nvlink * nvlink);
            double replicas = 0.0;
            for (const auto& ring : stage.rings) {
                replicas += ring_seconds(ring);
                (ring.crosses_domains ? sums.replicas_on_nic : sums.replicas_on_nvlink) += ring_seconds(ring);
            }
            const auto on_fabric = fabric_seconds(stage.fabric);
            const auto whole = std::max({send, on_nic, on_nvlink, on_fabric}) + replicas;
            sums.all += whole;
            sums.longest = std::max(sums.longest, whole);
            sums.send += send;
            sums.receive_on_nic += on_nic;
            sums.receive_on_nvlink += on_nvlink;
            sums.on_spine += spine_seconds(stage.fabric);
            sums.stages += 1.0;
            sums.experts += static_cast<double>(stage.expert_parameters);
            sums.others += static_cast<double>(stage.other_parameters);
        }
        return sums;
    }

    void add_bulk() {
        const auto sums = bulk_sums();
        if (sums.stages == 0.0) {
            return;
        }
        const auto wire = add_wire(sums);
        const auto software = add_bulk_software(sums.experts, sums.others);
        result_.transfer += Seconds{wire};
        const auto loading = loads_.method == Method::kDirect ? add_loading(setting_.direct_tensors, setting_.local_bytes) : 0.0;
        const bool overlaps = setting_.options.direct_overlap == PackOverlap::kPipelined;
        const bool loading_binds = overlaps && loading > wire + software;
        phase("bulk", wire + software, loading_binds);
        phase("load", loading, overlaps && !loading_binds);
        if (overlaps && loading > 0.0) {
            hide(loading_binds ? "bulk" : "load");
        }
        result_.software += Seconds{loading};
    }

    /// How long the transfers and the replicas' collectives keep the links busy.
    double add_wire(const BulkSums& sums) {
        const auto in_flight = std::min<double>(setting_.options.streams, sums.stages);
        const auto by_schedule = std::max(sums.all / in_flight, sums.longest);
        const auto by_receiver =
            std::max(sums.receive_on_nic + sums.replicas_on_nic, sums.receive_on_nvlink + sums.replicas_on_nvlink);
        const auto plain = std::max(by_schedule, by_receiver);
        const auto wire = std::max(plain, fabric_seconds(loads_.bulk));
        const auto formula = [&] {
            std::string parts = "busiest sender " + cost_text(sums.send) + ", receiver " + cost_text(std::max(sums.receive_on_nic, sums.receive_on_nvlink));
            const auto replicas = sums.replicas_on_nic + sums.replicas_on_nvlink;
            parts += replicas > 0.0 ? ", replicas " + cost_text(replicas) : "";
            parts += sums.on_spine > 0.0 ? ", busiest uplink " + cost_text(sums.on_spine) : "";
            parts += limit_text(loads_.bulk, plain);
            const auto stages = std::llround(sums.stages);
            return std::to_string(stages) + (stages == 1 ? " stage, " : " stages, ") + std::to_string(std::llround(in_flight)) +
                   " in flight: " + parts;
        };
        term("bulk", "bulk transfers", wire, formula, {"nic_efficiency", "nvlink_efficiency"});
        return wire;
    }

    /// Every message at a steady rate: as long as the busiest port, and a chunk more for each hop beyond the first.
    void add_relays(const StageLoads& stage) {
        const auto nic = constants().nic_efficiency.value;
        const auto nvlink = constants().nvlink_efficiency.value;
        const auto on_nics = std::max(std::max(stage.train.nic_out, stage.train.nic_in) / (setting_.train_nic * nic),
                                      std::max(stage.generate.nic_out, stage.generate.nic_in) / (setting_.generate_nic * nic));
        const auto on_nvlink =
            std::max(std::max(stage.train.nvlink_out, stage.train.nvlink_in) / (setting_.train_nvlink * nvlink),
                     std::max(stage.generate.nvlink_out, stage.generate.nvlink_in) / (setting_.generate_nvlink * nvlink));
        const auto further = stage.hops > 0 ? stage.hops - 1.0 : 0.0;
        const auto on_spine = spine_seconds(stage.fabric);
        const auto wire = std::max({on_nics, on_nvlink, fabric_seconds(stage.fabric)}) * (1.0 + further / stage.chunks);
        term("bulk",
             "relayed transfers",
             wire,
             [&] { return "busiest NIC " + cost_text(on_nics) + ", NVLink " + cost_text(on_nvlink) +
                 (on_spine > 0.0 ? ", " + stage.fabric.spine_name + " " + cost_text(on_spine) : "") + "; " +
                 std::to_string(stage.hops) + " hops in " + std::to_string(stage.chunks) + " chunks"; },
             {"nic_efficiency", "nvlink_efficiency"});
        phase("bulk", wire + add_bulk_software(static_cast<double>(stage.expert_parameters), static_cast<double>(stage.other_parameters)));
        result_.transfer += Seconds{wire};
    }

    double add_bulk_software(double experts, double others) {
        const auto stages = static_cast<double>(setting_.train_stages);
        const auto cost = bulk_parameter_seconds(setting_, reading_);
        const auto grouping = cost * experts / stages;
        const auto posting = constants().call_cost.value * others / stages;
        term("bulk",
             "grouped experts",
             grouping,
             [&] { return std::to_string(std::llround(experts)) + " parameters / " + std::to_string(setting_.train_stages) + " stages x " + cost_text(cost); },
             {reading_.bulk_cost == BulkCostReading::kPerExpert ? "bulk_expert_cost" : "bulk_parameter_cost"});
        term("bulk",
             "other than FFN",
             posting,
             [&] { return std::to_string(std::llround(others)) + " parameters / " + std::to_string(setting_.train_stages) + " stages x " + cost_text(constants().call_cost.value); },
             {"call_cost"});
        result_.software += Seconds{grouping + posting};
        return grouping + posting;
    }

    void add_finalize() {
        double seconds = 0.0;
        if (reading_.finalize == FinalizeReading::kPerExpert && setting_.is_blackwell) {
            seconds = constants().finalize_per_expert.value * setting_.local_expert_layers;
            term("finalize",
                 "finalising experts",
                 seconds,
                 [&] { return std::to_string(std::llround(setting_.local_expert_layers)) + " local experts x " + cost_text(constants().finalize_per_expert.value); },
                 {"finalize_per_expert"});
        } else if (reading_.finalize == FinalizeReading::kPerLocalByte) {
            seconds = constants().finalize_per_local_byte.value * setting_.local_bytes;
            term("finalize", "finalising", seconds, [&] { return bytes_text(setting_.local_bytes) + " held"; }, {"finalize_per_local_byte"});
        }
        phase("finalize", seconds);
        result_.software += Seconds{seconds};
    }

    const PlanLoads& loads_;
    const Setting& setting_;
    const Reading reading_;
    bool has_terms_;
    Estimate result_;
};

}  // namespace

Estimate estimate(const PlanLoads& loads, const Setting& setting, const Reading& reading) {
    return Estimator{loads, setting, reading, true}.run();
}

Estimate estimate(const PlanLoads& loads, const Setting& setting) {
    return estimate(loads, setting, setting.options.reading.usual());
}

Seconds estimate_total(const PlanLoads& loads, const Setting& setting) {
    return estimate_total(loads, setting, setting.options.reading.usual());
}

Seconds estimate_total(const PlanLoads& loads, const Setting& setting, const Reading& reading) {
    return Estimator{loads, setting, reading, false}.run().total;
}

}  // namespace refit
