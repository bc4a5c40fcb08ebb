// SPDX-License-Identifier: Apache-2.0
#include "refit/report.hpp"

#include <gtest/gtest.h>

namespace refit {
namespace {

TEST(Report, FindsAMethodOrNothing) {
    Report report;
    report.methods.resize(1);
    report.methods[0].method = Method::kDirect;
    EXPECT_EQ(report.find(Method::kDirect), &report.methods[0]);
    EXPECT_EQ(report.find(Method::kHybrid), nullptr);
    EXPECT_EQ(name_of(ReportKind::kEstimate), "estimate");
    EXPECT_EQ(name_of(ReportKind::kSimulate), "simulate");
}

}  // namespace
}  // namespace refit
