// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "../cli/program.hpp"
#include "refit/exec/mpi_transport.hpp"

namespace refit::exec {
namespace {

using testing_cli::Outcome;

struct Ended {
    Outcome outcome;
    double end = 0;  ///< By the clock of this machine. Unit: s.
};

/// Live processes of the test program, those that are stopped too.
int live_processes() {
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc"}) {
        std::error_code error;
        const auto program = std::filesystem::read_symlink(entry.path() / "exe", error);
        found += !error && program == REFIT_MPI_RANK ? 1 : 0;
    }
    return found;
}

constexpr double kDeadline = 2.0;

/// From the moment of the injected fault, which the rank says, to the end of the job. Unit: s.
double seconds_since_fault(const Ended& run) {
    const std::string begin = run.outcome.err.find("made to die at ") != std::string::npos
                                  ? "made to die at "
                                  : "made to stall at ";
    const auto at = run.outcome.err.find(begin);
    return at == std::string::npos
               ? 1e9
               : run.end - std::strtod(run.outcome.err.c_str() + at + begin.size(), nullptr);
}

class MpiTransport : public ::testing::Test {
protected:
    void SetUp() override {
        char name[] = "/dev/shm/refit-mpi-test-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        segments_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(segments_); }

    /// Of a job as root, with fewer cores than ranks.
    [[nodiscard]] testing_cli::Setting job_setting() const {
        testing_cli::Setting setting;
        setting.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                               {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                               {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                               {"OMPI_MCA_btl_vader_backing_directory", segments_},
                               {"ASAN_OPTIONS", "detect_leaks=0"}};
        return setting;
    }

    /// Runs mpi_rank on so many ranks: as root, and with fewer cores than ranks.
    [[nodiscard]] Ended mpi_run(int ranks, const std::vector<std::string>& arguments) const {
        std::vector<std::string> words{
            "/usr/bin/env", "mpirun", "-np", std::to_string(ranks), "--timeout", "200", REFIT_MPI_RANK};
        words.insert(words.end(), arguments.begin(), arguments.end());
        Ended run{testing_cli::run_program(words, job_setting())};
        run.end = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
        return run;
    }

    /// Runs refit-exec, or several of it side by side.
    [[nodiscard]] Outcome exec_run(const std::vector<std::string>& words) const {
        std::vector<std::string> all{"/usr/bin/env", "mpirun", "--timeout", "200"};
        all.insert(all.end(), words.begin(), words.end());
        return testing_cli::run_program(all, job_setting());
    }
    [[nodiscard]] std::string file(const std::string& name) const { return segments_ + "/" + name; }

    /// Killed processes take a moment to go.
    void expect_nothing_left() const {
        for (int wait = 0; wait < 20 && live_processes() > 0; ++wait) {
            std::this_thread::sleep_for(std::chrono::milliseconds{100});
        }
        EXPECT_EQ(live_processes(), 0);
        EXPECT_TRUE(std::filesystem::is_empty(segments_)) << "a shared-memory file is left";
    }

private:
    std::string segments_;
};

TEST_F(MpiTransport, VerifiesEveryElementOfEveryPlanOnSixteenRanks) {
    const Ended run = mpi_run(16, {"plans"});
    EXPECT_EQ(run.outcome.code, 0) << run.outcome.out << run.outcome.err;
    int verified = 0;
    for (const std::string& line : testing_cli::lines_of(run.outcome.out)) {
        verified += line.ends_with(": verified") ? 1 : 0;
    }
    EXPECT_GE(verified, 24) << run.outcome.out;
    expect_nothing_left();
}

TEST_F(MpiTransport, RefusesAJobOfAnotherSizeNamingTheRightOne) {
    const Ended run = mpi_run(3, {"fault", "slows:0", "5000"});
    EXPECT_EQ(run.outcome.code, 1);
    EXPECT_NE(
        run.outcome.out.find("the plan is for 16 ranks and this MPI job has 3; start it with mpirun -np 16"),
        std::string::npos)
        << run.outcome.out;
}

TEST_F(MpiTransport, NamesTheRankWithAnotherPlanAndTheOneWithoutMemory) {
    EXPECT_NE(mpi_run(16, {"fault", "plan:5", "5000"}).outcome.out.find("other-plan: rank 5 has"),
              std::string::npos);
    EXPECT_NE(mpi_run(16, {"fault", "memory:6", "5000"}).outcome.out.find("out-of-memory: rank 6"),
              std::string::npos);
    expect_nothing_left();
}

/// TP2 with two copies (ranks 0 to 3) to two engines of two (4 to 7): rank 3 is killed for real, the rest goes on.
TEST_F(MpiTransport, GoesOnWithoutTheRankThatDied) {
    const auto plan = file("plan.json");
    ASSERT_EQ(testing_cli::run_refit({"plan", "--model", "qwen3-0.6b/16", "--train", "tp2@4", "--generate", "tp2@4", "--system",
                                      "h100-nvl8", "--method", "optimal", "-O", plan})
                  .code,
              0);
    const std::vector<std::string> exec{REFIT_EXEC_PROGRAM, plan, "--transport", "mpi", "--runs", "1", "--deadline", "20s"};
    const auto words = [&](const std::string& processes, const std::vector<std::string>& more) {
        std::vector<std::string> all{"-np", processes};
        all.insert(all.end(), exec.begin(), exec.end());
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const auto failed = exec_run(words("8", {"--inject", "dies:3@0"}));
    EXPECT_NE(failed.code, 0);
    EXPECT_NE(failed.err.find("rank 3 is made to die"), std::string::npos) << failed.err;
    // Ranks 6 and 7 are one engine: the processes are ranks 0, 1, 2, 4 and 5.
    const auto resumed = exec_run(words("5", {"--resume-without", "3,6"}));
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_NE(resumed.out.find("optimal: 5 ranks by mpi, every element verified"), std::string::npos) << resumed.out;
    // The last process leaves out another rank than all others.
    auto mixed = words("6", {"--resume-without", "3", ":"});
    const auto other = words("1", {"--resume-without", "2"});
    mixed.insert(mixed.end(), other.begin(), other.end());
    const auto refused = exec_run(mixed);
    EXPECT_EQ(refused.code, 7);
    EXPECT_NE(refused.err.find("rank 7 has a plan of digest"), std::string::npos) << refused.err;
    std::filesystem::remove(plan);
    expect_nothing_left();
}

TEST_F(MpiTransport, NamesTheElementThatWasSpoiledAndWhoGaveIt) {
    const Ended run = mpi_run(16, {"fault", "corrupts:2@0", "5000"});
    EXPECT_EQ(run.outcome.code, 1);
    EXPECT_NE(run.outcome.out.find("not-verified: rank "), std::string::npos) << run.outcome.out;
    EXPECT_NE(run.outcome.out.find("wave 0, from rank 2; old weights stand"), std::string::npos)
        << run.outcome.out;
}

TEST_F(MpiTransport, FinishesVerifiedWithASlowRank) {
    const Ended run = mpi_run(16, {"fault", "slows:3@0", "20000"});
    EXPECT_EQ(run.outcome.code, 0) << run.outcome.out << run.outcome.err;
}

// Ranks 0 to 7 send, 8 to 15 receive; wave 99 means after the last. A job with sanitizers takes longer, and
// more points.
#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kKills[] = {"dies:0@0",
                                  "dies:3@0",
                                  "dies:12@0",
                                  "dies:1@1",
                                  "dies:15@1",
                                  "dies:5@2",
                                  "dies:8@2",
                                  "dies:7@3",
                                  "dies:0@99",
                                  "dies:12@99"};
constexpr const char* kStops[] = {"stalls:0@0",
                                  "stalls:3@0",
                                  "stalls:12@0",
                                  "stalls:1@1",
                                  "stalls:15@1",
                                  "stalls:5@2",
                                  "stalls:8@2",
                                  "stalls:7@3",
                                  "stalls:0@99",
                                  "stalls:12@99"};
#else
constexpr const char* kKills[] = {"dies:3@0", "dies:12@2", "dies:0@99"};
constexpr const char* kStops[] = {"stalls:3@0", "stalls:12@2", "stalls:0@99"};
#endif

TEST_F(MpiTransport, EndsSoonAfterARankIsKilledAtAnyPoint) {
    for (const char* const fault : kKills) {
        const Ended run = mpi_run(16, {"fault", fault, "20000"});
        EXPECT_NE(run.outcome.code, 0) << fault;
        EXPECT_EQ(run.outcome.out.find("verified"), std::string::npos) << fault;
        EXPECT_LT(seconds_since_fault(run), 5.0) << fault << run.outcome.err;
        expect_nothing_left();
    }
}

TEST_F(MpiTransport, EndsAtTheDeadlineWhenARankStandsStillAndSaysWhatItWaitsFor) {
    for (const char* const fault : kStops) {
        const Ended run = mpi_run(16, {"fault", fault, "2000"});
        EXPECT_EQ(run.outcome.code, kNoProgress) << fault;
        EXPECT_NE(run.outcome.err.find("no progress for 2000 ms"), std::string::npos)
            << fault << run.outcome.err;
        EXPECT_LT(seconds_since_fault(run), kDeadline + 5.0) << fault << run.outcome.err;
        expect_nothing_left();
    }
}

}  // namespace
}  // namespace refit::exec
