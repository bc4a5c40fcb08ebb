// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "refit/io/library.hpp"
#include "refit/io/scenario_draft.hpp"
#include "refit/result.hpp"

namespace refit::io {

constexpr std::uint32_t kMostGpus = 1U << 20U;

/// Reads fields of a draft and collects the faults. Where a fault offers a value, reading goes on with it, so
/// that one run tells all faults and their suggestions together make the draft whole.
class DraftReader {
public:
    DraftReader(const ScenarioDraft& draft, const Library& library) : draft_{draft}, library_{library} {}

    [[nodiscard]] const ScenarioDraft& draft() const noexcept { return draft_; }
    [[nodiscard]] const Library& library() const noexcept { return library_; }
    [[nodiscard]] Faults& faults() noexcept { return faults_; }

    /// The field's text, or `fallback`; a fault where a required field is absent.
    [[nodiscard]] std::string text_of(std::string_view name, const char* fallback, bool is_required = false);
    /// The parts of a text between commas.
    [[nodiscard]] std::vector<std::string> list_of(std::string_view name) const;
    /// Where the field was set, or its name.
    [[nodiscard]] std::string where(std::string_view name) const;

    void refuse(ErrorCode code,
                const char* rule,
                std::string message,
                std::string_view name,
                std::optional<Suggestion> nearest = std::nullopt);

    /// Takes the value, or the faults, each placed at the field; a suggestion that names no field means this
    /// one.
    template <class T>
    std::optional<T> take(Result<T> result, std::string_view name, const char* fallback = nullptr) {
        if (result) {
            return std::move(*result);
        }
        for (auto& fault : result.error()) {
            add(std::move(fault), name, fallback);
        }
        return std::nullopt;
    }

    /// One of the allowed texts, else as written with a fault that offers the nearest.
    std::string one_of(std::string_view name,
                       const char* fallback,
                       const std::vector<std::string>& allowed,
                       ErrorCode code);

    void refuse_number(std::string_view name,
                       const std::string& text,
                       std::uint32_t most,
                       std::uint32_t nearest);
    /// A whole number in [1, most], or `nearest` and a fault that offers it.
    std::uint32_t whole_number(std::string_view name,
                               const std::string& text,
                               std::uint32_t most,
                               std::uint32_t nearest);

private:
    void add(Fault fault, std::string_view name, const char* fallback);

    const ScenarioDraft& draft_;
    const Library& library_;
    Faults faults_;
};

/// The number that the text is, where it is a whole one in [1, most].
[[nodiscard]] std::optional<std::uint32_t> whole_number_in(const std::string& text, std::uint32_t most);

}  // namespace refit::io
