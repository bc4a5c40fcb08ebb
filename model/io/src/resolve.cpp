// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <utility>

#include "draft_reader.hpp"
#include "dtype_reader.hpp"
#include "engine_reader.hpp"
#include "fabric_reader.hpp"
#include "layouts_reader.hpp"
#include "machines_reader.hpp"
#include "refit/io/library.hpp"
#include "refit/losses.hpp"
#include "unmodelled.hpp"

namespace refit::io {
namespace {

std::optional<Inventory> read_model(DraftReader& reader) {
    auto model = reader.take(reader.library().model(reader.text_of("model", "deepseek-v3", true)), "model");
    if (!model && reader.faults().back().nearest) {
        Faults ignored;
        model = take(reader.library().model(reader.faults().back().nearest->value), ignored);
    }
    return model;
}

/// Reads a whole draft. Each part has a reader of its own, so that faults are told in the order in which
/// people look at a refit, whatever order their reading needs.
class Resolver {
public:
    Resolver(const ScenarioDraft& draft, const Library& library)
        : first_{draft, library},
          sides_{draft, library},
          engine_{draft, library},
          machines_{draft, library} {}

    Result<Scenario> run() {
        auto model = read_model(first_);
        auto engine = read_engine(engine_);
        auto rules = read_rules(engine_, engine);
        const auto dtypes = read_dtypes(engine_, model, rules);
        const auto dtype = dtypes.kept;
        auto systems = read_systems(machines_);
        const auto room = [&](System std::pair<System, System>::*side) {
            return systems ? std::optional{memory_of((*systems).*side, dtype)} : std::nullopt;
        };
        const auto train = read_train_layout(sides_, model, room(&std::pair<System, System>::first));
        const bool is_fp8 = dtypes.generate == Dtype::kFp8;
        const auto generate =
            read_generate_layout(sides_, model, room(&std::pair<System, System>::second), is_fp8, dtype);
        const auto coverage = engine_.take(
            parse_coverage(engine_.text_of("engine.coverage", "nemo-rl-names")), "engine.coverage");
        const auto placement = systems
                                   ? std::optional{read_placement(machines_, systems->first, systems->second)}
                                   : std::nullopt;
        const auto gpus = [](const auto& layout) { return layout ? std::optional{layout->gpus} : std::nullopt; };
        auto fabric = systems ? read_fabric(machines_, {*systems, *placement, gpus(train), gpus(generate)}) : FabricSettings{};
        auto published = read_published(machines_);
        auto faults = all_faults();
        if (!faults.empty()) {
            return fail(std::move(faults));
        }
        auto& [train_system, generate_system] = *systems;
        Scenario scenario{
            first_.text_of("name", "scenario"),
            std::move(*model),
            dtype,
            *train,
            *generate,
            Cluster{
                std::move(train_system), std::move(generate_system), train->gpus, generate->gpus, *placement,
                std::move(fabric)},
            std::move(engine),
            std::move(*rules),
            read_facts(engine_, dtype, *train, *generate),
            *coverage,
            std::move(published),
            first_.text_of("note", "")};
        leave_out(scenario);
        return machines_.faults().empty() ? Result<Scenario>{std::move(scenario)} : fail(std::move(machines_.faults()));
    }

private:
    /// Who is lost can only be told of a whole scenario.
    void leave_out(Scenario& scenario) {
        const auto lost = machines_.take(
            parse_ranks(machines_.text_of("lost", ""), scenario.train.gpus, scenario.generate.gpus), "lost");
        if (!lost || lost->empty()) {
            return;
        }
        if (auto losses = machines_.take(losses_of(scenario, *lost), "lost")) {
            scenario.cluster = scenario.cluster.without(std::move(*losses));
        }
    }

    Faults all_faults() {
        Faults all;
        for (auto* reader : {&first_, &sides_, &engine_, &machines_}) {
            all.insert(all.end(), reader->faults().begin(), reader->faults().end());
        }
        return all;
    }

    DraftReader first_;
    DraftReader sides_;
    DraftReader engine_;
    DraftReader machines_;
};

/// The faults, and those that would be left once their suggestions were followed.
Faults with_others(Faults faults, ScenarioDraft draft, const Library& library) {
    for (const auto& fault : faults) {
        draft.apply(fault.nearest.value());
    }
    static_cast<void>(take(Resolver{draft, library}.run(), faults));
    return faults;
}

}  // namespace

Result<Scenario> resolve(const ScenarioDraft& draft, const Library& library) {
    auto faults = unmodelled_settings(draft, library);
    return faults.empty() ? Resolver{draft, library}.run()
                          : fail(with_others(std::move(faults), draft, library));
}

}  // namespace refit::io
