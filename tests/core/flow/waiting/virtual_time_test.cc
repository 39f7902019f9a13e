// The scheduler's thread in virtual time: what changes the flow at any moment of its way into the
// sleep is seen.

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "src/core/policies/registry.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class VirtualTimeTest : public SimulatedSchedulerTest {
 protected:
  void SetUp() override {
    SchedulerOptions options;
    options.report = [this](const std::string&) { reported_ = true; };
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive"), options));
    work_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
    first_ = AddQueue(AppClass::kBestEffort, "first");
    second_ = AddQueue(AppClass::kBestEffort, "second");
    ASSERT_TRUE(scheduler_->StartThread().ok());
  }
  TicketId Submit(QueueId queue, CompletionCallback callback = nullptr) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = work_;
    spec.work.block_tasks = 10;
    spec.callback = callback;
    spec.callback_user = this;
    return *scheduler_->SubmitBe(spec);
  }
  // Whether the call returns soon after `then`. Before, it waits until the log says that nothing
  // can end it: from then on the thread sleeps without a limit. If it does not return, a submit
  // wakes the thread, so that the test ends.
  template <class Call, class Then>
  bool ReturnsAfter(Call call, Then then) {
    std::future<void> ended = std::async(std::launch::async, std::move(call));
    while (!reported_) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    then();
    if (ended.wait_for(std::chrono::seconds(10)) == std::future_status::ready) return true;
    scheduler_->Resume().IgnoreError();
    Submit(first_);
    ended.wait();
    return false;
  }
  static Scheduler& SchedulerOf(void* user) {
    return *static_cast<VirtualTimeTest*>(user)->scheduler_;
  }

  std::atomic<bool> reported_{false};
  KernelId work_;
  QueueId first_, second_;
};

// The callback runs behind the stages of a Tick that has done nothing, and before the thread looks
// whether it may sleep: it stands for another thread that resumes at this moment.
TEST_F(VirtualTimeTest, AResumeBetweenATickAndTheSleepIsSeen) {
  ASSERT_TRUE(scheduler_->Quiesce(kNever).ok());
  const TicketId held = Submit(second_);
  const TicketId cancelled = Submit(first_, [](void* user, const CompletionRecord&) {
    EXPECT_TRUE(SchedulerOf(user).Resume().ok());
  });
  EXPECT_TRUE(ReturnsAfter([&] { EXPECT_TRUE(scheduler_->Wait(held, kNever).ok()); },
                           [&] { EXPECT_TRUE(scheduler_->Cancel(cancelled).ok()); }));
}

TEST_F(VirtualTimeTest, ADrainReturnsOnceTheLastPendingTaskWasCancelled) {
  ASSERT_TRUE(scheduler_->Quiesce(kNever).ok());
  const TicketId ticket = Submit(first_);
  EXPECT_TRUE(ReturnsAfter([&] { EXPECT_TRUE(scheduler_->Drain(kNever).ok()); },
                           [&] { EXPECT_TRUE(scheduler_->Cancel(ticket).ok()); }));
}

}  // namespace
}  // namespace gpushare::core
