// SPDX-License-Identifier: Apache-2.0
#include "refit/engine_options.hpp"

namespace refit {

std::string_view name_of(BroadcastRoot root) noexcept {
    return root == BroadcastRoot::kEachStage ? "each-pp-stage" : "trainer-0";
}

std::string_view name_of(BroadcastGroup group) noexcept {
    switch (group) {
        case BroadcastGroup::kRootDomain:
            return "root-domain";
        case BroadcastGroup::kGenerators:
            return "generators";
        case BroadcastGroup::kPairs:
            return "pairs";
        case BroadcastGroup::kAll:
            break;
    }
    return "all";
}

std::string_view name_of(TransferOrder order) noexcept {
    return order == TransferOrder::kRounds ? "rounds" : "by-tensor";
}

std::string_view name_of(PackOverlap overlap) noexcept {
    return overlap == PackOverlap::kSerial ? "serial" : "pipelined";
}

std::string_view name_of(DirectSource source) noexcept {
    return source == DirectSource::kGathered ? "gathered" : "shards";
}

std::string_view name_of(DirectLoading loading) noexcept {
    switch (loading) {
        case DirectLoading::kLocal:
            return "local";
        case DirectLoading::kAll:
            return "all";
        case DirectLoading::kNone:
            break;
    }
    return "none";
}

bool EngineOptions::is_same_variant(const EngineOptions& other) const noexcept {
    auto resized = other;
    resized.streams = streams;
    resized.buffers = buffers;
    resized.buffer_memory_ratio = buffer_memory_ratio;
    resized.has_shadow_copy = has_shadow_copy;
    resized.reading = reading;
    return resized == *this;
}

}  // namespace refit
