// SPDX-License-Identifier: Apache-2.0
// Scenario JSON, read and resolved against the shipped data.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "confined.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/library.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto library = refit::io::Library::open(REFIT_DATA_DIR).value();
    const auto json = refit::io::parse_json({reinterpret_cast<const char*>(data), size}, "input");
    const auto draft =
        json ? refit::io::draft_from_json(*json, "input") : refit::Result<refit::io::ScenarioDraft>{};
    if (json && draft && refit::fuzz::names_no_path(*draft)) {
        static_cast<void>(refit::io::resolve(*draft, library).has_value());
    }
    return 0;
}
