// SPDX-License-Identifier: Apache-2.0
#include "recipe_tree.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "recipe_yaml.hpp"
#include "refit/io/json_file.hpp"

namespace refit::io {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 1U << 20U;
constexpr int kMostInheritance = 16;
constexpr std::size_t kMostDocuments = 64;
constexpr int kMostReferences = 16;

using Documents = std::vector<RecipeDocument>;

// YAML::Node is a handle: assigning to one changes the document behind it, and asking a map that is not const
// for a missing key adds it. Hence const nodes and recursion below.

/// `over` laid upon `base`: maps key by key, everything else replaced; `_override_: true` replaces a map
/// whole.
YAML::Node merged(const YAML::Node& base, const YAML::Node& over) {
    if (!base.IsMap() || !over.IsMap()) {
        return over;
    }
    if (const auto mark = over["_override_"];
        mark.IsDefined() && mark.IsScalar() && mark.Scalar() == "true") {
        return over;
    }
    YAML::Node result{YAML::NodeType::Map};
    for (const auto& item : base) {
        result[item.first.Scalar()] = item.second;
    }
    for (const auto& item : over) {
        const auto key = item.first.Scalar();
        const auto below = base[key];
        result[key] = below.IsDefined() ? merged(below, item.second) : item.second;
    }
    return result;
}

Result<YAML::Node> load(const fs::path& file, Documents& documents, int depth);

Result<std::vector<std::string>> names_of_defaults(const YAML::Node& defaults, const fs::path& file) {
    std::vector<std::string> names;
    if (defaults.IsScalar()) {
        names.push_back(defaults.Scalar());
    }
    for (std::size_t i = 0; defaults.IsSequence() && i < defaults.size(); ++i) {
        const auto name = defaults[i];
        if (!name.IsScalar()) {
            return fail(ErrorCode::kUnsupported,
                        "recipe-inheritance",
                        "`defaults` must list file names",
                        place_in(file.string(), name.Mark()));
        }
        names.push_back(name.Scalar());
    }
    return names;
}

Result<YAML::Node> with_defaults(const YAML::Node& node,
                                 const fs::path& file,
                                 Documents& documents,
                                 int depth) {
    const auto defaults = node["defaults"];
    if (!defaults.IsDefined()) {
        return node;
    }
    const auto names = names_of_defaults(defaults, file);
    if (!names) {
        return Failure{names.error()};
    }
    std::vector<YAML::Node> layers{YAML::Node{YAML::NodeType::Map}};
    for (const auto& name : *names) {
        auto parent = load(file.parent_path() / name, documents, depth + 1);
        if (!parent) {
            return parent;
        }
        layers.push_back(merged(layers.back(), *parent));
    }
    return merged(layers.back(), node);
}

Result<YAML::Node> parse_map(const std::string& text, const std::string& file) {
    auto node = parse_yaml(text, file);
    if (node && !node->IsMap()) {
        return fail(ErrorCode::kInvalidInput, "recipe-shape", "a recipe must be a YAML map", file);
    }
    return node;
}

/// Reads a file upon those that it inherits from; `documents` gets them all, the file itself last.
Result<YAML::Node> load(const fs::path& file, Documents& documents, int depth) {
    if (depth > kMostInheritance) {
        return fail(ErrorCode::kInvalidInput,
                    "recipe-inheritance",
                    "`defaults` nest deeper than 16 files",
                    file.string());
    }
    std::error_code error;
    if (depth > 0 && fs::exists(file, error) && !fs::is_regular_file(file, error)) {
        return fail(
            ErrorCode::kIo, "unreadable", "`defaults` name this, but it is not a file", file.string());
    }
    const auto text = read_text(file, kMostBytes);
    if (!text) {
        return Failure{text.error()};
    }
    auto node = parse_map(*text, file.string());
    if (!node) {
        return node;
    }
    auto whole = with_defaults(*node, file, documents, depth);
    documents.push_back({file, *node});
    if (documents.size() > kMostDocuments) {
        return fail(ErrorCode::kInvalidInput,
                    "recipe-inheritance",
                    "`defaults` bring more than 64 files together",
                    file.string());
    }
    return whole;
}

YAML::Node nothing() {
    return YAML::Node{YAML::NodeType::Undefined};
}

/// The first name of a dotted path and the rest.
std::pair<std::string, std::string> split_path(const std::string& path) {
    const auto dot = path.find('.');
    return dot == std::string::npos ? std::pair{path, std::string{}}
                                    : std::pair{path.substr(0, dot), path.substr(dot + 1)};
}

/// The node at a dotted path as written; undefined where there is none.
YAML::Node written_at(const YAML::Node& node, const std::string& path) {
    if (path.empty()) {
        return node;
    }
    if (!node.IsDefined() || !node.IsMap()) {
        return nothing();
    }
    const auto [name, rest] = split_path(path);
    const auto next = node[name];
    return next.IsDefined() ? written_at(next, rest) : nothing();
}

std::string joined(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "." + name;
}

/// The whole path that a reference at `here` means: ".a" stands beside it, each further dot goes up a map.
/// Empty where it goes beyond the top.
std::string target_of(const std::string& reference, std::string here) {
    const auto dots = std::min(reference.find_first_not_of('.'), reference.size());
    for (std::size_t i = 0; i < dots; ++i) {
        if (here.empty()) {
            return {};
        }
        const auto dot = here.rfind('.');
        here = dot == std::string::npos ? std::string{} : here.substr(0, dot);
    }
    const auto name = reference.substr(dots);
    return dots == 0 || name.empty() ? name : joined(here, name);
}

bool is_one_of(const std::string& text, std::initializer_list<const char*> words) {
    std::string lower = text;
    std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return std::ranges::find(words, lower) != words.end();
}

}  // namespace

