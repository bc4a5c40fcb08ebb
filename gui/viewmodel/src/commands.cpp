// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/commands.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace refit::gui {
namespace {

constexpr std::array kCommands{
    Command{"open", "Open a scenario, recipe, plan or report", "Ctrl+O", "File"},
    Command{"save", "Save the scenario", "Ctrl+S", "File"},
    Command{"save-as", "Save the scenario as", "Ctrl+Shift+S", "File"},
    Command{"export", "Export this view", "Ctrl+E", "File"},
    Command{"open-measurement", "Open a measurement over the prediction", "Ctrl+M", "File"},
    Command{"send", "Send the plan to the executor", "Ctrl+Shift+E", "File"},
    Command{"quit", "Quit", "Ctrl+Q", "File"},
    Command{"undo", "Undo", "Ctrl+Z", "Edit"},
    Command{"redo", "Redo", "Ctrl+Shift+Z", "Edit"},
    Command{"copy", "Copy the selection as a table", "Ctrl+C", "Edit"},
    Command{"copy-command", "Copy as a refit command", "Ctrl+Shift+C", "Edit"},
    Command{"search", "Search and filter", "/;Ctrl+F", "Edit"},
    Command{"clear", "Clear the selection, then the filter", "Esc", "Edit"},
    Command{"view-layout", "Layout: who holds what", "Ctrl+1", "View"},
    Command{"view-flows", "Flows: who sends to whom", "Ctrl+2", "View"},
    Command{"view-matrix", "Matrix: how much from whom to whom", "Ctrl+3", "View"},
    Command{"view-timeline", "Timeline: when each part runs", "Ctrl+4", "View"},
    Command{"view-links", "Links: when each is busy", "Ctrl+5", "View"},
    Command{"view-compare", "Compare: what each method costs", "Ctrl+6", "View"},
    Command{"view-table", "Table: the numbers", "Ctrl+7", "View"},
    Command{"coarser", "Coarser groups", "G", "View"},
    Command{"finer", "Finer groups", "Shift+G", "View"},
    Command{"direction", "Next direction of flows", "Shift+D", "View"},
    Command{"listing", "Next listing of the table", "Shift+L", "View"},
    Command{"differences", "Compare: only what differs, or all", "Shift+X", "View"},
    Command{"split", "A second view beside, or one", "V", "View"},
    Command{"other-view", "Go to the other view", "F6", "View"},
    Command{"zoom-in", "Zoom in", "W", "View"},
    Command{"zoom-out", "Zoom out", "S", "View"},
    Command{"pan-left", "Move left", "A", "View"},
    Command{"pan-right", "Move right", "D", "View"},
    Command{"fit-selection", "Fit the selection", "F", "View"},
    Command{"fit-all", "Fit all", "Shift+F", "View"},
    Command{"next", "Next element", ".", "View"},
    Command{"previous", "Previous element", ",", "View"},
    Command{"back", "Back", "Alt+Left", "View"},
    Command{"forward", "Forward", "Alt+Right", "View"},
    Command{"play", "Play or pause the transfer", "Space", "View"},
    Command{"theme", "Light, dark, or as the system", "T", "View"},
    Command{"larger-text", "Larger text", "Ctrl++", "View"},
    Command{"smaller-text", "Smaller text", "Ctrl+-", "View"},
    Command{"motion", "Reduced motion on or off", "", "View"},
    Command{"reset-layout", "Reset the window's layout", "", "View"},
    Command{"pin", "Pin what is shown, to compare with", "P", "Scenario"},
    Command{"swap", "Swap A and B", "X", "Scenario"},
    Command{"reset", "Take all changes back", "Ctrl+R", "Scenario"},
    Command{"example-small", "Example: one matrix, one NVLink domain", "", "Scenario"},
    Command{"example-large", "Example: DeepSeek-V3 on 512 H100", "", "Scenario"},
    Command{"palette", "Command palette", "Ctrl+Shift+P", "Help"},
    Command{"keys", "Sheet of keys", "?", "Help"},
};

std::string lower(std::string_view text) {
    std::string result{text};
    std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return result;
}

}  // namespace

std::span<const Command> commands() noexcept { return kCommands; }

std::vector<std::string> keys_of(const Command& command) {
    std::vector<std::string> keys;
    for (std::size_t at = 0; at < command.keys.size();) {
        const auto end = std::min(command.keys.find(';', at), command.keys.size());
        keys.emplace_back(command.keys.substr(at, end - at));
        at = end + 1;
    }
    return keys;
}

std::vector<Command> search_commands(std::string_view words) {
    std::vector<Command> found;
    const auto wanted = lower(words);
    for (const auto& command : kCommands) {
        const auto text = lower(command.text) + " " + std::string{command.id};
        bool fits = true;
        for (std::size_t at = 0; at < wanted.size();) {
            const auto end = std::min(wanted.find(' ', at), wanted.size());
            fits = fits && text.find(wanted.substr(at, end - at)) != std::string::npos;
            at = end + 1;
        }
        if (fits) {
            found.push_back(command);
        }
    }
    return found;
}

}  // namespace refit::gui
