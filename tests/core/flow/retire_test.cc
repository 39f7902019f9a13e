// Graphs that nobody can submit any more: the device gives them back once their tasks are complete.

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class ReleasingDevice final : public ForwardingDevice {
 public:
  ReleasingDevice(std::unique_ptr<Device> inner, std::vector<KernelId>& released,
                  std::vector<KernelId>& retired)
      : ForwardingDevice(std::move(inner)), released_(released), retired_(retired) {}
  void ReleaseKernel(KernelId graph) override { released_.push_back(graph); }
  void RetireKernel(KernelId kernel) override { retired_.push_back(kernel); }

 private:
  std::vector<KernelId>& released_;
  std::vector<KernelId>& retired_;
};

class RetireTest : public SimulatedSchedulerTest {
 protected:
  using SimulatedSchedulerTest::Wrap;
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<ReleasingDevice>(std::move(device), released_, retired_);
  }

  void Open(const sim::SimOptions& sim_options = sim::SimOptions()) {
    SchedulerOptions options;
    options.hang_floor_ns = 10 * kMs;
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive"), options, sim_options));
    step_ = *scheduler_->RegisterKernel(Graph("step", 2 * kMs));
    train_ = AddQueue(AppClass::kBestEffort, "train");
  }
  void RegisterAnother(const char* name) {
    ASSERT_TRUE(scheduler_->RegisterKernel(Graph(name, kMs)).ok());
  }
  Verdict Finish(TicketId ticket) {
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 10'000 * kMs).ok());
    return scheduler_->Record(ticket)->verdict;
  }

  std::vector<KernelId> released_;
  std::vector<KernelId> retired_;
  KernelId step_;
  QueueId train_;
};

TEST_F(RetireTest, TheNextRegistrationGivesAnIdleGraphBackOnce) {
  Open();
  EXPECT_EQ(Finish(SubmitGraph(train_, step_, false)), Verdict::kOk);
  RegisterAnother("before");
  EXPECT_TRUE(released_.empty());
  scheduler_->RetireKernel(step_);
  RegisterAnother("after");
  EXPECT_EQ(released_, std::vector<KernelId>{step_});
  RegisterAnother("later");
  EXPECT_EQ(released_.size(), 1);
}

TEST_F(RetireTest, ATaskInFlightEndsFirstAndNoOtherIsTaken) {
  Open();
  const TicketId running = SubmitGraph(train_, step_, false);
  scheduler_->RetireKernel(step_);
  RegisterAnother("meanwhile");
  EXPECT_TRUE(released_.empty());
  TaskSpec spec;
  spec.queue = train_;
  spec.kernel = step_;
  spec.work.kind = TaskKind::kGraph;
  const auto refused = scheduler_->SubmitBe(spec);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.status().message(), "Graph 'step' is released and takes no more tasks.");
  EXPECT_EQ(Finish(running), Verdict::kOk);
  RegisterAnother("after");
  EXPECT_EQ(released_, std::vector<KernelId>{step_});
}

TEST_F(RetireTest, OtherKernelsAndUnknownOnesAreLeftAlone) {
  Open();
  const KernelId kernel = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  scheduler_->RetireKernel(kernel);
  scheduler_->RetireKernel(KernelId{0});
  scheduler_->RetireKernel(KernelId{99});
  RegisterAnother("after");
  EXPECT_TRUE(released_.empty());
}

// Its functions stay, because tasks may run them, and no graph gets its twin any more.
TEST_F(RetireTest, TheDeviceHearsOfARetiredKernelOfPtxBeforeTheNextGraph) {
  Open();
  KernelDesc desc = EvictableKernel("twin", 25 * kUs);
  desc.code = PtxCode{.worker = {.entry = "twin_workers"}};
  const auto twin = scheduler_->RegisterKernel(std::move(desc));
  ASSERT_TRUE(twin.ok()) << twin.status();
  RegisterAnother("before");
  EXPECT_TRUE(retired_.empty());
  scheduler_->RetireKernel(*twin);
  RegisterAnother("after");
  EXPECT_EQ(retired_, std::vector<KernelId>{*twin});
  EXPECT_TRUE(released_.empty());
}

// The lane may still run it when the flow has given it up.
TEST_F(RetireTest, AGraphThatHangsIsNeverGivenBack) {
  sim::SimOptions options;
  options.faults.hang = sim::FaultTrigger{.nth = 1};
  Open(options);
  EXPECT_EQ(Finish(SubmitGraph(train_, step_, false)), Verdict::kTimedOut);
  scheduler_->RetireKernel(step_);
  RegisterAnother("after");
  EXPECT_TRUE(released_.empty());
}

}  // namespace
}  // namespace gpushare::core
