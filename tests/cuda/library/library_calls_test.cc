// cuBLASLt and cuDNN calls on a real GPU against references in float64, on a lane of the whole
// device and on one of a partition. Shapes are small; values are random with a fixed seed.

#include "src/cuda/library/library_calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cuda/driver/context_fixture.h"

namespace gpushare::cuda {
namespace {

using core::DataType;
using core::LibraryArguments;
using core::LibraryCall;
using core::LibraryMode;
using core::LibraryOperation;

constexpr core::LaneIndex kWhole = 0;
constexpr core::LaneIndex kPart = 1;

using Values = std::vector<float>;

uint16_t ToBfloat16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  bits += 0x7FFF + ((bits >> 16) & 1);  // round to nearest, ties to even
  return static_cast<uint16_t>(bits >> 16);
}

float FromBfloat16(uint16_t value) {
  const uint32_t bits = uint32_t{value} << 16;
  float out = 0;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

// Uniform in [-1, 1], rounded to the data type. float32 values use all 24 bits, so that a product
// in TF32 would be wrong by a thousandth.
Values Random(size_t count, DataType type, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  Values out(count);
  for (float& value : out) {
    value = uniform(generator);
    if (type == DataType::kBfloat16) value = FromBfloat16(ToBfloat16(value));
  }
  return out;
}

struct Output {
  int64_t height, width;
};

Output WindowOutput(const LibraryCall& call) {
  const auto size = [&](int64_t image, int64_t window) {
    return (image + 2 * call.padding - (call.dilation * (window - 1) + 1)) / call.stride + 1;
  };
  return {size(call.height, call.filter_height), size(call.width, call.filter_width)};
}

// Index of an element in a tensor of images of `channels` x `height` x `width`.
size_t At(const LibraryCall& call, int64_t channels, int64_t height, int64_t width, int64_t n,
          int64_t c, int64_t y, int64_t x) {
  const int64_t index = call.channels_last ? ((n * height + y) * width + x) * channels + c
                                           : ((n * channels + c) * height + y) * width + x;
  return static_cast<size_t>(index);
}

std::vector<double> MatmulReference(const LibraryCall& call, const Values& a, const Values& b,
                                    const Values& c, float alpha, float beta) {
  std::vector<double> out(static_cast<size_t>(call.batch * call.m * call.n));
  for (int64_t batch = 0; batch < call.batch; ++batch) {
    for (int64_t row = 0; row < call.m; ++row) {
      for (int64_t column = 0; column < call.n; ++column) {
        double sum = 0;
        for (int64_t i = 0; i < call.k; ++i) {
          const int64_t in_a = call.transpose_a ? i * call.m + row : row * call.k + i;
          const int64_t in_b = call.transpose_b ? column * call.k + i : i * call.n + column;
          sum += double{a[static_cast<size_t>(batch * call.m * call.k + in_a)]} *
                 double{b[static_cast<size_t>(batch * call.k * call.n + in_b)]};
        }
        const auto at = static_cast<size_t>((batch * call.m + row) * call.n + column);
        out[at] = double{alpha} * sum + (c.empty() ? 0.0 : double{beta} * double{c[at]});
      }
    }
  }
  return out;
}

std::vector<double> ConvolutionReference(const LibraryCall& call, const Values& x,
                                         const Values& filters) {
  const Output output = WindowOutput(call);
  const int64_t depth = call.channels / call.groups;
  std::vector<double> out(
      static_cast<size_t>(call.batch * call.filters * output.height * output.width));
  for (int64_t n = 0; n < call.batch; ++n) {
    for (int64_t f = 0; f < call.filters; ++f) {
      const int64_t first = f / (call.filters / call.groups) * depth;
      for (int64_t oy = 0; oy < output.height; ++oy) {
        for (int64_t ox = 0; ox < output.width; ++ox) {
          double sum = 0;
          for (int64_t c = 0; c < depth; ++c) {
            for (int64_t fy = 0; fy < call.filter_height; ++fy) {
              for (int64_t fx = 0; fx < call.filter_width; ++fx) {
                const int64_t y = oy * call.stride - call.padding + fy * call.dilation;
                const int64_t xx = ox * call.stride - call.padding + fx * call.dilation;
                if (y < 0 || y >= call.height || xx < 0 || xx >= call.width) continue;
                sum +=
                    double{
                        x[At(call, call.channels, call.height, call.width, n, first + c, y, xx)]} *
                    double{filters[At(call, depth, call.filter_height, call.filter_width, f, c, fy,
                                      fx)]};
              }
            }
          }
          out[At(call, call.filters, output.height, output.width, n, f, oy, ox)] = sum;
        }
      }
    }
  }
  return out;
}

std::vector<double> PoolingReference(const LibraryCall& call, const Values& x) {
  const Output output = WindowOutput(call);
  const bool average = call.mode == LibraryMode::kAveragePooling;
  std::vector<double> out(
      static_cast<size_t>(call.batch * call.channels * output.height * output.width));
  for (int64_t n = 0; n < call.batch; ++n) {
    for (int64_t c = 0; c < call.channels; ++c) {
      for (int64_t oy = 0; oy < output.height; ++oy) {
        for (int64_t ox = 0; ox < output.width; ++ox) {
          double value = average ? 0 : -std::numeric_limits<double>::infinity();
          for (int64_t fy = 0; fy < call.filter_height; ++fy) {
            for (int64_t fx = 0; fx < call.filter_width; ++fx) {
              const int64_t y = oy * call.stride - call.padding + fy;
              const int64_t xx = ox * call.stride - call.padding + fx;
              if (y < 0 || y >= call.height || xx < 0 || xx >= call.width) continue;
              const double element{
                  x[At(call, call.channels, call.height, call.width, n, c, y, xx)]};
              value = average ? value + element : std::max(value, element);
            }
          }
          if (average) value /= static_cast<double>(call.filter_height * call.filter_width);
          out[At(call, call.channels, output.height, output.width, n, c, oy, ox)] = value;
        }
      }
    }
  }
  return out;
}

std::vector<double> SoftmaxReference(const LibraryCall& call, const Values& x) {
  std::vector<double> out(x.size());
  const auto at = [&](int64_t n, int64_t c, int64_t y, int64_t xx) {
    return At(call, call.channels, call.height, call.width, n, c, y, xx);
  };
  for (int64_t n = 0; n < call.batch; ++n) {
    for (int64_t y = 0; y < call.height; ++y) {
      for (int64_t xx = 0; xx < call.width; ++xx) {
        double sum = 0;
        for (int64_t c = 0; c < call.channels; ++c) sum += std::exp(double{x[at(n, c, y, xx)]});
        for (int64_t c = 0; c < call.channels; ++c) {
          out[at(n, c, y, xx)] = std::exp(double{x[at(n, c, y, xx)]}) / sum;
        }
      }
    }
  }
  return out;
}

// What first runs got of the driver.
struct FirstRuns {
  decltype(DriverApi::cuMemAllocAsync) allocate = nullptr;
  int allocated = 0;
  int refused = 0;
};
FirstRuns& Watched() {
  static FirstRuns runs;
  return runs;
}

class LibraryCallsTest : public PlacesTest {
 protected:
  void SetUp() override {
    PlacesTest::SetUp();
    if (!ready()) return;
    watched_ = driver();
    Watched() = {driver().cuMemAllocAsync, 0, 0};
    watched_.cuMemAllocAsync = [](CUdeviceptr* address, size_t bytes, CUstream stream) {
      const CUresult code = Watched().allocate(address, bytes, stream);
      ++(code == CUDA_SUCCESS ? Watched().allocated : Watched().refused);
      return code;
    };
    calls_ = LibraryCalls::Make(
        watched_, [this](core::PlaceIndex place) { return places_->MakeStream(place, 0); });
    AddLane(core::kWholeDevice, sms_);
    AddLane(half_, places_->place(half_).sms);
  }

  void TearDown() override {
    calls_.reset();
    PlacesTest::TearDown();
  }

  void AddLane(core::PlaceIndex place, int32_t sm_count) {
    const auto lane = static_cast<core::LaneIndex>(streams_.size());
    CUstream const stream = MakeStream(place);
    ASSERT_NE(stream, nullptr);
    const absl::Status added = calls_->AddLane(lane, stream, place, sm_count);
    ASSERT_TRUE(added.ok()) << added;
  }

  // The id of the prepared call; 0 if its library is not installed.
  uint32_t Prepare(const LibraryCall& call) {
    core::KernelDesc kernel;
    kernel.id = core::KernelId{++last_kernel_};
    kernel.name = "call";
    kernel.code = call;
    const absl::Status status = calls_->Prepare(kernel);
    if (absl::IsUnavailable(status) || absl::IsUnimplemented(status)) {
      missing_ = std::string(status.message());
      return 0;
    }
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? kernel.id.value : 0;
  }

  static size_t BytesOf(DataType type) { return type == DataType::kFloat32 ? 4 : 2; }

  // Device memory with these values, starting `skip` elements behind its start. Null for no values.
  void* Upload(const Values& values, DataType type, size_t skip = 0) {
    if (values.empty()) return nullptr;
    const size_t element = BytesOf(type);
    std::vector<unsigned char> bytes(values.size() * element);
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t small = ToBfloat16(values[i]);
      const void* const from = type == DataType::kFloat32 ? static_cast<const void*>(&values[i])
                                                          : static_cast<const void*>(&small);
      std::memcpy(bytes.data() + i * element, from, element);
    }
    const CUdeviceptr address = Allocate(bytes.size() + skip * element) + skip * element;
    CopyToDevice(address, bytes);
    return reinterpret_cast<void*>(address);
  }

  Values Download(const void* address, size_t count, DataType type) {
    const std::vector<unsigned char> bytes = CopyFromDevice(address, count * BytesOf(type));
    Values out(count);
    for (size_t i = 0; i < count; ++i) {
      if (type == DataType::kFloat32) {
        std::memcpy(&out[i], bytes.data() + i * 4, 4);
      } else {
        uint16_t small = 0;
        std::memcpy(&small, bytes.data() + i * 2, 2);
        out[i] = FromBfloat16(small);
      }
    }
    return out;
  }

  void Run(uint32_t kernel, core::LaneIndex lane, const LibraryArguments& arguments) {
    const absl::Status status = calls_->Enqueue(core::KernelId{kernel}, lane, arguments);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(driver().cuStreamSynchronize(streams_[static_cast<size_t>(lane)]), CUDA_SUCCESS);
  }

  // `tolerance` is relative to the result and applies to float32; bfloat16 has 8 bits.
  void ExpectNear(const void* address, const std::vector<double>& expected, DataType type,
                  double tolerance = 1e-5) {
    const Values got = Download(address, expected.size(), type);
    const double allowed = type == DataType::kFloat32 ? tolerance : 1.0 / 128;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(double{got[i]}, expected[i], allowed * (1 + std::abs(expected[i])))
          << "element " << i;
    }
  }

