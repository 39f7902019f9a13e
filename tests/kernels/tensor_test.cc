// What of the wgmma GEMMs needs no GPU: the order of tiles, the swizzled places of a tile in shared
// memory, what wgmma's descriptors select of it, the ring's phases, and where a warp's stores put
// the accumulator's elements.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/kernels/groups.h"
#include "kernels/tensor/gemm_problem.h"
#include "kernels/tensor/gemm_skinny.h"
#include "kernels/tensor/gemm_tile.h"
#include "kernels/tensor/gemm_wgmma.h"

namespace gpushare::kernels {
namespace {

TEST(TensorTest, EveryTileHasOnePlace) {
  for (const uint32_t group : {1U, 3U, 16U}) {
    for (const auto& [tiles_m, tiles_n] :
         std::vector<std::pair<uint32_t, uint32_t>>{{1, 1}, {64, 32}, {45, 22}, {17, 5}, {7, 1}}) {
      std::set<std::pair<uint32_t, uint32_t>> places;
      for (uint32_t tile = 0; tile < tiles_m * tiles_n; ++tile) {
        const TilePlace place = PlaceOfTile(tile, tiles_m, tiles_n, group);
        EXPECT_LT(place.m, tiles_m);
        EXPECT_LT(place.n, tiles_n);
        EXPECT_TRUE(places.emplace(place.m, place.n).second)
            << "tile " << tile << " of " << tiles_m << " x " << tiles_n << ", group " << group;
      }
    }
  }
}

// A wave of an H200 reads few rows of tiles: that is what the order is for.
TEST(TensorTest, TilesThatRunTogetherShareTheirRows) {
  constexpr uint32_t kWave = 132;
  for (uint32_t first = 0; first + kWave <= 64 * 32; first += kWave) {
    std::set<uint32_t> rows;
    std::set<uint32_t> columns;
    for (uint32_t tile = first; tile < first + kWave; ++tile) {
      const TilePlace place = PlaceOfTile(tile, 64, 32, 16);
      rows.insert(place.m);
      columns.insert(place.n);
    }
    // Rows of 128 and columns of 256: at most 1.5 times a square's, where two groups meet 1.9
    // times.
    EXPECT_LE(rows.size() * 128 + columns.size() * 256, 9U * 1024) << "from tile " << first;
  }
}

// TMA's rule for CU_TENSOR_MAP_SWIZZLE_128B, in bits of the address: 4 to 6 ^= 7 to 9.
uint32_t TmaPlace(uint32_t linear) { return linear ^ ((linear >> 7 & 7U) << 4); }

TEST(TensorTest, StoresFollowTheSwizzleOfTma) {
  std::set<uint32_t> places;
  for (uint32_t row = 0; row < 16; ++row) {
    for (uint32_t word = 0; word < 32; ++word) {
      const uint32_t byte = SwizzledByte(row, word);
      EXPECT_EQ(byte, TmaPlace(row * kSwizzleRowBytes + word * 4)) << row << ", " << word;
      places.insert(byte);
    }
  }
  EXPECT_EQ(places.size(), 16U * 32);
}

// One exclusive or for a chunk and one addition for 8 rows, as the kernel's store has them, and no
// bank twice in one instruction.
TEST(TensorTest, AWarpsStoresReachTheirElementsWithoutConflicts) {
  for (uint32_t r = 0; r < kSwizzleColumns / 2; r += 2) {
    std::set<uint32_t> banks;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const Element mine = AccumulatorElement(0, lane, 0);
      const uint32_t to = SwizzledByte(mine.row, mine.column / 2);
      const uint32_t place = (to ^ (r / 4 * 16)) + r / 2 % 2 * kSwizzleBytes;
      const Element at = AccumulatorElement(0, lane, r);
      EXPECT_EQ(at.column % 2, 0U);
      EXPECT_EQ(AccumulatorElement(0, lane, r + 1).column, at.column + 1);
      EXPECT_EQ(AccumulatorElement(0, lane, r + 1).row, at.row);
      EXPECT_EQ(place, SwizzledByte(at.row, at.column / 2)) << "lane " << lane << " register " << r;
      banks.insert(place / 4 % 32);
    }
    EXPECT_EQ(banks.size(), 32U) << "register " << r;
  }
}

TEST(TensorTest, AccumulatorsOfAWarpgroupCoverItsTileOnce) {
  std::set<std::pair<uint32_t, uint32_t>> elements;
  for (uint32_t thread = 0; thread < 128; ++thread) {
    for (uint32_t r = 0; r < 128; ++r) {
      const Element at = AccumulatorElement(thread / 32, thread % 32, r);
      EXPECT_LT(at.row, 64U);
      EXPECT_LT(at.column, 256U);
      elements.emplace(at.row, at.column);
    }
  }
  EXPECT_EQ(elements.size(), 64U * 256);
}

// What wgmma reads by a K-major descriptor: row r, byte b of a 16-value step is at start +
// (r / 8) * stride + r % 8 * 128 + b, and the swizzle exchanges address bits.
uint32_t ReadPlace(uint64_t descriptor, uint32_t row, uint32_t byte) {
  const auto start = static_cast<uint32_t>(descriptor & 0x3FFFU) * 16;
  const auto stride = static_cast<uint32_t>(descriptor >> 32 & 0x3FFFU) * 16;
  return TmaPlace(start + row / 8 * stride + row % 8 * kSwizzleRowBytes + byte);
}

TEST(TensorTest, DescriptorsSelectWhatTmaWrote) {
  constexpr uint32_t kTile = 5 * 1024 * 16;  // any multiple of 1024
  const uint64_t descriptor = TileDescriptor(kTile);
  EXPECT_EQ(descriptor >> 62, 1U) << "128-byte swizzle";
  EXPECT_EQ(descriptor >> 49 & 7U, 0U) << "base offset";
  for (uint32_t step = 0; step < kStepsPerRow; ++step) {
    const uint64_t moved = descriptor + step * kDescriptorPerStep;
    EXPECT_EQ(moved >> 16, descriptor >> 16) << "the address carries into other fields";
    for (uint32_t row = 0; row < 256; ++row) {
      for (uint32_t byte = 0; byte < 32; ++byte) {
        const uint32_t written = kTile + TmaPlace(row * kSwizzleRowBytes + step * 32 + byte);
        ASSERT_EQ(ReadPlace(moved, row, byte), written) << row << ", " << byte << ", step " << step;
      }
    }
  }
}

TEST(TensorTest, TheHighestSharedAddressFitsADescriptor) {
  constexpr uint32_t kLast = 227 * 1024 - 1024;
  EXPECT_EQ((TileDescriptor(kLast) & 0x3FFFU) * 16, kLast);
}

// The parameters of a worker kernel start at a multiple of 64 behind a header of 128 bytes.
TEST(TensorTest, TensorMapsAreAlignedAsTmaWantsThem) {
  EXPECT_EQ(alignof(GemmWgmmaParams), 64U);
  EXPECT_EQ(offsetof(GemmWgmmaParams, a) % 64, 0U);
  EXPECT_EQ(offsetof(GemmWgmmaParams, b) % 64, 0U);
  EXPECT_EQ(offsetof(GemmWgmmaParams, c) % 64, 0U);
  EXPECT_EQ(alignof(GemmSkinnyParams), 64U);
  EXPECT_EQ(offsetof(GemmSkinnyParams, activations_map) % 64, 0U);
  EXPECT_EQ(offsetof(GemmSkinnyParams, weights_map) % 64, 0U);
}

TEST(TensorTest, ProblemsThatTmaCannotReadAreRefused) {
  GemmProblem problem = {128, 256, 60, nullptr, nullptr, nullptr};  // rows of 120 bytes
  GemmWgmmaParams params = {};
  Grid grid;
  Status status = MakeWgmmaParams(kGemmWgmmaTile, problem, 1, 1, &params, &grid);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message.find("128 x 256 x 60"), std::string::npos) << status.message;
  problem.k = 64;
  problem.a = reinterpret_cast<const void*>(8);
  status = MakeWgmmaParams(kGemmWgmmaTile, problem, 1, 1, &params, &grid);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message.find("16 bytes"), std::string::npos) << status.message;
}

