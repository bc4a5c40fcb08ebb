// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <iostream>
#include <variant>

#include "check_plan.hpp"
#include "commands.hpp"
#include "exit_code.hpp"
#include "options.hpp"
#include "session.hpp"
#include "simulate_flows.hpp"

namespace refit::cli {
namespace {

int run(const Options& options) {
    if (options.command == Command::kSimulate && !options.flows.empty()) {
        return run_simulate_flows(options);
    }
    const auto library = open_library();
    if (!library) {
        return refuse(library.error(), options);
    }
    switch (options.command) {
        case Command::kCheck:
            return is_plan_file(options.scenario) ? run_plan_check(options) : run_check(options, *library);
        case Command::kPlan:
            return run_plan(options, *library);
        case Command::kSimulate:
            return run_simulate(options, *library);
        case Command::kShow:
            return run_show(options, *library);
        case Command::kValidate:
            return run_validate(options, *library);
        case Command::kFit:
            return run_fit(options, *library);
        case Command::kMembership:
            return run_membership(options, *library);
        case Command::kCompare:
        case Command::kExplain:
            break;
    }
    return run_comparison(options, *library);
}

}  // namespace
}  // namespace refit::cli

int main(int argc, char** argv) {
    try {
        const auto parsed = refit::cli::parse_options(argc, argv);
        if (const auto* code = std::get_if<refit::cli::ExitCode>(&parsed)) {
            return *code;
        }
        return refit::cli::run(std::get<refit::cli::Options>(parsed));
    } catch (const std::exception& error) {
        std::cerr << "refit: internal error: " << error.what() << "\nPlease report this with the command that you ran.\n";
        return refit::cli::kInternalError;
    }
}
