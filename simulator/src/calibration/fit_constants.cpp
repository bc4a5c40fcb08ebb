// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "log_problem.hpp"
#include "refit/calibration.hpp"
#include "refit/constant_table.hpp"

namespace refit {
namespace {

/// Draws that are the same on every machine: the standard's engine, none of its distributions.
class Draws {
public:
    explicit Draws(std::uint64_t seed) : engine_{seed} {}
    /// In (0, 1).
    double uniform() { return (static_cast<double>(engine_() >> 11U) + 0.5) * 0x1p-53; }
    /// Standard normal, by Box and Muller.
    double normal() {
        constexpr double kTwoPi = 6.283185307179586;
        const auto radius = std::sqrt(-2.0 * std::log(uniform()));
        return radius * std::cos(kTwoPi * uniform());
    }

private:
    std::mt19937_64 engine_;
};

/// The least point over the priors' middle and draws from the priors.
Eigen::VectorXd best_point(LogProblem& problem, const FitOptions& options) {
    Draws draws{options.seed};
    auto best = descend(problem, problem.prior(), options.finest_step);
    auto cost = problem.cost(best);
    for (std::uint32_t start = 1; start < options.starts; ++start) {
        Eigen::VectorXd from = problem.prior();
        for (Eigen::Index k = 0; k < from.size(); ++k) {
            from[k] += problem.spread()[k] * draws.normal();
        }
        auto point = descend(problem, from, options.finest_step);
        const auto there = problem.cost(point);
        if (there < cost) {
            cost = there;
            best = std::move(point);
        }
    }
    return best;
}

std::vector<double> listed(const Eigen::MatrixXd& matrix) {
    std::vector<double> values;
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
        for (Eigen::Index k = 0; k < matrix.cols(); ++k) {
            values.push_back(matrix(i, k));
        }
    }
    return values;
}

Eigen::MatrixXd inverse(const Eigen::MatrixXd& normal) {
    return normal.ldlt().solve(Eigen::MatrixXd::Identity(normal.rows(), normal.cols()));
}

/// Residuals of each configuration: a model on a GPU in a pair of layouts.
std::vector<std::vector<Eigen::Index>> configurations(const LogProblem& problem, std::span<const TimedRefit> refits) {
    std::map<std::array<std::string, 3>, std::vector<Eigen::Index>> rows;
    for (std::size_t i = 0; i < problem.rows().size(); ++i) {
        const auto& refit = refits[problem.rows()[i]];
        rows[{refit.model, refit.gpu, refit.layouts.empty() ? refit.ids.front() : refit.layouts}].push_back(
            static_cast<Eigen::Index>(i));
    }
    std::vector<std::vector<Eigen::Index>> all;
    all.reserve(rows.size());
    for (auto& [configuration, its] : rows) {
        all.push_back(std::move(its));
    }
    return all;
}

/// One standard deviation of each parameter without the configuration that tells it most.
std::vector<double> spreads_of(const LogProblem& problem,
                               const Eigen::MatrixXd& slopes,
                               std::span<const TimedRefit> refits) {
    const Eigen::MatrixXd normal = slopes.transpose() * slopes;
    Eigen::ArrayXd variance = inverse(normal).diagonal();
    for (const auto& rows : configurations(problem, refits)) {
        const Eigen::MatrixXd its = slopes(rows, Eigen::all);
        variance = variance.max(inverse(normal - its.transpose() * its).diagonal().array());
    }
    const Eigen::ArrayXd spreads = variance.sqrt();
    return {spreads.begin(), spreads.end()};
}

/// The covariance C = (J^T J)^-1, and of its diagonal the part that each residual brings: C = C J^T J C, so
/// C_kk is the sum of (C J^T)_ki^2 over the residuals i.
void describe(LogProblem& problem, const Eigen::VectorXd& point, std::span<const TimedRefit> refits, Fit& fit) {
    const auto slopes = problem.slopes(point);
    const Eigen::MatrixXd normal = slopes.transpose() * slopes;
    const Eigen::MatrixXd covariance = inverse(normal);
    const Eigen::MatrixXd gains = slopes * covariance;
    const auto count = problem.parameters();
    Eigen::MatrixXd shares = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(refits.size()) + count, count);
    const auto& rows = problem.rows();
    for (Eigen::Index i = 0; i < gains.rows(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto row = at < rows.size() ? static_cast<Eigen::Index>(rows[at])
                                          : i - static_cast<Eigen::Index>(rows.size() - refits.size());
        for (Eigen::Index k = 0; k < count; ++k) {
            shares(row, k) = gains(i, k) * gains(i, k) / covariance(k, k);
        }
    }
    fit.covariance = listed(covariance);
    fit.shares = listed(shares);
    fit.spreads = spreads_of(problem, slopes, refits);
    fit.misses.assign(refits.size(), 0.0);
    const auto misses = problem.misses(point);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        fit.misses[rows[i]] = misses[static_cast<Eigen::Index>(i)];
    }
}