TEST(TensorTest, SkinnyProblemsOfOtherSizesAreRefused) {
  std::vector<unsigned char> params;
  Grid grid;
  struct Size {
    int m, n, k;
  };
  const auto multiple = static_cast<int>(kSkinnyKMultiple);
  for (const Size& size : {Size{12, 64, multiple}, Size{8, 96, multiple}, Size{16, 128, 0},
                           Size{32, 64, multiple + multiple / 2}}) {
    const GemmProblem problem = {size.m, size.n, size.k, nullptr, nullptr, nullptr};
    const Status status = MakeGemmSkinnyParams(problem, &params, &grid);
    EXPECT_FALSE(status.ok());
    const std::string sizes =
        std::to_string(size.m) + " x " + std::to_string(size.n) + " x " + std::to_string(size.k);
    EXPECT_NE(status.message.find(sizes), std::string::npos) << status.message;
    EXPECT_NE(status.message.find("k of " + std::to_string(multiple)), std::string::npos)
        << status.message;
  }
}

// Each one's own check refuses the problem: none is unknown.
TEST(TensorTest, EveryGemmOfTheCatalogueTakesProblems) {
  std::vector<unsigned char> params;
  Grid grid;
  for (const CatalogueKernel& kernel : TensorKernels()) {
    const Status status = MakeGemmParams(kernel.name, GemmProblem{}, &params, &grid);
    EXPECT_FALSE(status.ok()) << kernel.name;
    EXPECT_EQ(status.message.find("is no GEMM"), std::string::npos) << status.message;
  }
}

TEST(TensorTest, OtherKernelsAreNoGemms) {
  std::vector<unsigned char> params;
  Grid grid;
  const Status status = MakeGemmParams("sincos", GemmProblem{}, &params, &grid);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message.find("'sincos'"), std::string::npos);
}

}  // namespace
}  // namespace gpushare::kernels
