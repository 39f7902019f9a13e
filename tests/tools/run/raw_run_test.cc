// Runs without the library, on a made-up device whose tasks take a set time on a stream: every
// arrival is answered once, in order and not before its work is done, and a run in which LC starves
// ends and says so.
//
// The clock is the machine's, so a loaded machine may delay a run at any point. The device records
// the times of its calls. Checks that must always hold compare a run's numbers with what it can
// have seen. Checks that need an undisturbed run use one.

#include "tools/gpushare/run/raw_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/colocate/plain_rows.h"
#include "tools/gpushare/report/result.h"
#include "tools/gpushare/report/table.h"
#include "tools/gpushare/run/metrics.h"
#include "tools/gpushare/run/runner.h"

namespace gpushare::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

int64_t WallNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Range {
  int64_t min_ns = 0;
  int64_t max_ns = 0;
};

// When the run can have read the clock for a BE task: between two of its calls to the device.
struct TaskTimes {
  Range launch;
  Range seen;  // its end
};

// The calls of one run to all its streams.
class Diary {
 public:
  // Call as it begins and as it ends.
  int64_t Begin() {
    const int64_t now_ns = WallNs();
    if (end_ns_ > 0) CountPause(now_ns - end_ns_);
    begin_ns_ = now_ns;
    if (!be.empty() && seen_ > 0 && be[seen_ - 1].seen.max_ns == 0) {
      be[seen_ - 1].seen.max_ns = now_ns;
    }
    return now_ns;
  }
  void End() {
    end_ns_ = WallNs();
    CountPause(end_ns_ - begin_ns_);
  }

  void BeLaunched(int64_t now_ns) {
    be.push_back({{end_ns_, now_ns}, {}});
    in_flight_max = std::max(in_flight_max, be.size() - seen_);
  }
  void BeSeen() { be[seen_++].seen.min_ns = WallNs(); }

  // Time in pauses, in a call or between two; a run that has its processor makes a call in a few
  // microseconds.
  int64_t stalled_ns() const { return stalled_ns_; }

  // Work done by `time_ns` when a task's work is spread evenly over its span, from its launch or
  // the end of the one before: the most and the least that the run can have counted.
  double BeTasksDone(int64_t time_ns, int64_t Range::*edge) const {
    double done = 0;
    int64_t last_ns = 0;
    for (const TaskTimes& task : be) {
      const int64_t from_ns = std::max(task.launch.*edge, last_ns);
      last_ns = task.seen.*edge;
      if (last_ns <= time_ns) {
        done += 1;
      } else if (from_ns < time_ns) {
        done += static_cast<double>(time_ns - from_ns) / static_cast<double>(last_ns - from_ns);
      }
    }
    return done;
  }

  std::vector<TaskTimes> be;
  size_t in_flight_max = 0;

 private:
  static constexpr int64_t kStallNs = 200'000;

  void CountPause(int64_t pause_ns) {
    if (pause_ns > kStallNs) stalled_ns_ += pause_ns;
  }

  int64_t begin_ns_ = 0;
  int64_t end_ns_ = 0;
  int64_t stalled_ns_ = 0;
  size_t seen_ = 0;
};

// A stream on which tasks of `task_ns` follow each other.
class TimedApp final : public RawApp {
 public:
  TimedApp(int64_t task_ns, const RawOptions& options, int64_t* launches, Diary* diary)
      : task_ns_(task_ns),
        best_effort_(options.best_effort),
        marks_ns_(options.marks, 0),
        launches_(launches),
        diary_(diary) {}
  ~TimedApp() override { diary_->Begin(); }
  void Launch(size_t task) override {
    const int64_t now_ns = diary_->Begin();
    if (best_effort_) diary_->BeLaunched(now_ns);
    if (!order_.empty()) {
      EXPECT_TRUE(task == order_.back() + 1 || task == 0);
    }
    order_.assign(1, task);
    free_ns_ = std::max(free_ns_, now_ns) + task_ns_;
    ++*launches_;
    diary_->End();
  }
  void Mark(size_t mark) override {
    diary_->Begin();
    ASSERT_LT(mark, marks_ns_.size());
    EXPECT_EQ(marks_ns_[mark], 0) << "the mark is still pending";
    marks_ns_[mark] = free_ns_;
    diary_->End();
  }
  bool Reached(size_t mark) override {
    const bool reached = diary_->Begin() >= marks_ns_[mark];
    if (reached) marks_ns_[mark] = 0;
    if (reached && best_effort_) diary_->BeSeen();
    diary_->End();
    return reached;
  }

