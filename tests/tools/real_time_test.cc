// Runs in real time on the null device, which completes at once: the load thread and the library's
// scheduler thread meet in the drivers as they do on a GPU. Counts, not times, are asserted; the
// thread sanitizer runs this too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/report/result.h"
#include "tools/gpushare/report/table.h"
#include "tools/gpushare/run/runner.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;

WorkItem Kernel(const std::string& name, int64_t block_tasks) {
  WorkItem item = {.kernel = name, .block_tasks = block_tasks};
  return item;
}

LcApp Chain(int tasks) {
  LcApp app;
  app.name = "lc";
  app.tasks.assign(static_cast<size_t>(tasks), Kernel("decode16", 0));
  return app;
}

BeApp Background() {
  BeApp app;
  app.name = "be";
  app.tasks = {Kernel("sincos_27us", 1056), Kernel("streaming_59us", 528)};
  app.queues = 3;
  app.depth = 4;
  return app;
}

class RealTimeTest : public ::testing::Test {
 protected:
  RealTimeTest() : workloads_(MakeNoWorkloads()) {}

  RunPlan Plan(const std::string& policy) {
    RunPlan plan;
    plan.device.device = "null";
    plan.device.real_time = true;
    plan.workloads = workloads_.get();
    plan.policy = policy;
    return plan;
  }

  std::unique_ptr<Workloads> workloads_;
};

