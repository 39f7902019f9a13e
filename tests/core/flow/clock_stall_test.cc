// A clock that stands still, and one that steps back, under the flow on the null device: real
// devices' clocks do neither. Work goes on, each task completes once, nothing is taken for hung.

#include <atomic>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"
#include "tests/core/forwarding_device.h"

namespace gpushare::core {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

// The null device with a clock that the test sets.
class SetClockDevice final : public ForwardingDevice {
 public:
  explicit SetClockDevice(std::atomic<int64_t>& now_ns)
      : ForwardingDevice(null::MakeNullDevice()), now_ns_(now_ns) {}
  TimeNs NowNs() const override { return now_ns_.load(); }

 private:
  std::atomic<int64_t>& now_ns_;
};

class ClockStallTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto device = std::make_unique<SetClockDevice>(now_ns_);
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    scheduler_ = Scheduler::Create(SchedulerOptions(), std::move(device), std::move(model),
                                   *MakePolicy(GetParam()))
                     .value();
    for (const AppClass app_class : {AppClass::kLatencyCritical, AppClass::kBestEffort}) {
      AppOptions app;
      app.name = app_class == AppClass::kLatencyCritical ? "service" : "training";
      app.app_class = app_class;
      queues_.push_back(*scheduler_->CreateQueue(*scheduler_->CreateApp(app)));
    }
  }

  // Tasks of both classes; the clock stands still while they run.
  void RunTasks() {
    constexpr int kTasks = 50;
    int calls = 0;
    for (int i = 0; i < kTasks; ++i) {
      TaskSpec spec;
      spec.queue = queues_[static_cast<size_t>(i % 2)];
      spec.work.kind = TaskKind::kOpaque;
      spec.work.host_function = [](void*, void*) {};
      spec.work.declared_ns = 1000;
      spec.detached = true;
      spec.callback_user = &calls;
      spec.callback = [](void* user, const CompletionRecord& record) {
        EXPECT_EQ(record.verdict, Verdict::kOk);
        ++*static_cast<int*>(user);
      };
      ASSERT_TRUE((i % 2 == 0 ? scheduler_->SubmitLc(spec) : scheduler_->SubmitBe(spec)).ok());
    }
    const absl::Status drained = scheduler_->Drain(now_ns_ + 10 * kSecondNs);
    ASSERT_TRUE(drained.ok()) << drained;
    EXPECT_EQ(calls, kTasks);
    EXPECT_EQ(scheduler_->Stats().hung, 0);
  }

  std::atomic<int64_t> now_ns_{5000 * kSecondNs};
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<QueueId> queues_;
};

INSTANTIATE_TEST_SUITE_P(Policies, ClockStallTest,
                         ::testing::Values("smguard", "baymax", "priority", "fifo"),
                         [](const auto& policy) { return std::string(policy.param); });

TEST_P(ClockStallTest, WorkGoesOnWhileTheClockStandsStill) {
  RunTasks();
  RunTasks();
}

TEST_P(ClockStallTest, WorkGoesOnAfterTheClockSteppedBack) {
  RunTasks();
  now_ns_ -= 3600 * kSecondNs;
  RunTasks();
  now_ns_ += 7200 * kSecondNs;
  RunTasks();
}

}  // namespace
}  // namespace gpushare::core
