// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <array>
#include <cstdio>
#include <functional>
#include <utility>

#include "refit/suggest.hpp"

namespace refit::gui {
namespace {

struct Option {
    const char* flag;
    const char* placeholder;
    const char* help;
};
constexpr std::array kOptions{
    Option{"--export", "VIEW", "write a picture without a window: layout, flows, matrix, timeline, links, compare or table"},
    Option{"-O", "FILE", "where to: .png, .svg, .pdf, .csv, .json or .trace.json"},
    Option{"--method", "NAME", "A, what the views show: hybrid (default), gather-broadcast, direct, striped, m2n, optimal"},
    Option{"--against", "NAME", "B, what it is compared with (gather-broadcast)"},
    Option{"--group", "LEVEL", "side, stage, domain, node or rank"},
    Option{"--filter", "TEXT", "for example \"tensor:*experts* link:nic\""},
    Option{"--set", "FIELD=VALUE", "any scenario field, as for refit compare"},
    Option{"--measured", "FILE", "a report of measured times, laid over the predicted ones"},
    Option{"--theme", "NAME", "light or dark"},
    Option{"--size", "WxH", "of the picture, in logical pixels (1280x800)"},
    Option{"--scale", "N", "device pixels a logical one, 0.5 to 8 (1)"},
    Option{"--shot", "FILE.png", "write a picture of the whole window, then close it"},
};

Failure usage_fault(std::string message) { return fail(ErrorCode::kUsage, "usage", std::move(message)); }

Result<bool> read_method(const std::string& text, std::optional<Method>& method) {
    auto parsed = parse_method(text);
    if (!parsed) {
        return fail(std::move(parsed.error()));
    }
    method = *parsed;
    return true;
}

Result<bool> read_grouping(const std::string& text, std::optional<Grouping>& grouping) {
    for (std::size_t i = 0; i < kGroupings; ++i) {
        if (name_of(static_cast<Grouping>(i)) == text) {
            grouping = static_cast<Grouping>(i);
            return true;
        }
    }
    return usage_fault("--group takes side, stage, domain, node or rank, not '" + text + "'");
}

Result<bool> read_size(const std::string& text, Arguments& arguments) {
    int end = 0;
    if (std::sscanf(text.c_str(), "%lfx%lf%n", &arguments.width, &arguments.height, &end) != 2 || static_cast<std::size_t>(end) != text.size() ||
        !(arguments.width >= 320.0 && arguments.width <= 8192.0 && arguments.height >= 240.0 && arguments.height <= 8192.0)) {
        return usage_fault("--size takes WIDTHxHEIGHT of 320x240 to 8192x8192, not '" + text + "'");
    }
    return true;
}

Result<bool> read_value(const std::string& flag, const std::string& value, Arguments& arguments) {
    if (flag == "--export") {
        auto view = parse_view(value);
        if (!view) {
            return fail(std::move(view.error()));
        }
        arguments.view = *view;
    } else if (flag == "-O") {
        arguments.output = value;
    } else if (flag == "--shot") {
        arguments.shot = value;
    } else if (flag == "--method") {
        return read_method(value, arguments.method);
    } else if (flag == "--against") {
        return read_method(value, arguments.against);
    } else if (flag == "--group") {
        return read_grouping(value, arguments.grouping);
    } else if (flag == "--filter") {
        arguments.filter = value;
    } else if (flag == "--set") {
        arguments.settings.push_back(value);
    } else if (flag == "--measured") {
        arguments.measured = value;
    } else if (flag == "--size") {
        return read_size(value, arguments);
    } else if (flag == "--theme") {
        if (value != "light" && value != "dark") {
            return usage_fault("--theme takes light or dark, not '" + value + "'");
        }
        arguments.theme = value == "dark" ? Theme::kDark : Theme::kLight;
    } else {
        int end = 0;
        if (std::sscanf(value.c_str(), "%lf%n", &arguments.scale, &end) != 1 || static_cast<std::size_t>(end) != value.size() ||
            !(arguments.scale >= 0.5 && arguments.scale <= 8.0)) {
            return usage_fault("--scale takes a number from 0.5 to 8, not '" + value + "'");
        }
    }
    return true;
}

}  // namespace

std::string usage() {
    std::string text =
        "usage: refit-gui [SCENARIO] [options]\n\n"
        "Shows who holds which weights, who sends what to whom, when each link is busy, and what the refit costs.\n"
        "SCENARIO: a scenario's name or file, a NeMo RL recipe, a plan, a report, or a Hugging Face folder.\n\n";
    for (const auto& option : kOptions) {
        std::string line = std::string{"  "} + option.flag + " " + option.placeholder;
        line.resize(std::max<std::size_t>(24, line.size() + 2), ' ');
        text += line + option.help + "\n";
    }
    return text + "  --help, --version\n\nExample: refit-gui --export flows -O flows.svg deepseek-v3-h100\n";
}

Result<Arguments> parse_arguments(const std::vector<std::string>& words) {
    Arguments arguments;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto& word = words[i];
        if (word == "--help" || word == "-h") {
            arguments.shows_help = true;
        } else if (word == "--version") {
            arguments.shows_version = true;
        } else if (!word.starts_with('-')) {
            if (!arguments.target.empty()) {
                return usage_fault("one scenario at a time, not '" + arguments.target + "' and '" + word + "'");
            }
            arguments.target = word;
        } else {
            const auto equals = word.starts_with("--") ? word.find('=') : std::string::npos;
            const auto flag = word.substr(0, equals);
            std::vector<std::string> flags;
            bool is_known = false;
            for (const auto& option : kOptions) {
                flags.emplace_back(option.flag);
                is_known = is_known || flag == option.flag;
            }
            if (!is_known) {
                return usage_fault("unknown option '" + flag + "'; did you mean '" + nearest_name(flag, flags) + "'?");
            }
            if (equals == std::string::npos && i + 1 == words.size()) {
                return usage_fault(flag + " needs a value");
            }
            if (auto read = read_value(flag, equals == std::string::npos ? words[++i] : word.substr(equals + 1), arguments); !read) {
                return fail(std::move(read.error()));
            }
        }
    }
    if (arguments.view && arguments.output.empty()) {
        return usage_fault("--export needs -O FILE");
    }
    return arguments;
}

}  // namespace refit::gui
