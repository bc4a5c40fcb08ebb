// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace refit::gui {

/// Something that a user can do. Menus, the palette, the sheet of keys and the tests come from one table.
struct Command {
    std::string_view id;    ///< "zoom-in".
    std::string_view text;  ///< "Zoom in".
    std::string_view keys;  ///< As Qt writes them, several separated by ";". May be empty.
    std::string_view menu;  ///< "File", "Edit", "View", "Scenario" or "Help".
};

/// In the order of the menus. Invariant: ids are unique; no two commands share a key.
[[nodiscard]] std::span<const Command> commands() noexcept;

/// "Ctrl+F;/" as two keys.
[[nodiscard]] std::vector<std::string> keys_of(const Command& command);

/// Those whose text or id has all words of the search in it, in any order.
[[nodiscard]] std::vector<Command> search_commands(std::string_view words);

}  // namespace refit::gui
