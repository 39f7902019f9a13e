// On a GPU: no later task runs the interrupted block tasks of an abandoned task. The tasks follow
// each other on one counter, as in one slot of the scheduler.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "benchmarks/kernels/catalogue.h"
#include "src/core/seams/device.h"
#include "tests/cuda/gpu_fixture.h"

namespace gpushare::cuda {
namespace {

constexpr int64_t kBeforeEvictionNs = 2'000'000;
constexpr double kSoloMs = 10;

class YieldListsTest : public GpuTest {
 protected:
  YieldListsTest() : GpuTest(true) {}

  struct Subject {
    core::KernelDesc kernel;
    std::unique_ptr<kernels::Workload> workload;
  };

  Subject Make(const std::string& name) {
    Subject subject;
    const kernels::CatalogueKernel* const kernel = kernels::FindKernel(name.c_str());
    gpushare_kernel_variants variants = {};
    EXPECT_EQ(kernel->variants(&variants), 0);
    kernels::WorkloadOptions options;
    options.solo_ms = kSoloMs;
    const kernels::Status made = MakeWorkload(*kernel, options, &subject.workload);
    EXPECT_TRUE(made.ok()) << made.message;
    core::KernelDesc& desc = subject.kernel;
    desc.id = core::KernelId{++kernels_};
    desc.name = name;
    desc.threads_per_block = static_cast<int32_t>(variants.threads_per_block);
    desc.dynamic_shared_memory_bytes = static_cast<int32_t>(variants.dynamic_shared_bytes);
    desc.registers_per_thread = 0;
    desc.workers_per_sm_max = 0;
    desc.original_function = variants.original_function;
    desc.worker_function = variants.worker_function;
    desc.evictable = true;
    if (kernel->yields) desc.yield_interval_ns = 20'000;
    EXPECT_TRUE(device_->DescribeKernel(desc).ok());
    EXPECT_TRUE(device_->PrepareKernel(desc).ok());
    return subject;
  }

  // Starts a task on the counter that all tasks share.
  void Begin(const Subject& subject) {
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{++launches_};
    request.parts[0].lane = lane_;
    request.form = core::Form::kWorkers;
    request.parts[0].work.kernel = &subject.kernel;
    const kernels::Grid grid = subject.workload->grid();
    request.parts[0].block_count = subject.workload->block_tasks();
    request.parts[0].work.grid[0] = static_cast<int32_t>(grid.x);
    request.parts[0].work.grid[1] = static_cast<int32_t>(grid.y);
    request.parts[0].work.grid[2] = static_cast<int32_t>(grid.z);
    request.parts[0].counter = 0;
    request.parts[0].reset_counter = true;
    request.parts[0].epoch = launches_;
    request.parts[0].work.arguments = subject.workload->params();
    request.parts[0].work.arguments_bytes = static_cast<uint32_t>(subject.workload->params_bytes());
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
