// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "refit/layout.hpp"
#include "refit/units.hpp"

namespace refit {

/// Over which trainers FSDP shards, where a source gives no number.
enum class ShardsOver : std::uint8_t {
    kNumber,  ///< It gives one, or is not of FSDP.
    kAll,
    kSome,  ///< HSDP of sizes that are not published.
};

/// One side of a published refit, as far as its source tells.
struct PublishedSide {
    std::optional<std::uint32_t> gpus;
    std::optional<LayoutText> layout;
    std::optional<LayoutText> assumed_layout;  ///< Ours, for a record whose source gives none.
    std::vector<std::string> unplaced;         ///< Members of the layout that are no axis here, or no count: "note", "tp 0".
    std::optional<std::uint32_t> attention_groups;  ///< Of an engine of SGLang's: `tp` ranks have so many copies of attention.
    std::optional<std::uint32_t> virtual_stages;    ///< Chunks of layers that a pipeline stage has.
    ShardsOver shards = ShardsOver::kNumber;
    bool operator==(const PublishedSide&) const = default;
};

/// A publicly reported refit time, and what was timed.
struct PublishedRecord {
    std::string id;
    std::string source;  ///< Title of what was read.
    std::string engine;  ///< Implementation that was timed: "nemo-rl-broadcast" …; empty: the source does not say.
    std::optional<Seconds> seconds;
    std::optional<Seconds> low;
    std::optional<Seconds> high;
    std::vector<std::string> inferred;               ///< Fields derived rather than published.
    std::vector<std::string> same_configuration_as;  ///< Ids of other records of the same refit.

    std::string date = {};   ///< Of the source: "2026-06-27", "2026-06" or "2026"; empty: not said.
    std::string tier = {};   ///< "A": layouts and hardware are known well; "B": to be used with care.
    std::string model = {};  ///< As the source calls it.
    std::optional<double> parameters = std::nullopt;  ///< Of the model.
    std::string weights = "full";                     ///< "full", or which part of them moved.
    std::string train_dtype = {};
    std::string generate_dtype = {};
    PublishedSide train = {};
    PublishedSide generate = {};
    std::string gpu = {};                                 ///< "H100", "H100-80GB" …; empty: not said.
    std::optional<std::uint32_t> domain = std::nullopt;   ///< GPUs that NVLink joins.
    std::optional<Bandwidth> nic = std::nullopt;          ///< Line rate of a GPU's NICs together.
    std::optional<Bytes> bytes = std::nullopt;            ///< Moved, or of the model.
    std::optional<std::uint32_t> streams = std::nullopt;  ///< Bulk stages in flight, where the source tells.
    bool is_headline = false;
    bool is_size_anchor = false;  ///< Of a calculator that knows a model's size alone.
    bool served_to_fit = false;   ///< The shipped constants were fitted to it.
    bool operator==(const PublishedRecord&) const = default;
};

}  // namespace refit
