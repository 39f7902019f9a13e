// Which launches may wait until their SMs are empty: LC launches that evicted something, where the
// policy says so.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/plan_with.h"
#include "tests/core/recording_device.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class EmptySmsTest : public SimulatedSchedulerTest {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<RecordingDevice>(std::move(device), requests_);
  }

  // LC work as ordinary grids that evict; BE work as workers while no query is active.
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(
        StartScheduler(std::make_unique<PlanWith>([this](const Snapshot& snapshot, Plan& plan) {
          for (LcRoute& route : plan.routes) {
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
        })));
    kernel_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  }

  TaskSpec Spec(QueueId queue, int64_t block_tasks) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = block_tasks;
    return spec;
  }

  // Whether the query of a new app may wait, beside a BE task or alone.
  bool MayWait(bool beside) {
    const QueueId queue = AddQueue(AppClass::kLatencyCritical, "service");
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
    const int64_t fast = scheduler_->Stats().fast_path_launches;
    const size_t first = requests_.size();
    query();
    EXPECT_EQ(scheduler_->Stats().fast_path_launches - fast, fast_path_ ? 1 : 0);
    EXPECT_EQ(requests_[first].form, Form::kOriginal);
    const bool waits = requests_[first].waits_for_empty_sms;
    EXPECT_TRUE(scheduler_->Drain(kNever).ok());
    return waits;
  }

  std::vector<LaunchRequest> requests_;
  KernelId kernel_;
  bool fast_path_ = false;
  bool waits_ = false;
};

TEST_F(EmptySmsTest, OnlyALaunchThatEvictedWaitsAndOnlyWhereThePolicySaysSo) {
  for (const bool fast_path : {false, true}) {
    for (const bool waits : {false, true}) {
      SCOPED_TRACE(testing::Message() << "fast path " << fast_path << ", waits " << waits);
      fast_path_ = fast_path;
      waits_ = waits;
      EXPECT_FALSE(MayWait(false));
      EXPECT_EQ(MayWait(true), waits);
    }
  }
}

}  // namespace
}  // namespace gpushare::core
