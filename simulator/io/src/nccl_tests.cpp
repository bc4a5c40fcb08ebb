// SPDX-License-Identifier: Apache-2.0
#include "refit/io/nccl_tests.hpp"

#include <utility>

#include "nccl_text.hpp"
#include "refit/io/json_file.hpp"

namespace refit::io {

Result<std::vector<NcclTable>> parse_nccl_tests(std::string_view text, const std::string& origin) {
    Faults faults;
    const auto first = text.find_first_not_of(" \t\r\n");
    const bool is_json = first != std::string_view::npos && text[first] == '{';
    auto tables =
        is_json ? nccl_tables_of_json(text, origin, faults) : nccl_tables_of_text(text, origin, faults);
    std::erase_if(tables, [](const NcclTable& table) { return table.samples.empty(); });
    if (faults.empty() && tables.empty()) {
        faults.push_back({ErrorCode::kInvalidInput,
                          "nccl-tests",
                          "holds no table of nccl-tests: a line \"# size count type ... time algbw busbw\" "
                          "with rows below",
                          origin});
    }
    if (!faults.empty()) {
        return fail(std::move(faults));
    }
    return tables;
}

Result<std::vector<NcclTable>> read_nccl_tests(const std::filesystem::path& file) {
    const auto text = read_text(file);
    if (!text) {
        return Failure{text.error()};
    }
    auto tables = parse_nccl_tests(*text, file.string());
    if (tables) {
        for (auto& table : *tables) {
            table.test = table.test.empty() ? nccl_test_name(file.filename().string()) : table.test;
        }
    }
    return tables;
}

}  // namespace refit::io