  // Runs one cuDNN operation on both lanes.
  void CheckImages(const LibraryCall& call, const Values& x, const Values& filters,
                   const std::vector<double>& expected) {
    const uint32_t kernel = Prepare(call);
    if (kernel == 0) return;
    for (const core::LaneIndex lane : {kWhole, kPart}) {
      SCOPED_TRACE(lane);
      LibraryArguments arguments;
      arguments.a = Upload(x, call.type);
      arguments.b = Upload(filters, call.type);
      arguments.d = Upload(Values(expected.size(), 77), call.type);
      Run(kernel, lane, arguments);
      ExpectNear(arguments.d, expected, call.type);
    }
  }

  DriverApi watched_;
  std::unique_ptr<LibraryCalls> calls_;
  uint32_t last_kernel_ = 0;
  std::string missing_;
};

#define SKIP_IF_MISSING() \
  if (!missing_.empty()) GTEST_SKIP() << missing_

LibraryCall Product(DataType type, int64_t m, int64_t n, int64_t k, int64_t batch = 1) {
  LibraryCall call = {
      .operation = LibraryOperation::kMatmul, .type = type, .m = m, .n = n, .k = k, .batch = batch};
  return call;
}

LibraryCall Images(LibraryOperation operation, DataType type, int64_t batch, int64_t channels,
                   int64_t height, int64_t width) {
  LibraryCall call;
  call.operation = operation;
  call.type = type;
  call.batch = batch;
  call.channels = channels;
  call.height = height;
  call.width = width;
  return call;
}

