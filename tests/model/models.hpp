// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "refit/inventory.hpp"
#include "refit/io/hugging_face.hpp"

namespace refit::testing_models {

inline Facts shipped_facts(const std::string& id) {
    return io::read_config(std::filesystem::path{REFIT_DATA_DIR} / "models" / (id + ".json")).value();
}

inline Inventory shipped(const std::string& id) {
    return Inventory::make(id, shipped_facts(id)).value();
}

inline ParameterClass class_named(const Inventory& inventory, const std::string& name) {
    const auto found = std::ranges::find(inventory.classes(), name, &ParameterClass::name);
    if (found == inventory.classes().end()) {
        throw std::out_of_range{"no class '" + name + "' in " + inventory.id()};
    }
    return *found;
}

/// `text` as GoogleTest accepts it in a test's name.
inline std::string test_name(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return text;
}

/// Why a model of these facts is refused; nothing where it is not.
inline Faults faults_of(const Facts& facts) {
    auto inventory = Inventory::make("mine", facts);
    return inventory.has_value() ? Faults{} : inventory.error();
}

/// Whether one of them says so.
inline bool mentions(const Faults& faults, std::string_view text) {
    for (const auto& fault : faults) {
        if (fault.message.find(text) != std::string::npos) {
            return true;
        }
    }
    return false;
}

}  // namespace refit::testing_models
