// On a GPU: no later task runs the interrupted block tasks of an abandoned task. The tasks follow
// each other on one counter, as in one slot of the scheduler.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "src/core/seams/device.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/cuda/subject.h"

namespace gpushare::cuda {
namespace {

constexpr int64_t kBeforeEvictionNs = 2'000'000;
constexpr double kSoloMs = 10;

class YieldListsTest : public GpuTest {
 protected:
  YieldListsTest() : GpuTest(true) {}

  Subject Make(const std::string& name) {
    return MakeSubject(*device_, core::KernelId{++kernels_}, name, kSoloMs);
  }

  // Starts a task on the counter that all tasks share.
  void Begin(const Subject& subject) {
    const core::LaunchRequest request =
        WorkersOf(subject, core::LaunchId{++launches_}, lane_, /*counter=*/0);
    const absl::Status status = device_->Launch(request);
    ASSERT_TRUE(status.ok()) << status;
  }

  void EvictAfter(int64_t ns) {
    const core::TimeNs until_ns = device_->NowNs() + ns;
    while (device_->NowNs() < until_ns) {
    }
    ASSERT_TRUE(device_->Evict(lane_, launches_, 0).ok());
  }

  void ExpectWhole(const Subject& subject, uint64_t expected) {
    const core::DeviceCompletion done = NextCompletion();
    EXPECT_EQ(done.outcome, core::Outcome::kFinished);
    EXPECT_EQ(done.block_tasks_done, subject.workload->block_tasks());
    EXPECT_EQ(Checksum(subject), expected);
  }

  static uint64_t Checksum(const Subject& subject) {
    uint64_t checksum = 0;
    EXPECT_TRUE(subject.workload->Checksum(&checksum).ok());
    return checksum;
  }

  uint32_t kernels_ = 0;
  uint64_t launches_ = 0;
};

TEST_F(YieldListsTest, NoLaterTaskRunsWhatACancelledTaskLeft) {
  const Subject steps = Make("sincos_steps");
  const Subject plain = Make("sincos");
  Begin(steps);
  ASSERT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
  const uint64_t expected = Checksum(steps);
  // With zero to three tasks without yield points in between.
  for (int between = 0; between < 4; ++between) {
    SCOPED_TRACE(between);
    Begin(steps);
    EvictAfter(kBeforeEvictionNs);
    ASSERT_EQ(NextCompletion().outcome, core::Outcome::kEvicted);
    for (int i = 0; i < between; ++i) {
      Begin(plain);
      ASSERT_EQ(NextCompletion().outcome, core::Outcome::kFinished);
    }
    ASSERT_TRUE(steps.workload->ClearOutput().ok());
    Begin(steps);
    ExpectWhole(steps, expected);
  }
}

}  // namespace
}  // namespace gpushare::cuda
