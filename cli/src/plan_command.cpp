// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "m2n_text.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/m2n_json.hpp"
#include "refit/suggest.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

std::string m2n_json(const std::vector<io::M2nAnswer>& answers, bool is_list) {
    if (!is_list) {
        return io::to_json(answers.front()).dump() + "\n";
    }
    auto list = nlohmann::ordered_json::array();
    for (const auto& answer : answers) {
        list.push_back(io::to_json(answer));
    }
    return list.dump() + "\n";
}

/// A file with refused calls is answered all the same; the code tells where nothing else is in it.
int plan_m2n(const Options& options, const nlohmann::json& tensors) {
    const auto requests = io::read_m2n_requests(tensors, options.tensors);
    if (!requests) {
        return refuse(requests.error(), options);
    }
    const auto answers = io::answer(*requests);
    const auto text =
        options.format == Format::kJson ? m2n_json(answers, requests->is_list) : m2n_text(answers);
    const auto status = write_output(text, options);
    const bool is_all_refused =
        std::ranges::none_of(answers, [](const auto& entry) { return entry.plan.has_value(); });
    return status == kOk && is_all_refused ? static_cast<int>(kInfeasible) : status;
}

/// A method that plans explicit tensors.
struct TensorMethod {
    const char* name;
    int (*plan)(const Options& options, const nlohmann::json& tensors);
};

constexpr std::array kTensorMethods{TensorMethod{"m2n", plan_m2n}};

/// Plans the file that --tensors names, by the method asked for, else by the first.
int plan_tensors(const Options& options) {
    if (!options.fields.empty()) {
        return usage_error(options.field_flags.front() +
                           " is a field of a scenario, and --tensors takes none");
    }
    const auto* const method =
        options.methods.empty()
            ? kTensorMethods.begin()
            : std::ranges::find(kTensorMethods, options.methods.back(), &TensorMethod::name);
    if (method == kTensorMethods.end()) {
        std::vector<std::string> names;
        std::ranges::transform(kTensorMethods, std::back_inserter(names), &TensorMethod::name);
        const auto& asked = options.methods.back();
        return refuse(Faults{{ErrorCode::kInvalidInput,
                              "unknown-method",
                              "method '" + asked + "' does not plan explicit tensors; the nearest is '" +
                                  nearest_name(asked, names) + "' (known: " + join_names(names) + ")",
                              "--method"}},
                      options);
    }
    const auto tensors = io::read_json(options.tensors);
    return tensors ? method->plan(options, *tensors) : refuse(tensors.error(), options);
}

}  // namespace

int run_plan(const Options& options) {
    if (options.format != Format::kTable && options.format != Format::kJson) {
        return usage_error("plan prints a table or json (-o)");
    }
    if (options.tensors.empty()) {
        return usage_error("plan needs a file of tensors (--tensors FILE)");
    }
    return plan_tensors(options);
}

}  // namespace refit::cli
