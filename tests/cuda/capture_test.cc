// On a GPU: a capture by an application thread in CUDA's default (global) mode and the library's
// polling do not disturb each other.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "src/core/seams/kernel.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/driver/context.h"
#include "tests/cuda/gpu_fixture.h"

namespace gpushare::cuda {
namespace {

constexpr size_t kBytes = size_t{1} << 20;

class CaptureTest : public GpuTest {
 protected:
  CaptureTest() : GpuTest(false) {}

  void SetUp() override {
    GpuTest::SetUp();
    if (device_ == nullptr) return;
    context_ = Context::Open(0).value();
    memory_ = DeviceMemory::Make(*context_, 2 * kBytes).value();
  }

  void Copy() {
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{++launches_};
    request.parts[0].lane = lane_;
    request.form = core::Form::kMemcpy;
    request.parts[0].work.copy.direction = core::CopyDirection::kPeer;
    request.parts[0].work.copy.bytes = static_cast<int64_t>(kBytes);
    request.parts[0].work.copy.source = memory_.At<char>(0);
    request.parts[0].work.copy.destination = memory_.At<char>(kBytes);
    const absl::Status status = device_->Launch(request);
    ASSERT_TRUE(status.ok()) << status;
  }

  // Polls until `count` launches are reported or time runs out; returns how many were reported.
  size_t Poll(size_t count) {
    std::array<core::DeviceCompletion, 8> out;
    size_t seen = 0;
    const core::TimeNs give_up_ns = device_->NowNs() + kHungNs;
    while (seen < count && device_->NowNs() < give_up_ns) {
      seen += device_->PollCompletions(absl::MakeSpan(out));
    }
    return seen;
  }

  std::unique_ptr<Context> context_;
  DeviceMemory memory_;
  uint64_t launches_ = 0;
};

TEST_F(CaptureTest, PollingAndACaptureDoNotDisturbEachOther) {
  const DriverApi& api = context_->api();
  const ScopedContext current(*context_);
  CUstream stream = nullptr;
  ASSERT_EQ(api.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  for (int round = 0; round < 20; ++round) {
    Copy();
    ASSERT_EQ(api.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    std::atomic<size_t> seen{0};
    std::thread poller([&] { seen.store(Poll(1)); });
    poller.join();
    EXPECT_EQ(seen.load(), 1U);
    CUgraph graph = nullptr;
    EXPECT_EQ(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    if (graph != nullptr) api.cuGraphDestroy(graph);
  }
  EXPECT_EQ(api.cuStreamDestroy(stream), CUDA_SUCCESS);
}

// An application captures the stream of a region, which is a lane's. The first run of a library
// call must not end up in its graph.
TEST_F(CaptureTest, ARegistrationKeepsOutOfALanesStream) {
  const DriverApi& api = context_->api();
  const ScopedContext current(*context_);
  const auto stream = static_cast<CUstream>(device_->LaneStream(lane_));
  ASSERT_EQ(api.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  absl::Status status;
  std::thread registrar([&] {
    core::KernelDesc product;
    product.id = core::KernelId{1};
    product.name = "product";
    product.code = core::LibraryCall{
        .operation = core::LibraryOperation::kMatmul, .m = 256, .n = 256, .k = 256};
    status = device_->DescribeKernel(product);
    if (status.ok()) status = device_->PrepareKernel(product);
  });
  registrar.join();
  CUgraph graph = nullptr;
  EXPECT_EQ(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  size_t nodes = 1;
  if (graph != nullptr) {
    EXPECT_EQ(api.cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
    api.cuGraphDestroy(graph);
  }
  EXPECT_EQ(nodes, 0U);
  if (absl::IsUnavailable(status) || absl::IsUnimplemented(status)) {
    GTEST_SKIP() << status.message();
  }
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace gpushare::cuda
