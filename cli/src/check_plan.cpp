// SPDX-License-Identifier: Apache-2.0
#include "check_plan.hpp"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "cells.hpp"
#include "refit/check.hpp"
#include "refit/io/faults_json.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/plan_file.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

/// Plans of large jobs are larger than other files.
constexpr std::size_t kMostBytes = std::size_t{1} << 30U;

}  // namespace

bool is_plan_file(const std::string& name) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(name, error)) {
        return false;
    }
    if (name.ends_with(".cbor")) {
        return true;
    }
    const auto text = name.ends_with(".json") ? io::read_text(name, kMostBytes) : Result<std::string>{std::string{}};
    return text && text->find("\"refit.plan\"") != std::string::npos;
}

Result<io::PlanFile> read_plan_file(const std::string& name) {
    const auto bytes = io::read_text(name, kMostBytes);
    return bytes ? io::read_plan(*bytes, name) : Result<io::PlanFile>{fail(Faults{bytes.error()})};
}

int run_plan_check(const Options& options) {
    const auto file = read_plan_file(options.scenario);
    if (!file) {
        return refuse(file.error(), options);
    }
    const auto faults = check_plan(file->plan, file->workload, JobSize{file->train_gpus, file->gpus() - file->train_gpus});
    if (options.format == Format::kJson) {
        const nlohmann::json json{{"schema", "refit.check"},
                                  {"schema_version", "1.0"},
                                  {"scenario", file->name},
                                  {"runs", faults.empty()},
                                  {"faults", io::to_json(faults)},
                                  {"methods",
                                   {{{"method", name_of(file->plan.method)}, {"runs", faults.empty()}, {"refused", io::to_json(faults)}}}}};
        const auto status = write_output(json.dump(1) + "\n", options);
        return status != kOk || faults.empty() ? status : static_cast<int>(kInfeasible);
    }
    if (!faults.empty()) {
        return refuse(faults, options);
    }
    return write_output(options.scenario + ": the plan of " + file->name + " by " + std::string{name_of(file->plan.method)} +
                            " delivers " + size_cell(file->workload.delivered_bytes()) + " to " +
                            grouped(file->gpus() - file->train_gpus) + " generators, every element once\n",
                        options);
}

}  // namespace refit::cli
