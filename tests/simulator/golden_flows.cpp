// SPDX-License-Identifier: Apache-2.0
#include "golden_flows.hpp"

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>

#include <lzma.h>

#include "refit/io/flow_list.hpp"

namespace refit::testing_support {
namespace {

std::string read_xz(const std::string& name) {
    const auto path = std::string{REFIT_GOLDEN_DIR} + "/flows/" + name;
    std::ifstream file{path, std::ios::binary};
    const std::string packed{std::istreambuf_iterator<char>{file}, {}};
    const std::vector<std::uint8_t> in(packed.begin(), packed.end());
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, std::numeric_limits<std::uint64_t>::max(), 0) != LZMA_OK) {
        throw std::runtime_error{"no decoder for " + path};
    }
    stream.next_in = in.data();
    stream.avail_in = in.size();
    std::string text;
    std::array<std::uint8_t, 65536> out{};
    auto status = LZMA_OK;
    while (status == LZMA_OK) {
        stream.next_out = out.data();
        stream.avail_out = out.size();
        status = lzma_code(&stream, LZMA_FINISH);
        text.append(out.begin(), out.end() - static_cast<std::ptrdiff_t>(stream.avail_out));
    }
    lzma_end(&stream);
    if (status != LZMA_STREAM_END) {
        throw std::runtime_error{"cannot read " + path};
    }
    return text;
}

}  // namespace

FlowNetwork golden_network(const std::string& name) {
    std::istringstream text{read_xz(name + ".workload.txt.xz")};
    return io::read_flow_list(text, name).value();
}

std::vector<double> golden_times(const std::string& name) {
    std::istringstream text{read_xz(name + ".simgrid.times.xz")};
    return {std::istream_iterator<double>{text}, {}};
}

}  // namespace refit::testing_support
