// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace refit::gui {

/// The two palettes of the window.
enum class Theme : std::uint8_t { kLight, kDark };

/// What a colour stands for; a palette says which one it is.
enum class Ink : std::uint8_t {
    kNone,  ///< Nothing is painted.
    // Surfaces and text.
    kBackground,
    kPanel,
    kText,
    kMuted,
    kGrid,
    // Marks, at least 3:1 against the background.
    kOutline,
    kAccent,
    kTrain,
    kGenerate,
    kNic,
    kNvlink,
    kControl,
    kGather,
    kBroadcast,
    kTransfer,
    kReplica,
    kLoad,
    kCopy,
    kCritical,
    kWarn,
};
inline constexpr Ink kFirstMark = Ink::kOutline;
inline constexpr Ink kLastInk = Ink::kWarn;

/// A colour of the screen. Range: 0 to 255 each.
struct Rgb {
    std::uint8_t red = 0;
    std::uint8_t green = 0;
    std::uint8_t blue = 0;
    bool operator==(const Rgb&) const = default;
};

/// Pre: not kNone. Source of the hues: Okabe and Ito, colours that people with any colour vision tell apart; darkened
/// for the light theme until they stand out from white.
[[nodiscard]] Rgb colour_of(Theme theme, Ink ink) noexcept;

/// A sequential scale, monotonic in lightness: faint at 0, strong at 1. Dark: viridis.
[[nodiscard]] Rgb heat_of(Theme theme, double share) noexcept;

/// Relative luminance. Range: 0 to 1. Source: WCAG 2.1.
[[nodiscard]] double luminance(Rgb colour) noexcept;
/// Contrast ratio of two colours. Range: 1 to 21. Source: WCAG 2.1.
[[nodiscard]] double contrast(Rgb a, Rgb b) noexcept;
/// Black or white, whichever reads better on this colour.
[[nodiscard]] Rgb text_on(Rgb colour) noexcept;
/// `share` of the colour above the one below.
[[nodiscard]] Rgb mixed(Rgb above, Rgb below, double share) noexcept;

}  // namespace refit::gui
