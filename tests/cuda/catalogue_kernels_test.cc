// Runs every kernel of the catalogue through the device: original grid, workers and slices give the
// same bits, and the right ones. Tensor maps among the arguments start at a multiple of 64 bytes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/kernels/catalogue.h"
#include "src/core/seams/device.h"
#include "tests/cuda/gpu_fixture.h"

namespace gpushare::cuda {
namespace {

constexpr uint32_t kBlockTasks = 300;
constexpr uint32_t kSlice = 128;  // block tasks; the last slice is shorter
constexpr double kBlockTaskUs = 5;
constexpr double kVerifySeconds = 0.2;
// cudaErrorNoKernelImageForDevice.
constexpr int kNoCodeForDevice = 209;

class CatalogueKernelsTest : public GpuTest,
                             public testing::WithParamInterface<const kernels::CatalogueKernel*> {
 protected:
  CatalogueKernelsTest() : GpuTest(true) {}

  // False if this build has no code of the kernel for the device.
  bool Make() {
    gpushare_kernel_variants variants = {};
    const int code = GetParam()->variants(&variants);
    if (code == kNoCodeForDevice) return false;
    EXPECT_EQ(code, 0);
    kernels::WorkloadOptions options;
    options.block_tasks = kBlockTasks;
    options.block_task_us = kBlockTaskUs;
    options.steps = GetParam()->yields ? 3 : 0;
    const kernels::Status made = MakeWorkload(*GetParam(), options, &workload_);
    EXPECT_TRUE(made.ok()) << made.message;
    desc_.id = core::KernelId{1};
    desc_.name = GetParam()->name;
    desc_.resources.threads_per_block = static_cast<int32_t>(variants.threads_per_block);
    desc_.resources.dynamic_shared_memory_bytes =
        static_cast<int32_t>(variants.dynamic_shared_bytes);
    desc_.resources.registers_per_thread = 0;
    desc_.resources.workers_per_sm_max = static_cast<int32_t>(variants.workers_per_sm);
    desc_.functions()->original = variants.original_function;
    desc_.functions()->worker = variants.worker_function;
    desc_.functions()->slice = variants.slice_function;
    desc_.evictable = true;
    if (GetParam()->yields) desc_.yield_interval_ns = 20'000;
    EXPECT_TRUE(device_->DescribeKernel(desc_).ok());
    EXPECT_TRUE(device_->PrepareKernel(desc_).ok());
    return true;
  }

  // Runs into a cleared output and returns its checksum; 0 on failure.
  uint64_t Run(core::Form form) {
    EXPECT_TRUE(workload_->ClearOutput().ok());
    const uint32_t all = workload_->block_tasks();
    const uint32_t at_once = form == core::Form::kSlice ? kSlice : all;
    for (uint32_t begin = 0; begin < all; begin += at_once) {
      if (!RunOne(form, begin, std::min(at_once, all - begin))) return 0;
    }
    uint64_t checksum = 0;
    EXPECT_TRUE(workload_->Checksum(&checksum).ok());
    return checksum;
  }

  core::LaunchRequest Request(core::Form form, uint32_t begin, uint32_t count) {
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{++launches_};
    request.parts[0].lane = lane_;
    request.form = form;
    request.parts[0].work.kernel = &desc_;
    const kernels::Grid grid = workload_->grid();
    request.block_begin = begin;
    request.parts[0].block_count = count;
    request.parts[0].work.grid[0] = static_cast<int32_t>(grid.x);
    request.parts[0].work.grid[1] = static_cast<int32_t>(grid.y);
    request.parts[0].work.grid[2] = static_cast<int32_t>(grid.z);
    if (form == core::Form::kWorkers) {
      request.parts[0].counter = 0;
      request.parts[0].reset_counter = true;
      request.parts[0].epoch = launches_;
    }
    request.parts[0].work.arguments = workload_->params();
    request.parts[0].work.arguments_bytes = static_cast<uint32_t>(workload_->params_bytes());
    return request;
  }

  bool RunOne(core::Form form, uint32_t begin, uint32_t count) {
    const absl::Status status = device_->Launch(Request(form, begin, count));
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return false;
    const core::Outcome outcome = NextCompletion().outcome;
    EXPECT_EQ(outcome, core::Outcome::kFinished);
    return outcome == core::Outcome::kFinished;
  }

  core::KernelDesc desc_;
  std::unique_ptr<kernels::Workload> workload_;
  uint64_t launches_ = 0;
};

TEST_P(CatalogueKernelsTest, EveryFormGivesTheRightBits) {
  if (!Make()) GTEST_SKIP() << GetParam()->name << " has no code for this device.";
  const uint64_t original = Run(core::Form::kOriginal);
  kernels::Verification verification;
  ASSERT_TRUE(workload_->Verify(kVerifySeconds, &verification).ok());
  EXPECT_GT(verification.checked, 0U);
  EXPECT_EQ(verification.wrong, 0U) << verification.first_wrong;
  EXPECT_EQ(Run(core::Form::kWorkers), original);
  EXPECT_EQ(Run(core::Form::kSlice), original);
}

// Registers the slice function only, so that no other function can have run the slices.
TEST_P(CatalogueKernelsTest, TheSliceFunctionNeedsNoOther) {
  if (!Make()) GTEST_SKIP() << GetParam()->name << " has no code for this device.";
  const uint64_t original = Run(core::Form::kOriginal);
  desc_.id = core::KernelId{2};
  desc_.functions()->original = desc_.functions()->worker = nullptr;
  desc_.evictable = false;
  ASSERT_TRUE(device_->PrepareKernel(desc_).ok());
  EXPECT_EQ(Run(core::Form::kSlice), original);
  EXPECT_EQ(Run(core::Form::kOriginal), original) << "all block tasks as one slice";
  const absl::Status refused = device_->Launch(Request(core::Form::kWorkers, 0, kBlockTasks));
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
}

std::vector<const kernels::CatalogueKernel*> AllKernels() {
  std::vector<const kernels::CatalogueKernel*> all;
  for (const kernels::CatalogueKernel& kernel : kernels::Catalogue()) all.push_back(&kernel);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, CatalogueKernelsTest, testing::ValuesIn(AllKernels()),
                         [](const testing::TestParamInfo<const kernels::CatalogueKernel*>& kernel) {
                           return std::string(kernel.param->name);
                         });

}  // namespace
}  // namespace gpushare::cuda
