// SPDX-License-Identifier: Apache-2.0
#include "refit/engine.hpp"

namespace refit {

std::string_view name_of(BroadcastRoot root) noexcept {
    return root == BroadcastRoot::kEachStage ? "each-pp-stage" : "trainer-0";
}

std::string_view name_of(TransferOrder order) noexcept {
    return order == TransferOrder::kRounds ? "rounds" : "by-tensor";
}

}  // namespace refit
