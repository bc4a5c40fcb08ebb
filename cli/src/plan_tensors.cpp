// SPDX-License-Identifier: Apache-2.0
#include "plan_tensors.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "m2n_text.hpp"
#include "plan_text.hpp"
#include "refit/certificate.hpp"
#include "refit/explicit_job.hpp"
#include "refit/io/faults_json.hpp"
#include "refit/io/json_file.hpp"
#include "refit/io/m2n_json.hpp"
#include "refit/methods.hpp"
#include "refit/plan_summary.hpp"
#include "refit/suggest.hpp"
#include "session.hpp"

namespace refit::cli {
namespace {

using Json = nlohmann::json;

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
int plan_m2n(const Options& options, const io::M2nRequests& requests) {
    const auto answers = io::answer(requests);
    const auto text =
        options.format == Format::kJson ? m2n_json(answers, requests.is_list) : m2n_text(answers);
    const auto status = write_output(text, options);
    const bool is_all_refused =
        std::ranges::none_of(answers, [](const auto& entry) { return entry.plan.has_value(); });
    return status == kOk && is_all_refused ? static_cast<int>(kInfeasible) : status;
}

/// One record planned by a method of ours.
struct Planned {
    std::string text;
    Json json;
};

Result<Planned> plan_record(const io::M2nRequest& request, Method method, const System& system) {
    auto job = explicit_job(request.name, request.call, request.settings.domain_size, system);
    if (!job) {
        return fail(std::move(job.error()));
    }
    const auto rates = port_rates(job->cluster, 1.0, 1.0);
    const auto plan = make_plan(method, job->cluster, rates, job->workload);
    if (!plan) {
        return fail(Faults{plan.error()});
    }
    const auto summary = summarise(*plan, job->workload, job->cluster);
    const auto certificate = certify(*plan, job->cluster, rates, job->workload);
    // A plain tensor belongs to no engine whose packs and streams would take memory.
    const MemoryAccount no_memory;
    const std::optional<PackSizes> no_packs;
    const ShownPlan shown{request.name.empty() ? "tensor" : request.name,
                          *plan,
                          job->workload,
                          job->cluster,
                          summary,
                          certificate,
                          no_memory,
                          no_packs};
    Planned planned{plan_text(shown), Json{{"name", request.name}, {"method", name_of(method)}, {"system", system.name}}};
    add_plan_json(planned.json, shown);
    return planned;
}

/// The machines whose line rates count: those of --system, else the usual ones for domains of this size.
Result<System> system_of(const Options& options, const io::Library& library, const io::M2nRequests& requests) {
    if (!options.fields.empty()) {
        return library.system(options.fields.back().second, "--system");
    }
    std::uint32_t largest = 0;
    for (const auto& request : requests.entries) {
        largest = std::max(largest, request.settings.domain_size);
    }
    return library.system(largest > 8 ? "gb200-nvl72" : "h100-nvl8", "--system");
}

int plan_by(Method method, const Options& options, const io::M2nRequests& requests, const io::Library& library) {
    const auto system = system_of(options, library, requests);
    if (!system) {
        return refuse(system.error(), options);
    }
    std::string text;
    Json list = Json::array();
    bool has_plan = false;
    for (const auto& request : requests.entries) {
        auto planned = plan_record(request, method, *system);
        has_plan = has_plan || planned.has_value();
        if (planned) {
            text += (text.empty() ? "" : "\n") + planned->text;
            list.push_back(std::move(planned->json));
            continue;
        }
        text += (text.empty() ? "" : "\n") + request.name + ": refused: " + planned.error().front().message + "\n";
        list.push_back({{"name", request.name}, {"refused", io::to_json(planned.error())}});
    }
    if (options.format == Format::kJson) {
        text = (requests.is_list ? list : list.front()).dump(1) + "\n";
    }
    const auto status = write_output(text, options);
    return status != kOk || has_plan ? status : static_cast<int>(kInfeasible);
}

}  // namespace

int plan_tensors(const Options& options, const io::Library& library) {
    const auto name = options.methods.empty() ? std::string{"m2n"} : options.methods.back();
    std::optional<Method> method;
    if (name != "m2n") {
        auto asked = parse_method(name);
        if (!asked) {
            const std::vector<std::string> names{"m2n", "optimal", "direct", "striped", "gather-broadcast"};
            return refuse(Faults{{ErrorCode::kInvalidInput,
                                  "unknown-method",
                                  "unknown method '" + name + "'; the nearest is '" + nearest_name(name, names) +
                                      "' (for tensors: " + join_names(names) + ")",
                                  "--method"}},
                          options);
        }
        method = *asked;
    }
    if (method == Method::kHybrid) {
        return refuse(Faults{{ErrorCode::kUnsupported,
                              "hybrid-needs-names",
                              "method hybrid tells bulk parameters by their names and place in a model, which plain tensors do "
                              "not have; striped is what it does with bulk parameters",
                              "--method"}},
                      options);
    }
    const bool takes_system = method && std::ranges::all_of(options.fields, [](const auto& field) { return field.first == "system"; });
    if (!options.fields.empty() && !takes_system) {
        return usage_error(options.field_flags.front() + " is a field of a scenario, and --tensors takes none" +
                           (method ? " but --system" : ""));
    }
    const auto tensors = io::read_json(options.tensors);
    const auto requests = tensors ? io::read_m2n_requests(*tensors, options.tensors) : Result<io::M2nRequests>{fail(Faults{tensors.error()})};
    if (!requests) {
        return refuse(requests.error(), options);
    }
    return method ? plan_by(*method, options, *requests, library) : plan_m2n(options, *requests);
}

}  // namespace refit::cli
