// The index arithmetic of the kernels of deep networks, on the CPU: which elements their block
// tasks read and write, at sizes that divide nothing.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <vector>

#include "benchmarks/kernels/dnn/sizes.h"
#include "kernels/dnn/affine.h"
#include "kernels/dnn/divider.h"
#include "kernels/dnn/im2col.h"
#include "kernels/dnn/pooling.h"

namespace gpushare::kernels {
namespace {

TEST(DividerTest, QuotientsAreExactAroundEveryMultiple) {
  constexpr uint32_t kDividendMax = (1U << 31) - 1;
  std::vector<uint32_t> divisors = {49,    196,   784,          3136,    65535,
                                    65536, 65537, kDividendMax, 1U << 31};
  for (uint32_t divisor = 1; divisor < 3000; ++divisor) divisors.push_back(divisor);
  for (const uint32_t divisor : divisors) {
    const Divider divider = MakeDivider(divisor);
    const auto check = [&](uint64_t dividend) {
      if (dividend > kDividendMax) return;
      const auto number = static_cast<uint32_t>(dividend);
      ASSERT_EQ(divider.Quotient(number), number / divisor) << number << " / " << divisor;
      ASSERT_EQ(divider.Remainder(number), number % divisor) << number << " / " << divisor;
    };
    // Multiples from the smallest to the largest, and their neighbours.
    const uint64_t largest = kDividendMax / divisor;
    for (uint64_t step = 0; step <= 64; ++step) {
      const uint64_t multiple = largest * step / 64 * divisor;
      if (multiple > 0) check(multiple - 1);
      check(multiple);
      check(multiple + 1);
    }
    check(kDividendMax);
  }
}

TEST(AffineTest, EveryVectorFindsItsPlaneAmongTheFoldedOnes) {
  for (const uint32_t side : {2U, 14U, 28U, 56U}) {
    const uint32_t plane_vectors = side * side / 4;
    for (const uint32_t passes : {4U, 8U, 40U}) {
      AffineTensor tensor = {};
      tensor.ring = 5;
      tensor.passes = passes;
      tensor.plane = MakeDivider(plane_vectors);
      tensor.channels = MakeDivider(3);
      for (uint32_t block = 0; block < 12; ++block) {
        const AffineChunk chunk = AffineChunkOf(tensor, block);
        const uint32_t vectors = passes * kAffineThreads;
        ASSERT_EQ(chunk.begin, block % 5 * vectors);
        uint32_t planes_seen = 0;
        for (uint32_t vector = chunk.begin; vector < chunk.begin + vectors; ++vector) {
          const uint32_t local = tensor.plane.Quotient(vector - (chunk.begin - chunk.offset));
          ASSERT_EQ(chunk.first_plane + local, vector / plane_vectors);
          planes_seen = std::max(planes_seen, local + 1);
        }
        ASSERT_EQ(chunk.planes, planes_seen);
      }
    }
  }
}

TEST(AffineTest, AChunkNeverTouchesMorePlanesThanAreFolded) {
  for (uint32_t passes = kAffineUnroll; passes < 20000; passes += kAffineUnroll) {
    const AffineShape shape = AffineShapeFor(passes);
    AffineTensor tensor = {};
    tensor.ring = 7;
    tensor.passes = passes;
    tensor.plane = MakeDivider(shape.plane_vectors());
    tensor.channels = MakeDivider(shape.channels);
    ASSERT_GT(shape.channels, 0U);
    for (uint32_t block = 0; block < 7; ++block) {
      ASSERT_LE(AffineChunkOf(tensor, block).planes, kAffinePlanesMax) << passes << " passes";
    }
  }
  EXPECT_EQ(AffineShapeFor(40).side, 28U);
}

PoolingParams Pooling(uint32_t width, uint32_t height, uint32_t rows, uint32_t strips) {
  PoolingParams params = {};
  params.ring = 3;
  params.strips = strips;
  params.rows = rows;
  params.width = width;
  params.height = height;
  params.groups = MakeDivider(width / 4);
  params.in_plane = MakeDivider(height / (2 * rows));
  return params;
}

// As the body goes through the items of a slot.
template <class Each>
void ForEachItem(const PoolingParams& params, uint32_t slot, const Each& each) {
  const uint32_t items = params.strips * params.groups.divisor;
  for (uint32_t base = 0; base < items; base += kThreadsPerBlock) {
    for (uint32_t thread = 0; thread < kThreadsPerBlock; ++thread) {
      each(base + thread, PoolingItemOf(params, slot, base + thread));
    }
  }
}

TEST(PoolingTest, EveryResultIsWrittenOnceAndFromItsOwnWindow) {
  const PoolingParams shapes[] = {Pooling(64, 64, 8, 16), Pooling(112, 112, 7, 9),
                                  Pooling(4, 4, 1, 5), Pooling(20, 12, 3, 1)};
  for (const PoolingParams& params : shapes) {
    const uint32_t out_width = params.width / 2;
    const uint32_t out_height = params.height / 2;
    std::vector<int> writes(params.ring * params.strips * params.rows * out_width);
    for (uint32_t slot = 0; slot < params.ring; ++slot) {
      ForEachItem(params, slot, [&](uint32_t, const PoolingItem& item) {
        if (!item.own) return;
        for (uint32_t row = 0; row < params.rows; ++row) {
          const uint32_t out = item.out_at + row * out_width;
          ASSERT_LT(out + 1, writes.size());
          ASSERT_EQ(out % 2, 0U) << "two results are stored together";
          ++writes[out];
          ++writes[out + 1];
          const uint32_t plane = out / out_width / out_height;
          const uint32_t y = out / out_width % out_height;
          ASSERT_EQ(y, item.row + row);
          ASSERT_EQ(item.in_at + 2 * row * params.width,
                    (plane * params.height + 2 * y) * params.width + 2 * (out % out_width));
          ASSERT_EQ(item.group == 0, out % out_width == 0);
        }
      });
    }
    EXPECT_EQ(std::count(writes.begin(), writes.end(), 1), static_cast<int64_t>(writes.size()));
  }
}

TEST(PoolingTest, TheLaneBeforeHoldsTheValuesOnTheLeft) {
  const PoolingParams params = Pooling(112, 112, 7, 9);
  ForEachItem(params, 1, [&](uint32_t index, const PoolingItem& item) {
    if (!item.own || item.group == 0 || index % 32 == 0) return;
    ASSERT_EQ(PoolingItemOf(params, 1, index - 1).in_at + 4, item.in_at);
  });
}

TEST(Im2colTest, AnyNumberOfTilesIsATensor) {
  for (uint32_t tiles = 1; tiles < 5000; ++tiles) {
    const Im2colShape shape = Im2colShapeFor(tiles);
    ASSERT_EQ(Im2colTiles(shape), tiles);
    ASSERT_EQ(shape.channels % kIm2colChannels, 0U);
    ASSERT_GT(shape.images, 0U);
  }
  const Im2colShape whole = Im2colShapeFor(6400);
  EXPECT_EQ(whole.channels, 64U);
  EXPECT_EQ(whole.width, 56U);
  EXPECT_EQ(whole.height, 56U);
  EXPECT_EQ(whole.images, 100U);
}

// im2col by its definition.
std::vector<int> Matrix(const Im2colShape& shape) {
  std::vector<int> matrix;
  const auto height = static_cast<int>(shape.height);
  const auto width = static_cast<int>(shape.width);
  const auto channels = static_cast<int>(shape.channels);
  for (int n = 0; n < static_cast<int>(shape.images); ++n) {
    for (int pixel = 0; pixel < height * width; ++pixel) {
      for (int k = 0; k < channels * 9; ++k) {
        const int y = pixel / width + k % 9 / 3 - 1;
        const int x = pixel % width + k % 3 - 1;
        const bool inside = y >= 0 && y < height && x >= 0 && x < width;
        matrix.push_back(inside ? ((n * channels + k / 9) * height + y) * width + x : -1);
      }
    }
  }
  return matrix;
}

// What the body does with shared memory and stores of `vector` elements; elements are their own
// places in the input. Adds to `writes` how often each element was written.
void EmulateTile(const Im2colShape& shape, uint32_t index, uint32_t vector, std::vector<int>* out,
                 std::vector<int>* writes) {
  const Im2colTile tile = Im2colTileOf(shape, index);
  std::vector<int> patch(kIm2colPatchPlaces, -3);
  for (uint32_t line = 0; line < kIm2colPatchLines; ++line) {
    for (uint32_t column = 0; column < kIm2colPatchColumns; ++column) {
      const uint32_t source = Im2colSource(shape, tile, line, column);
      patch[Im2colPatchLine(line) + column] =
          source == kIm2colOutside ? -1 : static_cast<int>(source);
    }
  }
  for (uint32_t pixel = 0; pixel < kIm2colPixels; ++pixel) {
    const uint32_t y = pixel / kIm2colColumns;
    const uint32_t x = pixel % kIm2colColumns;
    const uint32_t target = Im2colTarget(shape, tile, y, x);
    if (target == kIm2colOutside) continue;
    ASSERT_EQ(target % vector, 0U) << "a store of 16 bytes is not aligned";
    for (uint32_t k = 0; k < kIm2colDepth; ++k) {
      ASSERT_LT(target + k, out->size());
      (*out)[target + k] = patch[Im2colPatchOffset(k) + y * kIm2colRowStride + x];
      ++(*writes)[target + k];
    }
  }
}

TEST(Im2colTest, TilesMakeTheMatrixAndEachElementOnce) {
  for (const Im2colShape& shape :
       {Im2colShape{2, 32, 14, 56}, Im2colShape{3, 16, 7, 28}, Im2colShape{1, 48, 9, 30},
        Im2colShape{2, 16, 5, 3}, Im2colShape{1, 16, 1, 1}}) {
    const std::vector<int> expected = Matrix(shape);
    std::vector<int> out(expected.size(), -2);
    std::vector<int> writes(expected.size());
    for (uint32_t tile = 0; tile < Im2colTiles(shape); ++tile) {
      EmulateTile(shape, tile, 8, &out, &writes);
      ASSERT_FALSE(HasFatalFailure());
    }
    EXPECT_EQ(out, expected) << shape.height << " x " << shape.width;
    EXPECT_EQ(std::count(writes.begin(), writes.end(), 1), static_cast<int64_t>(writes.size()));
  }
}

TEST(DnnSizesTest, ABlockTaskHasAtLeastOneUnitAndFollowsItsLength) {
  WorkloadOptions options;
  options.block_task_us = 1e-3;
  EXPECT_EQ(UnitsPerBlockTask(options, 8, 1e6), 1U);
  options.block_task_us = 40;
  // 4.3e6 bytes a microsecond over 132 SMs of 8 workers are 162,879 bytes in 40.
  EXPECT_EQ(UnitsPerBlockTask(options, 8, 1000), 163U);
  EXPECT_EQ(UnitsPerBlockTask(options, 4, 1000), 326U);
  EXPECT_EQ(DnnRing(options, 100, 1e6), 100U);
  EXPECT_EQ(DnnRing(options, 100000, 1e6), 2147U);
  EXPECT_EQ(DnnRing(options, 100000, 1e12), 1U);
}

}  // namespace
}  // namespace gpushare::kernels