 private:
  int64_t task_ns_;
  bool best_effort_;
  int64_t free_ns_ = 0;
  std::vector<int64_t> marks_ns_;
  std::vector<size_t> order_;
  int64_t* launches_;
  Diary* diary_;
};

class TimedWorkloads final : public Workloads {
 public:
  bool CanRun(const std::string& /*kernel*/, bool /*in_profile*/) const override { return true; }
  bool CountsBlocks(const std::string& /*kernel*/, gpushare_task_kind /*kind*/) const override {
    return true;
  }
  bool FillKernel(const std::string& /*kernel*/, gpushare_task_kind /*kind*/,
                  gpushare_kernel_options& /*options*/) override {
    return true;
  }
  std::vector<TaskBinding> Bind(const std::string& /*app*/,
                                const std::vector<WorkItem>& tasks) override {
    return std::vector<TaskBinding>(tasks.size());
  }
  void BeginRun() override {
    ++runs;
    launches.clear();
    diary = Diary();
  }
  bool Verify(const std::string& app, int64_t completed) override {
    verified[app] = completed;
    return true;
  }
  HardwareFacts Hardware() const override { return {}; }
  bool HasRaw() const override { return true; }
  std::unique_ptr<RawApp> MakeRaw(const std::string& app, const std::vector<WorkItem>& /*tasks*/,
                                  const RawOptions& options) override {
    made[app] = options;
    return std::make_unique<TimedApp>(task_ns.at(app), options, &launches[app], &diary);
  }

  int runs = 0;
  Diary diary;  // of the last run
  std::map<std::string, int64_t> task_ns;
  std::map<std::string, int64_t> launches;
  std::map<std::string, int64_t> verified;
  std::map<std::string, RawOptions> made;
};

WorkItem Kernel(int64_t block_tasks) {
  WorkItem item = {.kernel = "kernel", .block_tasks = block_tasks};
  return item;
}

