// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "refit/program.hpp"
#include "refit/program_schedule.hpp"

namespace refit::program {

/// An operation of all its ranks: a message, or a collective.
struct Deed {
    OperationKind kind = OperationKind::kSend;  ///< kSend for a message.
    std::uint32_t first = 0;                    ///< Its source; of a collective, the index of its group.
    std::uint32_t second = 0;                   ///< Its destination.
    std::uint32_t lane = 0;                     ///< Tells messages of a pair apart that do not wait for the same.
    std::uint32_t wave = 0;                     ///< Within the step.
};

/// A box that a deed carries, as one of its ranks sees it.
struct Cargo {
    std::uint32_t deed = 0;  ///< Index into the step's.
    Tensor tensor;
    Box box;
    std::uint32_t owner = 0;
    bool is_taken = true;        ///< By a rank that does not give it: it has a use for some of it.
    bool is_kept = false;        ///< For a while, also where the rank does not want it for good.
    bool serves_copies = false;  ///< Also those who want it as a copy: the head of a tied embedding.
};

/// Groups of ranks, each once.
class GroupTable {
public:
    [[nodiscard]] std::uint32_t intern(const std::vector<std::uint32_t>& ranks);
    [[nodiscard]] const std::vector<std::uint32_t>& at(std::uint32_t index) const {
        return groups_.at(index);
    }
    /// Place of the rank in a group, or kNone.
    [[nodiscard]] std::uint32_t place(std::uint32_t index, std::uint32_t rank) const;

private:
    std::vector<std::vector<std::uint32_t>> groups_;
    std::map<std::vector<std::uint32_t>, std::uint32_t> known_;
};

/// Deeds that do not wait for each other. They take one or more waves.
class Step {
public:
    explicit Step(std::uint32_t stage) : stage_{stage} {}
    virtual ~Step() = default;
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    /// Appends what the deeds carry in which `rank` takes part, in the same order whatever the rank.
    virtual void load(std::uint32_t rank, std::vector<Cargo>& cargo) const = 0;

    [[nodiscard]] std::uint32_t stage() const noexcept { return stage_; }
    [[nodiscard]] const std::vector<Deed>& deeds() const noexcept { return deeds_; }
    [[nodiscard]] std::uint32_t waves() const noexcept { return waves_; }

protected:
    /// The messages between these pairs in these lanes, which may be repeated, in waves.
    void set_messages(std::vector<Deed> messages, std::uint32_t limit);
    /// Collectives, in the order in which all ranks begin them.
    void set_collectives(std::vector<Deed> collectives, const GroupTable& groups, std::uint32_t limit);
    /// Index of the message between two ranks in a lane. Pre: there is one.
    [[nodiscard]] std::uint32_t message(std::uint32_t source, std::uint32_t destination, std::uint32_t lane = 0) const;

private:
    std::uint32_t stage_;
    std::vector<Deed> deeds_;
    std::uint32_t waves_ = 0;
};

using Steps = std::vector<std::unique_ptr<const Step>>;

/// What those who make steps look at.
struct Sight {
    const Plan& plan;
    const Workload& workload;
    std::uint32_t train_gpus;
    const Settings& settings;
    GroupTable& groups;
};

/// Consecutive transfer stages, [first, last) of the plan, at once.
void add_transfer_steps(const Sight& sight, std::size_t first, std::size_t last, Steps& steps);
/// A relay stage.
void add_relay_steps(const Sight& sight, std::size_t stage, Steps& steps);
/// A gather stage, and the broadcast stage after it where there is one.
void add_gather_steps(const Sight& sight, std::size_t stage, bool has_broadcast, Steps& steps);

}  // namespace refit::program
