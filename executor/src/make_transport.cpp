// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "refit/exec/host.hpp"
#include "refit/exec/transport_kind.hpp"
#if defined(REFIT_HAS_MPI)
#include "refit/exec/mpi_transport.hpp"
#endif

namespace refit::exec {

Result<std::unique_ptr<Transport>> make_transport(TransportKind kind) {
    const char* takes = "CUDA's compiler (nvcc)";
    switch (kind) {
        case TransportKind::kHost:
            return make_host_transport();
        case TransportKind::kMpi:
#if defined(REFIT_HAS_MPI)
            return make_mpi_transport();
#else
            takes = "an MPI library (Debian: libopenmpi-dev, openmpi-bin)";
            break;
#endif
        case TransportKind::kNccl:
            takes = "CUDA's compiler (nvcc) and nccl.h";
            break;
        case TransportKind::kCuda:
            break;
    }
    return fail(ErrorCode::kUnsupported,
                "transport",
                "this build has no transport '" + std::string{name_of(kind)} + "', which takes " + takes +
                    " when it is built",
                "--transport");
}

}  // namespace refit::exec
