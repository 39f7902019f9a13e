// On a GPU: a launch whose signal event cannot be recorded is published, runs to its end, and is
// reported once, as failed. The launch behind it is not mistaken for it.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "src/cuda/driver/context.h"
#include "src/cuda/driver/driver_api.h"
#include "tests/cuda/gpu_fixture.h"
#include "tests/cuda/subject.h"

namespace gpushare::cuda {
namespace {

constexpr double kLongMs = 10;
constexpr double kShortMs = 1;

class SignalEventTest : public GpuTest {
 protected:
  SignalEventTest() : GpuTest(true) {}

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    context_ = Context::Open(0).value();
    MakeForeignEvent();
  }

  // No stream of the device's context can record an event of another context.
  void MakeForeignEvent() {
    using Create = CUresult (*)(CUcontext*, unsigned int, CUdevice);
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    const auto create = reinterpret_cast<Create>(dlsym(driver, "cuCtxCreate_v2"));
    ASSERT_NE(create, nullptr);
    CUcontext other = nullptr;
    ASSERT_EQ(create(&other, 0, context_->device()), CUDA_SUCCESS);
    ASSERT_EQ(context_->api().cuEventCreate(&foreign_event_, CU_EVENT_DISABLE_TIMING),
              CUDA_SUCCESS);
    ASSERT_EQ(context_->api().cuCtxPopCurrent(&other), CUDA_SUCCESS);
  }

  Subject Make(double solo_ms) {
    return MakeSubject(*device_, core::KernelId{++kernels_}, "sincos", solo_ms);
  }

  void Launch(core::LaunchRequest request, bool signals) {
    if (signals) request.signal_event = foreign_event_;
    const absl::Status status = device_->Launch(request);
    ASSERT_TRUE(status.ok()) << status;
  }

  void ExpectFailedAndThenFinished(const core::LaunchRequest& failing, const Subject& next) {
    Launch(failing, true);
    const core::LaunchId second{failing.parts[0].launch.value + 1};
    const core::LaunchRequest request = WorkersOf(next, second, lane_, 1);
    Launch(request, false);
    const core::DeviceCompletion failed = NextCompletion();
    EXPECT_EQ(failed.launch, failing.parts[0].launch);
    EXPECT_EQ(failed.outcome, core::Outcome::kFailed);
    EXPECT_NE(failed.error_code, 0);
    EXPECT_EQ(failed.block_tasks_done, failing.parts[0].block_count);
    const core::DeviceCompletion finished = NextCompletion();
    EXPECT_EQ(finished.launch, second);
    EXPECT_EQ(finished.outcome, core::Outcome::kFinished);
    EXPECT_EQ(finished.block_tasks_done, request.parts[0].block_count);
  }

  std::unique_ptr<Context> context_;
  CUevent foreign_event_ = nullptr;
  uint32_t kernels_ = 0;
};

TEST_F(SignalEventTest, TheRecordOfAnOrphanDoesNotEndTheNextWorkers) {
  const Subject slow = Make(kLongMs);
  const Subject quick = Make(kShortMs);
  ExpectFailedAndThenFinished(WorkersOf(slow, core::LaunchId{1}, lane_, 0), quick);
}

TEST_F(SignalEventTest, AnOrdinaryGridFailsOnceItHasRun) {
  const Subject slow = Make(kLongMs);
  const Subject quick = Make(kShortMs);
  core::LaunchRequest request = WorkersOf(slow, core::LaunchId{1}, lane_, -1);
  request.form = core::Form::kOriginal;
  ExpectFailedAndThenFinished(request, quick);
}

}  // namespace
}  // namespace gpushare::cuda