Result<RecipeTree> RecipeTree::read(const fs::path& file) {
    Documents documents;
    auto root = load(file, documents, 0);
    if (!root) {
        return Failure{root.error()};
    }
    return RecipeTree{*root, std::move(documents)};
}

Result<RecipeTree> RecipeTree::parse(std::string_view text, const std::string& origin) {
    if (text.size() > kMostBytes) {
        return fail(ErrorCode::kInvalidInput, "too-large", "a recipe has at most 1 MiB", origin);
    }
    const auto root = parse_map(std::string{text}, origin);
    if (!root) {
        return Failure{root.error()};
    }
    const YAML::Node& map = *root;
    if (const auto defaults = map["defaults"]; defaults.IsDefined()) {
        return fail(ErrorCode::kUnsupported,
                    "recipe-inheritance",
                    "`defaults` can be followed from a file only",
                    place_in(origin, defaults.Mark()));
    }
    return RecipeTree{*root, {{origin, *root}}};
}

/// What a placed node itself is, or what it refers to.
Result<RecipeTree::Placed> RecipeTree::followed(const Placed& placed,
                                                const std::string& path,
                                                int depth) const {
    const auto& node = placed.node;
    if (!node.IsDefined() || !node.IsScalar() || node.Scalar().find("${") == std::string::npos) {
        return placed;
    }
    const auto& text = node.Scalar();
    const bool is_whole = text.starts_with("${") && text.ends_with("}");
    const auto target = is_whole ? target_of(text.substr(2, text.size() - 3), placed.here) : std::string{};
    if (target.empty() || target.find_first_of("${}[]: ,") != std::string::npos) {
        return fail(ErrorCode::kUnsupported,
                    "recipe-reference",
                    path + " is '" + text + "'; of references only ${a.b} for a whole value is read",
                    where(path));
    }
    if (depth >= kMostReferences) {
        return fail(ErrorCode::kInvalidInput, "recipe-reference", path + " refers to itself", where(path));
    }
    auto found = at({root_, ""}, target, path, depth + 1);
    if (found && !found->node.IsDefined()) {
        return fail(ErrorCode::kInvalidInput,
                    "recipe-reference",
                    path + " is '" + text + "', but there is no " + target,
                    where(path));
    }
    return found;
}

