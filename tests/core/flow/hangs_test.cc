// Which evictions count as blocked: those that are lost, and not those that take effect in time.

#include "src/core/flow/loss/hangs.h"

#include <memory>
#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class HangsTest : public SimulatedSchedulerTest {
 protected:
  void Start(double blocked_evictions) {
    sim::SimOptions sim_options;
    sim_options.faults.blocked_eviction.probability = blocked_evictions;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive"), {}, sim_options));
    // Clocks of a process that runs for long are far from 0.
    ASSERT_TRUE(scheduler_->PollUntil(3600 * 1000 * kMs).ok());
    TaskSpec be;
    be.queue = AddQueue(AppClass::kBestEffort, "train");
    be.kernel = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
    be.work.block_tasks = 10'000'000;
    be_ = *scheduler_->SubmitBe(be);
    ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + kMs).ok());
  }
  Verdict RunQuery() {
    TaskSpec query;
    query.queue = AddQueue(AppClass::kLatencyCritical, "service");
    query.kernel = *scheduler_->RegisterKernel(Graph("query", kMs));
    query.work.kind = TaskKind::kGraph;
    const TicketId ticket = *scheduler_->SubmitLc(query);
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 60 * 1000 * kMs).ok());
    return scheduler_->Record(ticket)->verdict;
  }

  TicketId be_;
};

TEST_F(HangsTest, AnEvictionThatTakesEffectInTimeIsNotBlocked) {
  ASSERT_NO_FATAL_FAILURE(Start(0));
  EXPECT_EQ(RunQuery(), Verdict::kOk);
  EXPECT_GT(scheduler_->Stats().evictions, 0);
  EXPECT_EQ(scheduler_->Stats().evictions_blocked, 0);
}

TEST_F(HangsTest, AnEvictionThatIsLostIsBlockedOnce) {
  ASSERT_NO_FATAL_FAILURE(Start(1));
  RunQuery();
  EXPECT_EQ(scheduler_->Stats().evictions_blocked, 1);
}

// A device that answers nothing about claims for a while after it is asked: another copy stands in
// front of the four bytes.
class LateClaims final : public ForwardingDevice {
 public:
  LateClaims(std::unique_ptr<Device> inner, int64_t late_ns)
      : ForwardingDevice(std::move(inner)), late_ns_(late_ns) {}
  std::optional<int64_t> ReadClaims(int32_t counter) override {
    if (asked_ns_ == kNever) asked_ns_ = NowNs();
    if (NowNs() - asked_ns_ < late_ns_) return std::nullopt;
    asked_ns_ = kNever;
    return ForwardingDevice::ReadClaims(counter);
  }

 private:
  const int64_t late_ns_;
  TimeNs asked_ns_ = kNever;
};

class LateClaimsTest : public SimulatedSchedulerTest {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<LateClaims>(std::move(device), late_ns_);
  }
  using SimulatedSchedulerTest::Wrap;
  // Runs workers for about 30 s, which is three times the hang limit.
  void RunLongWorkers(int64_t late_ns) {
    late_ns_ = late_ns;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive")));
    TaskSpec be;
    be.queue = AddQueue(AppClass::kBestEffort, "train");
    be.kernel = *scheduler_->RegisterKernel(EvictableKernel("work", kMs));
    be.work.block_tasks = int64_t{sms_} * 8 * 30'000;  // 8 workers an SM
    const TicketId ticket = *scheduler_->SubmitBe(be);
    ASSERT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 600 * 1000 * kMs).ok());
    verdict_ = scheduler_->Record(ticket)->verdict;
    took_ns_ = scheduler_->NowNs();
  }

  int64_t late_ns_ = 0;
  int64_t took_ns_ = 0;
  Verdict verdict_ = Verdict::kPending;
};

TEST_F(LateClaimsTest, AClaimCounterThatIsReadLateIsNoHang) {
  ASSERT_NO_FATAL_FAILURE(RunLongWorkers(5000 * kMs));
  EXPECT_GT(took_ns_, 12'000 * kMs) << "it runs for less than the hang limit";
  EXPECT_EQ(verdict_, Verdict::kOk);
  EXPECT_EQ(scheduler_->Stats().hung, 0);
}

TEST_F(LateClaimsTest, ADeviceThatNeverAnswersLosesTheLaunchAfterAnotherHangLimit) {
  ASSERT_NO_FATAL_FAILURE(RunLongWorkers(kNever));
  EXPECT_EQ(verdict_, Verdict::kTimedOut);
  EXPECT_GT(took_ns_, 19'000 * kMs);
  EXPECT_LT(took_ns_, 22'000 * kMs);
}

}  // namespace
}  // namespace gpushare::core
