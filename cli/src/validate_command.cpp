// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "progress.hpp"
#include "refit/io/published_reader.hpp"
#include "refit/io/published_scenario.hpp"
#include "refit/io/validation_json.hpp"
#include "refit/validate.hpp"
#include "session.hpp"
#include "validate_text.hpp"

namespace refit::cli {
namespace {

std::string joined(const Faults& faults) {
    std::string text;
    for (const auto& fault : faults) {
        text += (text.empty() ? "" : "; ") + fault.message;
    }
    return text;
}

/// Each record with its scenario. The shipped records lend what a record does not say, and know which served
/// to fit.
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

std::string rendered(const Validation& validation, Format format) {
    switch (format) {
        case Format::kJson:
            return io::to_json(validation).dump(1) + "\n";
        case Format::kCsv:
            return validation_csv(validation);
        case Format::kMarkdown:
            return validation_markdown(validation);
        case Format::kTable:
            break;
    }
    return validation_table(validation);
}

}  // namespace

int run_validate(const Options& options, const io::Library& library) {
    const auto shipped = library.published();
    if (!shipped) {
        return refuse(shipped.error(), options);
    }
    const auto records = options.records.empty() ? shipped : io::read_published_records(options.records);
    if (!records) {
        return refuse(records.error(), options);
    }
    Validation validation;
    {
        Progress progress{options.shows_progress};
        ValidateOptions how;
        how.is_simulated = options.simulates;
        how.progress = [&](const std::string& id, double done) { progress.tell(id, done); };
        validation = validate(cases_of(*records, *shipped, library), *shipped, how);
    }
    const auto status = write_output(rendered(validation, options.format), options);
    return status != kOk ? status : validation.modelled > 0 ? kOk : kInfeasible;
}

}  // namespace refit::cli
