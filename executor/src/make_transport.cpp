// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>

#include "refit/exec/host.hpp"
#include "refit/exec/transport_kind.hpp"
#if defined(REFIT_HAS_CUDA)
#include "refit/exec/cuda_transport.hpp"
#endif
#if defined(REFIT_HAS_MPI)
#include "refit/exec/mpi_share.hpp"
#include "refit/exec/mpi_transport.hpp"
#endif
#if defined(REFIT_HAS_NCCL)
#include "refit/exec/nccl_transport.hpp"
#endif

namespace refit::exec {
namespace {

#if defined(REFIT_HAS_NCCL)
/// The launcher says which rank this is; REFIT_RENDEZVOUS where they meet, else MPI does.
Result<std::unique_ptr<Transport>> nccl_transport() {
    const auto lookup = [](const char* name) -> const char* {
        return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
    };
    const auto place = process_place(lookup);
    if (!place) {
        return Failure{place.error()};
    }
    Rendezvous rendezvous;
    if (const char* address = lookup("REFIT_RENDEZVOUS")) {
        rendezvous.address = address;
    }
#if defined(REFIT_HAS_MPI)
    if (rendezvous.address.empty() && lookup("OMPI_COMM_WORLD_SIZE") != nullptr) {
        rendezvous.share = share_over_mpi;
    }
#endif
    return make_nccl_transport(*place, std::move(rendezvous));
}
#endif

}  // namespace

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
#if defined(REFIT_HAS_NCCL)
            return nccl_transport();
#else
            takes = "CUDA's compiler (nvcc) and nccl.h";
            break;
#endif
        case TransportKind::kCuda:
#if defined(REFIT_HAS_CUDA)
            return make_cuda_transport();
#else
            break;
#endif
    }
    return fail(ErrorCode::kUnsupported,
                "transport",
                "this build has no transport '" + std::string{name_of(kind)} + "', which takes " + takes +
                    " when it is built",
                "--transport");
}

}  // namespace refit::exec