size_t SizeOf(const LibraryCall& call) {
  return static_cast<size_t>(call.batch * call.channels * call.height * call.width);
}

// Four allocations in the order of a stream of the place: operands and a workspace.
TEST_F(LibraryCallsTest, AFirstRunFindsMemoryInEachPlace) {
  if (Prepare({.operation = LibraryOperation::kMatmul, .m = 64, .n = 64, .k = 64}) == 0) {
    GTEST_SKIP() << missing_;
  }
  EXPECT_EQ(Watched().allocated, 2 * 4);
  EXPECT_EQ(Watched().refused, 0);
}

TEST_F(LibraryCallsTest, MatrixProductsMatchTheReference) {
  for (const DataType type : {DataType::kFloat32, DataType::kBfloat16}) {
    for (const int transposes : {0, 1, 2, 3}) {
      for (const int64_t batch : {1, 3}) {
        LibraryCall call = Product(type, 48, 80, 64, batch);
        call.transpose_a = (transposes & 1) != 0;
        call.transpose_b = (transposes & 2) != 0;
        SCOPED_TRACE(testing::Message() << "type " << static_cast<int>(type) << " transposes "
                                        << transposes << " batch " << batch);
        const uint32_t kernel = Prepare(call);
        SKIP_IF_MISSING();
        const Values a = Random(static_cast<size_t>(batch * call.m * call.k), type, 1);
        const Values b = Random(static_cast<size_t>(batch * call.k * call.n), type, 2);
        const Values c = Random(static_cast<size_t>(batch * call.m * call.n), type, 3);
        for (const core::LaneIndex lane : {kWhole, kPart}) {
          LibraryArguments arguments = {
              .a = Upload(a, type), .b = Upload(b, type), .d = Upload(Values(c.size(), 77), type)};
          ASSERT_NO_FATAL_FAILURE(Run(kernel, lane, arguments));
          ASSERT_NO_FATAL_FAILURE(
              ExpectNear(arguments.d, MatmulReference(call, a, b, {}, 1, 0), type));
          arguments.c = Upload(c, type);
          arguments.alpha = 0.5F;
          arguments.beta = -2;
          ASSERT_NO_FATAL_FAILURE(Run(kernel, lane, arguments));
          ASSERT_NO_FATAL_FAILURE(
              ExpectNear(arguments.d, MatmulReference(call, a, b, c, 0.5F, -2), type));
        }
      }
    }
  }
}

