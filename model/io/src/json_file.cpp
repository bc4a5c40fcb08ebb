// SPDX-License-Identifier: Apache-2.0
#include "refit/io/json_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "json_keys.hpp"

namespace refit::io {
namespace {

constexpr int kDeepest = 64;

/// "3:7", the line and the column of a byte offset; both count from one.
std::string position_of(std::string_view text, std::size_t offset) {
    const auto head = text.substr(0, std::min(offset, text.size()));
    const auto line = 1 + std::count(head.begin(), head.end(), '\n');
    const auto start = head.rfind('\n');
    const auto column = 1 + head.size() - (start == std::string_view::npos ? 0 : start + 1);
    return std::to_string(line) + ":" + std::to_string(column);
}

/// Depth of brackets outside strings; the parser recurses once a level.
bool is_too_deep(std::string_view text) {
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            i += c == '\\' ? 1 : 0;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > kDeepest) {
                return true;
            }
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
    return false;
}

std::string reason() { return std::strerror(errno); }

Failure unwritable(const std::filesystem::path& file, const std::string& why) {
    return fail(ErrorCode::kIo, "unwritable", "cannot be written: " + why, file.string());
}

using Write = std::function<bool(std::ostream&)>;

enum class Written : std::uint8_t { kWhole, kGivenUp, kFailed };

Written write_by(const std::filesystem::path& file, const Write& write) {
    std::ofstream stream{file, std::ios::binary | std::ios::trunc};
    const bool is_whole = write(stream);
    if (stream.good()) {
        stream.close();
    }
    return stream.fail() ? Written::kFailed : is_whole ? Written::kWhole : Written::kGivenUp;
}

/// Where the number stands that the parser quotes as too large; the origin alone where it cannot be found.
std::string place_of_number(std::string_view text, const std::string& message, const std::string& origin) {
    const auto begin = message.find('\'');
    const auto end = message.rfind('\'');
    const auto at = begin < end ? text.find(message.substr(begin + 1, end - begin - 1)) : std::string_view::npos;
    return at == std::string_view::npos ? origin : origin + ":" + position_of(text, at);
}

/// A key that an object has twice is a fault each: parsers differ in which of the values holds.
Faults faults_of_keys(std::string_view text, const std::string& origin) {
    Faults faults;
    for (const auto& key : repeated_keys(text)) {
        faults.push_back({ErrorCode::kInvalidInput,
                          "json-repeated-key",
                          "the key " + key.pointer + " appears a second time in its object; keep one",
                          origin + ":" + position_of(text, key.offset)});
    }
    return faults;
}

}  // namespace

Result<std::string> read_text(const std::filesystem::path& file, std::size_t most_bytes) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) {
        return fail(ErrorCode::kIo, "unreadable", "this is a folder, not a file", file.string());
    }
    std::ifstream stream{file, std::ios::binary};
    if (!stream) {
        return fail(ErrorCode::kIo, "unreadable", "cannot be opened: " + reason(), file.string());
    }
    const auto size = std::filesystem::file_size(file, error);
    if (!error && size > most_bytes) {
        return fail(ErrorCode::kInvalidInput,
                    "too-large",
                    "the file has " + std::to_string(size) + " bytes; at most " + std::to_string(most_bytes) + " are read",
                    file.string());
    }
    std::ostringstream text;
    text << stream.rdbuf();
    if (stream.bad()) {
        return fail(ErrorCode::kIo, "unreadable", "cannot be read: " + reason(), file.string());
    }
    return std::move(text).str();
}

Result<nlohmann::json> parse_json(std::string_view text, const std::string& origin) {
    if (is_too_deep(text)) {
        return fail(ErrorCode::kInvalidInput, "json-depth", "JSON nests deeper than 64 levels", origin);
    }
    try {
        auto json = nlohmann::json::parse(text);
        auto faults = faults_of_keys(text, origin);
        return faults.empty() ? Result<nlohmann::json>{std::move(json)} : fail(std::move(faults));
    } catch (const nlohmann::json::parse_error& error) {
        const bool is_truncated = error.byte > text.size();
        return fail(ErrorCode::kInvalidInput,
                    "json-syntax",
                    is_truncated ? "the JSON ends too early; the file looks truncated" : "this is not valid JSON",
                    origin + ":" + position_of(text, error.byte == 0 ? 0 : error.byte - 1));
    } catch (const nlohmann::json::out_of_range& error) {
        return fail(ErrorCode::kInvalidInput,
                    "json-number",
                    "a number in the JSON is out of range",
                    place_of_number(text, error.what(), origin));
    }
}

Result<nlohmann::json> read_json(const std::filesystem::path& file) {
    auto text = read_text(file);
    if (!text) {
        return Failure{std::move(text.error())};
    }
    return parse_json(*text, file.string());
}

Result<bool> write_whole(const std::filesystem::path& file, std::string_view text) {
    return write_whole(file, [&](std::ostream& stream) {
        stream << text;
        return true;
    });
}

Result<bool> write_whole(const std::filesystem::path& file, const std::function<bool(const TextSink&)>& produce) {
    return write_whole(file, [&](std::ostream& stream) {
        return produce([&](std::string_view text) {
            stream << text;
            return stream.good();
        });
    });
}

Result<bool> write_whole(const std::filesystem::path& file, const Write& write) {
    namespace fs = std::filesystem;
    std::error_code error;
    const auto kind = fs::status(file, error).type();
    if (kind == fs::file_type::directory) {
        return fail(ErrorCode::kIo, "unwritable", "this is a folder, not a file", file.string());
    }
    if (kind != fs::file_type::regular && kind != fs::file_type::not_found) {
        // A device or a pipe is written to, never replaced.
        const auto written = write_by(file, write);
        return written == Written::kFailed ? unwritable(file, reason()) : Result<bool>{written == Written::kWhole};
    }
    const auto target = kind == fs::file_type::regular ? fs::canonical(file, error) : file;
    auto partial = target;
    partial += "." + std::to_string(getpid()) + ".partial";
    if (const auto written = write_by(partial, write); written != Written::kWhole) {
        const auto why = reason();
        fs::remove(partial, error);
        return written == Written::kFailed ? unwritable(file, why) : Result<bool>{false};
    }
    fs::rename(partial, target, error);
    if (error) {
        const auto why = error.message();
        fs::remove(partial, error);
        return unwritable(file, why);
    }
    return true;
}

}  // namespace refit::io