// ExecuteRun itself fails unless every accepted task completes exactly once.
TEST_F(RealTimeTest, EveryQueryCompletesOnceBesideBusyQueues) {
  const BeApp be = Background();
  for (const int tasks : {1, 12}) {
    const LcApp app = Chain(tasks);
    for (const char* policy : {"bare", "fifo", "priority", "adaptive"}) {
      RunPlan plan = Plan(policy);
      LcPlan lc;
      lc.app = &app;
      lc.solo_ns = 20'000;
      for (int i = 0; i < 100; ++i) lc.arrivals_ns.push_back(i * 50'000);
      plan.lc.push_back(lc);
      plan.be.push_back({&be, false});
      const RunOutcome outcome = ExecuteRun(plan);
      ASSERT_EQ(outcome.lc[0].latencies_ns.size(), 100u) << policy;
      for (const int64_t latency_ns : outcome.lc[0].latencies_ns) EXPECT_GT(latency_ns, 0);
      EXPECT_GE(outcome.span_ns, 99 * 50'000);
      EXPECT_GT(outcome.realised_load, 0);
      EXPECT_TRUE(outcome.be[0].tasks > 0 || std::string(policy) == "adaptive") << policy;
    }
  }
}

// 16 BE tasks of 0.1 s: more than the 10 queries of the warm-up wait for under any policy.
TEST_F(RealTimeTest, NoRoundFollowsAWarmUpThatDoesNotEnd) {
  LcApp app = Chain(1);
  app.arrivals.kind = ArrivalKind::kAfterBe;
  BeApp be = Background();
  be.tasks = {Kernel("sincos_27us", int64_t{1056} * 3'700)};
  be.queues = 1;
  be.depth = 16;
  RunPlan plan = Plan("priority");
  plan.device.device = "sim:realtime";
  plan.round_ns_max = 10'000'000;
  LcPlan lc;
  lc.app = &app;
  lc.solo_ns = 20'000;
  lc.closed_queries = 5;
  plan.lc.push_back(lc);
  plan.be.push_back({&be, false});
  const RunOutcome outcome = ExecuteRun(plan);
  EXPECT_TRUE(outcome.lc[0].latencies_ns.empty());
  EXPECT_LE(outcome.be[0].tasks, 16) << "those of the warm-up";
}

TEST_F(RealTimeTest, AClosedLoopAsksAgainAfterItsAnswers) {
  LcApp app = Chain(2);
  app.arrivals.kind = ArrivalKind::kClosedLoop;
  app.arrivals.clients = 3;
  for (const int64_t think_ns : {int64_t{0}, int64_t{20'000}}) {
    app.arrivals.think_ns = think_ns;
    RunPlan plan = Plan("adaptive");
    LcPlan lc;
    lc.app = &app;
    lc.closed_queries = 100;
    plan.lc.push_back(lc);
    const RunOutcome outcome = ExecuteRun(plan);
    EXPECT_EQ(outcome.lc[0].latencies_ns.size(), 100u);
    for (const int64_t latency_ns : outcome.lc[0].latencies_ns) EXPECT_GE(latency_ns, 0);
  }
}

// More queries at once than the library accepts: they wait, and none is lost.
TEST_F(RealTimeTest, ABurstBeyondTheLibrarysQueueWaitsInFront) {
  const LcApp app = Chain(8);
  RunPlan plan = Plan("fifo");
  LcPlan lc;
  lc.app = &app;
  lc.arrivals_ns.assign(3000, 0);
  plan.lc.push_back(lc);
  EXPECT_EQ(ExecuteRun(plan).lc[0].latencies_ns.size(), 3000u);
}

TEST_F(RealTimeTest, BestEffortAloneCountsItsSpanOnly) {
  const BeApp be = Background();
  RunPlan plan = Plan("bare");
  plan.be.push_back({&be, false});
  plan.span_ns = 50'000'000;  // more than a loaded machine takes from both threads at once
  const RunOutcome outcome = ExecuteRun(plan);
  EXPECT_GE(outcome.span_ns, plan.span_ns);
  EXPECT_GT(outcome.be[0].work_per_second, 0);
  EXPECT_FALSE(outcome.verified);
}

TEST_F(RealTimeTest, SoloTimesAreMeasured) {
  DeviceChoice device;
  device.device = "null";
  device.real_time = true;
  EXPECT_GT(MeasureSoloNs(device, *workloads_, Chain(3)), 0);
}

// Workloads with checked results, which are right for `app_` only if the test says so.
class CheckedWorkloads final : public Workloads {
 public:
  explicit CheckedWorkloads(bool right) : right_(right), none_(MakeNoWorkloads()) {}
  bool CanRun(const std::string& kernel, bool in_profile) const override {
    return none_->CanRun(kernel, in_profile);
  }
  bool CountsBlocks(const std::string& kernel, gpushare_task_kind kind) const override {
    return none_->CountsBlocks(kernel, kind);
  }
  bool FillKernel(const std::string& kernel, gpushare_task_kind kind,
                  gpushare_kernel_options& options) override {
    return none_->FillKernel(kernel, kind, options);
  }
  std::vector<TaskBinding> Bind(const std::string& app,
                                const std::vector<WorkItem>& tasks) override {
    return none_->Bind(app, tasks);
  }
  void BeginRun() override { ++runs; }
  bool Verify(const std::string& app, int64_t completed) override {
    EXPECT_GT(completed, 0);
    verified.push_back(app);
    if (!right_) throw RunError("App '" + app + "' computes nonsense.");
    return true;
  }
  HardwareFacts Hardware() const override { return {}; }

  int runs = 0;
  std::vector<std::string> verified;

 private:
  bool right_;
  std::unique_ptr<Workloads> none_;
};

TEST_F(RealTimeTest, AWrongAnswerFailsTheRun) {
  const LcApp app = Chain(1);
  const BeApp be = Background();
  RunPlan plan = Plan("fifo");
  LcPlan lc = {.app = &app, .arrivals_ns = {0, 10'000}};
  plan.lc.push_back(lc);
  plan.be.push_back({&be, false});
  CheckedWorkloads right(true);
  plan.workloads = &right;
  EXPECT_TRUE(ExecuteRun(plan).verified);
  EXPECT_EQ(right.runs, 1);
  EXPECT_EQ(right.verified, (std::vector<std::string>{"lc", "be"}));
  CheckedWorkloads wrong(false);
  plan.workloads = &wrong;
  try {
    ExecuteRun(plan);
    FAIL() << "a wrong answer goes unnoticed";
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(), "App 'lc' computes nonsense.");
  }
}

constexpr char kTiny[] = R"({
  "schema_version": 1, "name": "tiny", "queries": 50, "be_alone_ns": 50000000,
  "policies": ["fifo", "adaptive"],
  "lc": [{"name": "chain", "kernel": "chain1", "solo_ns": 50000, "p99_bound": 1.05},
         {"name": "pair", "tasks": [{"kernel": "decode12"},
                                    {"kernel": "sincos_27us", "block_tasks": 8, "repeat": 3}],
          "arrivals": {"type": "closed_loop", "clients": 2, "think_ns": 20000}}],
  "be": [{"name": "be", "kernel": "sincos_27us", "block_tasks": 1056, "queues": 2, "depth": 3}],
  "cases": [{"name": "open", "lc": ["chain"], "be": ["be"], "load": 0.3},
            {"name": "closed", "lc": ["pair"], "be": ["be"]}]
})";

TEST(RealTimeColocateTest, RowsArePooledOverTheirRounds) {
  const Scenario scenario = ParseScenario(kTiny, "tiny.json");
  ColocateOptions options;
  options.device = "null";
  options.rounds = 2;
  const ColocateResult result = Colocate(scenario, options);
  EXPECT_EQ(result.rounds, 2);
  ASSERT_EQ(result.runs.size(), 2u * (3 + 2));
  for (const RunResult& run : result.runs) {
    EXPECT_FALSE(run.verified);
    for (const LcResult& app : run.lc) EXPECT_EQ(app.queries, 50) << run.policy;
  }
  const auto json = nlohmann::json::parse(FormatResult(scenario, result));
  EXPECT_EQ(json.at("manifest").at("rounds"), 2);
  EXPECT_EQ(json.at("runs")[0].at("verified"), false);
  EXPECT_THAT(FormatTable(scenario, result), HasSubstr("2 rounds a row"));
}

}  // namespace
}  // namespace gpushare::tool
