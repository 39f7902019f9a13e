// No false yes: what the planner admits keeps every deadline and every bound in the simulation of
// what its analysis assumes.
//
//   partition_no_false_yes_test [--sets COUNT]     random admitted sets of each analysis, default
//   300
//
// Each partition runs once with all tasks released together, once behind each task that may block,
// started a nanosecond before, and twice with sporadic releases from random phases.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/models/partition/generate.h"
#include "src/models/partition/planner.h"
#include "tests/models/partition/random_sets.h"
#include "tests/models/partition/simulated_partition.h"

namespace gpushare::models::partition {
namespace {

int sets_of_each = 300;

// What the simulations of one analysis saw.
struct Seen {
  int64_t partitions = 0;
  int64_t evicting = 0;  // partitions that evict
  int64_t runs = 0;
  double deadline_share = 0;  // largest response over its deadline
  double bound_share = 0;     // and over its bound
};

std::vector<SimulatedTask> TasksOf(const TaskSet& set, const PlannedPartition& partition) {
  std::vector<SimulatedTask> out;
  for (const PlannedTask& planned : partition.tasks) {
    const Task& task = set.tasks[static_cast<size_t>(planned.source)];
    out.push_back({.period_ns = task.period_ns,
                   .deadline_ns = task.deadline_ns,
                   .work_ns = planned.worst_ns,
                   .evictable = task.evictable,
                   .eviction_ns = task.eviction_ns,
                   .resume_ns = task.resume_ns});
  }
  return out;
}

void ExpectKept(const PlannedPartition& partition, const std::vector<SimulatedTask>& tasks,
                const Releases& releases, const std::string& what, Seen& seen) {
  const std::vector<int64_t> responses = SimulatePartition(tasks, partition.mode, releases);
  ++seen.runs;
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_LE(responses[i], tasks[i].deadline_ns) << what << ", " << partition.tasks[i].name;
    EXPECT_LE(responses[i], partition.tasks[i].response_ns)
        << what << ", " << partition.tasks[i].name;
    const auto response = static_cast<double>(responses[i]);
    seen.deadline_share =
        std::max(seen.deadline_share, response / static_cast<double>(tasks[i].deadline_ns));
    seen.bound_share =
        std::max(seen.bound_share, response / static_cast<double>(partition.tasks[i].response_ns));
  }
}

void SimulatePlan(const TaskSet& set, const Plan& plan, const std::string& what,
                  core::Random& random, Seen& seen) {
  for (const PlannedPartition& partition : plan.partitions) {
    const std::vector<SimulatedTask> tasks = TasksOf(set, partition);
    ++seen.partitions;
    if (partition.mode == Mode::kEvict) ++seen.evicting;
    int64_t longest = 0;
    for (const SimulatedTask& task : tasks) longest = std::max(longest, task.period_ns);
    Releases together = {.first_ns = std::vector<int64_t>(tasks.size(), 1),
                         .until_ns = 2 * longest};
    ExpectKept(partition, tasks, together, what + ", together", seen);
    for (size_t blocker = 1; blocker < tasks.size(); ++blocker) {
      Releases behind = together;
      behind.first_ns[blocker] = 0;
      ExpectKept(partition, tasks, behind, what + ", behind a blocker", seen);
    }
    for (int i = 0; i < 2; ++i) {
      Releases sporadic = together;
      sporadic.jitter = &random;
      for (size_t task = 0; task < tasks.size(); ++task) {
        sporadic.first_ns[task] =
            static_cast<int64_t>(random.Uniform() * static_cast<double>(tasks[task].period_ns));
      }
      ExpectKept(partition, tasks, sporadic, what + ", sporadic", seen);
    }
  }
}

TaskSet DrawSet(bool thesis, core::Random& random) {
  const double load = random.Uniform(0.5, 0.9);
  if (!thesis) return RandomSet(12, 16, 1, load, random);
  return Generate(
      {.tasks = 20, .utilisation = 16 * load, .sms = 16, .eviction_share = random.Uniform(0, 0.06)},
      random);
}

void SimulateAdmitted(Analysis analysis, const char* name) {
  core::Random random(1);
  Seen seen;
  int admitted = 0;
  // Half of the draws are admitted, so that this ends.
  for (int draw = 0; admitted < sets_of_each && draw < 20 * sets_of_each; ++draw) {
    const TaskSet set = DrawSet(draw % 2 == 0, random);
    const auto plan = MakePlan(set, {.analysis = analysis, .tests_max = 3'000});
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (!plan->admitted) continue;
    ++admitted;
    SimulatePlan(set, *plan, "draw " + std::to_string(draw), random, seen);
    if (testing::Test::HasFailure()) return;  // the first one says enough
  }
  EXPECT_EQ(admitted, sets_of_each);
  std::printf(
      "%s: %d sets, %lld partitions (%lld evict), %lld simulations, largest response %.4f of its "
      "deadline and %.4f of its bound\n",
      name, admitted, static_cast<long long>(seen.partitions),
      static_cast<long long>(seen.evicting), static_cast<long long>(seen.runs), seen.deadline_share,
      seen.bound_share);
  // A test that never comes near a deadline would not see a wrong yes.
  EXPECT_GT(seen.deadline_share, 0.98);
  EXPECT_GT(seen.bound_share, 0.98);
}

TEST(NoFalseYes, Concurrent) { SimulateAdmitted(Analysis::kConcurrent, "concurrent"); }
TEST(NoFalseYes, RunningToTheEnd) { SimulateAdmitted(Analysis::kExclusive, "exclusive"); }
TEST(NoFalseYes, Evicting) { SimulateAdmitted(Analysis::kEvictable, "evictable"); }

// Without the charge the simulation must find misses: it is what the charge is there for.
TEST(NoFalseYes, TheSimulationSeesEvictionsThatNobodyCharged) {
  core::Random random(2);
  int missed = 0;
  for (int draw = 0; draw < 100; ++draw) {
    const TaskSet set = DrawSet(true, random);
    TaskSet uncharged = set;
    for (Task& task : uncharged.tasks) task.resume_ns = task.eviction_ns = 0;
    const auto plan = MakePlan(uncharged, {.analysis = Analysis::kEvictable, .tests_max = 3'000});
    if (!plan->admitted) continue;
    for (const PlannedPartition& partition : plan->partitions) {
      const std::vector<SimulatedTask> tasks = TasksOf(set, partition);
      const Releases together = {.first_ns = std::vector<int64_t>(tasks.size(), 1),
                                 .until_ns = 2 * tasks.back().period_ns};
      Releases behind = together;
      behind.first_ns.back() = 0;
      for (const Releases& releases : {together, behind}) {
        const std::vector<int64_t> responses = SimulatePartition(tasks, partition.mode, releases);
        for (size_t i = 0; i < tasks.size(); ++i) {
          if (responses[i] > tasks[i].deadline_ns) ++missed;
        }
      }
    }
  }
  EXPECT_GT(missed, 20);
}

}  // namespace

void SetSets(int sets) { sets_of_each = sets; }

}  // namespace gpushare::models::partition

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc == 3 && std::string(argv[1]) == "--sets") {
    gpushare::models::partition::SetSets(std::max(1, std::atoi(argv[2])));
  }
  return RUN_ALL_TESTS();
}
