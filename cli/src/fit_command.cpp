// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "fit_text.hpp"
#include "records.hpp"
#include "refit/calibrate.hpp"
#include "refit/io/calibration_json.hpp"
#include "refit/io/engine_writer.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/measured_report.hpp"
#include "refit/io/nccl_tests.hpp"
#include "refit/io/published_reader.hpp"
#include "refit/link_constants.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

std::string field_of(const Options& options, const std::string& name, const std::string& usual) {
    const auto found = std::find_if(options.fields.rbegin(), options.fields.rend(), [&](const auto& field) {
        return field.first == name;
    });
    return found == options.fields.rend() ? usual : found->second;
}

/// The efficiencies that the logs tell.
Result<LinkConstants> read_links(const Options& options,
                                 const io::Library& library,
                                 const EngineConstants& constants) {
    const auto system = library.system(field_of(options, "system", ""), "system");
    Faults faults;
    if (!system) {
        faults.insert(faults.end(), system.error().begin(), system.error().end());
    }
    std::vector<NcclTable> tables;
    for (const auto& file : options.nccl_logs) {
        auto read = io::read_nccl_tests(file);
        if (read) {
            std::ranges::move(*read, std::back_inserter(tables));
        } else {
            faults.insert(faults.end(), read.error().begin(), read.error().end());
        }
    }
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    return link_constants(tables, *system, constants);
}

/// What the engine is fitted to: the records of a file, else those that served to fit what ships; and what
/// was measured.
Result<std::vector<ValidationCase>> read_cases(const Options& options,
                                               const io::Library& library,
                                               const std::string& engine) {
    const auto shipped = library.published();
    if (!shipped) {
        return Failure{shipped.error()};
    }
    const auto records = options.records.empty() ? shipped : io::read_published_records(options.records);
    if (!records) {
        return Failure{records.error()};
    }
    auto cases = cases_of(*records, *shipped, library);
    std::erase_if(cases, [&](const ValidationCase& one) {
        return !one.scenario || one.scenario->engine.name != engine ||
               (options.records.empty() && !one.record.served_to_fit);
    });
    Faults faults;
    for (const auto& file : options.measured) {
        auto read = io::read_measured_report(file, library);
        if (!read) {
            faults.insert(faults.end(), read.error().begin(), read.error().end());
            continue;
        }
        for (auto& one : *read) {
            if (one.scenario->engine.name == engine) {
                cases.push_back(std::move(one));
            } else {
                faults.push_back({ErrorCode::kInfeasible,
                                  "other-engine",
                                  "was measured with " + one.scenario->engine.name + ", not with " + engine,
                                  file});
            }
        }
    }
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    return cases;
}

std::string source_of(const Options& options, std::size_t refits) {
    auto text = "fit to " + std::to_string(refits) + (refits == 1 ? " refit of " : " refits of ");
    text += options.records.empty() ? "data/published/timings.json"
                                    : std::filesystem::path{options.records}.filename().string();
    for (const auto& file : options.measured) {
        text += ", " + std::filesystem::path{file}.filename().string();
    }
    return text;
}

std::string rendered(const FitOutcome& outcome, Format format) {
    switch (format) {
        case Format::kJson:
            return io::to_json(outcome.engine, outcome.constants, outcome.calibration, outcome.links)
                       .dump(1) +
                   "\n";
        case Format::kCsv:
        case Format::kMarkdown:
            return fit_rows(outcome, format);
        case Format::kTable:
            break;
    }
    return fit_table(outcome);
}

/// Writes the engine file, then shows the fit.
int finish(const FitOutcome& outcome, const std::filesystem::path& file, const Options& options) {
    if (!options.output.empty()) {
        const auto text = io::engine_text(file, outcome.constants);
        if (!text) {
            return refuse(text.error(), options);
        }
        if (const auto written = io::write_whole(options.output, *text); !written) {
            return refuse(written.error(), options);
        }
    }
    auto on_stdout = options;
    on_stdout.output.clear();
    return write_output(rendered(outcome, options.format), on_stdout);
}

}  // namespace

int run_fit(const Options& options, const io::Library& library) {
    const auto name = field_of(options, "engine.name", "nemo-rl");
    const auto engine = library.engine(name);
    const auto file = library.engine_file(name);
    if (!engine || !file) {
        return refuse(engine ? file.error() : engine.error(), options);
    }
    FitOutcome outcome;
    outcome.engine = *engine;
    outcome.constants = engine->constants;
    std::optional<LinkConstants> links;
    if (!options.nccl_logs.empty()) {
        if (field_of(options, "system", "").empty()) {
            return usage_error(
                "--nccl-tests needs --system: the system whose line rates the logs are compared with");
        }
        auto read = read_links(options, library, outcome.constants);
        if (!read) {
            return refuse(read.error(), options);
        }
        links = std::move(*read);
        outcome.constants = links->constants;
        outcome.links = &*links;
    }
    std::vector<TimedRefit> refits;
    std::optional<Calibration> calibration;
    if (options.nccl_logs.empty() || !options.records.empty() || !options.measured.empty()) {
        const auto cases = read_cases(options, library, engine->name);
        if (!cases) {
            return refuse(cases.error(), options);
        }
        refits = timed_refits(*cases);
        if (refits.empty() || fit_parameters(outcome.constants).empty()) {
            return refuse({{ErrorCode::kInfeasible,
                            "nothing-to-fit",
                            refits.empty() ? "no record times a refit that " + engine->name + " models"
                                           : engine->name + " has no constant with a prior",
                            options.records}},
                          options);
        }
        for (auto& refit : refits) {
            refit.setting.constants = outcome.constants;
        }
        CalibrateOptions how;
        how.source = source_of(options, refits.size());
        calibration = calibrate(refits, outcome.constants, how);
        outcome.constants = calibration->constants;
        outcome.calibration = &*calibration;
        outcome.refits = refits;
    }
    return finish(outcome, *file, options);
}

}  // namespace refit::cli
