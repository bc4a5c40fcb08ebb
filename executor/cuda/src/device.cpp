// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

namespace refit::exec {

Result<LoadedTable> load(Device& device, const CopyTable& table) {
    LoadedTable loaded;
    if (table.tiles == 0) {
        return loaded;
    }
    const auto copies = std::as_bytes(std::span{table.copies});
    const auto first_tiles = std::as_bytes(std::span{table.first_tiles});
    for (const auto& [bytes, address] :
         {std::pair{copies, &loaded.copies}, std::pair{first_tiles, &loaded.first_tiles}}) {
        const auto place = device.allocate(bytes.size());
        if (!place) {
            return Failure{place.error()};
        }
        *address = *place;
        if (auto done = device.upload(*place, bytes); !done) {
            return Failure{done.error()};
        }
    }
    loaded.count = static_cast<std::uint32_t>(table.copies.size());
    loaded.tiles = table.tiles;
    return loaded;
}

}  // namespace refit::exec
