// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "refit/io/safetensors.hpp"

namespace refit::io {
namespace {

std::string with(std::string name, std::string_view mark, std::uint32_t value) {
    for (auto at = name.find(mark); at != std::string::npos; at = name.find(mark, at)) {
        name.replace(at, mark.size(), std::to_string(value));
    }
    return name;
}

/// The names of all tensors of a class.
std::vector<std::string> names_of(const ParameterClass& parameter) {
    std::vector<std::string> names;
    const auto layers = parameter.layers.empty() ? std::vector<std::uint32_t>{0} : parameter.layers;
    for (const auto layer : layers) {
        const auto in_layer = with(parameter.name, "{layer}", layer);
        for (std::uint32_t expert = 0; expert < parameter.tensors_per_layer(); ++expert) {
            names.push_back(with(in_layer, "{expert}", expert));
        }
    }
    return names;
}

std::string_view spelling_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::kBf16:
            return "BF16";
        case Dtype::kFp16:
            return "F16";
        case Dtype::kFp32:
            return "F32";
        case Dtype::kFp8:
            return "F8_E4M3";
    }
    return "";
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
    std::string text;
    for (const auto size : shape) {
        text += (text.empty() ? "" : " x ") + std::to_string(size);
    }
    return "[" + text + "]";
}

/// "model.layers.3.x" and "model.layers.4.x" alike: "model.layers.{n}.x".
std::string pattern_of(const std::string& name) {
    std::string pattern;
    std::size_t begin = 0;
    while (begin <= name.size()) {
        const auto end = std::min(name.find('.', begin), name.size());
        const auto word = name.substr(begin, end - begin);
        const bool is_number =
            !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
        pattern += (begin == 0 ? "" : ".") + (is_number ? "{n}" : word);
        begin = end + 1;
    }
    return pattern;
}

class Comparison {
public:
    Comparison(std::span<const StoredTensor> tensors, const Inventory& inventory) : inventory_{inventory} {
        for (const auto& tensor : tensors) {
            stored_.emplace(tensor.name, &tensor);
        }
    }

    Faults run() {
        const bool has_mtp = std::ranges::any_of(inventory_.classes(), [&](const ParameterClass& parameter) {
            return parameter.part == ModelPart::kMtp && has_any(parameter);
        });
        for (const auto& parameter : inventory_.classes()) {
            if (parameter.part != ModelPart::kMtp || has_mtp) {
                check(parameter);
            }
        }
        check_unexpected();
        return std::move(faults_);
    }

private:
    /// Tensors of one class that differ in the same way.
    struct Difference {
        std::size_t count = 0;
        std::string first;
        void add(std::string example) {
            if (count++ == 0) {
                first = std::move(example);
            }
        }
    };

    void refuse(const char* rule, std::string message) {
        faults_.push_back({ErrorCode::kInvalidInput, rule, std::move(message), inventory_.id()});
    }

    void tell(const char* rule,
              const Difference& difference,
              const ParameterClass& parameter,
              const char* what) {
        if (difference.count > 0) {
            refuse(rule,
                   parameter.name + ": " + std::to_string(difference.count) + " of " +
                       std::to_string(parameter.tensors()) + " tensors " + what + ", the first " +
                       difference.first);
        }
    }

    [[nodiscard]] bool has_any(const ParameterClass& parameter) const {
        return std::ranges::any_of(names_of(parameter),
                                   [&](const auto& name) { return stored_.contains(name); });
    }

    void check(const ParameterClass& parameter) {
        Difference missing;
        Difference shape;
        Difference dtype;
        for (const auto& name : names_of(parameter)) {
            const auto found = stored_.find(name);
            if (found == stored_.end()) {
                if (!expect_packed(name, parameter)) {
                    missing.add(name);
                }
                continue;
            }
            known_.insert(name);
            const auto& tensor = *found->second;
            if (tensor.shape != parameter.shape) {
                shape.add(name + ": " + shape_text(tensor.shape) + " instead of " +
                          shape_text(parameter.shape));
            }
            if (!is_dtype(tensor, parameter)) {
                dtype.add(name + ": " + tensor.dtype + " instead of " +
                          std::string{spelling_of(parameter.dtype)});
            }
        }
        tell("missing-tensor", missing, parameter, "are missing");
        tell("tensor-shape", shape, parameter, "have another shape");
        tell("tensor-dtype", dtype, parameter, "have another dtype");
    }

    /// FP8 will do where the model's own checkpoint has it and its scales are there.
    bool is_dtype(const StoredTensor& tensor, const ParameterClass& parameter) {
        if (parameter.native == NativeStorage::kFp8Blocks && tensor.dtype == "F8_E4M3") {
            const auto scale = tensor.name + "_scale_inv";
            known_.insert(scale);
            return stored_.contains(scale);
        }
        return tensor.dtype == spelling_of(parameter.dtype);
    }

    /// Packed FP4 in place of a weight: "….weight_packed" and its scales.
    bool expect_packed(const std::string& name, const ParameterClass& parameter) {
        if (parameter.native != NativeStorage::kMxfp4Groups) {
            return false;
        }
        bool is_there = false;
        for (auto at = stored_.lower_bound(name + "_");
             at != stored_.end() && at->first.starts_with(name + "_");
             ++at) {
            known_.insert(at->first);
            is_there = true;
        }
        return is_there;
    }

    void check_unexpected() {
        std::map<std::string, Difference> unexpected;
        for (const auto& [name, tensor] : stored_) {
            if (!known_.contains(name)) {
                unexpected[pattern_of(name)].add(name);
            }
        }
        for (const auto& [pattern, difference] : unexpected) {
            refuse("unexpected-tensor",
                   pattern + ": " + std::to_string(difference.count) +
                       (difference.count == 1 ? " tensor is" : " tensors are") + " unknown to " +
                       inventory_.title() + ", the first " + difference.first);
        }
    }

    const Inventory& inventory_;
    std::map<std::string, const StoredTensor*> stored_;
    std::set<std::string> known_;
    Faults faults_;
};

}  // namespace

Faults compare_with_inventory(std::span<const StoredTensor> tensors, const Inventory& inventory) {
    return Comparison{tensors, inventory}.run();
}

}  // namespace refit::io
