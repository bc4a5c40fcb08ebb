// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "refit/engine.hpp"
#include "refit/inventory.hpp"
#include "refit/io/scenario_draft.hpp"
#include "refit/membership.hpp"
#include "refit/published.hpp"
#include "refit/result.hpp"
#include "refit/rules.hpp"
#include "refit/scenario.hpp"
#include "refit/system.hpp"

namespace refit::io {

/// The data folder: models, systems, engines, scenarios and published times by name. Every reader also takes a path
/// (anything with a "/" or a file ending) to the user's own file.
class Library {
public:
    /// Errors: kIo where the folder does not hold the data.
    [[nodiscard]] static Result<Library> open(std::filesystem::path folder);

    [[nodiscard]] std::vector<std::string> models() const { return names("models"); }
    [[nodiscard]] std::vector<std::string> systems() const { return names("systems"); }
    [[nodiscard]] std::vector<std::string> engines() const { return names("engines"); }
    [[nodiscard]] std::vector<std::string> scenarios() const { return names("scenarios"); }

    // Errors of all: kInvalidInput for an unknown name, with the nearest as suggestion for `field` where one is named;
    // those of the file's reader. Where a model's folder has safetensors too, their headers must agree with its config.
    [[nodiscard]] Result<Inventory> model(const std::string& name) const;
    [[nodiscard]] Result<System> system(const std::string& name, const std::string& field) const;
    [[nodiscard]] Result<Engine> engine(const std::string& name) const;
    /// The file that `engine` reads.
    [[nodiscard]] Result<std::filesystem::path> engine_file(const std::string& name) const {
        return locate("engines", name, "engine.name");
    }
    /// The engine's support rules of a version.
    [[nodiscard]] Result<RuleSet> rules(const std::string& engine, const std::string& version) const;
    /// What changing the members of NCCL communicators costs.
    [[nodiscard]] Result<MembershipConstants> membership() const;
    /// A scenario, or a NeMo RL recipe (a .yaml file).
    [[nodiscard]] Result<ScenarioDraft> scenario(const std::string& name) const;
    [[nodiscard]] Result<std::vector<PublishedRecord>> published() const;
    /// Id of the model that a Hugging Face hub name such as "deepseek-ai/DeepSeek-V3" means.
    [[nodiscard]] Result<std::string> model_of_hub_name(const std::string& name) const;
    /// Id of the model that a public report calls so: its id, title, hub name with or without the owner, or another name
    /// that its file lists. Letter case, spaces and underscores do not count, nor do endings that name another training of
    /// the same tensors ("-Instruct", "-2507"); the active parameters may be left out. Errors: kInvalidInput.
    [[nodiscard]] Result<std::string> model_of_published_name(const std::string& name) const;

private:
    explicit Library(std::filesystem::path folder) : folder_{std::move(folder)} {}
    [[nodiscard]] std::vector<std::string> names(const char* kind) const;
    [[nodiscard]] Result<std::filesystem::path> locate(const char* kind, const std::string& name,
                                                       const std::string& field) const;

    std::filesystem::path folder_;
};

/// Where a program finds its data: REFIT_DATA, else the folder installed beside it, else `source`.
[[nodiscard]] std::filesystem::path data_folder(const std::filesystem::path& source);

/// Checks a draft and completes it with defaults.
/// Errors: every fault of the draft at once; each names its field and origin, and offers a value that was checked.
[[nodiscard]] Result<Scenario> resolve(const ScenarioDraft& draft, const Library& library);

}  // namespace refit::io
