// Which launches may wait until their SMs are empty: LC launches that evicted something, where the
// policy says so.

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/plan_with.h"
#include "tests/core/recording_device.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

// Writes no eviction word while it is deaf.
class DeafDevice final : public ForwardingDevice {
 public:
  DeafDevice(std::unique_ptr<Device> inner, const bool& deaf)
      : ForwardingDevice(std::move(inner)), deaf_(deaf) {}
  absl::Status Evict(LaneIndex lane, uint64_t epoch, int32_t workers_to_keep) override {
    if (deaf_) return absl::InternalError("The word cannot be written.");
    return inner().Evict(lane, epoch, workers_to_keep);
  }

 private:
  const bool& deaf_;
};

class EmptySmsTest : public SimulatedSchedulerTest {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    auto deaf = std::make_unique<DeafDevice>(std::move(device), deaf_);
    return std::make_unique<RecordingDevice>(std::move(deaf), requests_);
  }

  void SetUp() override { ASSERT_NO_FATAL_FAILURE(Start()); }
  void Start(const SchedulerOptions& options = {}, const sim::SimOptions& sim_options = {}) {
    ASSERT_NO_FATAL_FAILURE(
        StartScheduler(std::make_unique<PlanWith>([this](const Snapshot& snapshot, Plan& plan) {
                         LaunchAll(snapshot, plan);
                       }),
                       options, sim_options));
    kernel_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  }
  // On the whole device: LC work as ordinary grids that evict; BE work as workers while no query is
  // active.
  void LaunchAll(const Snapshot& snapshot, Plan& plan) const {
    for (LcRoute& route : plan.routes) {
      route.place = route_place_;
      route.fast_path = fast_path_;
      route.evict_overlapping = true;
      route.waits_for_empty_sms = waits_;
    }
    for (const HeadView& head : snapshot.heads) {
      const bool lc = head.app_class == AppClass::kLatencyCritical;
      PlannedLaunch& launch = plan.launches.Add();
      launch.task = head.task;
      launch.form = lc ? Form::kOriginal : Form::kWorkers;
      launch.lane_class = lc ? LaneClass::kLc : LaneClass::kBe;
    }
  }

  TaskSpec Spec(QueueId queue, int64_t block_tasks) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = block_tasks;
    return spec;
  }

  // Whether the query of a new app may wait, beside a BE task or alone, right behind `before`.
  bool MayWait(
      bool beside, const std::function<void()>& before = [] {}) {
    AppOptions service;
    service.name = "service";
    service.app_class = AppClass::kLatencyCritical;
    service_ = *scheduler_->CreateApp(service);
    const QueueId queue = *scheduler_->CreateQueue(service_);
    const auto query = [&] {
      EXPECT_TRUE(scheduler_->Wait(*scheduler_->SubmitLc(Spec(queue, 1000)), kNever).ok());
    };
    query();  // the next one finds a route
    if (beside) {
      const QueueId train = AddQueue(AppClass::kBestEffort, "train");
      EXPECT_TRUE(scheduler_->SubmitBe(Spec(train, 200'000)).ok());
      EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + kMs).ok());
      EXPECT_EQ(requests_.back().form, Form::kWorkers);
      EXPECT_FALSE(requests_.back().waits_for_empty_sms) << "it is BE";
    }
    before();
    const int64_t fast = scheduler_->Stats().fast_path_launches;
    const size_t first = requests_.size();
    query();
    EXPECT_EQ(scheduler_->Stats().fast_path_launches - fast, fast_path_ ? 1 : 0);
    EXPECT_EQ(requests_[first].form, Form::kOriginal);
    return requests_[first].waits_for_empty_sms;
  }
  void Drain() { EXPECT_TRUE(scheduler_->Drain(kNever).ok()); }

  std::vector<LaunchRequest> requests_;
  KernelId kernel_;
  AppId service_;  // the last one
  PlaceIndex route_place_ = kWholeDevice;
  bool fast_path_ = false;
  bool waits_ = true;
  bool deaf_ = false;
};

