// How AddLane and Prepare interleave, on a fake driver and a fake cuBLASLt. The test decides when
// their work ends. Needs no GPU.

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "src/cuda/library/library_backend.h"
#include "src/cuda/library/library_calls.h"
#include "tests/cuda/library/fake_cublaslt.h"
#include "tests/cuda/library/fake_library.h"

namespace gpushare::cuda {
namespace {

constexpr std::chrono::seconds kSoon{2};  // well below the bound of a first run

std::atomic<bool> work_ends{true};
std::atomic<int> first_runs{0};
std::atomic<int> scratch{0};            // allocations that were not freed
std::atomic<int> freed_with_a_wait{0};  // by the call that waits for all work on the device
std::atomic<int> on_lanes{0};           // calls on the streams of lanes

constexpr uintptr_t kOwnStreams = 1000;  // numbers of streams that are no lane's

CUstream Stream(uintptr_t number) {
  return reinterpret_cast<CUstream>(number);  // NOLINT: a handle, never followed
}

bool IsOfLane(CUstream stream) {
  return reinterpret_cast<uintptr_t>(stream) < kOwnStreams;  // NOLINT
}

// A stream's number without its last digit is the number of its context.
DriverApi FakeDriver() {
  DriverApi api;
  api.cuGetErrorName = api.cuGetErrorString = [](CUresult /*code*/, const char** text) {
    *text = "an error";
    return CUDA_SUCCESS;
  };
  api.cuStreamGetCtx = [](CUstream stream, CUcontext* context) {
    *context = reinterpret_cast<CUcontext>(reinterpret_cast<uintptr_t>(stream) / 10);  // NOLINT
    return CUDA_SUCCESS;
  };
  api.cuCtxGetCurrent = [](CUcontext* context) {
    *context = nullptr;
    return CUDA_SUCCESS;
  };
  api.cuCtxPushCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  api.cuCtxPopCurrent = [](CUcontext*) { return CUDA_SUCCESS; };
  api.cuMemAlloc = [](CUdeviceptr* address, size_t /*bytes*/) {
    *address = 4096;
    return CUDA_SUCCESS;
  };
  api.cuMemFree = [](CUdeviceptr) {
    ++freed_with_a_wait;
    return CUDA_SUCCESS;
  };
  // Each first run takes a workspace once.
  api.cuMemAllocAsync = [](CUdeviceptr* address, size_t bytes, CUstream stream) {
    if (IsOfLane(stream)) ++on_lanes;
    if (bytes == kWorkspaceBytes) ++first_runs;
    ++scratch;
    *address = 4096;
    return CUDA_SUCCESS;
  };
  api.cuMemFreeAsync = [](CUdeviceptr, CUstream stream) {
    if (IsOfLane(stream)) ++on_lanes;
    --scratch;
    return CUDA_SUCCESS;
  };
  api.cuStreamDestroy = [](CUstream stream) {
    if (IsOfLane(stream)) ++on_lanes;
    return CUDA_SUCCESS;
  };
  api.cuStreamQuery = [](CUstream stream) {
    if (IsOfLane(stream)) ++on_lanes;
    return work_ends ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  api.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode*) { return CUDA_SUCCESS; };
  return api;
}

core::KernelDesc Product(uint32_t id) {
  core::KernelDesc kernel;
  kernel.id = core::KernelId{id};
  kernel.name = "product";
  kernel.code =
      core::LibraryCall{.operation = core::LibraryOperation::kMatmul, .m = 64, .n = 64, .k = 64};
  return kernel;
}

class LibraryLanesTest : public testing::Test {
 protected:
  void SetUp() override {
    control_ = OpenFakeLibrary<FakeCublasLtControl>("libcublasLt.so.13", "fake_cublaslt_control");
    ASSERT_NE(control_, nullptr);
    work_ends = true;
    first_runs = scratch = freed_with_a_wait = on_lanes = 0;
  }
  void TearDown() override { EXPECT_EQ(on_lanes, 0) << "a lane's stream belongs to its launches"; }

  absl::Status Multiply(uint32_t kernel, core::LaneIndex lane) {
    core::LibraryArguments arguments;
    arguments.a = arguments.b = arguments.d = operand_;
    return calls_->Enqueue(core::KernelId{kernel}, lane, arguments);
  }