/// What stands at a dotted path, references followed, also on the way there; undefined where there is
/// nothing.
Result<RecipeTree::Placed> RecipeTree::at(const Placed& placed,
                                          const std::string& rest,
                                          const std::string& path,
                                          int depth) const {
    auto found = followed(placed, path, depth);
    if (!found || rest.empty()) {
        return found;
    }
    const YAML::Node& map = found->node;
    if (!map.IsDefined() || !map.IsMap()) {
        return Placed{nothing(), ""};
    }
    const auto [name, below] = split_path(rest);
    const auto next = map[name];
    return next.IsDefined() ? at({next, joined(found->here, name)}, below, path, depth)
                            : Result<Placed>{Placed{nothing(), ""}};
}

YAML::Node RecipeTree::find(const std::string& path) {
    const auto found = at({root_, ""}, path, path, 0);
    if (!found) {
        faults_.insert(faults_.end(), found.error().begin(), found.error().end());
        return nothing();
    }
    return found->node.IsDefined() && found->node.IsNull() ? nothing() : found->node;
}

std::optional<std::string> RecipeTree::text(const std::string& path) {
    const auto node = find(path);
    if (!node.IsDefined()) {
        return std::nullopt;
    }
    if (!node.IsScalar()) {
        refuse(ErrorCode::kInvalidInput, "recipe-value", path + " must be a single value", path);
        return std::nullopt;
    }
    return node.Scalar();
}

std::optional<std::uint64_t> RecipeTree::number(const std::string& path) {
    const auto value = text(path);
    if (!value) {
        return std::nullopt;
    }
    std::uint64_t result = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), result);
    if (error != std::errc{} || end != value->data() + value->size() || result > (1U << 20U)) {
        refuse(ErrorCode::kInvalidInput,
               "recipe-number",
               path + " is '" + *value + "', not a whole number up to 2^20",
               path);
        return std::nullopt;
    }
    return result;
}

std::optional<bool> RecipeTree::flag(const std::string& path) {
    const auto value = text(path);
    if (!value) {
        return std::nullopt;
    }
    if (is_one_of(*value, {"true", "yes", "on"})) {
        return true;
    }
    if (!is_one_of(*value, {"false", "no", "off"})) {
        refuse(
            ErrorCode::kInvalidInput, "recipe-flag", path + " is '" + *value + "', not true or false", path);
        return std::nullopt;
    }
    return false;
}

bool RecipeTree::has(const std::string& path) {
    return find(path).IsDefined();
}

std::vector<std::string> RecipeTree::keys(const std::string& path) {
    std::vector<std::string> keys;
    if (const auto node = find(path); node.IsDefined() && node.IsMap()) {
        for (const auto& item : node) {
            keys.push_back(item.first.Scalar());
        }
    }
    return keys;
}

std::string RecipeTree::written(const std::string& path) {
    const auto node = find(path);
    if (!node.IsDefined()) {
        return {};
    }
    if (node.IsScalar()) {
        return node.Scalar();
    }
    YAML::Emitter emitter;
    emitter << YAML::Flow << node;
    return emitter.good() ? emitter.c_str() : "(unreadable)";
}

std::string RecipeTree::where(const std::string& path) const {
    const RecipeDocument* last = nullptr;
    YAML::Mark mark;
    for (const auto& document : documents_) {
        const auto node = written_at(document.root, path);
        if (node.IsDefined() && !node.Mark().is_null()) {
            last = &document;
            mark = node.Mark();
        }
    }
    return last != nullptr ? place_in(last->file.string(), mark) + " (" + path + ")"
                           : documents_.back().file.string() + " (" + path + ")";
}

void RecipeTree::refuse(ErrorCode code, const char* rule, std::string message, const std::string& path) {
    faults_.push_back({code, rule, std::move(message), where(path)});
}

}  // namespace refit::io
