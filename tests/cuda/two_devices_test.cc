// Several CUDA devices in one process, beside the caller's own current context.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "src/cuda/cuda_device.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/driver.h"

namespace gpushare::cuda {
namespace {

using core::CopyDirection;

constexpr size_t kBytes = size_t{1} << 22;

void SkipWithout(int ordinal) {
  const absl::Status device = CheckDevice(SystemDriver(), ordinal);
  if (!device.ok()) GTEST_SKIP() << device.message();
}

CUcontext Current(const Context& context) {
  CUcontext current = nullptr;
  EXPECT_EQ(context.api().cuCtxGetCurrent(&current), CUDA_SUCCESS);
  return current;
}

// A device with one lane, and memory on its GPU.
class Gpu {
 public:
  explicit Gpu(int ordinal) {
    auto made = MakeCudaDevice(ordinal, core::DeviceProfile());
    EXPECT_TRUE(made.ok()) << made.status();
    device_ = *std::move(made);
    auto context = Context::Open(ordinal);
    EXPECT_TRUE(context.ok()) << context.status();
    context_ = *std::move(context);
    auto memory = DeviceMemory::Make(*context_, kBytes);
    EXPECT_TRUE(memory.ok()) << memory.status();
    memory_ = *std::move(memory);
    auto lane = device_->CreateLane(core::LaneSpec());
    EXPECT_TRUE(lane.ok()) << lane.status();
    lane_ = *lane;
  }

  void* memory() const { return memory_.At<char>(0); }
  const Context& context() const { return *context_; }

  void Copy(CopyDirection direction, void* destination, const void* source) {
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{++launches_};
    request.parts[0].lane = lane_;
    request.form = core::Form::kMemcpy;
    request.parts[0].work.copy = {direction, false,       static_cast<int64_t>(kBytes),
                                  0,         destination, source};
    const absl::Status status = device_->Launch(request);
    EXPECT_TRUE(status.ok()) << status;
  }
  void Wait() {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::array<core::DeviceCompletion, 4> out;
    while (reported_ < launches_) {
      const size_t count = device_->PollCompletions(absl::MakeSpan(out));
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(out[i].outcome, core::Outcome::kFinished);
      reported_ += count;
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "a copy was not reported";
    }
  }

 private:
  std::unique_ptr<core::Device> device_;
  std::unique_ptr<Context> context_;
  DeviceMemory memory_;
  core::LaneIndex lane_ = core::kNoLane;
  uint64_t launches_ = 0;
  uint64_t reported_ = 0;
};

std::vector<uint8_t> Pattern(uint8_t salt) {
  std::vector<uint8_t> bytes(kBytes);
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<uint8_t>((i * 31 >> 3) + salt);
  return bytes;
}

TEST(DevicesTest, MakingAndUsingADeviceLeavesTheThreadWithoutAContext) {
  SkipWithout(0);
  if (IsSkipped()) return;
  std::thread([] {
    const auto context = Context::Open(0).value();
    ASSERT_EQ(Current(*context), nullptr);
    {
      Gpu gpu(0);
      EXPECT_EQ(Current(*context), nullptr) << "after the device was made";
      std::vector<uint8_t> bytes = Pattern(1);
      gpu.Copy(CopyDirection::kHostToDevice, gpu.memory(), bytes.data());
      gpu.Wait();
      EXPECT_EQ(Current(*context), nullptr) << "after a launch and its report";
    }
    EXPECT_EQ(Current(*context), nullptr) << "after the device's end";
  }).join();
}

TEST(DevicesTest, TheContextOfAnotherDeviceStaysCurrent) {
  SkipWithout(1);
  if (IsSkipped()) return;
  const auto other = Context::Open(0).value();
  const ScopedContext current(*other);
  Gpu gpu(1);
  EXPECT_EQ(Current(*other), other->primary());
  std::vector<uint8_t> bytes = Pattern(2);
  gpu.Copy(CopyDirection::kHostToDevice, gpu.memory(), bytes.data());
  gpu.Wait();
  EXPECT_EQ(Current(*other), other->primary());
}

TEST(DevicesTest, TwoDevicesWorkSideBySideAndCopyToEachOther) {
  SkipWithout(1);
  if (IsSkipped()) return;
  Gpu first(0);
  Gpu second(1);
  const std::vector<uint8_t> a = Pattern(3);
  const std::vector<uint8_t> b = Pattern(4);
  first.Copy(CopyDirection::kHostToDevice, first.memory(), a.data());
  second.Copy(CopyDirection::kHostToDevice, second.memory(), b.data());
  first.Wait();
  second.Wait();
  // Copies the first GPU's bytes over the second's, on the first GPU's lane; then to the host on
  // the second's.
  first.Copy(CopyDirection::kPeer, second.memory(), first.memory());
  first.Wait();
  std::vector<uint8_t> back(kBytes);
  second.Copy(CopyDirection::kDeviceToHost, back.data(), second.memory());
  second.Wait();
  EXPECT_EQ(back, a);
}

}  // namespace
}  // namespace gpushare::cuda
