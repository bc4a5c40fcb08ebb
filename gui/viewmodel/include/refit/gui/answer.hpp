// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "refit/gui/course.hpp"
#include "refit/gui/flow_table.hpp"
#include "refit/gui/groups.hpp"
#include "refit/io/library.hpp"
#include "refit/plan_summary.hpp"
#include "refit/report.hpp"

namespace refit::gui {

/// What is asked.
struct Question {
    io::ScenarioDraft draft;
    Method method = Method::kHybrid;             ///< A: what the views show.
    Method against = Method::kGatherBroadcast;   ///< B: what it is compared with.
    std::shared_ptr<const Plan> plan = nullptr;  ///< From a file, in place of A's.
    std::string origin = {};                     ///< Name or file of what was opened; empty: the scenario's name.
    bool is_draft = false;                       ///< The closed form alone: while a slider moves.
    bool operator==(const Question&) const = default;
};

/// A method with all that the views draw of it.
struct Shown {
    MethodReport report;  ///< With the simulated time, where it was simulated.
    std::shared_ptr<const Plan> plan;
    std::shared_ptr<const FlowTable> flows;
    Course course;

    [[nodiscard]] bool is_refused() const noexcept { return !report.refused.empty(); }
    /// The simulated time where there is one, else the closed form's.
    [[nodiscard]] Seconds seconds() const noexcept {
        return report.simulated ? report.simulated->seconds : report.seconds;
    }
};

/// A time that somebody measured.
struct Measured {
    Seconds seconds;
    std::optional<Seconds> low;
    std::optional<Seconds> high;
    std::string source;  ///< File or record.
};

/// A point of a sweep: A's and B's closed-form times at a NIC rate.
struct SweepPoint {
    double nic_gbits = 0.0;
    double a = 0.0;  ///< Unit: s.
    double b = 0.0;
};

/// Everything that is known about a scenario. Immutable once made; windows and workers share it.
struct Answer {
    Question question;
    Scenario scenario;
    Workload workload;
    Report report;           ///< All methods.
    std::vector<Groups> groups;
    Shown a;
    Shown b;
    std::map<Method, Measured> measured;
    std::string pinned;             ///< Name of the scenario that B is of, where that is another.
    std::vector<SweepPoint> sweep;  ///< By NIC rate, ascending; empty for a draft.

    [[nodiscard]] const Groups& by(Grouping grouping) const { return groups[static_cast<std::size_t>(grouping)]; }
    [[nodiscard]] std::uint32_t train_gpus() const noexcept { return scenario.cluster.train_gpus(); }
    /// The later end of both courses; both are drawn on one axis. Unit: s.
    [[nodiscard]] double end() const noexcept { return std::max(a.course.seconds(), b.course.seconds()); }
};

/// How an answer is got; each may be empty, and is called on any thread.
struct Steps {
    std::function<bool()> is_cancelled;
    std::function<void(const std::string&, double)> progress;
    /// Of many flows: who sends what, with closed forms, before anything is simulated.
    std::function<void(std::shared_ptr<const Answer>)> first = {};
};

/// Checks the draft and computes everything. Errors: every fault of the draft, as the command line gives them; of a plan
/// from a file, what `check_plan` finds; the one fault "cancelled". A method that the engine cannot run is in the answer,
/// refused. A draft after `base`, of the same model and layouts, computes the times of A and B anew and takes all else from
/// there; a plan that `base` has proven is not proven again.
[[nodiscard]] Result<std::shared_ptr<const Answer>> answer(const Question& question, const io::Library& library, const Steps& steps = {},
                                                           const Answer* base = nullptr);

/// The answer with measured times beside its predictions.
[[nodiscard]] std::shared_ptr<const Answer> with_measured(const Answer& answer, std::map<Method, Measured> measured);

/// The answer with A of another one in place of its B: what was pinned.
[[nodiscard]] std::shared_ptr<const Answer> with_pinned(const Answer& answer, const Answer& pinned);

/// "reshard (hybrid)", "gather-and-broadcast", "all weights, optimal" …
[[nodiscard]] std::string title_of(Method method);
/// The same for one line of a table: "reshard", "gather+broadcast", "optimal".
[[nodiscard]] std::string short_title(Method method);

/// The command that prints this answer: "refit compare deepseek-v3-h100 --train tp2.pp16.ep16".
[[nodiscard]] std::string command_of(const Question& question);

}  // namespace refit::gui
