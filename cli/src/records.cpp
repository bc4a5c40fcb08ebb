// SPDX-License-Identifier: Apache-2.0
#include "records.hpp"

#include <utility>

#include "refit/io/published_scenario.hpp"

namespace refit::cli {

std::string joined(const Faults& faults) {
    std::string text;
    for (const auto& fault : faults) {
        text += (text.empty() ? "" : "; ") + fault.message;
    }
    return text;
}

std::vector<ValidationCase> cases_of(const std::vector<PublishedRecord>& records,
                                     const std::vector<PublishedRecord>& shipped,
                                     const io::Library& library) {
    auto known = records;
    known.insert(known.end(), shipped.begin(), shipped.end());
    std::vector<ValidationCase> cases;
    for (const auto& record : records) {
        ValidationCase one{record, {}, {}, {}};
        for (const auto& ours : shipped) {
            one.record.served_to_fit =
                one.record.served_to_fit || (ours.id == record.id && ours.served_to_fit);
        }
        auto made = io::scenario_of(record, known, library);
        if (made) {
            one.scenario = std::move(made->scenario);
            one.assumed = std::move(made->assumed);
        } else {
            one.not_modelled = joined(made.error());
        }
        cases.push_back(std::move(one));
    }
    return cases;
}

}  // namespace refit::cli