TEST_F(LibraryCallsTest, OddShapesAndUnalignedOperandsMatchTheReference) {
  for (const DataType type : {DataType::kFloat32, DataType::kBfloat16}) {
    const LibraryCall call = Product(type, 37, 29, 13);
    const uint32_t kernel = Prepare(call);
    SKIP_IF_MISSING();
    const Values a = Random(37 * 13, type, 4);
    const Values b = Random(13 * 29, type, 5);
    for (const size_t skip : {size_t{0}, size_t{1}}) {
      LibraryArguments arguments;
      arguments.a = Upload(a, type, skip);
      arguments.b = Upload(b, type, skip);
      arguments.d = Upload(Values(37 * 29, 77), type, skip);
      ASSERT_NO_FATAL_FAILURE(Run(kernel, kPart, arguments));
      ASSERT_NO_FATAL_FAILURE(ExpectNear(arguments.d, MatmulReference(call, a, b, {}, 1, 0), type));
    }
  }
}

TEST_F(LibraryCallsTest, ConvolutionsMatchTheReference) {
  LibraryCall plain = Images(LibraryOperation::kConvolution, DataType::kFloat32, 2, 8, 14, 12);
  plain.filters = 16;
  plain.filter_height = plain.filter_width = 3;
  plain.padding = 1;
  LibraryCall strided = plain;
  strided.stride = 2;
  strided.dilation = 2;
  strided.padding = 2;
  LibraryCall grouped = plain;
  grouped.groups = 2;
  LibraryCall half = plain;
  half.type = DataType::kBfloat16;
  half.channels_last = true;
  for (const LibraryCall& call : {plain, strided, grouped, half}) {
    SCOPED_TRACE(testing::Message() << "stride " << call.stride << " groups " << call.groups
                                    << " type " << static_cast<int>(call.type));
    const Values x = Random(SizeOf(call), call.type, 6);
    const Values filters =
        Random(static_cast<size_t>(call.filters * (call.channels / call.groups) * 9), call.type, 7);
    ASSERT_NO_FATAL_FAILURE(CheckImages(call, x, filters, ConvolutionReference(call, x, filters)));
    SKIP_IF_MISSING();
  }
}

TEST_F(LibraryCallsTest, AConvolutionAddsInPlaceAndNowhereElse) {
  LibraryCall call = Images(LibraryOperation::kConvolution, DataType::kFloat32, 1, 4, 6, 6);
  call.filters = 4;
  call.filter_height = call.filter_width = 1;
  const uint32_t kernel = Prepare(call);
  SKIP_IF_MISSING();
  const Values x = Random(SizeOf(call), call.type, 8);
  const Values filters = Random(16, call.type, 9);
  const Values before = Random(SizeOf(call), call.type, 10);
  LibraryArguments arguments = {.a = Upload(x, call.type), .b = Upload(filters, call.type)};
  arguments.c = arguments.d = Upload(before, call.type);
  arguments.alpha = 2;
  arguments.beta = 0.5F;
  ASSERT_NO_FATAL_FAILURE(Run(kernel, kWhole, arguments));
  std::vector<double> expected = ConvolutionReference(call, x, filters);
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] = 2 * expected[i] + 0.5 * double{before[i]};
  }
  ASSERT_NO_FATAL_FAILURE(ExpectNear(arguments.d, expected, call.type));
  arguments.c = arguments.a;
  EXPECT_EQ(calls_->Enqueue(core::KernelId{kernel}, kWhole, arguments).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LibraryCallsTest, PoolingMatchesTheReference) {
  for (const LibraryMode mode :
       {LibraryMode::kDefault, LibraryMode::kMaxPooling, LibraryMode::kAveragePooling}) {
    for (const bool channels_last : {false, true}) {
      LibraryCall call = Images(LibraryOperation::kPooling, DataType::kFloat32, 2, 8, 9, 11);
      call.mode = mode;
      call.channels_last = channels_last;
      call.filter_height = 3;
      call.filter_width = 2;
      call.padding = 1;
      call.stride = 2;
      const Values x = Random(SizeOf(call), call.type, 11);
      ASSERT_NO_FATAL_FAILURE(CheckImages(call, x, {}, PoolingReference(call, x)));
      SKIP_IF_MISSING();
    }
  }
}

