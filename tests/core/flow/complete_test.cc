// What the complete stage makes of a launch that fails after it ran: a device reports so when the
// launch's signal event could not be recorded.

#include "src/core/flow/complete.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "src/core/seams/policy.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int32_t kInvalidHandle = 400;  // CUDA_ERROR_INVALID_HANDLE

// Reports one completion as failed; its block tasks are done all the same.
class FailingDevice final : public ForwardingDevice {
 public:
  FailingDevice(std::unique_ptr<Device> inner, const int& fail)
      : ForwardingDevice(std::move(inner)), fail_(fail) {}

  size_t PollCompletions(absl::Span<DeviceCompletion> out) override {
    const size_t count = inner().PollCompletions(out);
    for (DeviceCompletion& completion : out.first(count)) {
      if (++seen_ != fail_) continue;
      completion.outcome = Outcome::kFailed;
      completion.error_code = kInvalidHandle;
    }
    return count;
  }

 private:
  const int& fail_;  // the number of the completion that fails, from 1
  int seen_ = 0;
};

// Launches each head as workers on both sides of the first split.
class BothSidesPolicy final : public Policy {
 public:
  absl::string_view name() const override { return "both sides"; }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override {
    const SplitView& split = snapshot.splits[0];
    for (const HeadView& head : snapshot.heads) {
      for (const PlaceIndex place : {split.lc_place, split.be_place}) {
        PlannedLaunch launch;
        launch.task = head.task;
        launch.form = Form::kWorkers;
        launch.lane_class = LaneClass::kBe;
        launch.place = place;
        plan.launches.TryAdd(launch);
      }
    }
  }
};

class CompleteTest : public SimulatedSchedulerTest {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<FailingDevice>(std::move(device), fail_);
  }

  // One task with a launch on each side of a split; completion number `fail` is reported as failed.
  CompletionRecord Run(int fail) {
    fail_ = fail;
    StartScheduler(std::make_unique<BothSidesPolicy>());
    TaskSpec task;
    task.queue = AddQueue(AppClass::kBestEffort, "train");
    task.kernel = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
    task.work.block_tasks = 100'000;
    const auto ticket = scheduler_->SubmitBe(task);
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_TRUE(scheduler_->Wait(*ticket, kNever).ok());
    CompletionRecord record = *scheduler_->Record(*ticket);
    EXPECT_EQ(record.launches, 2);
    return record;
  }

  int fail_ = 0;
};

// The healthy launch runs what the failed one left, which does not undo the loss.
TEST_F(CompleteTest, ATaskFailsWithAnyOfItsLaunchesAlsoWhenEveryBlockTaskRan) {
  const CompletionRecord healthy = Run(0);
  EXPECT_EQ(healthy.verdict, Verdict::kOk);
  for (const int fail : {1, 2}) {
    SCOPED_TRACE(fail);
    const CompletionRecord record = Run(fail);
    EXPECT_EQ(record.verdict, Verdict::kFailed);
    EXPECT_EQ(record.error_code, kInvalidHandle);
    EXPECT_EQ(record.block_tasks, healthy.block_tasks);
  }
}

}  // namespace
}  // namespace gpushare::core
