// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "exit_code.hpp"

namespace refit::exec {

/// Exit code of a run that failed, or did not verify; the others are those of refit.
inline constexpr int kRunFailed = 7;

enum class Command : std::uint8_t { kRun, kProbe };
enum class Format : std::uint8_t { kTable, kJson, kMarkdown };

/// What the command line asks for.
struct Options {
    Command command = Command::kRun;
    std::string plan;  ///< A file.
    std::string transport = "host";
    std::uint32_t warm_up = 1;
    std::uint32_t runs = 5;
    std::string deadline = "30s";
    std::uint32_t threads = 0;
    bool streams = false;
    bool graphs = false;
    bool one_communicator = false;
    bool shrinks = false;
    bool packs = false;
    std::string data;    ///< A folder of safetensors shards.
    std::string system;  ///< A file that probe wrote: predict beside the measured time.
    std::string wave_bytes;
    std::string pack_bytes;
    std::string lost;                     ///< --resume-without.
    std::vector<std::string> words;       ///< All that was said on the command line.
    std::vector<std::string> injections;
    Format format = Format::kTable;
    std::string output;
    bool is_quiet = false;
};

/// What to do after reading the command line: run, or end with this code (help and version have been
/// printed).
using Parsed = std::variant<Options, cli::ExitCode>;

[[nodiscard]] Parsed parse_options(int argc, const char* const* argv);
/// Tells the user, and where to read on.
[[nodiscard]] cli::ExitCode usage_error(const std::string& message);
/// How the user calls this program: "./run exec" or "refit-exec".
[[nodiscard]] std::string program_name();

}  // namespace refit::exec
