// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace refit {

/// Amount of data.
/// Unit: byte, exact. Range: [0, 2^64). Errors: overflow and negative differences throw std::overflow_error.
class Bytes {
public:
    constexpr Bytes() noexcept = default;
    constexpr explicit Bytes(std::unsigned_integral auto count) noexcept : count_{count} {}

    [[nodiscard]] constexpr std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] constexpr double as_double() const noexcept { return static_cast<double>(count_); }

    constexpr auto operator<=>(const Bytes&) const = default;

    constexpr Bytes& operator+=(Bytes other) {
        if (count_ > std::numeric_limits<std::uint64_t>::max() - other.count_) {
            throw std::overflow_error{"Bytes: sum exceeds 2^64"};
        }
        count_ += other.count_;
        return *this;
    }
    constexpr Bytes& operator-=(Bytes other) {
        if (other.count_ > count_) {
            throw std::overflow_error{"Bytes: difference is negative"};
        }
        count_ -= other.count_;
        return *this;
    }
    constexpr Bytes& operator*=(std::uint64_t factor) {
        if (factor != 0 && count_ > std::numeric_limits<std::uint64_t>::max() / factor) {
            throw std::overflow_error{"Bytes: product exceeds 2^64"};
        }
        count_ *= factor;
        return *this;
    }
    friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
    friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
    friend constexpr Bytes operator*(Bytes a, std::uint64_t factor) { return a *= factor; }

private:
    std::uint64_t count_{0};
};

/// Length of time. Unit: second. May be any finite value; a prediction is never negative.
class Seconds {
public:
    constexpr Seconds() noexcept = default;
    constexpr explicit Seconds(double value) noexcept : value_{value} {}
    [[nodiscard]] constexpr double value() const noexcept { return value_; }
    constexpr auto operator<=>(const Seconds&) const = default;
    constexpr Seconds& operator+=(Seconds other) noexcept {
        value_ += other.value_;
        return *this;
    }
    friend constexpr Seconds operator+(Seconds a, Seconds b) noexcept { return Seconds{a.value_ + b.value_}; }
    friend constexpr Seconds operator-(Seconds a, Seconds b) noexcept { return Seconds{a.value_ - b.value_}; }
    friend constexpr Seconds operator*(Seconds a, double factor) noexcept { return Seconds{a.value_ * factor}; }
    friend constexpr double operator/(Seconds a, Seconds b) noexcept { return a.value_ / b.value_; }

private:
    double value_{0.0};
};

/// Data rate in one direction. Stored in bytes per second; construct it by naming the unit.
/// Range: above zero and finite. A link that is down is a state, not a rate.
/// Errors: std::invalid_argument outside the range.
class Bandwidth {
public:
    [[nodiscard]] static constexpr Bandwidth bytes_per_second(double v) { return Bandwidth{v}; }
    [[nodiscard]] static constexpr Bandwidth gigabytes_per_second(double v) { return Bandwidth{v * 1e9}; }
    [[nodiscard]] static constexpr Bandwidth gigabits_per_second(double v) { return Bandwidth{v * 1e9 / 8.0}; }
    [[nodiscard]] constexpr double bytes_per_second() const noexcept { return bytes_per_second_; }
    constexpr auto operator<=>(const Bandwidth&) const = default;
    friend constexpr Bandwidth operator*(Bandwidth rate, double factor) {
        return Bandwidth{rate.bytes_per_second_ * factor};
    }
    friend constexpr Bandwidth operator+(Bandwidth a, Bandwidth b) {
        return Bandwidth{a.bytes_per_second_ + b.bytes_per_second_};
    }

private:
    constexpr explicit Bandwidth(double v) : bytes_per_second_{v} {
        if (!(v > 0.0) || v > std::numeric_limits<double>::max()) {
            throw std::invalid_argument{"Bandwidth: must be positive and finite"};
        }
    }
    double bytes_per_second_;
};

/// Time to push `size` through `rate`, without any start-up latency.
[[nodiscard]] constexpr Seconds operator/(Bytes size, Bandwidth rate) noexcept {
    return Seconds{size.as_double() / rate.bytes_per_second()};
}

/// The same for an amount that is an average or a share and hence no whole number of bytes.
[[nodiscard]] constexpr Seconds transfer_time(double bytes, Bandwidth rate) noexcept {
    return Seconds{bytes / rate.bytes_per_second()};
}

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long v) { return Bytes{v}; }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes{v << 30U}; }
constexpr Bytes operator""_GB(unsigned long long v) { return Bytes{v * 1'000'000'000ULL}; }
constexpr Bandwidth operator""_GBps(unsigned long long v) {
    return Bandwidth::gigabytes_per_second(static_cast<double>(v));
}
constexpr Bandwidth operator""_Gbitps(unsigned long long v) {
    return Bandwidth::gigabits_per_second(static_cast<double>(v));
}
}  // namespace literals

}  // namespace refit
