// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "refit/plan.hpp"

namespace refit {

/// Orders the transfers of a block into rounds, in each of which a rank sends at most one and a receiver gets
/// at most one: as few rounds as the busiest rank has transfers. Within a round the order stays as it was.
/// Source: D. Kőnig: the edges of a bipartite graph take as many colours as its largest degree.
/// Cost: transfers times ranks.
void put_in_rounds(TransferBlock& block);

}  // namespace refit
