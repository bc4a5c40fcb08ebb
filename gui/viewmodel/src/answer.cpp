// SPDX-License-Identifier: Apache-2.0
#include "refit/gui/answer.hpp"

#include <algorithm>
#include <array>
#include <future>
#include <string_view>
#include <utility>

#include "refit/check.hpp"
#include "refit/compare.hpp"
#include "refit/io/field_options.hpp"
#include "refit/methods.hpp"
#include "refit/shell_word.hpp"

namespace refit::gui {
namespace {

/// Rates that a sweep tries: those of NICs that exist.
constexpr std::array kNicRates{100.0, 200.0, 400.0, 800.0, 1600.0};
constexpr std::array kMethods{Method::kGatherBroadcast, Method::kHybrid, Method::kDirect, Method::kStriped, Method::kM2n, Method::kOptimal};

class Cook {
public:
    Cook(const Question& question, const io::Library& library, const Steps& steps, const Answer* base)
        : question_{question}, library_{library}, steps_{steps}, base_{base} {}

    Result<std::shared_ptr<const Answer>> run() {
        tell("checking the scenario", 0.0);
        auto scenario = io::resolve(question_.draft, library_);
        if (!scenario) {
            return fail(std::move(scenario.error()));
        }
        auto published = library_.published();
        if (!published) {
            return fail(std::move(published.error()));
        }
        published_ = std::move(*published);
        if (question_.is_draft && base_ != nullptr && is_alike(*scenario, *base_)) {
            return redrawn(std::move(*scenario));
        }
        auto workload = Workload::make(*scenario);
        tell("comparing methods", 0.1);
        auto report = compare(*scenario, request(std::vector<Method>(kMethods.begin(), kMethods.end())));
        if (question_.plan) {
            use_plan(report, *question_.plan, *scenario, workload);
        }
        auto groups = all_groups(*scenario);
        auto made = std::make_shared<Answer>(Answer{question_, std::move(*scenario), std::move(workload), std::move(report), std::move(groups), {}, {}, {}, {}, {}});
        made->a = planned(*made, question_.method, question_.plan, 0.2);
        made->b.report = *made->report.find(question_.against);
        const bool is_large = made->a.flows && made->a.flows->size() > kManyFlows;
        if (is_large && steps_.first && !is_cancelled()) {
            auto first = std::make_shared<Answer>(*made);
            first->question.is_draft = true;
            steps_.first(std::move(first));
        }
        if (auto wrong = finish(*made, is_large); !wrong.empty()) {
            return fail(std::move(wrong));
        }
        if (is_cancelled()) {
            return fail(ErrorCode::kInfeasible, "cancelled", "cancelled");
        }
        return std::shared_ptr<const Answer>{std::move(made)};
    }

private:
    /// From here on a second thread is worth while, and a first picture.
    static constexpr std::size_t kManyFlows = 50'000;

    /// Proves a plan from a file, plans B, simulates both, and sweeps. Returns what is wrong with the plan.
    Faults finish(Answer& made, bool is_large) const {
        const auto rest = [&] {
            auto wrong = proof(made);
            made.b = planned(made, question_.against, nullptr, 0.6);
            simulate_into(made, made.b, 0.7);
            if (!question_.is_draft) {
                tell("sweeping the NIC rate", 0.9);
                sweep(made);
            }
            return wrong;
        };
        if (!is_large) {
            simulate_into(made, made.a, 0.3);
            return rest();
        }
        // Nobody writes what the other reads: A on this thread, all else on another.
        auto other = std::async(std::launch::async, rest);
        simulate_into(made, made.a, 0.3);
        return other.get();
    }

    [[nodiscard]] Faults proof(const Answer& made) const {
        const bool is_proven = base_ != nullptr && !base_->question.is_draft && base_->question.plan == question_.plan;
        if (!question_.plan || is_proven || question_.is_draft || is_cancelled()) {
            return {};
        }
        tell("proving the plan", 0.4);
        return check_plan(*question_.plan, made.workload, made.scenario.cluster);
    }

    [[nodiscard]] bool is_cancelled() const { return steps_.is_cancelled && steps_.is_cancelled(); }
    void tell(const std::string& what, double done) const {
        if (steps_.progress) {
            steps_.progress(what, done);
        }
    }

    [[nodiscard]] CompareRequest request(const std::vector<Method>& methods) const {
        return {.methods = methods, .published = published_, .is_cancelled = steps_.is_cancelled, .progress = {}};
    }

    [[nodiscard]] bool is_alike(const Scenario& scenario, const Answer& base) const {
        return scenario.model.id() == base.scenario.model.id() && scenario.dtype == base.scenario.dtype && scenario.train == base.scenario.train &&
               scenario.generate == base.scenario.generate && scenario.cluster.placement() == base.scenario.cluster.placement() &&
               question_.method == base.question.method && question_.against == base.question.against && question_.plan == base.question.plan;
    }

    /// New times of A and B over the plans of before.
    [[nodiscard]] std::shared_ptr<const Answer> redrawn(Scenario scenario) const {
        const auto times = compare(scenario, request({question_.method, question_.against}));
        auto made = std::make_shared<Answer>(*base_);
        made->question = question_;
        made->scenario = std::move(scenario);
        made->sweep.clear();
        made->report.line_rate_bound = times.line_rate_bound;
        made->report.bound = times.bound;
        for (auto& entry : made->report.methods) {
            if (const auto* fresh = times.find(entry.method)) {
                entry = *fresh;
            }
        }
        for (auto* shown : {&made->a, &made->b}) {
            if (const auto* fresh = times.find(shown->report.method)) {
                shown->report = *fresh;
                shown->course = {};
            }
        }
        return made;
    }