  const DriverApi api_ = FakeDriver();
  FakeCublasLtControl* control_ = nullptr;
  std::unique_ptr<LibraryCalls> calls_ = LibraryCalls::Make(api_, [](core::PlaceIndex place) {
    return Stream(kOwnStreams + static_cast<uintptr_t>(place));
  });
  alignas(256) char operand_[256] = {};
};

// A handle serves one thread at a time, and calls run on the lane while a plan is made.
TEST_F(LibraryLanesTest, PlansAreMadeWithAHandleThatNoCallUses) {
  ASSERT_TRUE(calls_->AddLane(0, Stream(10), core::kWholeDevice, 132).ok());
  ASSERT_TRUE(calls_->AddLane(1, Stream(20), 1, 64).ok());
  for (const uint32_t kernel : {1u, 2u}) {
    ASSERT_TRUE(calls_->Prepare(Product(kernel)).ok());
    const void* const of_plans = control_->plan_handle;
    ASSERT_NE(of_plans, nullptr);
    for (const core::LaneIndex lane : {0, 1}) {
      ASSERT_TRUE(Multiply(kernel, lane).ok());
      EXPECT_NE(control_->product_handle, of_plans) << "lane " << lane;
    }
  }
}

// A kernel with clusters does not run on every part of the device.
TEST_F(LibraryLanesTest, ACallThatIsNotConfinableIsPreparedForTheWholeDeviceOnly) {
  ASSERT_TRUE(calls_->AddLane(0, Stream(10), core::kWholeDevice, 132).ok());
  ASSERT_TRUE(calls_->AddLane(1, Stream(20), 1, 64).ok());
  core::KernelDesc product = Product(1);
  product.confinable = false;
  ASSERT_TRUE(calls_->Prepare(product).ok());
  EXPECT_EQ(first_runs, 1);
  EXPECT_TRUE(Multiply(1, 0).ok());
  EXPECT_EQ(Multiply(1, 1).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(calls_->AddLane(2, Stream(21), 1, 64).ok());
  EXPECT_EQ(Multiply(1, 2).code(), absl::StatusCode::kFailedPrecondition);
}

// The scheduler replaces a hung lane while a registration waits for the device.
TEST_F(LibraryLanesTest, ALaneIsMadeWhileARegistrationWaitsForItsFirstRun) {
  ASSERT_TRUE(calls_->AddLane(0, Stream(10), core::kWholeDevice, 132).ok());
  ASSERT_TRUE(calls_->Prepare(Product(1)).ok());
  work_ends = false;
  const int before = first_runs;
  std::future<absl::Status> prepared =
      std::async(std::launch::async, [&] { return calls_->Prepare(Product(2)); });
  while (first_runs == before) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(calls_->AddLane(1, Stream(11), core::kWholeDevice, 132).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, kSoon);
  EXPECT_EQ(prepared.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_TRUE(Multiply(1, 1).ok()) << "an earlier registration runs at once";
  EXPECT_EQ(Multiply(2, 1).code(), absl::StatusCode::kFailedPrecondition);
  work_ends = true;
  ASSERT_TRUE(prepared.get().ok());
  EXPECT_TRUE(Multiply(2, 0).ok());
  EXPECT_TRUE(Multiply(2, 1).ok()) << "the registration prepared the lane made meanwhile";
}

// To free memory that was not allocated in the order of a stream waits for all work on the device,
// the application's too.
TEST_F(LibraryLanesTest, AFirstRunFreesItsMemoryWithoutAWait) {
  ASSERT_TRUE(calls_->AddLane(0, Stream(10), core::kWholeDevice, 132).ok());
  ASSERT_TRUE(calls_->AddLane(1, Stream(20), 1, 64).ok());
  ASSERT_TRUE(calls_->Prepare(Product(1)).ok());
  EXPECT_EQ(first_runs, 2);
  EXPECT_EQ(scratch, 0);
  EXPECT_EQ(freed_with_a_wait, 0);
}

TEST_F(LibraryLanesTest, AFailedLaneLeavesItsIndexFree) {
  ASSERT_TRUE(calls_->AddLane(0, Stream(10), core::kWholeDevice, 132).ok());
  ASSERT_TRUE(calls_->Prepare(Product(1)).ok());
  control_->algorithms = 0;  // so that no plan for another SM count can be made
  EXPECT_FALSE(calls_->AddLane(1, Stream(20), 1, 64).ok());
  EXPECT_EQ(Multiply(1, 1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(calls_->AddLane(1, Stream(11), core::kWholeDevice, 132).ok());
  EXPECT_TRUE(Multiply(1, 1).ok());
}

}  // namespace
}  // namespace gpushare::cuda
