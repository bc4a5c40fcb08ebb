// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <Eigen/Dense>

#include "refit/calibration.hpp"

namespace refit {

/// The residuals of a fit as a function of the parameters' logarithms.
class LogProblem {
public:
    LogProblem(std::span<const TimedRefit> refits,
               std::span<const double> weights,
               std::span<const FitParameter> parameters,
               const FitOptions& options);

    [[nodiscard]] Eigen::Index parameters() const noexcept { return low_.size(); }
    /// One for each refit with a weight, then one for each prior.
    [[nodiscard]] Eigen::VectorXd residuals(const Eigen::VectorXd& point);
    /// Of each refit with a weight, the logarithm of prediction over the middle of what was timed.
    [[nodiscard]] Eigen::VectorXd misses(const Eigen::VectorXd& point);
    [[nodiscard]] double cost(const Eigen::VectorXd& point) { return residuals(point).squaredNorm(); }
    /// By central differences, from inside the bounds.
    [[nodiscard]] Eigen::MatrixXd slopes(const Eigen::VectorXd& point);

    [[nodiscard]] const Eigen::VectorXd& prior() const noexcept { return prior_; }
    [[nodiscard]] const Eigen::VectorXd& spread() const noexcept { return spread_; }
    [[nodiscard]] const Eigen::VectorXd& low() const noexcept { return low_; }
    [[nodiscard]] const Eigen::VectorXd& high() const noexcept { return high_; }
    [[nodiscard]] Eigen::VectorXd inside(const Eigen::VectorXd& point) const {
        return point.cwiseMax(low_).cwiseMin(high_);
    }
    /// Index of the refit behind each of the first residuals.
    [[nodiscard]] const std::vector<std::size_t>& rows() const noexcept { return rows_; }

    /// Holds a parameter at a value.
    void pin(Eigen::Index parameter, double value);

private:
    std::span<const TimedRefit> refits_;
    std::span<const FitParameter> parameters_;
    Reading reading_;
    std::vector<std::size_t> rows_;
    std::vector<Setting> settings_;
    std::vector<double> middles_;
    std::vector<double> scales_;  ///< What a difference of logarithms counts.
    Eigen::VectorXd prior_;
    Eigen::VectorXd spread_;
    Eigen::VectorXd low_;
    Eigen::VectorXd high_;
};

/// The least cost that Levenberg-Marquardt and a search along single directions reach from `start`.
[[nodiscard]] Eigen::VectorXd descend(LogProblem& problem, const Eigen::VectorXd& start, double finest_step);

}  // namespace refit
