// The device of the first GPU with one lane, for tests at the device seam. Skips without a GPU.

#ifndef GPUSHARE_TESTS_CUDA_GPU_FIXTURE_H_
#define GPUSHARE_TESTS_CUDA_GPU_FIXTURE_H_

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>

#include "src/core/seams/device.h"
#include "src/cuda/cuda_device.h"
#include "src/cuda/driver/driver.h"

namespace gpushare::cuda {

class GpuTest : public testing::Test {
 protected:
  explicit GpuTest(bool evictable) { spec_.evictable = evictable; }

  void SetUp() override {
    if (const absl::Status gpu = CheckDevice(SystemDriver(), 0); !gpu.ok()) {
      GTEST_SKIP() << gpu.message();
    }
    device_ = MakeCudaDevice(0, core::DeviceProfile()).value();
    lane_ = device_->CreateLane(spec_).value();
  }

  // The next completion; the test fails if none comes within kHungNs.
  core::DeviceCompletion NextCompletion() {
    std::array<core::DeviceCompletion, 1> out;
    const core::TimeNs give_up_ns = device_->NowNs() + kHungNs;
    while (device_->NowNs() < give_up_ns) {
      if (device_->PollCompletions(absl::MakeSpan(out)) > 0) return out[0];
    }
    ADD_FAILURE() << "A launch does not complete.";
    out[0].outcome = core::Outcome::kFailed;
    return out[0];
  }

  // No launch of a test lasts longer; a longer one is hung.
  static constexpr int64_t kHungNs = 5'000'000'000;

  std::unique_ptr<core::Device> device_;
  core::LaneIndex lane_ = core::kNoLane;

 private:
  core::LaneSpec spec_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_GPU_FIXTURE_H_
