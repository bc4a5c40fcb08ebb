// SPDX-License-Identifier: Apache-2.0
#include "refit/io/faults_json.hpp"

#include <nlohmann/json.hpp>

namespace refit::io {

nlohmann::json to_json(const Faults& faults) {
    auto list = nlohmann::json::array();
    for (const auto& fault : faults) {
        nlohmann::json nearest = nullptr;
        if (fault.nearest) {
            nearest = {{"field", fault.nearest->field}, {"value", fault.nearest->value}, {"note", fault.nearest->note}};
        }
        list.push_back({{"code", fault.rule}, {"message", fault.message}, {"where", fault.where}, {"nearest", nearest}});
    }
    return list;
}

}  // namespace refit::io
