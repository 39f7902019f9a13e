// Fused launches through the flow: the two tasks of a launch end, are evicted and resume
// independently. Simulated device, virtual time.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/forwarding_model.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kBlockTaskNs = 20 * kUs;

struct Orders {
  bool fuse = true;
  bool name_be_first = false;
  KernelId variant;           // of the pair; 0: the first
  bool evict_for_lc = false;  // LC work sends BE work on its SMs away
  int32_t workers_to_keep = 0;
  bool evict = false;  // the BE task, once: the test sets it again
};

// An LC head goes with a BE head of another kernel where there is one, alone where there is none;
// BE heads go alone while no LC head waits.
class FusingPolicy final : public Policy {
 public:
  explicit FusingPolicy(Orders& orders) : orders_(orders) {}
  absl::string_view name() const override { return "fusing"; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override {
    for (LcRoute& route : plan.routes) {
      route.fast_path = false;
      route.evict_overlapping = orders_.evict_for_lc;
    }
    Evict(snapshot, plan);
    const HeadView* lc = nullptr;
    const HeadView* be = nullptr;
    for (const HeadView& head : snapshot.heads) {
      const bool is_lc = head.app_class == AppClass::kLatencyCritical;
      const HeadView*& first = is_lc ? lc : be;
      if (first == nullptr) first = &head;
    }
    PlannedLaunch launch;
    if (lc != nullptr) {
      launch.task = lc->task;
      launch.lane_class = LaneClass::kLc;
      if (be != nullptr && orders_.fuse) {
        launch.form = Form::kFused;
        launch.fused_with = be->task;
        launch.fused_kernel = orders_.variant;
        if (orders_.name_be_first) {
          std::swap(launch.task, launch.fused_with);
          launch.lane_class = LaneClass::kBe;
        }
      }
      plan.launches.TryAdd(launch);
    } else if (be != nullptr && snapshot.queries.empty()) {
      launch.task = be->task;
      launch.form = Form::kWorkers;
      launch.lane_class = LaneClass::kBe;
      plan.launches.TryAdd(launch);
    }
    plan.replan_at_ns = snapshot.now_ns + 50 * kUs;
  }

 private:
  void Evict(const Snapshot& snapshot, Plan& plan) {
    if (!std::exchange(orders_.evict, false)) return;
    for (const RunningView& running : snapshot.running) {
      plan.evictions.TryAdd(
          {running.task.task, running.parts[0].place, orders_.workers_to_keep, Reason::kNone});
    }
  }

  Orders& orders_;
};

// Notes the runs of fused kernels that it may learn from.
class NotingModel final : public ForwardingModel {
 public:
  NotingModel(std::unique_ptr<CostModel> model, std::vector<std::string>& runs)
      : ForwardingModel(std::move(model)), runs_(runs) {}
  void Observe(const Observation& observation) override {
    if (observation.fused != nullptr) runs_.push_back(observation.fused->kernel->name);
    ForwardingModel::Observe(observation);
  }

 private:
  std::vector<std::string>& runs_;
};

class FusedLaunchTest : public SimulatedSchedulerTest {
 protected:
  using SimulatedSchedulerTest::Wrap;
  std::unique_ptr<CostModel> Wrap(std::unique_ptr<CostModel> model) override {
    return std::make_unique<NotingModel>(std::move(model), fused_runs_);
  }
  void SetUp() override { Start(sim::SimOptions(), SchedulerOptions()); }

  void Start(const sim::SimOptions& sim_options, const SchedulerOptions& options) {
    ASSERT_NO_FATAL_FAILURE(
        StartScheduler(std::make_unique<FusingPolicy>(orders_), options, sim_options));
    tensor_ = Register("tensor");
    cuda_ = Register("cuda");
    FusedKernelDesc fused;
    fused.name = "pair";
    fused.tensor_part = tensor_;
    fused.cuda_part = cuda_;
    fused.opportune_load_ratio = 0.6;
    fused.opportune_duration_ratio = 1.1;
    ASSERT_TRUE(scheduler_->RegisterFusedKernel(fused).ok());
    lc_ = AddQueue(AppClass::kLatencyCritical, "service");
    be_ = AddQueue(AppClass::kBestEffort, "train");
  }

  KernelId Register(const char* name) {
    return *scheduler_->RegisterKernel(EvictableKernel(name, kBlockTaskNs));
  }

  // `rounds` of block tasks on every worker of the device alone.
  TaskSpec Spec(QueueId queue, KernelId kernel, int64_t rounds) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel;
    spec.work.block_tasks = rounds * 8 * sms_;
    spec.callback = [](void* user, const CompletionRecord& record) {
      static_cast<std::vector<CompletionRecord>*>(user)->push_back(record);
    };
    spec.callback_user = &done_;
    return spec;
  }
  void SubmitLc(int64_t rounds) {
    ASSERT_TRUE(scheduler_->SubmitLc(Spec(lc_, tensor_, rounds)).ok());
  }
  void SubmitBe(int64_t rounds) {
    ASSERT_TRUE(scheduler_->SubmitBe(Spec(be_, cuda_, rounds)).ok());
  }