TEST_F(EmptySmsTest, OnlyALaunchThatEvictedWaitsAndOnlyWhereThePolicySaysSo) {
  for (const bool fast_path : {false, true}) {
    for (const bool waits : {false, true}) {
      SCOPED_TRACE(testing::Message() << "fast path " << fast_path << ", waits " << waits);
      fast_path_ = fast_path;
      waits_ = waits;
      EXPECT_FALSE(MayWait(false));
      EXPECT_EQ(MayWait(true), waits);
      Drain();
    }
  }
}

TEST_F(EmptySmsTest, NoLaunchWaitsForWorkersThatWereNotTold) {
  deaf_ = true;
  for (const bool fast_path : {false, true}) {
    fast_path_ = fast_path;
    EXPECT_FALSE(MayWait(true));
    Drain();
  }
}

// An eviction does not reach the kernels of a region.
TEST_F(EmptySmsTest, NoLaunchWaitsBesideAnOpenRegion) {
  for (const bool fast_path : {false, true}) {
    fast_path_ = fast_path;
    const QueueId train = AddQueue(AppClass::kBestEffort, "regions");
    scheduler_->Tick();  // a plan says that a region may begin
    const TicketId region = *scheduler_->RegionBegin(train, kMs, nullptr);
    EXPECT_FALSE(MayWait(true));
    EXPECT_TRUE(scheduler_->RegionEnd(region).ok());
    Drain();
  }
}

TEST_F(EmptySmsTest, NoLaunchWaitsForOtherLcWork) {
  for (const bool fast_path : {false, true}) {
    fast_path_ = fast_path;
    const QueueId other = AddQueue(AppClass::kLatencyCritical, "other");
    EXPECT_FALSE(MayWait(true, [&] {
      EXPECT_TRUE(scheduler_->SubmitLc(Spec(other, 1000)).ok());
      scheduler_->Tick();
    }));
    Drain();
  }
}

// The next launch of its other queue could take the SMs.
TEST_F(EmptySmsTest, NoLaunchOfAnAppWithTwoQueuesWaits) {
  for (const bool fast_path : {false, true}) {
    fast_path_ = fast_path;
    QueueId second;
    const auto add = [&] { second = *scheduler_->CreateQueue(service_); };
    EXPECT_FALSE(MayWait(true, add));
    Drain();
    EXPECT_TRUE(MayWait(true, [&] {
      add();
      EXPECT_TRUE(scheduler_->ReleaseQueue(second).ok());
    }));
    Drain();
  }
}

// The policy judged the route's SMs.
TEST_F(EmptySmsTest, NoLaunchThatIsWiderThanItsRouteWaits) {
  route_place_ = 1;
  EXPECT_FALSE(MayWait(true));
  Drain();
  route_place_ = kWholeDevice;
  EXPECT_TRUE(MayWait(true));
}

TEST_F(EmptySmsTest, NoLaunchWaitsInARuntimeInWhichOneHung) {
  SchedulerOptions options;
  options.hang_floor_ns = 5 * kMs;
  options.hang_factor = 1;
  sim::SimOptions faulty;
  faulty.faults.hang.nth = 1;
  ASSERT_NO_FATAL_FAILURE(Start(options, faulty));
  const QueueId hangs = AddQueue(AppClass::kBestEffort, "hangs");
  const TicketId ticket = *scheduler_->SubmitBe(Spec(hangs, 1000));
  ASSERT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 1000 * kMs).ok());
  ASSERT_EQ(scheduler_->Record(ticket)->verdict, Verdict::kTimedOut);
  for (const bool fast_path : {false, true}) {
    fast_path_ = fast_path;
    EXPECT_FALSE(MayWait(true));
    EXPECT_EQ(scheduler_->Stats().evictions_blocked, 0) << "the words were written";
    Drain();
  }
}

}  // namespace
}  // namespace gpushare::core
