// Opaque work that the flow has handed over and that is not on the device yet when the device is
// lost: its function is not called, and every task ends.

#include "src/core/flow/deferred_calls.h"

#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/plan_with.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1000 * 1000;

// Lost once the test says so.
class LosingDevice final : public ForwardingDevice {
 public:
  explicit LosingDevice(const bool& lost) : ForwardingDevice(null::MakeNullDevice()), lost_(lost) {}
  absl::Status Launch(const LaunchRequest& request) override {
    return lost_ ? absl::UnavailableError("The device is lost.") : inner().Launch(request);
  }

 private:
  const bool& lost_;
};

class DeferredCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = std::make_unique<LosingDevice>(lost_);
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    auto scheduler = Scheduler::Create(
        SchedulerOptions(), std::move(device), std::move(model),
        std::make_unique<PlanWith>([](const Snapshot& snapshot, Plan& plan) {
          for (const HeadView& head : snapshot.heads) {
            PlannedLaunch& launch = plan.launches.Add();
            launch.task = head.task;
            launch.form = head.kind == TaskKind::kOpaque ? Form::kOpaque : Form::kOriginal;
          }
        }));
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    scheduler_ = *std::move(scheduler);
    query_.queue = AddQueue(AppClass::kLatencyCritical, "service");
    KernelDesc kernel;
    kernel.name = "work";
    query_.kernel = *scheduler_->RegisterKernel(kernel);
    query_.work.block_tasks = 64;
  }
  QueueId AddQueue(AppClass app_class, const char* name) {
    return *scheduler_->CreateQueue(*scheduler_->CreateApp({.name = name, .app_class = app_class}));
  }
  // Counts its calls; the first one finds the device lost, by a query that it submits.
  TicketId SubmitOpaque(const char* app) {
    TaskSpec spec;
    spec.queue = AddQueue(AppClass::kBestEffort, app);
    spec.work.kind = TaskKind::kOpaque;
    spec.work.host_user = this;
    spec.work.host_function = [](void* /*stream*/, void* user) {
      auto& test = *static_cast<DeferredCallsTest*>(user);
      if (++test.calls_ > 1 || !test.loses_) return;
      test.lost_ = true;
      test.tickets_.push_back(*test.scheduler_->SubmitLc(test.query_));
    };
    return *scheduler_->SubmitBe(spec);
  }

  bool lost_ = false;
  bool loses_ = true;
  int calls_ = 0;
  TaskSpec query_;
  std::vector<TicketId> tickets_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(DeferredCallsTest, AFunctionIsNotCalledOnceTheDeviceIsLost) {
  scheduler_->Tick();  // publishes the route of the fast path
  for (const char* app : {"one", "two", "three"}) tickets_.push_back(SubmitOpaque(app));
  scheduler_->Tick();
  EXPECT_EQ(calls_, 1);
  ASSERT_EQ(tickets_.size(), 4u);
  for (const TicketId ticket : tickets_) {
    ASSERT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 60'000 * kMs).ok());
    EXPECT_EQ(scheduler_->Record(ticket)->verdict, Verdict::kDeviceLost);
  }
  EXPECT_EQ(calls_, 1);
}

TEST_F(DeferredCallsTest, EachFunctionIsCalledOnceInTheTickThatLaunchesIt) {
  loses_ = false;
  for (const char* app : {"one", "two", "three"}) tickets_.push_back(SubmitOpaque(app));
  scheduler_->Tick();
  EXPECT_EQ(calls_, 3);
  for (const TicketId ticket : tickets_) {
    ASSERT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 60'000 * kMs).ok());
    EXPECT_EQ(scheduler_->Record(ticket)->verdict, Verdict::kOk);
  }
  EXPECT_EQ(calls_, 3);
}

}  // namespace
}  // namespace gpushare::core