    /// What is known of the method of a plan from a file is of that plan.
    void use_plan(Report& report, const Plan& plan, const Scenario& scenario, const Workload& workload) const {
        const auto own = report_on(plan, scenario, workload, request({}));
        for (auto& entry : report.methods) {
            if (const auto* fresh = own.find(entry.method)) {
                entry = *fresh;
            }
        }
    }

    /// With plan and flows, not simulated.
    [[nodiscard]] Shown planned(const Answer& answer, Method method, std::shared_ptr<const Plan> plan, double done) const {
        Shown shown;
        const auto* entry = answer.report.find(method);
        shown.report = *entry;
        if (!shown.report.refused.empty() || is_cancelled()) {
            return shown;
        }
        tell("planning " + title_of(method), done);
        if (!plan) {
            auto made = make_plan(method, answer.scenario, answer.workload);
            if (!made) {
                shown.report.refused = std::move(made.error());
                return shown;
            }
            plan = std::make_shared<const Plan>(std::move(*made));
        }
        shown.plan = plan;
        shown.flows = std::make_shared<const FlowTable>(make_flows(*plan, answer.workload, answer.scenario.cluster));
        return shown;
    }

    void simulate_into(const Answer& answer, Shown& shown, double done) const {
        if (question_.is_draft || !shown.plan || is_cancelled()) {
            return;
        }
        tell("simulating " + title_of(shown.report.method), done);
        SimulateOptions how;
        how.has_segments = true;
        how.is_cancelled = steps_.is_cancelled;
        how.graph.is_cancelled = steps_.is_cancelled;
        auto run = simulate(*shown.plan, answer.workload, answer.scenario, how);
        if (run) {
            set_simulated(shown.report, {Seconds{run->seconds()}, Seconds{run->transfer_seconds}});
            shown.course = make_course(std::make_shared<const Simulation>(std::move(*run)));
        }
    }

    void sweep(Answer& answer) const {
        if (answer.a.is_refused() || answer.b.is_refused()) {
            return;
        }
        for (const auto rate : kNicRates) {
            auto draft = question_.draft;
            draft.set("system.nic", {std::to_string(static_cast<int>(rate)) + "Gbit/s", io::DraftField::Kind::kText, io::Precedence::kFlag, "sweep"});
            const auto scenario = is_cancelled() ? Result<Scenario>{fail(ErrorCode::kInfeasible, "cancelled", "cancelled")} : io::resolve(draft, library_);
            if (!scenario) {
                return;
            }
            const auto report = compare(*scenario, request({question_.method, question_.against}));
            const auto* a = report.find(question_.method);
            const auto* b = report.find(question_.against);
            if (a != nullptr && b != nullptr && a->refused.empty() && b->refused.empty()) {
                answer.sweep.push_back({rate, a->seconds.value(), b->seconds.value()});
            }
        }
    }

    const Question& question_;
    const io::Library& library_;
    const Steps& steps_;
    const Answer* base_;
    std::vector<PublishedRecord> published_;
};

}  // namespace

Result<std::shared_ptr<const Answer>> answer(const Question& question, const io::Library& library, const Steps& steps, const Answer* base) {
    return Cook{question, library, steps, base}.run();
}

std::shared_ptr<const Answer> with_measured(const Answer& answer, std::map<Method, Measured> measured) {
    auto copy = std::make_shared<Answer>(answer);
    copy->measured = std::move(measured);
    return copy;
}

std::shared_ptr<const Answer> with_pinned(const Answer& answer, const Answer& pinned) {
    auto copy = std::make_shared<Answer>(answer);
    copy->b = pinned.a;
    copy->pinned = "pinned: " + pinned.scenario.name;
    copy->sweep.clear();
    return copy;
}

std::string title_of(Method method) {
    switch (method) {
        case Method::kGatherBroadcast:
            return "gather-and-broadcast";
        case Method::kHybrid:
            return "reshard (hybrid)";
        case Method::kDirect:
            return "all weights, direct";
        case Method::kStriped:
            return "all weights, striped";
        case Method::kM2n:
            return "all weights, NCCL M2N";
        case Method::kOptimal:
            break;
    }
    return "all weights, optimal";
}

std::string short_title(Method method) {
    switch (method) {
        case Method::kGatherBroadcast:
            return "gather+broadcast";
        case Method::kHybrid:
            return "reshard";
        default:
            return std::string{name_of(method)};
    }
}

std::string command_of(const Question& question) {
    const auto* name = question.draft.find("name");
    std::string text = "refit compare";
    std::string flags;
    for (const auto& [field, value] : question.draft.fields()) {
        const bool is_from_file = name != nullptr && value.precedence <= io::Precedence::kFile;
        if (is_from_file || field == "schema" || field == "schema_version" || field == "name" || field == "note" || field == "published") {
            continue;
        }
        flags += " " + io::flag_for(field, value.text);
    }
    text += !question.origin.empty() ? " " + shell_word(question.origin) : name == nullptr ? "" : " " + shell_word(name->text);
    return text + flags + " --method " + std::string{name_of(question.method)} + "," + std::string{name_of(question.against)};
}

}  // namespace refit::gui
