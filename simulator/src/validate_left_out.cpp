// SPDX-License-Identifier: Apache-2.0
#include "validate_left_out.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "refit/left_out.hpp"

namespace refit {
namespace {

/// The refits of one engine file, and for each the constants without it.
struct EngineFits {
    std::vector<TimedRefit> refits;
    std::vector<EngineConstants> without;
};

std::map<std::string, EngineFits> fits_of(std::span<const TimedRefit> fitted) {
    std::map<std::string, EngineFits> fits;
    for (const auto& refit : fitted) {
        fits[refit.constants_of].refits.push_back(refit);
    }
    for (auto& [name, engine] : fits) {
        const auto& constants = engine.refits.front().setting.constants;
        if (!fit_parameters(constants).empty()) {
            engine.without = refitted_without_each(engine.refits, constants);
        }
    }
    return fits;
}

/// The constants that have not seen a refit, or null where it did not serve or nothing was fitted.
const EngineConstants* constants_without(const std::map<std::string, EngineFits>& fits,
                                         const TimedRefit& refit) {
    const auto engine = fits.find(refit.constants_of);
    if (engine == fits.end() || engine->second.without.empty()) {
        return nullptr;
    }
    const auto& refits = engine->second.refits;
    const auto same = std::ranges::find_if(refits, [&](const TimedRefit& other) {
        return std::ranges::find_first_of(other.ids, refit.ids) != other.ids.end();
    });
    return same == refits.end() ? nullptr
                                : &engine->second.without[static_cast<std::size_t>(same - refits.begin())];
}

}  // namespace

void set_left_out(std::vector<ValidationRow>& rows,
                  const std::map<std::size_t, TimedRefit>& timed,
                  std::span<const TimedRefit> fitted) {
    const auto fits = fits_of(fitted);
    for (auto& row : rows) {
        if (!row.prediction) {
            continue;
        }
        row.left_out = row.prediction;
        const auto refit = timed.find(row.configuration);
        const auto* constants =
            row.served_to_fit && refit != timed.end() ? constants_without(fits, refit->second) : nullptr;
        if (constants != nullptr) {
            // A simulation's time moves as the closed form's does.
            const auto usual = estimate_total(refit->second.loads, refit->second.setting);
            const auto scale = row.prediction->seconds / usual;
            const auto without = predict_with(std::span{&refit->second, 1}, 0, *constants);
            row.left_out->seconds = without.seconds * scale;
            row.left_out->low = without.low * scale;
            row.left_out->high = without.high * scale;
        }
        if (row.low) {
            row.left_out_error = error_beside(row.left_out->seconds, *row.low, *row.high);
        }
    }
}

}  // namespace refit
