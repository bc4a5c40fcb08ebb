// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "refit/result.hpp"

namespace refit::io {

/// Reads a whole file. Errors: kIo naming the file and why; kInvalidInput for one above `most_bytes`.
[[nodiscard]] Result<std::string> read_text(const std::filesystem::path& file, std::size_t most_bytes = 64U << 20U);

/// Parses JSON. `origin` names the source in messages.
/// Errors: kInvalidInput with line and column; nesting above 64 levels and keys that an object has twice are refused.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text, const std::string& origin);

/// Reads and parses a JSON file.
[[nodiscard]] Result<nlohmann::json> read_json(const std::filesystem::path& file);

/// Writes `text` beside `file` and renames it there: the file is whole, or untouched. A device or pipe is written
/// directly, and a link keeps pointing at its file. Errors: kIo.
[[nodiscard]] Result<bool> write_whole(const std::filesystem::path& file, std::string_view text);

/// The same with what `write` puts into the stream; it returns false to give the file up, which then stays untouched.
/// Returns whether it was written. Errors: kIo.
[[nodiscard]] Result<bool> write_whole(const std::filesystem::path& file, const std::function<bool(std::ostream&)>& write);

/// Takes text piece by piece. Returns whether to go on.
using TextSink = std::function<bool(std::string_view)>;

/// The same for text that `produce` hands to a sink.
[[nodiscard]] Result<bool> write_whole(const std::filesystem::path& file, const std::function<bool(const TextSink&)>& produce);

}  // namespace refit::io
