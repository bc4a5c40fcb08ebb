// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "drafts.hpp"

namespace refit::testing_io {

/// The scenario that a draft makes. Throws the faults where there are any.
inline Scenario resolved(const io::ScenarioDraft& draft) {
    auto scenario = io::resolve(draft, library());
    if (!scenario) {
        throw std::runtime_error{described(scenario.error())};
    }
    return *scenario;
}

/// Whether a fault of the same rule at the same place is still told.
inline bool persists(const Fault& fault, const Faults& faults) {
    return std::ranges::any_of(faults, [&](const auto& other) {
        return other.rule == fault.rule && other.message == fault.message;
    });
}

/// Every fault has a suggestion that takes it away, and all of them together make the draft whole.
inline void expect_mendable(const io::ScenarioDraft& draft) {
    const auto faults = faults_of(draft);
    ASSERT_FALSE(faults.empty());
    auto mended = draft;
    for (const auto& fault : faults) {
        ASSERT_TRUE(fault.nearest.has_value()) << described({fault});
        auto changed = draft;
        changed.apply(*fault.nearest);
        EXPECT_FALSE(persists(fault, faults_of(changed))) << described({fault});
        mended.apply(*fault.nearest);
    }
    const auto left = faults_of(mended);
    EXPECT_TRUE(left.empty()) << "of\n" << described(faults) << "are left\n" << described(left);
}

}  // namespace refit::testing_io
