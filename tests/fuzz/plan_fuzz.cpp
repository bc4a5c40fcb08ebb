// SPDX-License-Identifier: Apache-2.0
// Plan files from memory, JSON or CBOR: read, and proven or refused. The hash is made to fit, or nothing would be read.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "plan_names.hpp"
#include "refit/check.hpp"
#include "refit/io/plan_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    static_cast<void>(refit::io::read_plan(bytes, "input").has_value());
    auto document = nlohmann::json::parse(bytes, nullptr, false);
    if (!document.is_object()) {
        return 0;
    }
    document.erase("hash");
    document["hash"] = refit::io::plan_hash(document);
    const auto file = refit::io::read_plan(document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "input");
    if (file && file->gpus() <= 64) {
        static_cast<void>(refit::check_plan(file->plan, file->workload, refit::JobSize{file->train_gpus, file->gpus() - file->train_gpus}));
    }
    return 0;
}
