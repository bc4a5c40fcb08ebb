// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/mpi_share.hpp"

#include <mpi.h>

#include "refit/exec/mpi_transport.hpp"

namespace refit::exec {

std::string share_over_mpi(const std::string& mine) {
    prepare_mpi();
    MPI_Init(nullptr, nullptr);
    auto size = static_cast<int>(mine.size());
    MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
    std::string text = mine;
    text.resize(static_cast<std::size_t>(size));
    MPI_Bcast(text.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return text;
}

}  // namespace refit::exec
