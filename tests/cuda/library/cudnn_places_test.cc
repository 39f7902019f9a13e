// On a real GPU: a convolution on part of the SMs by the graph form, which gets their number,
// against the immediate function. Shapes are small; values are random with a fixed seed.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/cuda/library/cudnn_convolution.h"
#include "src/cuda/library/cudnn_convolution_graph.h"
#include "tests/cuda/driver/context_fixture.h"

namespace gpushare::cuda {
namespace {

using core::DataType;

uint16_t ToSmall(float value, DataType type) {
  if (type == DataType::kFloat16) return __half_raw(__float2half_rn(value)).x;
  return __nv_bfloat16_raw(__float2bfloat16_rn(value)).x;
}

float FromSmall(uint16_t bits, DataType type) {
  __half_raw half{};
  __nv_bfloat16_raw bfloat{};
  half.x = bfloat.x = bits;
  return type == DataType::kFloat16 ? __half2float(half) : __bfloat162float(bfloat);
}

// The allowed error relative to the result: what two orders of summation differ by. TF32 differs by
// more than ten times what float32 may.
double AllowedOf(DataType type) {
  if (type == DataType::kFloat16) return 4.0 / 1024;
  return type == DataType::kBfloat16 ? 4.0 / 128 : 2e-4;
}

class CudnnPlacesTest : public PlacesTest {
 protected:
  void SetUp() override {
    PlacesTest::SetUp();
    if (!ready()) return;
    auto api = OpenCudnnApi();
    if (!api.ok()) GTEST_SKIP() << api.status().message();
    api_ = *api;
    part_ = places_->place(half_);
    stream_ = MakeStream(half_);
    ASSERT_NE(stream_, nullptr);
    ASSERT_EQ(driver().cuCtxPushCurrent(part_.context), CUDA_SUCCESS);
    ASSERT_EQ(api_.cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(api_.cudnnSetStream(handle_, stream_), CUDNN_STATUS_SUCCESS);
    workspace_ = Buffer(kWorkspaceBytes);
  }

  void TearDown() override {
    if (handle_ != nullptr) {
      api_.cudnnDestroy(handle_);
      CUcontext popped = nullptr;
      driver().cuCtxPopCurrent(&popped);
    }
    PlacesTest::TearDown();
  }

  void* Buffer(size_t bytes) {
    return reinterpret_cast<void*>(Allocate(bytes));  // NOLINT(performance-no-int-to-ptr)
  }

  void* UploadRandom(size_t count, DataType type, uint32_t seed) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<unsigned char> bytes(count * BytesOf(type));
    for (size_t i = 0; i < count; ++i) {
      const float value = uniform(generator);
      const uint16_t small = ToSmall(value, type);
      const void* const from = type == DataType::kFloat32 ? static_cast<const void*>(&value)
                                                          : static_cast<const void*>(&small);
      std::memcpy(bytes.data() + i * BytesOf(type), from, BytesOf(type));
    }
    void* const address = Buffer(bytes.size());
    CopyToDevice(reinterpret_cast<CUdeviceptr>(address), bytes);
    return address;
  }

  std::vector<float> Download(const void* address, size_t count, DataType type) {
    const std::vector<unsigned char> bytes = CopyFromDevice(address, count * BytesOf(type));
    std::vector<float> out(count);
    for (size_t i = 0; i < count; ++i) {
      if (type == DataType::kFloat32) {
        std::memcpy(&out[i], bytes.data() + i * 4, 4);
      } else {
        uint16_t small = 0;
        std::memcpy(&small, bytes.data() + i * 2, 2);
        out[i] = FromSmall(small, type);
      }
    }
    return out;
  }

  // Runs both forms on the same operands on part of the SMs. Not every engine takes an SM count; on
  // Hopper those for float16 and bfloat16 without groups do.
  void Compare(const core::LibraryCall& call) {
    const auto plan = MakeCudnnConvolution(api_, handle_, call, part_.sms).value();
    const OperandBytes bytes = plan->operands();
    const size_t element = BytesOf(call.type);
    core::LibraryArguments arguments;
    arguments.a = UploadRandom(bytes.a / element, call.type, 1);
    arguments.b = UploadRandom(bytes.b / element, call.type, 2);
    arguments.d = Buffer(bytes.d);
    ConvolutionGraph graph(api_, call);
    const CudnnDimensions output = {Int(call.batch), Int(call.filters), Int(call.height),
                                    Int(call.width)};
    const absl::Status made = graph.Make(handle_, output, part_.sms);
    const bool hopper = context_->Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 9;
    if (hopper && call.groups == 1 && call.type != DataType::kFloat32) {
      EXPECT_TRUE(made.ok()) << made;
    }
    if (!made.ok()) return;
    ++compared_;
    const absl::Status status = graph.Execute(handle_, workspace_, arguments);
    ASSERT_TRUE(status.ok()) << status;
    const std::vector<float> got = Download(arguments.d, bytes.d / element, call.type);
    // Doubling the result is exact, and only the immediate function does it.
    arguments.alpha = 2;
    const absl::Status immediate = plan->Enqueue(handle_, stream_, workspace_, arguments);
    ASSERT_TRUE(immediate.ok()) << immediate;
    const std::vector<float> twice = Download(arguments.d, bytes.d / element, call.type);
    for (size_t i = 0; i < got.size(); ++i) {
      const double expected = double{twice[i]} / 2;
      ASSERT_NEAR(double{got[i]}, expected, AllowedOf(call.type) * (1 + std::abs(expected)))
          << "element " << i;
    }
  }

  CudnnApi api_;
  Place part_;
  CUstream stream_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  int compared_ = 0;
};

TEST_F(CudnnPlacesTest, TheGraphFormWithAnSmCountEqualsTheImmediateFunction) {
  for (const DataType type : {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32}) {
    for (const bool channels_last : {true, false}) {
      for (const int64_t groups : {1, 4}) {
        SCOPED_TRACE(testing::Message() << "type " << static_cast<int>(type) << " channels last "
                                        << channels_last << " groups " << groups);
        core::LibraryCall call;
        call.operation = core::LibraryOperation::kConvolution;
        call.type = type;
        call.channels_last = channels_last;
        call.groups = groups;
        call.batch = 4;
        call.channels = call.filters = 64;
        call.height = 28;
        call.width = 24;
        call.filter_height = call.filter_width = 3;
        call.padding = 1;
        ASSERT_NO_FATAL_FAILURE(Compare(call));
      }
    }
  }
  if (compared_ == 0) GTEST_SKIP() << "no engine of this GPU takes an SM count";
}

}  // namespace
}  // namespace gpushare::cuda
