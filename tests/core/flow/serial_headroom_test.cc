// A query's headroom without the refill (Baymax 5.3): what a policy sees of it while BE work runs
// beside the query. Simulated device, virtual time.

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class SerialHeadroomTest : public SimulatedSchedulerTest {
 protected:
  void SetUp() override {
    const auto plan = [this](const Snapshot& snapshot, Plan& out) { PlanFor(snapshot, out); };
    const PolicyProperties properties{.serial_headrooms = true};
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::make_unique<PlanWith>(plan, properties)));
    graph_ = *scheduler_->RegisterKernel(Graph("service", 10 * kMs));
    kernel_ = *scheduler_->RegisterKernel(EvictableKernel("train", 20 * kUs));
    AppOptions options;
    options.name = "service";
    options.app_class = AppClass::kLatencyCritical;
    options.promise.target_ns = 50 * kMs;
    lc_ = AddQueue(options);
  }

  // Everything at once, and a plan every 50 us.
  void PlanFor(const Snapshot& snapshot, Plan& plan) {
    if (!snapshot.queries.empty()) queries_.push_back(snapshot.queries[0]);
    queued_ns_.push_back(snapshot.queued_ns);
    for (LcRoute& route : plan.routes) route.fast_path = false;
    for (const HeadView& head : snapshot.heads) {
      const bool lc = head.app_class == AppClass::kLatencyCritical;
      PlannedLaunch launch;
      launch.task = head.task;
      launch.form = lc ? Form::kGraph : Form::kOriginal;
      if (!lc && head.kind == TaskKind::kGraph) {
        launch.form = Form::kSegments;
        launch.lane_class = LaneClass::kBe;
        eviction_p99_ns_ = head.eviction_p99_ns;
      }
      if (!lc) be_ns_.push_back(head.remaining.duration_ns);
      plan.launches.TryAdd(launch);
    }
    plan.replan_at_ns = snapshot.now_ns + 50 * kUs;
  }
  void Pass(int64_t ns) {
    EXPECT_FALSE(scheduler_->Drain(scheduler_->NowNs() + ns).ok()) << "the query runs";
  }

  KernelId graph_, kernel_;
  QueueId lc_;
  std::vector<QueryView> queries_;  // the oldest active query at each plan
  std::vector<int64_t> be_ns_;      // predicted, of the BE tasks that were launched
  std::vector<int64_t> queued_ns_;  // T_q at each plan
  int64_t eviction_p99_ns_ = 0;     // of the graph in segments
};

// Nothing is kept for a policy that does not ask, and a query of before counts anew for one that
// does.
TEST_F(SerialHeadroomTest, OnlyAPolicyThatAsksSeesIt) {
  SubmitGraph(lc_, graph_, true);
  Pass(1 * kMs);
  EXPECT_NE(queries_.back().serial_headroom_ns, kNever);
  const auto plan = [this](const Snapshot& snapshot, Plan& out) { PlanFor(snapshot, out); };
  ASSERT_TRUE(scheduler_->SetPolicy(std::make_unique<PlanWith>(plan)).ok());
  Pass(1 * kMs);
  EXPECT_EQ(queries_.back().serial_headroom_ns, kNever);
  const PolicyProperties properties{.serial_headrooms = true};
  ASSERT_TRUE(scheduler_->SetPolicy(std::make_unique<PlanWith>(plan, properties)).ok());
  queries_.clear();
  Pass(1 * kMs);
  EXPECT_EQ(queries_.front().serial_headroom_ns, queries_.front().headroom_ns);
}

TEST_F(SerialHeadroomTest, OnlyLaunchesOfBeWorkChangeIt) {
  SubmitGraph(lc_, graph_, true);
  Pass(1 * kMs);
  const QueryView first = queries_.front();
  EXPECT_EQ(first.serial_headroom_ns, first.headroom_ns) << "eq. 3";
  EXPECT_LT(queries_.back().headroom_ns, first.headroom_ns) << "T_q ignores progress";
  EXPECT_EQ(queries_.back().serial_headroom_ns, first.serial_headroom_ns);
  for (const char* name : {"one", "two"}) {
    TaskSpec spec;
    spec.queue = AddQueue(AppClass::kBestEffort, name);
    spec.kernel = kernel_;
    spec.work.block_tasks = int64_t{10} * 8 * sms_;
    ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
  }
  Pass(5 * kMs);
  ASSERT_EQ(be_ns_.size(), 2u);
  ASSERT_GT(be_ns_[0], 0);
  EXPECT_EQ(queries_.back().serial_headroom_ns, first.serial_headroom_ns - be_ns_[0] - be_ns_[1]);
}

// A query that arrives later starts from its own eq. 3.
TEST_F(SerialHeadroomTest, WorkLaunchedBeforeTheQueryIsInItsFirstHeadroomOnly) {
  TaskSpec spec;
  spec.queue = AddQueue(AppClass::kBestEffort, "train");
  spec.kernel = kernel_;
  spec.work.block_tasks = int64_t{100} * 8 * sms_;
  ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
  Pass(100 * kUs);
  SubmitGraph(lc_, graph_, true);
  Pass(5 * kMs);
  ASSERT_FALSE(queries_.empty());
  EXPECT_EQ(queries_.front().serial_headroom_ns, queries_.front().headroom_ns);
  EXPECT_EQ(queries_.back().serial_headroom_ns, queries_.front().serial_headroom_ns);
}

// An eviction waits for what is on the device; what begins later is BE work launched since.
TEST_F(SerialHeadroomTest, AGraphInSegmentsIsChargedAsItsSegmentsBegin) {
  KernelDesc desc = Graph("step", 10 * kUs);
  desc.simulation.nodes[0].repeat = 1000;
  const KernelId step = *scheduler_->RegisterKernel(desc);
  const TicketId ticket = SubmitGraph(AddQueue(AppClass::kBestEffort, "train"), step, false);
  Pass(1 * kMs);
  ASSERT_GT(eviction_p99_ns_, 0);
  ASSERT_LT(eviction_p99_ns_, 1 * kMs);
  EXPECT_EQ(queued_ns_.back(), eviction_p99_ns_) << "T_q";
  TaskSpec spec;
  spec.queue = lc_;
  spec.kernel = *scheduler_->RegisterKernel(Graph("first", 500 * kUs));
  spec.work.kind = TaskKind::kGraph;
  spec.query = *scheduler_->BeginQuery(lc_, scheduler_->NowNs());
  ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  Pass(100 * kUs);
  const QueryView first = queries_.front();
  EXPECT_EQ(first.serial_headroom_ns, first.headroom_ns);
  const int64_t before_ns = queries_.back().serial_headroom_ns;
  Pass(2 * kMs);
  EXPECT_NEAR(static_cast<double>(before_ns - queries_.back().serial_headroom_ns), 2.0 * kMs,
              60 * kUs);
  // In the end all of it, once. The first millisecond was before the query.
  ASSERT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 20 * kMs).ok());
  ASSERT_TRUE(scheduler_->Poll().ok());
  EXPECT_NEAR(static_cast<double>(first.serial_headroom_ns - queries_.back().serial_headroom_ns),
              static_cast<double>(be_ns_.at(0) - eviction_p99_ns_ - kMs), 60 * kUs);
  EXPECT_EQ(queued_ns_.back(), 0) << "nothing of it is left in T_q";
  ASSERT_TRUE(scheduler_->EndQuery(spec.query).ok());
}

}  // namespace
}  // namespace gpushare::core
