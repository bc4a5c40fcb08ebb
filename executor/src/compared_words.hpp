// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "refit/exec/rank_storage.hpp"

namespace refit::exec {

/// What a rank says of its destinations, as numbers that MPI carries.
struct Words {
    static constexpr std::size_t kCount = 13;
    std::array<std::uint64_t, kCount> words{};
};

[[nodiscard]] inline Words words_of(const Compared& compared) {
    const Mismatch mismatch = compared.mismatch.value_or(Mismatch{});
    return {{compared.record.digest,
             compared.record.elements,
             compared.record.checksum,
             compared.mismatch ? 1U : 0U,
             mismatch.tensor.parameter,
             mismatch.tensor.slice,
             mismatch.tensor.number,
             mismatch.element,
             mismatch.expected,
             mismatch.found,
             mismatch.wave,
             mismatch.operation,
             mismatch.giver}};
}

[[nodiscard]] inline Compared compared_of(const Words& said, std::uint32_t rank) {
    const auto& words = said.words;
    const auto narrow = [&](std::size_t index) { return static_cast<std::uint32_t>(words.at(index)); };
    Compared compared{{rank, words[0], words[1], words[2]}, std::nullopt};
    if (words[3] != 0) {
        compared.mismatch = Mismatch{rank,
                                     {narrow(4), narrow(5), narrow(6)},
                                     words[7],
                                     words[8],
                                     words[9],
                                     narrow(10),
                                     narrow(11),
                                     narrow(12)};
    }
    return compared;
}

/// Of all processes; `members`: which ranks they are, ascending.
[[nodiscard]] inline Verification verification_of(const std::vector<Words>& all,
                                                  const std::vector<std::uint32_t>& members) {
    Verification verification;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Compared compared = compared_of(all[i], members.at(i));
        verification.elements += compared.record.elements;
        if (!compared.mismatch) {
            verification.records.push_back(compared.record);
        } else if (!verification.mismatch) {
            verification.mismatch = compared.mismatch;
        }
    }
    return verification;
}

}  // namespace refit::exec