TEST_F(LibraryCallsTest, ActivationsMatchTheReference) {
  const std::vector<std::pair<LibraryMode, std::function<double(double)>>> modes = {
      {LibraryMode::kDefault, [](double x) { return std::max(x, 0.0); }},
      {LibraryMode::kRelu, [](double x) { return std::max(x, 0.0); }},
      {LibraryMode::kTanh, [](double x) { return std::tanh(x); }},
      {LibraryMode::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }}};
  for (const auto& [mode, function] : modes) {
    for (const DataType type : {DataType::kFloat32, DataType::kBfloat16}) {
      LibraryCall call = Images(LibraryOperation::kActivation, type, 2, 8, 5, 7);
      call.mode = mode;
      const Values x = Random(SizeOf(call), call.type, 12);
      std::vector<double> expected;
      for (const float value : x) expected.push_back(function(double{value}));
      ASSERT_NO_FATAL_FAILURE(CheckImages(call, x, {}, expected));
      SKIP_IF_MISSING();
    }
  }
}

TEST_F(LibraryCallsTest, SoftmaxRunsOverTheChannels) {
  for (const bool channels_last : {false, true}) {
    LibraryCall call = Images(LibraryOperation::kSoftmax, DataType::kFloat32, 3, 17, 2, 2);
    call.channels_last = channels_last;
    const Values x = Random(SizeOf(call), call.type, 13);
    ASSERT_NO_FATAL_FAILURE(CheckImages(call, x, {}, SoftmaxReference(call, x)));
    SKIP_IF_MISSING();
  }
}

TEST_F(LibraryCallsTest, ALaterLaneRunsPreparedCalls) {
  const LibraryCall call = Product(DataType::kFloat32, 32, 32, 32);
  const uint32_t kernel = Prepare(call);
  SKIP_IF_MISSING();
  ASSERT_NO_FATAL_FAILURE(AddLane(core::kWholeDevice, 0));
  const Values a = Random(1024, call.type, 14);
  const Values b = Random(1024, call.type, 15);
  LibraryArguments arguments;
  arguments.a = Upload(a, call.type);
  arguments.b = Upload(b, call.type);
  arguments.d = Upload(Values(1024, 77), call.type);
  ASSERT_NO_FATAL_FAILURE(Run(kernel, 2, arguments));
  ASSERT_NO_FATAL_FAILURE(
      ExpectNear(arguments.d, MatmulReference(call, a, b, {}, 1, 0), call.type));
}

TEST_F(LibraryCallsTest, InvalidCallsAreRefusedBeforeTheDevice) {
  const LibraryCall call = Product(DataType::kFloat32, 32, 32, 32);
  const uint32_t kernel = Prepare(call);
  SKIP_IF_MISSING();
  LibraryArguments arguments;
  const auto code = [&](uint32_t id, core::LaneIndex lane) {
    return calls_->Enqueue(core::KernelId{id}, lane, arguments).code();
  };
  EXPECT_EQ(code(kernel, kWhole), absl::StatusCode::kInvalidArgument);  // no operands
  arguments.a = arguments.d = Upload(Values(1024, 1), call.type);
  EXPECT_EQ(code(kernel, kWhole), absl::StatusCode::kInvalidArgument);  // no b
  arguments.b = arguments.a;
  arguments.beta = 1;
  EXPECT_EQ(code(kernel, kWhole), absl::StatusCode::kInvalidArgument);  // no c
  arguments.beta = 0;
  EXPECT_EQ(code(kernel + 1, kWhole), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(kernel, 9), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code(kernel, -1), absl::StatusCode::kFailedPrecondition);
  core::KernelDesc nothing;
  nothing.id = core::KernelId{99};
  nothing.name = "nothing";
  EXPECT_EQ(calls_->Prepare(nothing).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gpushare::cuda
