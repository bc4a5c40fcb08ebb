// SPDX-License-Identifier: Apache-2.0
#include "log_problem.hpp"

#include <cmath>
#include <stdexcept>

namespace refit {
namespace {

/// Of central differences, in logarithms: wide enough for rounding, narrow enough for kinks.
constexpr double kDifference = 1e-5;

}  // namespace

double log_middle(const TimedRefit& refit) {
    return std::log(refit.low.value() * refit.high.value()) / 2.0;
}

double range_variance(const TimedRefit& refit) {
    const auto half = std::log(refit.high / refit.low) / 2.0;
    return half * half / 3.0;
}

LogProblem::LogProblem(std::span<const TimedRefit> refits,
                       std::span<const double> weights,
                       std::span<const FitParameter> parameters,
                       const FitOptions& options)
    : refits_{refits}, parameters_{parameters}, reading_{options.reading} {
    if (weights.size() != refits.size() || parameters.empty()) {
        throw std::logic_error{"a fit needs a weight for each refit, and a parameter"};
    }
    for (std::size_t i = 0; i < refits.size(); ++i) {
        if (weights[i] > 0.0) {
            rows_.push_back(i);
            settings_.push_back(refits[i].setting);
            middles_.push_back(log_middle(refits[i]));
            scales_.push_back(
                std::sqrt(weights[i] / (options.row_error * options.row_error + range_variance(refits[i]))));
        }
    }
    const auto count = static_cast<Eigen::Index>(parameters.size());
    for (auto* vector : {&prior_, &spread_, &low_, &high_}) {
        vector->resize(count);
    }
    for (Eigen::Index k = 0; k < count; ++k) {
        const auto& parameter = parameters[static_cast<std::size_t>(k)];
        prior_[k] = std::log(parameter.prior.value);
        spread_[k] = std::log(parameter.prior.spread);
        low_[k] = std::log(parameter.bounds.low);
        high_[k] = std::log(parameter.bounds.high);
    }
}

Eigen::VectorXd LogProblem::misses(const Eigen::VectorXd& point) {
    const auto rows = static_cast<Eigen::Index>(rows_.size());
    Eigen::VectorXd result(rows);
    const Eigen::VectorXd values = point.array().exp();
    for (Eigen::Index i = 0; i < rows; ++i) {
        const auto at = static_cast<std::size_t>(i);
        auto& setting = settings_[at];
        for (Eigen::Index k = 0; k < parameters(); ++k) {
            (setting.constants.*parameters_[static_cast<std::size_t>(k)].member).value = values[k];
        }
        const auto seconds = estimate_total(refits_[rows_[at]].loads, setting, reading_);
        result[i] = std::log(seconds.value()) - middles_[at];
    }
    return result;
}

Eigen::VectorXd LogProblem::residuals(const Eigen::VectorXd& point) {
    const auto rows = static_cast<Eigen::Index>(rows_.size());
    Eigen::VectorXd result(rows + parameters());
    result.head(rows) = misses(point).cwiseProduct(Eigen::VectorXd::Map(scales_.data(), rows));
    result.tail(parameters()) = (point - prior_).cwiseQuotient(spread_);
    return result;
}

Eigen::MatrixXd LogProblem::slopes(const Eigen::VectorXd& point) {
    Eigen::MatrixXd result(static_cast<Eigen::Index>(rows_.size()) + parameters(), parameters());
    for (Eigen::Index k = 0; k < parameters(); ++k) {
        auto above = point;
        auto below = point;
        above[k] += kDifference;
        below[k] -= kDifference;
        result.col(k) = (residuals(above) - residuals(below)) / (2.0 * kDifference);
    }
    return result;
}

void LogProblem::pin(Eigen::Index parameter, double value) {
    low_[parameter] = value;
    high_[parameter] = value;
}

namespace {

/// Where a step would leave the box at once, the parameter stays.
std::vector<Eigen::Index> free_ones(const LogProblem& problem,
                                    const Eigen::VectorXd& point,
                                    const Eigen::VectorXd& gradient) {
    std::vector<Eigen::Index> free;
    for (Eigen::Index k = 0; k < problem.parameters(); ++k) {
        const bool is_stuck = (point[k] <= problem.low()[k] && gradient[k] > 0.0) ||
                              (point[k] >= problem.high()[k] && gradient[k] < 0.0);
        if (!is_stuck && problem.low()[k] < problem.high()[k]) {
            free.push_back(k);
        }
    }
    return free;
}

/// Levenberg-Marquardt within a box; steps that leave it are cut to it.
Eigen::VectorXd levenberg(LogProblem& problem, Eigen::VectorXd point) {
    constexpr int kIterations = 40;
    constexpr double kLargestDamping = 1e9;
    double damping = 1e-3;
    auto residuals = problem.residuals(point);
    for (int iteration = 0; iteration < kIterations && damping < kLargestDamping; ++iteration) {
        const auto slopes = problem.slopes(point);
        const Eigen::VectorXd gradient = slopes.transpose() * residuals;
        const auto free = free_ones(problem, point, gradient);
        if (free.empty()) {
            break;
        }
        const Eigen::MatrixXd chosen = slopes(Eigen::all, free);
        const Eigen::MatrixXd normal = chosen.transpose() * chosen;
        const auto cost = residuals.squaredNorm();
        bool is_done = false;
        for (; damping < kLargestDamping; damping *= 4.0) {
            Eigen::MatrixXd damped = normal;
            damped.diagonal() *= 1.0 + damping;
            const Eigen::VectorXd step = damped.ldlt().solve(-gradient(free));
            Eigen::VectorXd next = point;
            next(free) += step;
            next = problem.inside(next);
            auto there = problem.residuals(next);
            if (there.squaredNorm() < cost) {
                is_done = there.squaredNorm() > cost * (1.0 - 1e-10);
                point = std::move(next);
                residuals = std::move(there);
                damping = std::max(damping / 8.0, 1e-9);
                break;
            }
        }
        if (is_done) {
            break;
        }
    }
    return point;
}

/// The axes, and the axes of the cost's ellipsoid, along which a kink may run.
Eigen::MatrixXd directions(LogProblem& problem, const Eigen::VectorXd& point) {
    const auto count = problem.parameters();
    const auto slopes = problem.slopes(point);
    Eigen::MatrixXd result(count, 2 * count);
    result.leftCols(count) = Eigen::MatrixXd::Identity(count, count);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> axes{slopes.transpose() * slopes};
    result.rightCols(count) = axes.eigenvectors();
    return result;
}

Eigen::VectorXd polish(LogProblem& problem, Eigen::VectorXd point, double finest_step) {
    constexpr double kFirstStep = 0.03;
    constexpr int kSweeps = 40;
    auto cost = problem.cost(point);
    double step = kFirstStep;
    for (int sweep = 0; sweep < kSweeps && step > finest_step; ++sweep) {
        const auto along = directions(problem, point);
        const auto before = cost;
        for (Eigen::Index d = 0; d < along.cols(); ++d) {
            for (const double sign : {1.0, -1.0}) {
                const Eigen::VectorXd next = problem.inside(point + sign * step * along.col(d));
                const auto there = problem.cost(next);
                if (there < cost) {
                    cost = there;
                    point = next;
                }
            }
        }
        if (cost > before * (1.0 - 1e-9)) {
            step /= 4.0;
        }
    }
    return point;
}

}  // namespace

Eigen::VectorXd descend(LogProblem& problem, const Eigen::VectorXd& start, double finest_step) {
    auto point = levenberg(problem, problem.inside(start));
    point = polish(problem, std::move(point), finest_step);
    return levenberg(problem, std::move(point));
}

}  // namespace refit
