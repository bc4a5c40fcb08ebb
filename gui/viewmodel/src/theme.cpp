// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/theme.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace refit::gui {
namespace {

constexpr Rgb rgb(std::uint32_t hex) {
    return {static_cast<std::uint8_t>(hex >> 16U), static_cast<std::uint8_t>((hex >> 8U) & 0xffU),
            static_cast<std::uint8_t>(hex & 0xffU)};
}

constexpr std::size_t kInks = static_cast<std::size_t>(kLastInk) + 1;

constexpr std::array<Rgb, kInks> kLightPalette{
    rgb(0xffffff),  // none
    rgb(0xffffff),  // background
    rgb(0xf3f5f8),  // panel
    rgb(0x1b1f26),  // text
    rgb(0x59616e),  // muted
    rgb(0xdde2e9),  // grid
    rgb(0x6f7886),  // outline
    rgb(0x0b62c4),  // accent
    rgb(0x2a7ab0),  // train: blue
    rgb(0xb0611a),  // generate: orange
    rgb(0xc24a00),  // NIC: vermillion
    rgb(0x2585bd),  // NVLink: sky
    rgb(0x737a86),  // control: grey
    rgb(0xa6740a),  // gather: amber
    rgb(0x005a9c),  // broadcast: blue
    rgb(0x00805d),  // transfer: green
    rgb(0xa8527f),  // replica: purple
    rgb(0x857600),  // load: olive
    rgb(0x2585bd),  // copy: sky
    rgb(0xd1002f),  // critical: red
    rgb(0xb54708),  // warn
};

constexpr std::array<Rgb, kInks> kDarkPalette{
    rgb(0x14171c),  // none
    rgb(0x14171c),  // background
    rgb(0x1e232b),  // panel
    rgb(0xeef1f5),  // text
    rgb(0xa3adbb),  // muted
    rgb(0x333b47),  // grid
    rgb(0x7c8898),  // outline
    rgb(0x5ea8ff),  // accent
    rgb(0x4fa3dc),  // train
    rgb(0xe69a4a),  // generate
    rgb(0xf07028),  // NIC
    rgb(0x56b4e9),  // NVLink
    rgb(0x98a2b0),  // control
    rgb(0xe69f00),  // gather
    rgb(0x4b8fe0),  // broadcast
    rgb(0x1fbf8f),  // transfer
    rgb(0xd488b4),  // replica
    rgb(0xe6da3c),  // load
    rgb(0x56b4e9),  // copy
    rgb(0xff5c7a),  // critical
    rgb(0xf5a35c),  // warn
};

/// Viridis at nine even steps. Source: matplotlib, CC0.
constexpr std::array<Rgb, 9> kViridis{rgb(0x440154), rgb(0x472d7b), rgb(0x3b528b), rgb(0x2c728e), rgb(0x21918c),
                                      rgb(0x28ae80), rgb(0x5ec962), rgb(0xaddc30), rgb(0xfde725)};
/// From near white to deep blue, so that little stays faint on white.
constexpr std::array<Rgb, 6> kLightScale{rgb(0xe9f5f0), rgb(0xa6dcc8), rgb(0x4fb3ad),
                                         rgb(0x2c7da0), rgb(0x34508c), rgb(0x241a52)};

std::uint8_t between(std::uint8_t a, std::uint8_t b, double share) {
    return static_cast<std::uint8_t>(std::lround(static_cast<double>(a) + (static_cast<double>(b) - static_cast<double>(a)) * share));
}

Rgb along(std::span<const Rgb> scale, double share) {
    const auto at = std::clamp(std::isnan(share) ? 0.0 : share, 0.0, 1.0) * static_cast<double>(scale.size() - 1);
    const auto low = std::min(static_cast<std::size_t>(at), scale.size() - 2);
    return mixed(scale[low + 1], scale[low], at - static_cast<double>(low));
}

double linear(std::uint8_t value) {
    const auto share = static_cast<double>(value) / 255.0;
    return share <= 0.03928 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
}

}  // namespace

Rgb colour_of(Theme theme, Ink ink) noexcept {
    const auto& palette = theme == Theme::kDark ? kDarkPalette : kLightPalette;
    return palette[static_cast<std::size_t>(ink)];
}

Rgb heat_of(Theme theme, double share) noexcept {
    return theme == Theme::kDark ? along(kViridis, share) : along(kLightScale, share);
}

double luminance(Rgb colour) noexcept {
    return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

double contrast(Rgb a, Rgb b) noexcept {
    const auto light = std::max(luminance(a), luminance(b));
    const auto dark = std::min(luminance(a), luminance(b));
    return (light + 0.05) / (dark + 0.05);
}

Rgb text_on(Rgb colour) noexcept {
    constexpr auto kBlack = rgb(0x000000);
    constexpr auto kWhite = rgb(0xffffff);
    return contrast(colour, kBlack) >= contrast(colour, kWhite) ? kBlack : kWhite;
}

Rgb mixed(Rgb above, Rgb below, double share) noexcept {
    return {between(below.red, above.red, share), between(below.green, above.green, share),
            between(below.blue, above.blue, share)};
}

}  // namespace refit::gui
