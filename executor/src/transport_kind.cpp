// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/transport_kind.hpp"

#include <array>
#include <utility>
#include <vector>

#include "refit/suggest.hpp"

namespace refit::exec {
namespace {

constexpr std::array kKinds{
    TransportKind::kHost, TransportKind::kMpi, TransportKind::kCuda, TransportKind::kNccl};

}  // namespace

std::string_view name_of(TransportKind kind) noexcept {
    switch (kind) {
        case TransportKind::kMpi:
            return "mpi";
        case TransportKind::kCuda:
            return "cuda";
        case TransportKind::kNccl:
            return "nccl";
        case TransportKind::kHost:
            break;
    }
    return "host";
}

Result<TransportKind> parse_transport(std::string_view text) {
    std::vector<std::string> names;
    for (const auto kind : kKinds) {
        if (name_of(kind) == text) {
            return kind;
        }
        names.emplace_back(name_of(kind));
    }
    return fail(ErrorCode::kInvalidInput,
                "transport",
                "'" + std::string{text} + "' is no transport; did you mean " + nearest_name(text, names) +
                    "? There are " + join_names(names),
                "--transport");
}

}  // namespace refit::exec
