// SPDX-License-Identifier: Apache-2.0
#include "egress.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <ClpSimplex.hpp>
#include <gtest/gtest.h>

#include "random_work.hpp"
#include "refit/bound.hpp"

namespace refit {
namespace {

TEST(Egress, OfOneGroupFollowsTheRates) {
    const auto shares = least_egress({{{0, 2}, 12.0}}, {1.0, 1.0, 2.0});
    EXPECT_DOUBLE_EQ(shares.seconds, 4.0);
    EXPECT_EQ(shares.flow, (std::vector<std::vector<double>>{{4.0, 8.0}}));
    EXPECT_EQ(shares.cut, (std::vector<std::uint32_t>{0, 2}));
}

TEST(Egress, GivesWayToWhatHasNoChoice) {
    // Node 0 alone holds 6; the 6 that 0 and 1 share all go to 1.
    const auto shares = least_egress({{{0}, 6.0}, {{0, 1}, 6.0}}, {1.0, 1.0});
    EXPECT_NEAR(shares.seconds, 6.0, 1e-9);
    EXPECT_NEAR(shares.flow[1][0], 0.0, 1e-9);
    EXPECT_NEAR(shares.flow[1][1], 6.0, 1e-9);
}

TEST(Egress, FindsTheCutInsideALargerSet) {
    // Nodes 0 and 1 hold 10 between them at rates 1 and 1, and node 2 helps with little: 5 seconds, not (10 + 1) / 3.
    const auto shares = least_egress({{{0}, 4.0}, {{0, 1}, 6.0}, {{1, 2}, 1.0}}, {1.0, 1.0, 1.0});
    EXPECT_NEAR(shares.seconds, 5.0, 1e-9);
    EXPECT_EQ(shares.cut, (std::vector<std::uint32_t>{0, 1}));
}

TEST(Egress, OfNothingTakesNoTime) {
    // Groups 0 and 1 share a node and hold nothing; group 2 sends its 6 in 3 s.
    const auto shares = least_egress({{{0, 1}, 0.0}, {{1}, 0.0}, {{2}, 6.0}}, {1.0, 1.0, 2.0});
    EXPECT_DOUBLE_EQ(shares.seconds, 3.0);
    EXPECT_EQ(shares.flow, (std::vector<std::vector<double>>{{0.0, 0.0}, {0.0}, {6.0}}));
    EXPECT_EQ(shares.cut, (std::vector<std::uint32_t>{2}));
}

TEST(Egress, KeepsApartWhatSharesNoNode) {
    const auto shares = least_egress({{{0}, 3.0}, {{1}, 8.0}}, {1.0, 2.0});
    EXPECT_DOUBLE_EQ(shares.seconds, 4.0);
    EXPECT_EQ(shares.cut, (std::vector<std::uint32_t>{1}));
}

/// Bytes that each domain sends, by slice, as unknowns beside the time: the linear program whose optimum the cut bounds
/// are to equal. A domain that receives a slice may pass it on to all others but itself.
class Program {
public:
    explicit Program(const random_work::Work& work) : fabric_{work.fabric}, sends_(fabric_.domains()) {
        add_column(1.0);
        for (const auto& slice : work.raw) {
            add_slice(work, slice);
        }
        for (std::uint32_t domain = 0; domain < fabric_.domains(); ++domain) {
            auto terms = sends_[domain];
            terms[0] = -rate(fabric_.domain_ports(domain).nic_out);
            add_row(terms, -COIN_DBL_MAX, 0.0);
            add_row({{0, rate(fabric_.domain_ports(domain).nic_in)}}, entering_[domain], COIN_DBL_MAX);
        }
    }

    /// Unit: second.
    double solve() {
        model_.setLogLevel(0);
        model_.primal();
        EXPECT_EQ(model_.status(), 0);
        return model_.objectiveValue() / 1e3;
    }

private:
    /// Gigabytes and milliseconds keep the matrix near one.
    static double rate(double bytes_per_second) { return bytes_per_second / 1e12; }

    int add_column(double cost) {
        model_.addColumn(0, nullptr, nullptr, 0.0, COIN_DBL_MAX, cost);
        return columns_++;
    }
    void add_row(const std::map<int, double>& terms, double low, double high) {
        std::vector<int> columns;
        std::vector<double> values;
        for (const auto& [column, value] : terms) {
            columns.push_back(column);
            values.push_back(value);
        }
        model_.addRow(static_cast<int>(columns.size()), columns.data(), values.data(), low, high);
    }

    void add_slice(const random_work::Work& work, const Slice& slice) {
        std::set<std::uint32_t> held;
        std::set<std::uint32_t> wanted;
        for (const auto rank : work.sets[slice.holders]) {
            held.insert(fabric_.domain_of(rank));
        }
        for (const auto rank : work.sets[slice.receivers]) {
            if (!held.contains(fabric_.domain_of(rank))) {
                wanted.insert(fabric_.domain_of(rank));
            }
        }
        if (wanted.empty()) {
            return;
        }
        const auto bytes = static_cast<double>(slice.bytes) / 1e9;
        const auto copies = static_cast<double>(wanted.size());
        std::map<int, double> all;
        std::map<int, double> first;
        for (const auto domain : held) {
            const auto column = add_column(0.0);
            all[column] = first[column] = sends_[domain][column] = 1.0;
        }
        for (const auto domain : wanted) {
            entering_[domain] += bytes;
            const auto column = add_column(0.0);
            model_.setColumnUpper(column, (copies - 1.0) * bytes);
            all[column] = sends_[domain][column] = 1.0;
        }
        add_row(all, copies * bytes, copies * bytes);
        add_row(first, bytes, COIN_DBL_MAX);
    }

    const Fabric& fabric_;
    ClpSimplex model_;
    int columns_ = 0;
    std::vector<std::map<int, double>> sends_;  ///< By domain: the columns of what it sends.
    std::map<std::uint32_t, double> entering_;
};

TEST(Egress, AndIngressEqualALinearProgramOnRandomWork) {
    int cases = 0;
    int mixed = 0;
    for (std::uint64_t seed = 0; cases < 300; ++seed) {
        for (const auto& work : random_work::draw(seed)) {
            const auto bounds = cut_bounds(work.slices, work.fabric);
            const auto closed = std::max({bounds.of(BoundKind::kDomainIngress).time,
                                          bounds.of(BoundKind::kSourceEgress).time,
                                          bounds.of(BoundKind::kCopyVolume).time});
            EXPECT_NEAR(Program{work}.solve(), closed.value(), 1e-3 * closed.value()) << "seed " << seed;
            ++cases;
            mixed += work.is_mixed ? 1 : 0;
        }
    }
    EXPECT_GE(mixed, 50);
}

}  // namespace
}  // namespace refit
