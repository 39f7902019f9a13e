// Lanes that are lost: what the flow asks of its device, and what it does when the device refuses.

#include "src/core/flow/loss/lane_loss.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/policies/registry.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

// A simulated device that hangs on request and replaces lanes as the test says.
class HangingDevice final : public ForwardingDevice {
 public:
  struct Orders {
    std::function<absl::Status(const LaneSpec&)> replace;
    std::vector<LaneIndex> replaced;
    int replaced_evictable = 0;
    bool in_tick = false;
  };
  HangingDevice(std::unique_ptr<Device> inner, Orders& orders)
      : ForwardingDevice(std::move(inner)), orders_(orders) {}

  absl::Status ReplaceLane(LaneIndex lane, const LaneSpec& spec) override {
    orders_.replaced.push_back(lane);
    orders_.replaced_evictable += spec.evictable ? 1 : 0;
    if (orders_.replace) {
      if (absl::Status status = orders_.replace(spec); !status.ok()) return status;
    }
    return inner().ReplaceLane(lane, spec);
  }

 private:
  Orders& orders_;
};

class LaneLossTest : public SimulatedSchedulerTest {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<HangingDevice>(std::move(device), orders_);
  }

  void Start(const std::string& policy, const sim::FaultTrigger& hang) {
    SchedulerOptions options;
    options.hang_floor_ns = 10 * kMs;
    options.splits_max = 0;
    sim::SimOptions sim_options;
    sim_options.faults.hang = hang;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy(policy), options, sim_options));
    kernel_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
    queue_ = AddQueue(AppClass::kBestEffort, "train");
  }

  absl::StatusOr<TicketId> Submit() {
    TaskSpec spec;
    spec.queue = queue_;
    spec.kernel = kernel_;
    spec.work.block_tasks = 1000;
    return scheduler_->SubmitBe(spec);
  }
  Verdict Run() {
    const absl::StatusOr<TicketId> ticket = Submit();
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    if (!ticket.ok()) return Verdict::kPending;
    if (!scheduler_->Wait(*ticket, scheduler_->NowNs() + 1000 * kMs).ok()) return Verdict::kPending;
    return scheduler_->Record(*ticket)->verdict;
  }

  HangingDevice::Orders orders_;
  KernelId kernel_;
  QueueId queue_;
};

TEST_F(LaneLossTest, ALaneThatHungIsReplacedUnderItsIndexAndTakesWorkAgain) {
  ASSERT_NO_FATAL_FAILURE(Start("priority", {.probability = 1}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Run(), Verdict::kTimedOut) << i;
  EXPECT_EQ(orders_.replaced.size(), 5u) << "the place has two lanes of this class";
  EXPECT_EQ(scheduler_->Stats().hung, 5);
  EXPECT_FALSE(scheduler_->Stats().device_lost);
}

TEST_F(LaneLossTest, WorkOnAnotherLaneGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Start("priority", {.nth = 1}));
  TaskSpec spec;
  spec.queue = queue_;
  spec.kernel = kernel_;
  spec.work.block_tasks = 1;
  const TicketId hangs = *scheduler_->SubmitBe(spec);
  scheduler_->Tick();
  spec.queue = AddQueue(AppClass::kBestEffort, "another");
  spec.work.block_tasks = 2'000'000;  // 47 ms
  const TicketId healthy = *scheduler_->SubmitBe(spec);
  ASSERT_TRUE(scheduler_->Wait(hangs, scheduler_->NowNs() + 1000 * kMs).ok());
  EXPECT_EQ(scheduler_->Record(hangs)->verdict, Verdict::kTimedOut);
  EXPECT_FALSE(scheduler_->Record(healthy).ok()) << "it runs at that time";
  ASSERT_TRUE(scheduler_->Wait(healthy, scheduler_->NowNs() + 1000 * kMs).ok());
  EXPECT_EQ(scheduler_->Record(healthy)->verdict, Verdict::kOk);
}

TEST_F(LaneLossTest, APlaceWithoutALaneOfAClassLosesTheDevice) {
  ASSERT_NO_FATAL_FAILURE(Start("priority", {.probability = 1}));
  orders_.replace = [](const LaneSpec&) { return absl::ResourceExhaustedError("No memory."); };
  EXPECT_EQ(Run(), Verdict::kTimedOut);
  EXPECT_FALSE(scheduler_->Stats().device_lost) << "the other BE lane is left";
  const TicketId waits = *Submit();
  const TicketId behind = *Submit();
  ASSERT_TRUE(scheduler_->Wait(behind, scheduler_->NowNs() + 1000 * kMs).ok());
  EXPECT_EQ(scheduler_->Record(waits)->verdict, Verdict::kTimedOut);
  EXPECT_EQ(scheduler_->Record(behind)->verdict, Verdict::kDeviceLost);
  EXPECT_TRUE(scheduler_->Stats().device_lost);
  EXPECT_EQ(Submit().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(LaneLossTest, ADeviceThatHangsWithoutEndIsLostAfterTheLastReplacement) {
  ASSERT_NO_FATAL_FAILURE(Start("priority", {.probability = 1}));
  int hung = 0;
  while (!scheduler_->Stats().device_lost && hung < 2 * kMaxLaneReplacements) {
    const Verdict verdict = Run();
    ASSERT_NE(verdict, Verdict::kPending) << hung;
    ++hung;
  }
  EXPECT_EQ(orders_.replaced.size(), static_cast<size_t>(kMaxLaneReplacements));
  EXPECT_TRUE(scheduler_->Stats().device_lost);
}

// The lane's self-test fails on the new stream.
TEST_F(LaneLossTest, ALaneWithBlockedEvictionsIsReplacedByOneThatIsNotEvictable) {
  ASSERT_NO_FATAL_FAILURE(Start("priority", {.probability = 0.5}));
  orders_.replace = [](const LaneSpec& spec) {
    return spec.evictable ? absl::DeadlineExceededError("Evictions are blocked.")
                          : absl::OkStatus();
  };
  int timed_out = 0;
  for (int i = 0; i < 12; ++i) {
    const Verdict verdict = Run();
    ASSERT_NE(verdict, Verdict::kPending) << i;
    timed_out += verdict == Verdict::kTimedOut ? 1 : 0;
  }
  ASSERT_GT(timed_out, 2);
  EXPECT_EQ(orders_.replaced.size(), static_cast<size_t>(2 * orders_.replaced_evictable));
  EXPECT_EQ(scheduler_->Stats().evictions_blocked, orders_.replaced_evictable);
}

// Its work is on the old stream, behind the launch that hangs.
TEST_F(LaneLossTest, ARegionWhoseLaneIsReplacedDoesNotEndOk) {
  Start("fifo", {.probability = 1});
  TaskSpec spec;
  spec.queue = AddQueue(AppClass::kLatencyCritical, "service");
  spec.kernel = kernel_;
  spec.work.block_tasks = 1000;
  ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  scheduler_->Tick();
  void* stream = nullptr;
  const auto region = scheduler_->RegionBegin(spec.queue, kMs, &stream);  // behind it on its lane
  ASSERT_TRUE(region.ok()) << region.status();
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 1000 * kMs).ok());
  ASSERT_EQ(orders_.replaced.size(), 1u);
  ASSERT_TRUE(scheduler_->RegionEnd(*region).ok());
  ASSERT_TRUE(scheduler_->Wait(*region, scheduler_->NowNs() + 1000 * kMs).ok());
  EXPECT_EQ(scheduler_->Record(*region)->verdict, Verdict::kFailed);
}

}  // namespace
}  // namespace gpushare::core
