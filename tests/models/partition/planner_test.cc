// The planner: what the thesis's figures say, what a no says, and what repair keeps.

#include "src/models/partition/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "src/models/partition/exact.h"
#include "src/models/partition/generate.h"
#include "tests/models/partition/random_sets.h"

namespace gpushare::models::partition {
namespace {

using testing::HasSubstr;

Task MakeTask(const std::string& name, int64_t period_ns, double a_ns, double b_ns, int32_t sms) {
  Task task;
  task.name = name;
  task.period_ns = period_ns;
  task.deadline_ns = period_ns;
  task.alone = WorstCasesOfLine(a_ns, b_ns, sms);
  return task;
}

// Rates of one point of figure 3.4 or 3.5.
struct Rates {
  int one = 0;  // 1G
  int each = 0;
  int smallest = 0;  // SMS-INA
  int best_fit = 0;  // BF-INA
  int planner = 0;
  int lost_to_one = 0;  // sets that 1G schedules and the planner refuses
};

Rates RatesOf(const GeneratorOptions& options, Analysis analysis, int sets) {
  Rates rates;
  for (int i = 0; i < sets; ++i) {
    core::Random random(static_cast<uint64_t>(1'000 * options.utilisation) + i);
    const TaskSet set = Generate(options, random);
    const Workload workload(set, Beside::kNothing);
    Tester tester(workload, analysis, Priorities::kDeadlines);
    TaskList all(static_cast<size_t>(workload.tasks()));
    std::iota(all.begin(), all.end(), 0);
    const bool one = tester.Holds(all, workload.sizes());
    int unrunnable = -1;
    const std::vector<Partition> singles = OneEach(tester, unrunnable);
    const auto fits = [&](Order order) {
      return SizeOf(MergePartitions(tester, singles, nullptr,
                                    {.order = order, .size_goal = workload.sizes()})) <=
             workload.sizes();
    };
    rates.one += one ? 1 : 0;
    rates.each += SizeOf(singles) <= workload.sizes() ? 1 : 0;
    rates.smallest += fits(Order::kSmallest) ? 1 : 0;
    rates.best_fit += fits(Order::kBestFit) ? 1 : 0;
    Tester again(workload, analysis, Priorities::kDeadlines);
    const bool found = Search(again, {}).fits;
    rates.planner += found ? 1 : 0;
    rates.lost_to_one += one && !found ? 1 : 0;
  }
  return rates;
}

// Figure 3.4 with the serial share per SM, as docs/partition-planner.md has it. 40 sets: one
// standard deviation is at most 0.08.
TEST(Planner, FiftyTasksFallWhereTheFigureHasThem) {
  const Rates at_30 = RatesOf({.utilisation = 30}, Analysis::kConcurrent, 40);
  EXPECT_GE(at_30.one, 36);
  EXPECT_LE(at_30.each, 16);
  const Rates at_40 = RatesOf({.utilisation = 40}, Analysis::kConcurrent, 40);
  EXPECT_LE(at_40.one, 6);
  EXPECT_GE(at_40.smallest, 39);
  EXPECT_GE(at_40.best_fit, 39);
  const Rates at_52 = RatesOf({.utilisation = 52}, Analysis::kConcurrent, 40);
  EXPECT_NEAR(at_52.smallest, 0.4 * 40, 8);
  EXPECT_GE(at_52.planner, 32);
}

TEST(Planner, ThePrintedSerialShareMovesTheFallOfOnePartition) {
  const GeneratorOptions at_6 = {.utilisation = 6, .serial_share = SerialShare::kPrinted};
  const Rates rates = RatesOf(at_6, Analysis::kConcurrent, 40);
  EXPECT_NEAR(rates.one, 0.64 * 40, 8);
  EXPECT_EQ(rates.smallest, 40);
}

// With cheap preemption one partition of everything is a good plan, which the heuristics miss.
TEST(Planner, NoSetOfOnePartitionIsRefused) {
  for (const Analysis analysis :
       {Analysis::kConcurrent, Analysis::kExclusive, Analysis::kEvictable}) {
    for (const double share : {0.0, 0.01}) {
      const Rates rates =
          RatesOf({.tasks = 30, .utilisation = 50, .eviction_share = share}, analysis, 10);
      EXPECT_EQ(rates.lost_to_one, 0);
    }
  }
}

TEST(Planner, EvictionAdmitsWhatBlockingRefuses) {
  TaskSet set = {.sms = 10, .grain = 1, .tasks = {}};
  set.tasks.push_back(MakeTask("control", 1'000, 5'000, 0, 10));
  set.tasks.push_back(MakeTask("training", 20'000, 80'000, 0, 10));
  set.tasks[0].deadline_ns = 600;
  PlanOptions options = {.analysis = Analysis::kExclusive, .reserved_sms = 0};
  auto plan = MakePlan(set, options);
  ASSERT_TRUE(plan.ok());
  // 9 SMs for the one, 4 for the other: not on 10, and together the long one blocks.
  EXPECT_FALSE(plan->admitted);
  EXPECT_THAT(plan->reason, HasSubstr("the plan has 10"));
  set.tasks[1].evictable = true;
  set.tasks[1].eviction_ns = 20;
  set.tasks[1].resume_ns = 10;
  options.analysis = Analysis::kEvictable;
  plan = MakePlan(set, options);
  ASSERT_TRUE(plan.ok());
  ASSERT_TRUE(plan->admitted);
  ASSERT_EQ(plan->partitions.size(), 1);
  EXPECT_EQ(plan->partitions[0].mode, Mode::kEvict);
  // C = 500, an eviction and a resume are charged, and one eviction blocks.
  EXPECT_EQ(plan->partitions[0].tasks[0].response_ns, 500 + 30 + 20);
}

TEST(Planner, ANoNamesTheTaskThatNoSizeRuns) {
  TaskSet set = {.sms = 10, .grain = 1, .tasks = {}};
  set.tasks.push_back(MakeTask("slow", 1'000, 5'000, 600, 10));
  const auto plan = MakePlan(set, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->admitted);
  EXPECT_EQ(plan->reason,
            "Task 'slow' takes up to 1100 ns on all 10 SMs, and its deadline is 1000 ns.");
}

TEST(Planner, LemmaOneTakesTheMostEfficientSize) {
  TaskSet set = {.sms = 10, .grain = 1, .tasks = {}};
  Task task = MakeTask("step", 1'000, 0, 0, 10);
  // Two SMs are four times as fast as one: m C(m) falls from 3,000 to 1,500 ns x SMs.
  task.alone = {{1, 3'000}, {2, 750}};
  set.tasks = {task};
  const Workload workload(set, Beside::kNothing);
  EXPECT_DOUBLE_EQ(LeastSms(Tester(workload, Analysis::kExclusive, Priorities::kDeadlines)), 1.5);
  for (int i = 0; i < 7; ++i) {
    set.tasks.push_back(task);
    set.tasks.back().name += std::to_string(i);
  }
  const auto plan = MakePlan(set, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->reason, HasSubstr("need 12 SMs on average"));
}

TEST(Workload, AWorstCaseNeverRisesWithTheSms) {
  TaskSet set = {.sms = 20, .grain = 8, .tasks = {}};
  Task task = MakeTask("noisy", 1'000, 0, 0, 20);
  task.alone = {{8, 500}, {16, 520}, {20, 400}};
  task.in_conflict = {{8, 450}, {16, 700}};
  task.neighbour_factor = 1.5;
  set.tasks = {task};
  const Workload alone(set, Beside::kNothing);
  ASSERT_EQ(alone.sizes(), 2);
  EXPECT_EQ(alone.SmsOf(1), 8);
  EXPECT_EQ(alone.SmsOf(2), 20);  // with the SMs beyond the last grain
  EXPECT_EQ(alone.WorkNs(0, 1, false), 750);
  EXPECT_EQ(alone.WorkNs(0, 2, false), 400);  // nobody is beside one partition of everything
  EXPECT_EQ(alone.WorkNs(0, 1, true), 750);   // a conflict shortens nothing
  EXPECT_EQ(alone.WorkNs(0, 2, true), 450);
  const Workload beside(set, Beside::kBestEffort);
  EXPECT_EQ(beside.WorkNs(0, 2, false), 600);
}

TEST(Exact, IsNeverAboveAnyHeuristicAndItsPartitionsHold) {
  core::Random random(5);
  for (int i = 0; i < 12; ++i) {
    const TaskSet set = RandomSet(9, 16, 1, 0.6, random);
    const Workload workload(set, Beside::kNothing);
    for (const Analysis analysis :
         {Analysis::kConcurrent, Analysis::kExclusive, Analysis::kEvictable}) {
      Tester tester(workload, analysis, Priorities::kDeadlines);
      int unrunnable = -1;
      const std::vector<Partition> singles = OneEach(tester, unrunnable);
      if (singles.empty()) continue;
      const Exact exact = SearchExact(tester, singles, 0);
      EXPECT_EQ(SizeOf(exact.partitions), exact.size);
      TaskList seen;
      for (const Partition& one : exact.partitions) {
        EXPECT_TRUE(tester.Holds(one.tasks, one.size));
        seen.insert(seen.end(), one.tasks.begin(), one.tasks.end());
      }
      std::sort(seen.begin(), seen.end());
      TaskList all(9);
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(seen, all);
      for (const Order order :
           {Order::kSmallest, Order::kBestFit, Order::kMostSaved, Order::kFullest}) {
        EXPECT_LE(exact.size, SizeOf(MergePartitions(tester, singles, nullptr, {.order = order})));
      }
    }
  }
}

TEST(Exact, BeyondSixteenTasksItSaysHowFarItCame) {
  core::Random random(6);
  const TaskSet set = Generate({.tasks = 18, .utilisation = 6, .sms = 16}, random);
  const Workload workload(set, Beside::kNothing);
  Tester tester(workload, Analysis::kConcurrent, Priorities::kDeadlines);
  int unrunnable = -1;
  const std::vector<Partition> singles = OneEach(tester, unrunnable);
  const Exact little = SearchExact(tester, singles, 200);
  const Exact more = SearchExact(tester, singles, 20'000);
  EXPECT_LE(little.least, little.size);
  EXPECT_LE(more.size, little.size);
  EXPECT_GE(more.size, little.least);
}

std::vector<std::string> NamesOf(const Plan& plan) {
  std::vector<std::string> out;
  for (const PlannedPartition& one : plan.partitions) {
    for (const PlannedTask& task : one.tasks) out.push_back(task.name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Repair, AnArrivalMovesNobodyWhereThereIsRoom) {
  core::Random random(7);
  TaskSet set = Generate({.tasks = 21, .utilisation = 30}, random);
  const Task arriving = set.tasks.back();
  set.tasks.pop_back();
  const PlanOptions options = {.analysis = Analysis::kEvictable};
  const auto before = MakePlan(set, options);
  ASSERT_TRUE(before.ok() && before->admitted);
  set.tasks.push_back(arriving);
  const auto after = RepairPlan(set, *before, options);
  ASSERT_TRUE(after.ok() && after->admitted);
  EXPECT_EQ(after->by, "repair");
  EXPECT_EQ(after->moved, 0);
  EXPECT_EQ(NamesOf(*after).size(), 21);
  // And a departure never needs more SMs.
  set.tasks.pop_back();
  const auto left = RepairPlan(set, *after, options);
  ASSERT_TRUE(left.ok() && left->admitted);
  EXPECT_EQ(left->moved, 0);
  EXPECT_LE(left->sms, after->sms);
  EXPECT_EQ(NamesOf(*left), NamesOf(*before));
}

TEST(Repair, AFullDevicePlansAnewAndCountsWhoMoved) {
  core::Random random(8);
  TaskSet set = Generate({.tasks = 30, .utilisation = 44}, random);
  const PlanOptions options = {.analysis = Analysis::kConcurrent, .beside = Beside::kNothing};
  Plan plan;
  TaskSet present = {.sms = set.sms, .grain = set.grain, .tasks = {}};
  int moved = 0;
  for (const Task& task : set.tasks) {
    present.tasks.push_back(task);
    const auto next = RepairPlan(present, plan, options);
    ASSERT_TRUE(next.ok()) << next.status();
    if (!next->admitted) break;
    plan = *next;
    moved += plan.moved;
  }
  EXPECT_GE(plan.partitions.size(), 2);
  EXPECT_LE(plan.sms, set.sms);
  // Far fewer than planning anew each time, which moves about half of the tasks.
  EXPECT_LT(moved, 30 * 30 / 4);
}

TEST(TaskSet, RefusesWhatIsOutsideItsRange) {
  TaskSet set = {.sms = 4, .grain = 1, .tasks = {MakeTask("a", 1'000, 100, 1, 4)}};
  EXPECT_TRUE(Check(set).ok());
  const auto message = [](const TaskSet& bad) { return std::string(Check(bad).message()); };
  TaskSet bad = set;
  bad.tasks[0].period_ns = 0;
  EXPECT_THAT(message(bad), HasSubstr("'a' has period_ns 0, and it must be 1 to"));
  bad = set;
  bad.tasks[0].deadline_ns = 1'001;
  EXPECT_THAT(message(bad), HasSubstr("deadline_ns 1001, and it must be 1 to 1000."));
  bad = set;
  bad.tasks[0].alone = {{2, 5}, {2, 6}};
  EXPECT_THAT(message(bad), HasSubstr("at 2 SMs after 2"));
  bad = set;
  bad.tasks[0].alone = {{5, 5}};
  EXPECT_THAT(message(bad), HasSubstr("the device's 4"));
  bad = set;
  bad.tasks.push_back(bad.tasks[0]);
  EXPECT_THAT(message(bad), HasSubstr("Two tasks have the name 'a'"));
  bad = set;
  bad.tasks[0].neighbour_factor = 0.5;
  EXPECT_THAT(message(bad), HasSubstr("neighbour_factor 0.5"));
  bad = set;
  bad.tasks.clear();
  EXPECT_THAT(message(bad), HasSubstr("has 0 tasks"));
  bad = set;
  bad.grain = 5;
  EXPECT_THAT(message(bad), HasSubstr("a multiple of 5 SMs"));
}

// 1,024 tasks that nothing can place end within the bound of tests.
TEST(Planner, TheLargestSetEndsSoon) {
  core::Random random(9);
  const TaskSet set = RandomSet(static_cast<int>(kTasksMax), 132, 1, 0.8, random);
  const auto plan = MakePlan(set, {.tests_max = 10'000});
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->reason.empty() && !plan->admitted);
}

TEST(Planner, FixedPrioritiesNeverAdmitMore) {
  int fixed = 0;
  int deadlines = 0;
  for (int i = 0; i < 20; ++i) {
    core::Random random(100 + i);
    const TaskSet set = RandomSet(10, 16, 1, 0.55, random);
    PlanOptions options = {.analysis = Analysis::kExclusive, .priorities = Priorities::kFixed};
    fixed += MakePlan(set, options)->admitted ? 1 : 0;
    options.priorities = Priorities::kDeadlines;
    deadlines += MakePlan(set, options)->admitted ? 1 : 0;
  }
  EXPECT_GT(fixed, 0);
  EXPECT_LE(fixed, deadlines);
}

}  // namespace
}  // namespace gpushare::models::partition