/// Whether a constant takes part in a reading.
bool takes_part(const NamedConstant& entry, const Constant& constant, const Reading& reading) {
    using C = EngineConstants;
    if (entry.member == &C::finalize_per_expert) {
        return reading.finalize == FinalizeReading::kPerExpert;
    }
    if (entry.member == &C::finalize_slow_allgather_factor) {
        return reading.finalize == FinalizeReading::kSlowAllGather;
    }
    if (entry.member == &C::finalize_per_local_byte) {
        return reading.finalize == FinalizeReading::kPerLocalByte;
    }
    if (entry.member == &C::bulk_parameter_cost) {
        return reading.bulk_cost == BulkCostReading::kPerParameter &&
               reading.replica_ring == ReplicaRingReading::kOneNic;
    }
    if (entry.member == &C::bulk_parameter_cost_every_nic) {
        return reading.bulk_cost == BulkCostReading::kPerParameter &&
               reading.replica_ring == ReplicaRingReading::kEveryNic;
    }
    if (entry.member == &C::bulk_expert_cost) {
        return reading.bulk_cost == BulkCostReading::kPerExpert;
    }
    return constant.kind == "fitted" || constant.kind == "prior";
}

}  // namespace

std::vector<Reading> readings_with_constants() {
    Reading slow;
    slow.finalize = FinalizeReading::kSlowAllGather;
    Reading by_byte;
    by_byte.finalize = FinalizeReading::kPerLocalByte;
    Reading by_expert;
    by_expert.bulk_cost = BulkCostReading::kPerExpert;
    Reading wide;
    wide.replica_ring = ReplicaRingReading::kEveryNic;
    return {slow, by_byte, by_expert, wide};
}

std::vector<FitParameter> fit_parameters(const EngineConstants& constants, const Reading& reading) {
    // Costs have no physical bound; these keep the search finite.
    constexpr double kFar = 1e3;
    std::vector<FitParameter> parameters;
    for (const auto& entry : constant_table()) {
        const auto& constant = constants.*entry.member;
        if (constant.prior && takes_part(entry, constant, reading)) {
            const auto middle = constant.prior->value;
            const auto usual = ConstantBounds{middle / kFar, entry.is_share ? 1.0 : middle * kFar};
            parameters.push_back(
                {entry.name, entry.member, *constant.prior, constant.bounds.value_or(usual)});
        }
    }
    return parameters;
}

std::vector<double> weights_of(std::span<const TimedRefit> refits) {
    std::vector<double> weights;
    for (const auto& refit : refits) {
        weights.push_back(refit.weight);
    }
    return weights;
}

Fit fit_constants(std::span<const TimedRefit> refits,
                  std::span<const double> weights,
                  std::span<const FitParameter> parameters,
                  const FitOptions& options) {
    LogProblem problem{refits, weights, parameters, options};
    const auto point = best_point(problem, options);
    Fit fit;
    for (const auto value : point) {
        fit.values.push_back(std::exp(value));
    }
    fit.cost = problem.cost(point);
    describe(problem, point, refits, fit);
    return fit;
}

std::vector<std::vector<double>> bootstrap(std::span<const TimedRefit> refits,
                                           std::span<const FitParameter> parameters,
                                           std::size_t draws,
                                           const FitOptions& options) {
    Draws random{options.seed};
    std::vector<std::vector<double>> all;
    for (std::size_t draw = 0; draw < draws; ++draw) {
        std::vector<double> weights(refits.size(), 0.0);
        for (std::size_t i = 0; i < refits.size(); ++i) {
            const auto at = static_cast<std::size_t>(random.uniform() * static_cast<double>(refits.size()));
            weights[at] += refits[at].weight;
        }
        all.push_back(fit_constants(refits, weights, parameters, options).values);
    }
    return all;
}

}  // namespace refit