  // In small steps, with the flow's invariants checked after each.
  void Pass(int64_t ns) {
    for (const TimeNs end = scheduler_->NowNs() + ns; scheduler_->NowNs() < end;) {
      const bool idle = scheduler_->Drain(scheduler_->NowNs() + 20 * kUs).ok();
      const absl::Status status = scheduler_->CheckInvariants();
      ASSERT_TRUE(status.ok()) << status;
      if (idle) return;
    }
  }
  void WaitForCount(size_t count) {
    for (int i = 0; i < 10'000 && done_.size() < count; ++i) Pass(20 * kUs);
    ASSERT_GE(done_.size(), count);
  }

  Orders orders_;
  std::vector<std::string> fused_runs_;  // names of the fused kernels
  KernelId tensor_, cuda_;
  QueueId lc_, be_;
  std::vector<CompletionRecord> done_;
};

TEST_F(FusedLaunchTest, AQueryIsDoneWhileItsPartnerGoesOn) {
  SubmitBe(100);
  SubmitLc(10);
  WaitForCount(1);
  EXPECT_EQ(done_[0].kernel, tensor_);
  EXPECT_EQ(done_[0].verdict, Verdict::kOk);
  EXPECT_EQ(done_[0].form, Form::kFused);
  // Alone it takes ten block tasks; beside its partner t0 of that.
  EXPECT_LT(done_[0].complete_ns - done_[0].launch_ns, 10 * kBlockTaskNs * 14 / 10);
  WaitForCount(2);
  EXPECT_EQ(done_[1].verdict, Verdict::kOk);
  EXPECT_EQ(done_[1].form, Form::kFused);
  EXPECT_EQ(done_[1].launches, 1);
  EXPECT_EQ(done_[1].block_tasks, int64_t{100} * 8 * sms_);
  EXPECT_GT(done_[1].complete_ns, done_[0].complete_ns + kMs);
}

TEST_F(FusedLaunchTest, ThePartnerMayEndFirst) {
  SubmitBe(3);
  SubmitLc(50);
  WaitForCount(1);
  EXPECT_EQ(done_[0].kernel, cuda_);
  WaitForCount(2);
  EXPECT_EQ(done_[1].kernel, tensor_);
  EXPECT_EQ(done_[1].block_tasks, int64_t{50} * 8 * sms_);
}

// Whichever the plan names first, the LC task's lane carries both.
TEST_F(FusedLaunchTest, APlanMayNameTheBeTaskFirst) {
  orders_.name_be_first = true;
  SubmitBe(60);
  SubmitLc(10);
  WaitForCount(2);
  EXPECT_EQ(done_[0].kernel, tensor_);
  EXPECT_EQ(done_[0].form, Form::kFused);
  EXPECT_EQ(done_[1].form, Form::kFused);
}

TEST_F(FusedLaunchTest, AnEvictionTakesThePartnerAlone) {
  SubmitBe(100);
  SubmitLc(50);
  Pass(300 * kUs);
  orders_.fuse = false;
  orders_.evict = true;
  WaitForCount(2);
  EXPECT_EQ(done_[0].kernel, tensor_);
  EXPECT_EQ(done_[0].evictions, 0);
  EXPECT_EQ(done_[0].launches, 1);
  EXPECT_EQ(done_[1].evictions, 1);
  EXPECT_EQ(done_[1].launches, 2);
  EXPECT_EQ(done_[1].form, Form::kWorkers) << "the rest went on by itself";
  EXPECT_EQ(done_[1].block_tasks, int64_t{100} * 8 * sms_);
}

TEST_F(FusedLaunchTest, ALimitedPartnerSlowsNeitherTheQueryNorLosesABlockTask) {
  SubmitBe(100);
  SubmitLc(50);
  Pass(100 * kUs);
  orders_.workers_to_keep = sms_;
  orders_.evict = true;
  WaitForCount(2);
  EXPECT_EQ(done_[0].kernel, tensor_);
  EXPECT_EQ(done_[1].evictions, 0);
  EXPECT_EQ(done_[1].launches, 1);
  EXPECT_EQ(done_[1].block_tasks, int64_t{100} * 8 * sms_);
}

// The next query of a service that clears its SMs: it waits for no tail, and the partner's rest
// comes along with a later query.
TEST_F(FusedLaunchTest, TheNextQuerySendsThePartnerAwayAndTakesItAlongAgain) {
  orders_.evict_for_lc = true;
  SubmitBe(300);
  for (size_t query = 1; query <= 6; ++query) {
    SubmitLc(5);
    Pass(60 * kUs);
    for (int i = 0; i < 100 && done_.size() < query; ++i) Pass(20 * kUs);
    ASSERT_EQ(done_.size(), query);
    EXPECT_EQ(done_.back().kernel, tensor_);
    // Its own time beside a partner, and one block task of what was there.
    EXPECT_LT(done_.back().complete_ns - done_.back().submit_ns, 15 * kBlockTaskNs);
  }
  WaitForCount(7);
  EXPECT_EQ(done_[6].kernel, cuda_);
  EXPECT_GE(done_[6].evictions, 1);
  EXPECT_GE(done_[6].launches, 2);
  EXPECT_EQ(done_[6].block_tasks, int64_t{300} * 8 * sms_);
}

// The task behind a fused launch in its queue waits for its own part only, and goes to another
// lane, where it does not wait for the evicted partner.
TEST_F(FusedLaunchTest, TheQueuesNextTaskDoesNotWaitForThePartner) {
  orders_.evict_for_lc = true;
  SubmitBe(400);
  SubmitLc(5);
  SubmitLc(5);
  Pass(kMs);
  ASSERT_GE(done_.size(), 1u);
  const TimeNs first_complete = done_[0].complete_ns;
  WaitForCount(2);
  EXPECT_EQ(done_[1].kernel, tensor_);
  EXPECT_GE(done_[1].launch_ns, first_complete) << "in the queue's order";
  WaitForCount(3);
  EXPECT_EQ(done_[2].kernel, cuda_);
}

// The second pair is launched while the first one's LC part still runs, and starts behind it.
TEST_F(FusedLaunchTest, APairBehindAPairLeavesBothToLearnFrom) {
  for (int i = 0; i < 2; ++i) SubmitLc(40);
  for (int i = 0; i < 2; ++i) SubmitBe(2);
  WaitForCount(4);
  ASSERT_EQ(done_[0].kernel, cuda_);
  ASSERT_EQ(done_[1].kernel, tensor_);
  EXPECT_EQ(done_[3].kernel, tensor_);
  EXPECT_LT(done_[3].launch_ns, done_[1].complete_ns);
  EXPECT_EQ(fused_runs_, (std::vector<std::string>{"pair", "pair"}));
}

TEST_F(FusedLaunchTest, APlanNamesTheVariantOfThePair) {
  FusedKernelDesc fused;
  fused.name = "pair_1_2";
  fused.tensor_part = tensor_;
  fused.cuda_part = cuda_;
  fused.cuda_blocks = 2;
  const auto variant = scheduler_->RegisterFusedKernel(fused).value();
  size_t done = 0;
  for (const KernelId id : {KernelId{}, variant, KernelId{variant.value + 1}}) {
    orders_.variant = id;
    SubmitLc(10);
    SubmitBe(2);
    WaitForCount(done += 2);
  }
  EXPECT_EQ(fused_runs_, (std::vector<std::string>{"pair", "pair_1_2"})) << "an id of no variant";
}

TEST_F(FusedLaunchTest, AQueryWhosePartnerCannotComeAlongGoesAlone) {
  for (const bool be_first : {false, true}) {
    SCOPED_TRACE(be_first);
    orders_.name_be_first = be_first;
    // No fused kernel holds two blocks of this one.
    ASSERT_TRUE(scheduler_->SubmitBe(Spec(be_, tensor_, 50)).ok());
    done_.clear();
    SubmitLc(5);
    WaitForCount(2);
    EXPECT_EQ(done_[0].form, Form::kOriginal) << "the query";
    EXPECT_LT(done_[0].complete_ns - done_[0].submit_ns, 8 * kBlockTaskNs);
    EXPECT_EQ(done_[1].form, Form::kWorkers);
  }
}

TEST_F(FusedLaunchTest, AHungPairTimesOutAndTheDeviceGoesOn) {
  sim::SimOptions faulty;
  faulty.faults.hang.nth = 1;
  SchedulerOptions options;
  options.hang_floor_ns = 5 * kMs;
  options.hang_factor = 1;
  Start(faulty, options);
  SubmitBe(20);
  SubmitLc(5);
  WaitForCount(2);
  EXPECT_EQ(done_[0].verdict, Verdict::kTimedOut);
  EXPECT_EQ(done_[1].verdict, Verdict::kTimedOut);
  SubmitBe(20);
  SubmitLc(5);
  WaitForCount(4);
  EXPECT_EQ(done_[2].verdict, Verdict::kOk);
  EXPECT_EQ(done_[3].verdict, Verdict::kOk);
}

TEST_F(FusedLaunchTest, FusedKernelsOutOfRangeAreRefused) {
  FusedKernelDesc fused;
  fused.name = "bad";
  fused.tensor_part = tensor_;
  fused.cuda_part = cuda_;
  std::vector<FusedKernelDesc> bad(4, fused);
  bad[0].threads_per_block = -1;
  bad[1].threads_per_block = 1025;
  bad[2].dynamic_shared_memory_bytes = -1;
  bad[3].cuda_blocks = 33;
  for (const FusedKernelDesc& desc : bad) {
    EXPECT_EQ(scheduler_->RegisterFusedKernel(desc).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace gpushare::core
