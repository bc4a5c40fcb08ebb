// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "progress.hpp"
#include "records.hpp"
#include "refit/io/published_reader.hpp"
#include "refit/io/validation_json.hpp"
#include "refit/validate.hpp"
#include "session.hpp"
#include "validate_text.hpp"

namespace refit::cli {
namespace {

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
        const auto cases = cases_of(*records, *shipped, library);
        // Other records than those that ship are told apart from what the constants were fitted to.
        std::vector<ValidationCase> fitted;
        const auto served = [](const ValidationCase& one) { return one.record.served_to_fit; };
        if (!options.records.empty() && std::ranges::any_of(cases, served)) {
            fitted = cases_of(*shipped, *shipped, library);
            std::erase_if(fitted, [&](const ValidationCase& one) { return !served(one); });
        }
        how.fitted = fitted;
        validation = validate(cases, *shipped, how);
    }
    const auto status = write_output(rendered(validation, options.format), options);
    return status != kOk ? status : validation.modelled > 0 ? kOk : kInfeasible;
}

}  // namespace refit::cli
