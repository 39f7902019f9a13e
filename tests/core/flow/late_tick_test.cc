// A Tick that comes late, as on a GPU: the fast path launched the query when it arrived, so the
// time until the flow heard of it is no lag. The null device with a clock and completions that the
// test sets.

#include <algorithm>
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

constexpr int64_t kUs = 1'000;
constexpr int64_t kServiceNs = 1'000 * kUs;
constexpr int64_t kTickLateNs = 90 * kUs;

class SetDevice final : public ForwardingDevice {
 public:
  SetDevice() : ForwardingDevice(null::MakeNullDevice()) {}
  TimeNs NowNs() const override { return now_ns; }
  size_t PollCompletions(absl::Span<DeviceCompletion> out) override {
    const size_t most = std::min(out.size(), completions_left);
    const size_t count = most == 0 ? 0 : ForwardingDevice::PollCompletions(out.first(most));
    completions_left -= count;
    for (DeviceCompletion& completion : out.first(count)) {
      completion.start_ns = ended_ns - kServiceNs;
      completion.end_ns = ended_ns;
    }
    return count;
  }

  TimeNs now_ns = 5'000'000 * kUs;
  TimeNs ended_ns = now_ns;  // of the next completions
  size_t completions_left = 1;
};

class LateTickTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto owned = std::make_unique<SetDevice>();
    device_ = owned.get();
    auto model = models::MakeOnlineModel(device_->capabilities().profile);
    scheduler_ = Scheduler::Create(SchedulerOptions(), std::move(owned), std::move(model),
                                   *MakePolicy("adaptive"))
                     .value();
    AppOptions options;
    options.name = "service";
    options.app_class = AppClass::kLatencyCritical;
    options.promise.p99_bound = 1.05;
    options.solo_ns = kServiceNs;
    app_ = *scheduler_->CreateApp(options);
    queue_ = *scheduler_->CreateQueue(app_);
    // The first task of a queue goes through the flow, which publishes the route.
    Submit();
    Tick();
    Tick();
    ASSERT_EQ(device_->completions_left, 0U);
    device_->now_ns += kServiceNs;
  }

  void TearDown() override { device_->completions_left = 9; }  // the scheduler ends with its tasks

  void Submit() {
    TaskSpec spec;
    spec.queue = queue_;
    spec.work.kind = TaskKind::kOpaque;
    spec.work.host_function = [](void*, void*) {};
    spec.work.declared_ns = kServiceNs;
    spec.detached = true;
    ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  }
  void Tick() { ASSERT_TRUE(scheduler_->Poll().ok()); }
  int64_t LagNs() const { return scheduler_->GuaranteeOf(app_)->lag_ns; }

  SetDevice* device_ = nullptr;
  std::unique_ptr<Scheduler> scheduler_;
  AppId app_;
  QueueId queue_;
};

TEST_F(LateTickTest, TheTimeUntilTheFlowHearsOfAQueryIsNoLag) {
  const int64_t launches = scheduler_->Stats().fast_path_launches;
  Submit();
  ASSERT_EQ(scheduler_->Stats().fast_path_launches, launches + 1);
  device_->now_ns += kTickLateNs;
  Tick();
  EXPECT_EQ(LagNs(), 0);
}

TEST_F(LateTickTest, TheTimeUntilTheFlowHearsOfAnEndIsNoLagOfTheNextQuery) {
  const TimeNs begin_ns = device_->now_ns;
  Submit();
  Tick();
  Submit();
  Tick();
  device_->ended_ns = begin_ns + kServiceNs;
  device_->now_ns = device_->ended_ns + kTickLateNs;
  device_->completions_left = 1;
  Tick();
  ASSERT_EQ(scheduler_->StatsOf(app_)->completed, 2);
  EXPECT_EQ(LagNs(), 0);
}

}  // namespace
}  // namespace gpushare::core
