// A launch that is slow because of its quota is not hung, and a hung one is found in the time that
// gpushare.h documents: at most twice its limit after its last progress.

#include <cstdint>
#include <string>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

// One BE task under smguard, with a quota.
class Hang : public testing::Test {
 protected:
  void Open(const char* faults, double hang_factor, const char* policy = "smguard") {
    gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
    options.device = "sim";
    options.drive = GPUSHARE_DRIVE_POLL;
    options.policy = policy;
    options.hang_factor = hang_factor;
    options.sim_faults = faults;
    ASSERT_OK(gpushare_runtime_create(&options, &runtime_));
    const gpushare_app_options app = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "train");
    ASSERT_OK(gpushare_app_create(runtime_, &app, &app_));
    ASSERT_OK(gpushare_queue_create(app_, &queue_));
    ASSERT_OK(gpushare_queue_create(app_, &other_queue_));
    gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
    kernel.name = "sincos_27us";
    ASSERT_OK(gpushare_kernel_register(runtime_, &kernel, &kernel_));
  }
  void TearDown() override {
    if (runtime_ == nullptr) return;
    EXPECT_OK(gpushare_runtime_shutdown(runtime_, GPUSHARE_NEVER));
    EXPECT_OK(gpushare_kernel_release(kernel_));
    EXPECT_OK(gpushare_queue_release(queue_));
    EXPECT_OK(gpushare_queue_release(other_queue_));
    EXPECT_OK(gpushare_app_release(app_));
    EXPECT_OK(gpushare_runtime_release(runtime_));
  }

  void Quota(int32_t capsms) const {
    gpushare_reservation_options quota = GPUSHARE_RESERVATION_OPTIONS_INIT;
    quota.capsms = capsms;
    ASSERT_OK(gpushare_reserve_capsm(app_, &quota));
  }
  gpushare_ticket Submit(gpushare_queue* queue, int64_t block_tasks) const {
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kernel = kernel_;
    task.block_tasks = block_tasks;
    gpushare_ticket ticket = {0};
    EXPECT_OK(gpushare_submit_be(queue, &task, &ticket));
    return ticket;
  }
  gpushare_completion_record Finish(gpushare_ticket ticket) const {
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
    EXPECT_OK(gpushare_ticket_wait(runtime_, ticket, GPUSHARE_NEVER));
    EXPECT_OK(gpushare_ticket_record(runtime_, ticket, &record));
    return record;
  }
  gpushare_completion_record Run(int64_t block_tasks) const {
    return Finish(Submit(queue_, block_tasks));
  }

  gpushare_runtime* runtime_ = nullptr;
  gpushare_app* app_ = nullptr;
  gpushare_queue* queue_ = nullptr;
  gpushare_queue* other_queue_ = nullptr;
  gpushare_kernel* kernel_ = nullptr;
};

TEST_F(Hang, AQuotaOfOneCapSmIsNotAHang) {
  Open(nullptr, 0);
  Quota(1);
  const gpushare_completion_record record = Run(50'000'000);
  EXPECT_GT(record.complete_ns - record.submit_ns, 20 * record.predicted_ns);
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(record.block_tasks, 50'000'000);
}

// The strictest factor: only the moving counter shows that the launch does not hang.
TEST_F(Hang, ALaunchWhoseCounterMovesIsNotAHang) {
  Open("misprediction=p1", 1);
  Quota(1);
  const gpushare_completion_record record = Run(20'000'000);
  EXPECT_GT(record.complete_ns - record.submit_ns, 100 * kS);
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_OK);
}

// Its workers have no room until the launch before it ends.
TEST_F(Hang, ALaunchThatWaitsForAnEarlierOneIsNotAHang) {
  Open("misprediction=p1", 0, "priority");
  const gpushare_ticket first = Submit(queue_, 200'000'000);
  const gpushare_ticket second = Submit(other_queue_, 1000);
  const gpushare_completion_record waited = Finish(second);
  EXPECT_GT(waited.complete_ns - waited.submit_ns, 20 * kS);
  EXPECT_EQ(waited.verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(Finish(first).verdict, GPUSHARE_VERDICT_OK);
}

TEST_F(Hang, AHungLaunchIsFoundWithinTwiceTheFloor) {
  Open("hang=p1", 0);
  Quota(1);
  // Predicted for one CapSM it takes 40 s, and 800 s would pass before 20 times that.
  const gpushare_completion_record record = Run(10'000'000);
  EXPECT_EQ(record.verdict, GPUSHARE_VERDICT_TIMED_OUT);
  EXPECT_GE(record.complete_ns - record.submit_ns, 10 * kS);
  EXPECT_LE(record.complete_ns - record.submit_ns, 20 * kS + kS / 100);
}

}  // namespace
}  // namespace gpushare_test
