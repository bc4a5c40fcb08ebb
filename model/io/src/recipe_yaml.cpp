// SPDX-License-Identifier: Apache-2.0
#include "recipe_yaml.hpp"

#include <cstddef>
#include <map>
#include <sstream>
#include <vector>

#include <yaml-cpp/eventhandler.h>

namespace refit::io {
namespace {

constexpr std::size_t kMostValues = 20000;
constexpr std::size_t kDeepest = 64;

/// Counts what a document unfolds to before any of it is built: an alias costs as much as what it stands for.
class Census : public YAML::EventHandler {
public:
    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add_leaf(mark, anchor); }
    void OnScalar(const YAML::Mark& mark,
                  const std::string&,
                  YAML::anchor_t anchor,
                  const std::string&) override {
        add_leaf(mark, anchor);
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchored_.find(anchor);
        if (found == anchored_.end()) {
            throw YAML::ParserException{mark, "an alias lies within what it stands for"};
        }
        add(mark, found->second);
    }
    void OnSequenceStart(const YAML::Mark& mark,
                         const std::string&,
                         YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(mark, anchor);
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark,
                    const std::string&,
                    YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open(mark, anchor);
    }
    void OnMapEnd() override { close(); }

private:
    struct Open {
        std::size_t start;
        YAML::anchor_t anchor;
        std::size_t height;
    };
    struct Extent {
        std::size_t values = 1;
        std::size_t levels = 0;
    };

    void add(const YAML::Mark& mark, const Extent& extent) {
        values_ += extent.values;
        if (values_ > kMostValues) {
            throw YAML::ParserException{
                mark, "the document unfolds to more than " + std::to_string(kMostValues) + " values"};
        }
        const auto levels = open_.size() + extent.levels;
        if (levels > kDeepest) {
            throw YAML::ParserException{mark, "values nest deeper than 64 levels"};
        }
        for (std::size_t i = 0; i < open_.size(); ++i) {
            open_[i].height = std::max(open_[i].height, levels - i);
        }
    }
    void add_leaf(const YAML::Mark& mark, YAML::anchor_t anchor) {
        add(mark, {});
        anchored_[anchor] = {};
    }
    void open(const YAML::Mark& mark, YAML::anchor_t anchor) {
        add(mark, {1, 1});
        open_.push_back({values_ - 1, anchor, 1});
        anchored_.erase(anchor);
    }
    void close() {
        const auto closed = open_.back();
        open_.pop_back();
        anchored_[closed.anchor] = {values_ - closed.start, closed.height};
    }

    std::size_t values_ = 0;
    std::vector<Open> open_;
    std::map<YAML::anchor_t, Extent> anchored_;
};

void add_missing(YAML::Node& result, const YAML::Node& map) {
    for (const auto& item : map) {
        const YAML::Node& known = result;
        if (!known[item.first.Scalar()].IsDefined()) {
            result[item.first.Scalar()] = item.second;
        }
    }
}

/// The document with its merge keys merged in; a map's own keys win, then those of an earlier merged map.
YAML::Node without_merge_keys(const YAML::Node& node) {
    if (node.IsSequence()) {
        YAML::Node list{YAML::NodeType::Sequence};
        for (const auto& item : node) {
            list.push_back(without_merge_keys(item));
        }
        return list;
    }
    if (!node.IsMap()) {
        return node;
    }
    YAML::Node map{YAML::NodeType::Map};
    for (const auto& item : node) {
        if (item.first.Scalar() != "<<") {
            map[item.first.Scalar()] = without_merge_keys(item.second);
        }
    }
    if (const auto merge = node["<<"]; merge.IsDefined()) {
        const auto source = without_merge_keys(merge);
        if (source.IsMap()) {
            add_missing(map, source);
        } else {
            for (const auto& one : source) {
                add_missing(map, one);
            }
        }
    }
    return map;
}

}  // namespace

std::string place_in(const std::string& file, const YAML::Mark& mark) {
    return file + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

Result<YAML::Node> parse_yaml(const std::string& text, const std::string& file) {
    try {
        std::istringstream stream{text};
        YAML::Parser parser{stream};
        Census census;
        static_cast<void>(parser.HandleNextDocument(census));
        auto node = YAML::Load(text);
        return text.find("<<") == std::string::npos ? node : without_merge_keys(node);
    } catch (const YAML::Exception& error) {
        return fail(ErrorCode::kInvalidInput,
                    "yaml-syntax",
                    "this is not valid YAML: " + error.msg,
                    place_in(file, error.mark));
    }
}

}  // namespace refit::io
