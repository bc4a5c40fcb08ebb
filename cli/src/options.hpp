// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "exit_code.hpp"

namespace refit::cli {

enum class Command : std::uint8_t { kCompare, kExplain, kCheck, kPlan, kSimulate, kShow, kValidate, kFit, kMembership };
[[nodiscard]] const char* name_of(Command command) noexcept;
enum class Format : std::uint8_t { kTable, kJson, kCsv, kMarkdown };

/// What the command line asks for.
struct Options {
    Command command = Command::kCompare;
    std::string what;                                              ///< For kShow: "model", "layout", "rank" or "maps".
    std::optional<std::uint32_t> rank;                             ///< For kShow rank.
    std::string scenario;                                          ///< Name or path; empty: from flags alone.
    std::vector<std::pair<std::string, std::string>> fields;       ///< Scenario field and value, in order.
    std::vector<std::string> field_flags;                          ///< The flag behind each, for messages.
    std::string tensors;                                           ///< For kPlan: a file of explicit tensors.
    std::vector<std::string> methods;
    std::string explain;                                           ///< For kPlan: a rank or a class of tensors.
    std::string flows;                                             ///< For kSimulate: a file of flows.
    bool has_quotient = true;                                      ///< For flows: those that are alike run as one.
    std::optional<double> fast;                                    ///< For flows: the tolerance of an approximation.
    std::string jitter;                                            ///< For kSimulate: "5%", how unlike ranks are.
    std::uint32_t samples = 50;                                    ///< Of jitter.
    std::uint64_t seed = 1;
    std::string trace;                                             ///< For kSimulate: the file of a trace.
    std::string plan_scenario;                                     ///< For kSimulate: the scenario of a plan file.
    std::string records;                                           ///< For kValidate and kFit: a file of published times.
    std::vector<std::string> measured;                             ///< For kFit: reports of what was measured.
    std::vector<std::string> nccl_logs;                            ///< For kFit: output of nccl-tests.
    std::vector<std::string> steps;
    std::vector<std::string> lost;                                 ///< For kMembership: "1node", "8gpu".
    std::vector<std::string> gained;
    Format format = Format::kTable;
    std::string output;
    bool simulates = false;                                        ///< For kCompare and kValidate: run each plan event by event (too).
    bool prints_config = false;
    bool is_quiet = false;
    bool has_color = true;
    bool shows_progress = true;
};

/// What to do after reading the command line: run, or end with this code (help and version have been printed).
using Parsed = std::variant<Options, ExitCode>;

/// Tells the user, and where to read on.
[[nodiscard]] ExitCode usage_error(const std::string& message);

[[nodiscard]] Parsed parse_options(int argc, const char* const* argv);

/// How the user calls this program: "./run" or "refit".
[[nodiscard]] std::string program_name();

}  // namespace refit::cli
