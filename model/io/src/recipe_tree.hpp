// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "refit/result.hpp"

namespace refit::io {

/// One YAML file of a recipe's inheritance, as it was written.
struct RecipeDocument {
    std::filesystem::path file;
    YAML::Node root;
};

/// A NeMo RL recipe upon the files that it inherits from, read by dotted paths. What cannot be read becomes a
/// fault of the tree, so that one run tells them all.
///
/// Invariant: at least one document, the recipe itself last; no more than 20000 values a file, aliases
/// followed.
class RecipeTree {
public:
    /// `defaults:` files are read relative to the file that names them.
    /// Errors: kInvalidInput for YAML faults with line and column, files above 1 MiB, nesting above 64
    /// levels, aliases that unfold to too much, and inheritance above 16 levels or 64 files; kIo for files
    /// that cannot be read.
    [[nodiscard]] static Result<RecipeTree> read(const std::filesystem::path& file);
    /// The same from memory, where `defaults:` cannot be followed: kUnsupported. `origin` stands for the
    /// file.
    [[nodiscard]] static Result<RecipeTree> parse(std::string_view text, const std::string& origin);

    /// The name of the recipe: its file without folder and ending.
    [[nodiscard]] std::string name() const { return documents_.back().file.stem().string(); }

    /// The value at a path, references followed; nothing where it is absent or null, or, with a fault, no
    /// single value.
    [[nodiscard]] std::optional<std::string> text(const std::string& path);
    /// The same as a whole number up to 2^20.
    [[nodiscard]] std::optional<std::uint64_t> number(const std::string& path);
    /// The same as true or false.
    [[nodiscard]] std::optional<bool> flag(const std::string& path);
    /// Whether something other than null stands there, be it a value, a list or a map.
    [[nodiscard]] bool has(const std::string& path);
    /// The keys of the map at a path, in the order of the file.
    [[nodiscard]] std::vector<std::string> keys(const std::string& path);
    /// A list or map at a path in one line, or its value.
    [[nodiscard]] std::string written(const std::string& path);

    /// Where a path was written last, in this file or one that it inherits from: "a.yaml:4:14
    /// (policy.precision)".
    [[nodiscard]] std::string where(const std::string& path) const;

    void refuse(ErrorCode code, const char* rule, std::string message, const std::string& path);
    [[nodiscard]] Faults& faults() noexcept { return faults_; }

private:
    RecipeTree(const YAML::Node& root, std::vector<RecipeDocument> documents)
        : root_{root}, documents_{std::move(documents)} {}

    /// A node and the path at which it stands, which a reference makes another than the one asked for.
    struct Placed {
        YAML::Node node;
        std::string here;
    };
    [[nodiscard]] Result<Placed> followed(const Placed& placed, const std::string& path, int depth) const;
    [[nodiscard]] Result<Placed> at(const Placed& placed,
                                    const std::string& rest,
                                    const std::string& path,
                                    int depth) const;
    /// What stands at a path, or nothing; a fault is kept.
    [[nodiscard]] YAML::Node find(const std::string& path);

    YAML::Node root_;
    std::vector<RecipeDocument> documents_;
    Faults faults_;
};

}  // namespace refit::io
