// What a library call's parameters say about its duration.

#include "src/models/library/library_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpushare::models {
namespace {

const LibraryDevice kDevice;

core::LibraryCall Matmul(int64_t m, int64_t n, int64_t k,
                         core::DataType type = core::DataType::kFloat16) {
  core::LibraryCall call = {
      .operation = core::LibraryOperation::kMatmul, .type = type, .m = m, .n = n, .k = k};
  return call;
}

// 16 images of 64 x 56 x 56, 128 filters of 3 x 3.
core::LibraryCall Convolution(int64_t stride = 1) {
  core::LibraryCall call;
  call.operation = core::LibraryOperation::kConvolution;
  call.type = core::DataType::kFloat16;
  call.channels_last = true;
  call.batch = 16;
  call.channels = 64;
  call.height = call.width = 56;
  call.filters = 128;
  call.filter_height = call.filter_width = 3;
  call.padding = 1;
  call.stride = stride;
  return call;
}

double LeastNs(const core::LibraryCall& call) { return FeaturesOf(kDevice, call).least_ns; }
size_t ClassOf(const core::LibraryCall& call) { return FeaturesOf(kDevice, call).call_class; }

TEST(LibraryFeatures, TheLeastTimeIsThatOfTheArithmeticOrOfTheBytes) {
  const double launch_ns = LeastNs(Matmul(1, 1, 1));
  EXPECT_GT(launch_ns, 0);
  EXPECT_NEAR(LeastNs(Matmul(8192, 8192, 8192)) - launch_ns,
              2.0 * 8192 * 8192 * 8192 / kDevice.half_flops_per_ns, 1);
  EXPECT_NEAR(LeastNs(Matmul(1, 28672, 4096)) - launch_ns,
              2.0 * (4096 + 28672 + 28672.0 * 4096) / kDevice.bytes_per_ns, 1);
}

// 1,024 tiles of 128 x 128 on 132 SMs are 8 waves, of which the last is not full.
TEST(LibraryFeatures, ProductsInSinglePrecisionTakeWholeWavesOfTiles) {
  const double least_ns = LeastNs(Matmul(4096, 4096, 4096, core::DataType::kFloat32));
  EXPECT_NEAR(least_ns - LeastNs(Matmul(1, 1, 1)),
              2.0 * 8 * 132 * 128 * 128 * 4096 / kDevice.single_flops_per_ns, 1);
  // 8 rows cost about as much as 32, which the smallest tile has.
  const double of_32_ns = LeastNs(Matmul(32, 8192, 8192, core::DataType::kFloat32));
  EXPECT_NEAR(LeastNs(Matmul(8, 8192, 8192, core::DataType::kFloat32)), of_32_ns, 0.05 * of_32_ns);
  // One tile's sum over a long k is cut into parts for many SMs.
  EXPECT_LT(LeastNs(Matmul(128, 128, 16384, core::DataType::kFloat32)),
            0.05 * 2 * 132 * 128 * 128 * 16384 / kDevice.single_flops_per_ns);
}

TEST(LibraryFeatures, RowsAtMultiplesOfTwoBytesAreSlowerThanOfFour) {
  const auto values = [](int64_t n) { return FeaturesOf(kDevice, Matmul(2048, n, 4096)).values; };
  EXPECT_EQ(values(4097)[kLogAlignment], 1);
  EXPECT_EQ(values(4098)[kLogAlignment], 2);
  EXPECT_EQ(values(4096)[kLogAlignment], 4);
  EXPECT_GT(LeastNs(Matmul(2048, 4097, 4096)), 1.5 * LeastNs(Matmul(2048, 4098, 4096)));
  EXPECT_GT(LeastNs(Matmul(2048, 4098, 4096)), 2 * LeastNs(Matmul(2048, 4096, 4096)));
}

TEST(LibraryFeatures, AConvolutionIsAProduct) {
  const LibraryFeatures one = FeaturesOf(kDevice, Convolution());
  ASSERT_TRUE(one.known);
  EXPECT_DOUBLE_EQ(one.values[kLogM], std::log2(16.0 * 56 * 56));
  EXPECT_DOUBLE_EQ(one.values[kLogN], std::log2(128.0));
  EXPECT_DOUBLE_EQ(one.values[kLogK], std::log2(64.0 * 9));
  EXPECT_DOUBLE_EQ(one.values[kLogWindow], std::log2(9.0));
  // At every other position in both directions.
  const LibraryFeatures strided = FeaturesOf(kDevice, Convolution(2));
  EXPECT_DOUBLE_EQ(strided.values[kLogM], std::log2(16.0 * 28 * 28));
  core::LibraryCall grouped = Convolution();
  grouped.groups = 4;
  EXPECT_DOUBLE_EQ(FeaturesOf(kDevice, grouped).values[kLogBatch], 2);
  EXPECT_DOUBLE_EQ(FeaturesOf(kDevice, grouped).values[kLogK], std::log2(16.0 * 9));
}

TEST(LibraryFeatures, RowsThatBeginAnywhereAreAClassOfTheirOwn) {
  EXPECT_EQ(ClassOf(Matmul(64, 512, 512)), ClassOf(Matmul(777, 1024, 768)));
  EXPECT_NE(ClassOf(Matmul(64, 512, 512)), ClassOf(Matmul(64, 513, 512)));
  EXPECT_NE(ClassOf(Matmul(64, 512, 512)), ClassOf(Matmul(64, 512, 513)));
  EXPECT_EQ(ClassOf(Matmul(64, 512, 512, core::DataType::kBfloat16)),
            ClassOf(Matmul(64, 512, 512)));
  EXPECT_NE(ClassOf(Matmul(64, 512, 512, core::DataType::kFloat32)), ClassOf(Matmul(64, 512, 512)));
  // Rows of a transposed operand are as long as its other side: of m, n and k only m is odd here.
  core::LibraryCall transposed = Matmul(777, 512, 512);
  transposed.transpose_a = true;
  EXPECT_EQ(ClassOf(transposed), ClassOf(Matmul(64, 513, 512)));
  EXPECT_NE(ClassOf(Convolution()), ClassOf(Matmul(64, 512, 512)));
}

TEST(LibraryFeatures, WavesAreFullOrNot) {
  const auto fill = [](int64_t m) {
    return FeaturesOf(kDevice, Matmul(m, 256, 512)).values[kWaveLarge];
  };
  EXPECT_DOUBLE_EQ(fill(int64_t{132} * 128), 0);
  EXPECT_DOUBLE_EQ(fill(int64_t{66} * 128), -1);
  EXPECT_LT(fill(int64_t{132} * 128 + 8), -0.9);  // one tile of a second wave
}

TEST(LibraryFeatures, ACallWithoutAMeaningIsUnknown) {
  EXPECT_FALSE(FeaturesOf(kDevice, core::LibraryCall{}).known);
  EXPECT_FALSE(FeaturesOf(kDevice, Matmul(0, 8, 8)).known);
  EXPECT_FALSE(FeaturesOf(kDevice, Matmul(8, -8, -8)).known);
  core::LibraryCall window = Convolution();
  window.filter_height = 99;  // larger than the image
  EXPECT_FALSE(FeaturesOf(kDevice, window).known);
  window = Convolution();
  window.stride = 0;
  EXPECT_FALSE(FeaturesOf(kDevice, window).known);
  core::LibraryCall other = Matmul(8, 8, 8);
  other.operation = static_cast<core::LibraryOperation>(200);
  EXPECT_FALSE(FeaturesOf(kDevice, other).known);
  LibraryDevice none;
  none.sm_count = 0;
  EXPECT_FALSE(FeaturesOf(none, Matmul(8, 8, 8)).known);
}

TEST(LibraryFeatures, NumbersStayFiniteAtTheEndsOfTheirRange) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const LibraryFeatures large = FeaturesOf(kDevice, Matmul(most, most, most));
  ASSERT_TRUE(large.known);
  EXPECT_TRUE(std::all_of(large.values.begin(), large.values.end(),
                          [](double value) { return std::isfinite(value); }));
}

}  // namespace
}  // namespace gpushare::models
