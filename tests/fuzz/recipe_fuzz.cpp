// SPDX-License-Identifier: Apache-2.0
// Recipe YAML from memory, read and resolved against the shipped data.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "confined.hpp"
#include "refit/io/library.hpp"
#include "refit/io/recipe.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto library = refit::io::Library::open(REFIT_DATA_DIR).value();
    auto draft = refit::io::read_recipe_text({reinterpret_cast<const char*>(data), size}, "input", library);
    if (draft && refit::fuzz::names_no_path(*draft)) {
        draft->apply({"system", "h100-nvl8", ""});
        static_cast<void>(refit::io::resolve(*draft, library).has_value());
    }
    return 0;
}
