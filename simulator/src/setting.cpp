// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "refit/broadcast_roots.hpp"
#include "refit/estimate.hpp"

namespace refit {
namespace {

/// Of the weights, what the trainers of one stage hold at most: of their bytes, and of their Hugging Face tensors.
struct StageShare {
    double bytes = 0.0;
    double tensors = 0.0;
};
StageShare busiest_stage(const Workload& workload) {
    std::vector<StageShare> stages(workload.train_stages());
    StageShare all;
    for (const auto& entry : workload.classes()) {
        const auto tensors = static_cast<double>(entry.parameter.tensors_per_layer());
        const auto bytes = entry.parameter.tensor_bytes().as_double() * tensors;
        for (const auto& slice : entry.slices) {
            const auto layers = slice.is_copy ? 0.0 : static_cast<double>(slice.layers);
            stages[slice.train_stage].bytes += bytes * layers;
            stages[slice.train_stage].tensors += tensors * layers;
            all.bytes += bytes * layers;
            all.tensors += tensors * layers;
        }
    }
    StageShare most;
    for (const auto& stage : stages) {
        most.bytes = std::max(most.bytes, stage.bytes / all.bytes);
        most.tensors = std::max(most.tensors, stage.tensors / all.tensors);
    }
    return most;
}

/// Hugging Face tensors that a generator loads after method direct: none, those of which it holds a part, or all.
double direct_tensors(const Scenario& scenario, const Workload& workload) {
    const auto loading = scenario.engine.options.direct_loading;
    double tensors = 0.0;
    for (const auto& entry : workload.classes()) {
        const auto& parameter = entry.parameter;
        const auto all = static_cast<double>(parameter.tensors());
        const auto in_stage = std::ceil(all / scenario.generate.pp);
        const auto local = parameter.is_expert() ? std::ceil(in_stage / scenario.generate.ep) : in_stage;
        tensors += loading == DirectLoading::kAll ? all : loading == DirectLoading::kLocal ? local : 0.0;
    }
    return tensors;
}

}  // namespace

double tensor_seconds(const Setting& setting) noexcept {
    return setting.constants.tensor_cost.value + setting.constants.tensor_cost_per_expert.value * setting.experts;
}

double loading_seconds(const Setting& setting, double tensors, double bytes) noexcept {
    return tensors * tensor_seconds(setting) + bytes * setting.constants.load_cost_per_byte.value;
}

double bulk_parameter_seconds(const Setting& setting, const Reading& reading) noexcept {
    const auto& constants = setting.constants;
    switch (reading.bulk_cost) {
        case BulkCostReading::kFloor:
            return constants.bulk_parameter_cost_floor.value;
        case BulkCostReading::kPerExpert:
            return constants.bulk_expert_cost.value * setting.trainer_experts;
        case BulkCostReading::kPerParameter:
            break;
    }
    return reading.replica_ring == ReplicaRingReading::kEveryNic ? constants.bulk_parameter_cost_every_nic.value
                                                                 : constants.bulk_parameter_cost.value;
}

Setting make_setting(const Scenario& scenario, const Workload& workload) {
    const auto& train = scenario.cluster.train_system();
    const auto& generate = scenario.cluster.generate_system();
    Setting setting;
    setting.constants = scenario.engine.constants;
    setting.options = scenario.engine.options;
    if (gathers_by_stage(scenario)) {
        const auto most = busiest_stage(workload);
        setting.exported_share = most.bytes;
        setting.exported_tensors = most.tensors;
    }
    setting.direct_tensors = direct_tensors(scenario, workload);
    setting.gpus = scenario.cluster.active_gpus();
    setting.train_stages = scenario.train.pp;
    setting.hbm_copy = train.hbm_copy.value.bytes_per_second();
    setting.train_nic = train.nic_per_gpu().bytes_per_second();
    setting.train_nvlink = train.nvlink.value.bytes_per_second();
    setting.generate_nic = generate.nic_per_gpu().bytes_per_second();
    setting.generate_nvlink = generate.nvlink.value.bytes_per_second();
    setting.is_blackwell = generate.is_blackwell;
    setting.experts = scenario.model.experts();
    setting.trainer_experts = std::ceil(static_cast<double>(setting.experts) / scenario.train.ep);
    const double layers = std::ceil(static_cast<double>(scenario.model.moe_layers()) / scenario.generate.pp);
    setting.local_expert_layers = std::ceil(static_cast<double>(setting.experts) / scenario.generate.ep) * layers;
    setting.local_bytes = static_cast<double>(std::ranges::max(workload.generator_bytes()));
    return setting;
}

}  // namespace refit
