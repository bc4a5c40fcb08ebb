// SPDX-License-Identifier: Apache-2.0
#include "refit/exec/injection.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "refit/suggest.hpp"

namespace refit::exec {
namespace {

constexpr std::array<std::pair<std::string_view, InjectionKind>, 7> kKinds{
    {{"dies", InjectionKind::kDies},
     {"stalls", InjectionKind::kStalls},
     {"slows", InjectionKind::kSlows},
     {"memory", InjectionKind::kOutOfMemory},
     {"plan", InjectionKind::kOtherPlan},
     {"version", InjectionKind::kOtherVersion},
     {"corrupts", InjectionKind::kCorrupts}}};

std::optional<std::uint32_t> number(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

}  // namespace

Result<Injection> parse_injection(std::string_view text) {
    const auto colon = text.find(':');
    const auto name = text.substr(0, colon);
    std::vector<std::string> names;
    for (const auto& [known, kind] : kKinds) {
        names.emplace_back(known);
        if (known != name || colon == std::string_view::npos) {
            continue;
        }
        const auto rest = text.substr(colon + 1);
        const auto at = rest.find('@');
        const auto rank = number(rest.substr(0, at));
        const auto wave = at == std::string_view::npos ? std::optional{0U} : number(rest.substr(at + 1));
        if (rank && wave) {
            return Injection{kind, *rank, *wave};
        }
    }
    return fail(ErrorCode::kInvalidInput,
                "injection",
                "'" + std::string{text} +
                    "' is no fault to inject: KIND:RANK or KIND:RANK@WAVE, where KIND is " +
                    join_names(names) + "; the nearest is '" + nearest_name(name, names) + "'",
                "--inject");
}

}  // namespace refit::exec
