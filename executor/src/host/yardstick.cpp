// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/yardstick.hpp"

#include <algorithm>
#include <utility>

#include "trial.hpp"

namespace refit::exec {

class Yardstick::Copy {
public:
    explicit Copy(host::Trial made) : trial{std::move(made)} {}
    host::Trial trial;
};

Yardstick::Yardstick(std::unique_ptr<Copy> copy) : copy_{std::move(copy)} {}
Yardstick::Yardstick(Yardstick&&) noexcept = default;
Yardstick& Yardstick::operator=(Yardstick&&) noexcept = default;
Yardstick::~Yardstick() = default;

Result<Yardstick> Yardstick::make(std::uint32_t threads, Bytes most_bytes) {
    constexpr std::uint64_t kRun = std::uint64_t{8} << 10U;
    constexpr std::uint64_t kFootprint = std::uint64_t{256} << 20U;
    auto trial = host::Trial::make(
        host::matrix(CopyPattern::kGather, kRun, std::min(kFootprint, most_bytes.count())), threads);
    if (!trial) {
        return Failure{std::move(trial.error())};
    }
    return Yardstick{std::make_unique<Copy>(std::move(*trial))};
}

Result<Seconds> Yardstick::measure() const {
    return copy_->trial.run();
}

}  // namespace refit::exec
