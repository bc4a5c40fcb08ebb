// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "refit/constant_table.hpp"
#include "refit/estimate.hpp"

namespace refit {
namespace {

/// One standard deviation of a constant's logarithm, from its 68 % interval; 0 for what is no estimate.
double log_spread(const Constant& constant) {
    const bool is_estimate =
        constant.kind == "fitted" || constant.kind == "prior" || constant.kind == "measured";
    return is_estimate && constant.low > 0.0 ? std::log(constant.high / constant.low) / 2.0 : 0.0;
}

/// How the logarithm of the total moves with one standard deviation of each constant.
class Sensitivities {
public:
    Sensitivities(const PlanLoads& loads, const Setting& setting) {
        auto moved = setting;
        for (const auto& entry : constant_table()) {
            auto& constant = moved.constants.*entry.member;
            const auto spread = log_spread(constant);
            if (spread == 0.0) {
                continue;
            }
            const auto value = constant.value;
            constant.value = value * std::exp(kStep);
            const auto above = estimate_total(loads, moved);
            constant.value = value * std::exp(-kStep);
            const auto below = estimate_total(loads, moved);
            constant.value = value;
            members_.push_back(entry.member);
            moves_.push_back(std::log(above / below) / (2.0 * kStep) * spread);
        }
    }

    /// Variance of the logarithm of the total: of independent constants, and what their correlations add.
    [[nodiscard]] double variance(const EngineConstants& constants) const {
        double sum = 0.0;
        for (const auto move : moves_) {
            sum += move * move;
        }
        for (const auto& pair : constants.correlations) {
            sum += 2.0 * pair.value * move_of(pair.first) * move_of(pair.second);
        }
        return std::max(sum, 0.0);
    }

private:
    static constexpr double kStep = 0.05;

    [[nodiscard]] double move_of(Constant EngineConstants::*member) const {
        const auto found = std::ranges::find(members_, member);
        return found == members_.end() ? 0.0 : moves_[static_cast<std::size_t>(found - members_.begin())];
    }

    std::vector<Constant EngineConstants::*> members_;
    std::vector<double> moves_;
};

}  // namespace

Range estimate_range(const PlanLoads& loads, const Setting& setting, bool is_calibrated) {
    const auto usual = estimate(loads, setting);
    auto low = usual.total;
    auto high = usual.total;
    if (is_calibrated) {
        for (const auto& reading : setting.options.reading.all()) {
            const auto other = estimate_total(loads, setting, reading);
            low = std::min(low, other);
            high = std::max(high, other);
        }
    } else {
        low = low - usual.software;
        high = high + usual.software;
    }
    const auto error = setting.constants.model_error.value;
    const auto variance = Sensitivities{loads, setting}.variance(setting.constants) + error * error;
    const auto widened = [&](double ratio) {
        const auto span = std::log(ratio);
        return std::exp(std::sqrt(span * span + kEightyPercent * kEightyPercent * variance));
    };
    return {low > Seconds{} ? usual.total * (1.0 / widened(usual.total / low)) : low,
            usual.total * widened(high / usual.total)};
}

}  // namespace refit