class RawRunTest : public ::testing::Test {
 protected:
  RawRunTest() {
    lc_.name = "lc";
    lc_.tasks.assign(3, Kernel(1));
    be_.name = "be";
    be_.tasks = {Kernel(kWorkOfBeTask)};
    be_.depth = 4;
    workloads_.task_ns = {{"lc", 100'000}, {"be", 1'000'000}};
    plan_.workloads = &workloads_;
    plan_.policy = "plain_streams";
    plan_.raw = true;
    LcPlan lc;
    lc.app = &lc_;
    lc.solo_ns = 300'000;
    plan_.lc.push_back(lc);
  }

  // A run with little delay by the machine; if there is none, the last of several runs.
  RunOutcome RunUndisturbed() {
    constexpr int kRuns = 10;
    RunOutcome outcome = ExecuteRun(plan_);
    for (int i = 1; i < kRuns && HeldUp(); ++i) outcome = ExecuteRun(plan_);
    return outcome;
  }
  // A delay in which more than ten queries, one a millisecond, may wait.
  bool HeldUp() const { return workloads_.diary.stalled_ns() > 5'000'000; }

  // BE's work is that of its span by definition, and near what the stream can do.
  void ExpectBeWork(const RunOutcome& outcome) const {
    const Diary& diary = workloads_.diary;
    const int64_t end_ns = outcome.start_ns + outcome.span_ns;
    const double tasks =
        outcome.be[0].work_per_second * 1e-9 * static_cast<double>(outcome.span_ns) / kWorkOfBeTask;
    constexpr double kRounding = 1e-6;
    EXPECT_LE(tasks, diary.BeTasksDone(end_ns, &Range::min_ns) -
                         diary.BeTasksDone(outcome.start_ns, &Range::max_ns) + kRounding);
    EXPECT_GE(tasks, diary.BeTasksDone(end_ns, &Range::max_ns) -
                         diary.BeTasksDone(outcome.start_ns, &Range::min_ns) - kRounding);
    // A task that ended before the span may be seen in it, and one that ended in it may be seen
    // later. These are at most the tasks in flight, and part of one more task at each edge.
    const int64_t task_ns = workloads_.task_ns.at("be");
    const auto depth = static_cast<double>(be_.depth);
    const double span_tasks = static_cast<double>(outcome.span_ns) / static_cast<double>(task_ns);
    const double stalled_tasks =
        static_cast<double>(diary.stalled_ns()) / static_cast<double>(task_ns);
    EXPECT_LE(tasks, span_tasks + depth + 2);
    EXPECT_GE(tasks, span_tasks - stalled_tasks - depth - 2);
    EXPECT_EQ(diary.in_flight_max, static_cast<size_t>(be_.depth));
  }

  static constexpr int64_t kWorkOfBeTask = 100;
  LcApp lc_;
  BeApp be_;
  TimedWorkloads workloads_;
  RunPlan plan_;
};

TEST_F(RawRunTest, EveryArrivalIsAnsweredOnceAndNotBeforeItsWorkIsDone) {
  for (int64_t i = 0; i < 50; ++i) plan_.lc[0].arrivals_ns.push_back(i * 1'000'000);
  plan_.be.push_back({&be_, false});
  const RunOutcome outcome = RunUndisturbed();
  ASSERT_EQ(outcome.lc[0].latencies_ns.size(), 50u);
  for (const int64_t latency_ns : outcome.lc[0].latencies_ns) EXPECT_GE(latency_ns, 300'000);
  EXPECT_EQ(outcome.lc[0].unanswered, 0);
  EXPECT_TRUE(!outcome.unstable || HeldUp());
  EXPECT_TRUE(outcome.verified);
  EXPECT_GE(outcome.span_ns, 49'000'000);
  EXPECT_GT(outcome.realised_load, 0);
  EXPECT_LE(outcome.realised_load, 0.31);
  // 10 queries of the warm-up, and all tasks of each.
  EXPECT_EQ(workloads_.launches["lc"], (50 + 10) * 3);
  EXPECT_EQ(workloads_.verified["lc"], (50 + 10) * 3);
  EXPECT_EQ(workloads_.verified["be"], workloads_.launches["be"]);
  ExpectBeWork(outcome);
}

TEST_F(RawRunTest, ASwappedModelRunsItsPassesInSomeQueriesOnly) {
  for (int64_t i = 0; i < 20; ++i) plan_.lc[0].arrivals_ns.push_back(i * 2'000'000);
  lc_.swap = {.first_query = 5, .queries = 4, .passes = 3};
  const RunOutcome outcome = ExecuteRun(plan_);
  ASSERT_EQ(outcome.lc[0].latencies_ns.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_GE(outcome.lc[0].latencies_ns[i], i >= 5 && i < 9 ? 900'000 : 300'000);
  }
  EXPECT_EQ(workloads_.launches["lc"], (20 + 4 * 2 + 10) * 3);
  EXPECT_EQ(workloads_.verified["lc"], (20 + 4 * 2 + 10) * 3);
}

TEST_F(RawRunTest, AQueryWaitsForTheOneBeforeIt) {
  plan_.lc[0].arrivals_ns.assign(40, 0);
  const RunOutcome outcome = ExecuteRun(plan_);
  ASSERT_EQ(outcome.lc[0].latencies_ns.size(), 40u);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_GE(outcome.lc[0].latencies_ns[i], static_cast<int64_t>(i + 1) * 300'000);
  }
}

TEST_F(RawRunTest, ARunInWhichLcStarvesEndsAndSaysSo) {
  workloads_.task_ns["lc"] = 20'000'000;  // 60 ms a query, and one arrives every ms
  for (int64_t i = 0; i < 100; ++i) plan_.lc[0].arrivals_ns.push_back(i * 1'000'000);
  plan_.be.push_back({&be_, false});
  const RunOutcome outcome = ExecuteRun(plan_);
  EXPECT_TRUE(outcome.unstable);
  EXPECT_GT(outcome.lc[0].unanswered, 50);
  // No query is left out: those without an answer count with the time that they had waited.
  ASSERT_EQ(outcome.lc[0].latencies_ns.size(), 100u);
  EXPECT_GE(
      *std::min_element(outcome.lc[0].latencies_ns.begin() + 30, outcome.lc[0].latencies_ns.end()),
      500'000'000);
  // What was on the stream is complete.
  EXPECT_EQ(workloads_.verified["lc"], workloads_.launches["lc"]);
  EXPECT_LT(workloads_.launches["lc"], 50 * 3);
}

TEST_F(RawRunTest, AClosedLoopAsksAgainAfterItsAnswers) {
  lc_.arrivals.kind = ArrivalKind::kClosedLoop;
  lc_.arrivals.clients = 3;
  lc_.arrivals.think_ns = 10'000;
  plan_.lc[0].closed_queries = 30;
  const RunOutcome outcome = ExecuteRun(plan_);
  EXPECT_EQ(workloads_.runs, 1);
  EXPECT_EQ(outcome.lc[0].latencies_ns.size(), 30u);
  EXPECT_FALSE(outcome.unstable);
}

// Two BE tasks of 1 ms, and the query 1.5 ms after they were launched.
TEST_F(RawRunTest, InRoundsAQueryComesAfterTheBeTasksOfItsRound) {
  lc_.arrivals.kind = ArrivalKind::kAfterBe;
  lc_.arrivals.after_ns = 1'500'000;
  lc_.arrivals.pause_ns = 100'000;
  plan_.lc[0].closed_queries = 5;
  be_.depth = 2;
  plan_.be.push_back({&be_, false});
  const RunOutcome outcome = ExecuteRun(plan_);
  ASSERT_EQ(outcome.lc[0].latencies_ns.size(), 5u);
  for (const int64_t latency_ns : outcome.lc[0].latencies_ns) EXPECT_GE(latency_ns, 300'000);
  EXPECT_EQ(workloads_.launches["lc"], (5 + 10) * 3);
  EXPECT_EQ(workloads_.launches["be"], (5 + 1) * 2) << "a round warms up, and none follows";
  EXPECT_EQ(workloads_.verified["be"], workloads_.launches["be"]);
  // Its rate counts the rounds alone, and not the time between them.
  const double tasks_per_second = outcome.be[0].work_per_second / kWorkOfBeTask;
  EXPECT_LE(tasks_per_second, 1000);
  const double stalled = static_cast<double>(workloads_.diary.stalled_ns()) * 1e-9;
  EXPECT_GE(tasks_per_second, 10 / (0.0102 + 5 * 0.0004 + stalled));
  EXPECT_GE(outcome.span_ns, 5 * 2'100'000);
}

// Two BE tasks of 22 ms end within the warm-up, and not within a round.
TEST_F(RawRunTest, ARoundThatDoesNotEndIsTheLast) {
  lc_.arrivals.kind = ArrivalKind::kAfterBe;
  plan_.lc[0].closed_queries = 5;
  be_.depth = 2;
  workloads_.task_ns["be"] = 22'000'000;
  plan_.be.push_back({&be_, false});
  plan_.round_ns_max = 20'000'000;
  const RunOutcome outcome = ExecuteRun(plan_);
  EXPECT_EQ(outcome.lc[0].latencies_ns.size(), 1u);
  EXPECT_LE(workloads_.launches["be"], 2 * 2) << "one round behind that of the warm-up";
  EXPECT_EQ(workloads_.verified["be"], workloads_.launches["be"]);
}

TEST_F(RawRunTest, NoRoundFollowsAWarmUpThatDoesNotEnd) {
  lc_.arrivals.kind = ArrivalKind::kAfterBe;
  plan_.lc[0].closed_queries = 5;
  be_.depth = 2;
  workloads_.task_ns["be"] = 100'000'000;
  plan_.be.push_back({&be_, false});
  plan_.round_ns_max = 10'000'000;
  const RunOutcome outcome = ExecuteRun(plan_);
  EXPECT_TRUE(outcome.lc[0].latencies_ns.empty());
  EXPECT_EQ(workloads_.launches["be"], 2);
  EXPECT_EQ(workloads_.verified["be"], 2);
}

TEST_F(RawRunTest, BestEffortAloneCountsItsSpanOnly) {
  plan_.lc.clear();
  plan_.be.push_back({&be_, false});
  plan_.span_ns = 30'000'000;
  const RunOutcome outcome = ExecuteRun(plan_);
  EXPECT_GE(outcome.span_ns, plan_.span_ns);
  ExpectBeWork(outcome);
}

TEST_F(RawRunTest, PrioritiesAndCarveOutsReachTheDevice) {
  plan_.lc[0].arrivals_ns = {0};
  plan_.be.push_back({&be_, false});
  plan_.raw_form = PlainFormOf("plain_priority_carveout");
  ExecuteRun(plan_);
  EXPECT_EQ(workloads_.made["lc"].priority, RawPriority::kHighest);
  EXPECT_FALSE(workloads_.made["lc"].carveout_max);
  EXPECT_EQ(workloads_.made["be"].priority, RawPriority::kLowest);
  EXPECT_TRUE(workloads_.made["be"].carveout_max);
  EXPECT_TRUE(workloads_.made["be"].best_effort);
  plan_.raw_form = PlainFormOf("plain_streams");
  ExecuteRun(plan_);
  EXPECT_EQ(workloads_.made["lc"].priority, RawPriority::kNormal);
  EXPECT_EQ(workloads_.made["be"].priority, RawPriority::kNormal);
  EXPECT_FALSE(workloads_.made["be"].carveout_max);
}

TEST_F(RawRunTest, ADeviceWithoutLaunchesIsRefused) {
  const std::unique_ptr<Workloads> none = MakeNoWorkloads();
  plan_.workloads = none.get();
  plan_.lc[0].arrivals_ns = {0};
  EXPECT_THROW(ExecuteRun(plan_), RunError);
}

TEST(PlainRowsTest, AreNoPoliciesOfTheLibrary) {
  EXPECT_THAT(WithoutPlainRows({"plain_streams", "fifo", "plain_priority_carveout", "adaptive"}),
              ElementsAre("fifo", "adaptive"));
  for (const std::string& name : PlainRowNames()) {
    EXPECT_TRUE(IsPlainRow(name));
    EXPECT_THROW(RequirePolicies({name}), InputError);
  }
  EXPECT_FALSE(IsPlainRow("priority"));
}

constexpr char kScenario[] = R"({
  "schema_version": 1, "name": "plain", "queries": 20, "be_alone_ns": 20000000,
  "policies": ["plain_priority", "fifo"],
  "lc": [{"name": "chain", "kernel": "chain1", "solo_ns": 50000, "p99_bound": 1.05}],
  "be": [{"name": "be", "kernel": "sincos_27us", "block_tasks": 1056}],
  "cases": [{"name": "one", "lc": ["chain"], "be": ["be"], "load": 0.3,
             "policies": ["plain_priority", "fifo"]}]
})";

TEST(PlainRowsTest, AreLeftOutWhereThereIsNoGpu) {
  const Scenario scenario = ParseScenario(kScenario, "plain.json");
  for (const char* device : {"sim", "null"}) {
    ColocateOptions options;
    options.device = device;
    const ColocateResult result = Colocate(scenario, options);
    EXPECT_THAT(result.policies, ElementsAre("fifo"));
    ASSERT_EQ(result.runs.size(), 4u);
    EXPECT_EQ(result.runs[3].policy, "fifo");
    options.policies = {"plain_streams"};
    EXPECT_THROW(Colocate(scenario, options), InputError);
  }
}

TEST(PlainRowsTest, AnUnstableRowSaysSoInTheTableAndInTheResult) {
  ColocateResult result;
  RunResult run;
  run.case_name = "one";
  run.policy = "plain_streams";
  run.realised_load = 0.29;
  run.lc.push_back(SummariseLatencies("lc", {1'000'000, 2'000'000}));
  run.lc[0].unanswered = 7;
  result.runs.push_back(run);
  const Scenario scenario = ParseScenario(kScenario, "plain.json");
  EXPECT_THAT(FormatTable(scenario, result), Not(HasSubstr("unstable")));
  EXPECT_THAT(FormatTable(scenario, result), HasSubstr("0.290  0.710"));
  result.runs[0].unstable = true;
  EXPECT_THAT(FormatTable(scenario, result), HasSubstr("unstable, 7 queries unanswered"));
  const std::string json = FormatResult(scenario, result);
  EXPECT_THAT(json, HasSubstr("\"unstable\": true"));
  EXPECT_THAT(json, HasSubstr("\"unanswered\": 7"));
  EXPECT_THAT(json, HasSubstr("\"time_sharing_limit\": 0.71"));
}

}  // namespace
}  // namespace gpushare::tool
