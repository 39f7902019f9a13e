// The index arithmetic of the Tensor-core kernels that use mma.sync, played through on the CPU:
// every element of a tile reaches the fragment position that mma.m16n8k16 expects (PTX ISA, "Matrix
// fragments for mma.m16n8k16"), and no access to shared memory has a bank conflict. And of
// gemm_skinny, which stores what wgmma leaves in registers.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/tensor/gemm_mma_layout.h"
#include "kernels/tensor/gemm_skinny_layout.h"
#include "kernels/tensor/gemm_skinny_portable_layout.h"
#include "kernels/tensor/gemm_tile.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kLanes = 32;
constexpr uint32_t kBanks = 32;

// Most different words that one bank is asked for in one pass of a warp's access. A warp's access
// of 4 bytes a lane is one pass, of 8 two, of 16 four.
uint32_t WordsOfOneBank(const std::function<uint32_t(uint32_t)>& address, uint32_t bytes) {
  const uint32_t lanes = kLanes * 4 / bytes;
  uint32_t most = 0;
  for (uint32_t pass = 0; pass < kLanes / lanes; ++pass) {
    std::array<std::vector<uint32_t>, kBanks> words;
    for (uint32_t lane = pass * lanes; lane < (pass + 1) * lanes; ++lane) {
      for (uint32_t byte = 0; byte < bytes; byte += 4) {
        const uint32_t word = (address(lane) + byte) / 4;
        std::vector<uint32_t>& bank = words[word % kBanks];
        if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
      }
    }
    for (const auto& bank : words) most = std::max(most, static_cast<uint32_t>(bank.size()));
  }
  return most;
}

// Rows and columns of mma's operands that a lane's registers hold, two elements each.
uint32_t RowOfA(uint32_t lane, uint32_t reg) { return lane / 4 + reg % 2 * 8; }
uint32_t ColumnOfA(uint32_t lane, uint32_t reg) { return lane % 4 * 2 + reg / 2 * 8; }
uint32_t RowOfB(uint32_t lane, uint32_t reg) { return lane % 4 * 2 + reg * 8; }
uint32_t ColumnOfB(uint32_t lane) { return lane / 4; }

TEST(Banks, PlainRowsOf64BytesConflict) {
  EXPECT_EQ(WordsOfOneBank([](uint32_t lane) { return lane * gemm_mma::kRowBytes; }, 16), 4U);
  EXPECT_EQ(WordsOfOneBank([](uint32_t lane) { return lane * 16; }, 16), 1U);
  EXPECT_EQ(WordsOfOneBank([](uint32_t lane) { return lane * 8; }, 4), 2U);
}

using gemm_mma::ChunkAt;
using gemm_mma::kTileK;

// One operand of a stage: the element {row, column} as row * kTileK + column, by cp.async.
std::vector<uint32_t> CopiedOperand() {
  constexpr uint32_t kThreads = 256;
  constexpr uint32_t kNobody = ~0U;
  std::vector<uint32_t> elements(gemm_mma::kOperandBytes / 2, kNobody);
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    const uint32_t row = thread / gemm_mma::kRowChunks;
    const uint32_t chunk = thread % gemm_mma::kRowChunks;
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t apart = i * kThreads / gemm_mma::kRowChunks;
      const uint32_t to = ChunkAt(row, chunk) + apart * gemm_mma::kRowBytes;
      for (uint32_t e = 0; e < gemm_mma::kChunkElements; ++e) {
        EXPECT_EQ(elements.at(to / 2 + e), kNobody) << "two copies to one place";
        elements.at(to / 2 + e) = (row + apart) * kTileK + chunk * gemm_mma::kChunkElements + e;
      }
    }
  }
  return elements;
}

// First element that ldmatrix.x4 gives a lane's register, when `address` is what lanes name.
uint32_t Loaded(const std::vector<uint32_t>& shared,
                const std::function<uint32_t(uint32_t)>& address, uint32_t lane, uint32_t reg) {
  return shared.at(address(reg * 8 + lane / 4) / 2 + lane % 4 * 2);
}

TEST(GemmMma, EveryElementOfAReachesItsFragment) {
  const std::vector<uint32_t> shared = CopiedOperand();
  for (uint32_t warp_row = 0; warp_row < gemm_mma::kTileM; warp_row += gemm_mma::kMmaM) {
    for (uint32_t k16 = 0; k16 < 2; ++k16) {
      const uint32_t base = warp_row / gemm_mma::kWarpM * gemm_mma::kWarpM;
      const auto address = [&](uint32_t lane) {
        const uint32_t from = ChunkAt(base + gemm_mma::LaneRowA(lane), gemm_mma::LaneChunkA(lane));
        return (from ^ (k16 * gemm_mma::kNextK16)) + (warp_row - base) * gemm_mma::kRowBytes;
      };
      EXPECT_EQ(WordsOfOneBank(address, 16), 1U);
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        for (uint32_t reg = 0; reg < 4; ++reg) {
          const uint32_t row = warp_row + RowOfA(lane, reg);
          const uint32_t column = k16 * 16 + ColumnOfA(lane, reg);
          ASSERT_EQ(Loaded(shared, address, lane, reg), row * kTileK + column)
              << "lane " << lane << ", register " << reg << ", row " << warp_row;
        }
      }
    }
  }
}

TEST(GemmMma, EveryElementOfBReachesItsFragment) {
  const std::vector<uint32_t> shared = CopiedOperand();
  for (uint32_t column = 0; column < gemm_mma::kTileN; column += 2 * gemm_mma::kMmaN) {
    for (uint32_t k16 = 0; k16 < 2; ++k16) {
      const uint32_t base = column / gemm_mma::kWarpN * gemm_mma::kWarpN;
      const auto address = [&](uint32_t lane) {
        const uint32_t from = ChunkAt(base + gemm_mma::LaneRowB(lane), gemm_mma::LaneChunkB(lane));
        return (from ^ (k16 * gemm_mma::kNextK16)) + (column - base) * gemm_mma::kRowBytes;
      };
      EXPECT_EQ(WordsOfOneBank(address, 16), 1U);
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        for (uint32_t reg = 0; reg < 4; ++reg) {  // two fragments of two registers
          const uint32_t n = column + reg / 2 * gemm_mma::kMmaN + ColumnOfB(lane);
          const uint32_t k = k16 * 16 + RowOfB(lane, reg % 2);
          ASSERT_EQ(Loaded(shared, address, lane, reg), n * kTileK + k)
              << "lane " << lane << ", register " << reg << ", column " << column;
        }
      }
    }
  }
}

TEST(GemmMma, CopiesHaveNoBankConflicts) {
  for (uint32_t warp = 0; warp < 8; ++warp) {
    const auto address = [&](uint32_t lane) {
      const uint32_t thread = warp * kLanes + lane;
      return ChunkAt(thread / gemm_mma::kRowChunks, thread % gemm_mma::kRowChunks);
    };
    EXPECT_EQ(WordsOfOneBank(address, 16), 1U);
  }
}

TEST(GemmMma, OutputTileIsWrittenOnceAndReadWithoutConflicts) {
  std::vector<int> writes(gemm_mma::kTileM * gemm_mma::kTileN / 2, 0);
  for (uint32_t warp = 0; warp < 8; ++warp) {
    const uint32_t warp_row = warp % gemm_mma::kWarpsM * gemm_mma::kWarpM;
    const uint32_t warp_column = warp / gemm_mma::kWarpsM * gemm_mma::kWarpN;
    for (uint32_t row = 0; row < gemm_mma::kWarpM; row += 8) {
      for (uint32_t column = 0; column < gemm_mma::kWarpN; column += gemm_mma::kMmaN) {
        const auto address = [&](uint32_t lane) {
          const uint32_t chunk = (warp_column + column) / gemm_mma::kChunkElements;
          return gemm_mma::OutChunkAt(warp_row + row + lane / 4, chunk) + lane % 4 * 4;
        };
        EXPECT_EQ(WordsOfOneBank(address, 4), 1U);
        for (uint32_t lane = 0; lane < kLanes; ++lane) ++writes.at(address(lane) / 4);
      }
    }
  }
  EXPECT_TRUE(std::all_of(writes.begin(), writes.end(), [](int n) { return n == 1; }));
  for (uint32_t thread = 0; thread < 256; thread += kLanes) {
    const auto address = [&](uint32_t lane) {
      return gemm_mma::OutChunkAt((thread + lane) / gemm_mma::kOutChunks,
                                  (thread + lane) % gemm_mma::kOutChunks);
    };
    EXPECT_EQ(WordsOfOneBank(address, 16), 1U);
  }
}

// A small GEMM of whole numbers, computed as the kernel does: lanes' loads, mma, partial sums.
class SkinnyPortableEmulation {
 public:
  SkinnyPortableEmulation(uint32_t m, uint32_t k) : m_(m), k_(k) {}

  static int A(uint32_t row, uint32_t k) { return static_cast<int>((row * 31 + k * 7) % 13) - 6; }
  static int B(uint32_t column, uint32_t k) {
    return static_cast<int>((column * 17 + k * 11) % 15) - 7;
  }

  // All of a warp's windows. Words that it writes to its partial sums.
  std::vector<int> WarpSums(uint32_t warp) const {
    std::vector<int> sums(gemm_skinny_portable::kWarpBytes / 4, 0);
    for (uint32_t window = warp; window < k_ / gemm_skinny_portable::kWindow;
         window += gemm_skinny_portable::kWarps) {
      for (uint32_t tile = 0; tile < gemm_skinny_portable::kColumns / 16; ++tile) {
        for (uint32_t rows = 0; rows < m_ / 8; ++rows) {
          for (uint32_t step = 0; step < 2; ++step) Multiply(window, tile, rows, step, &sums);
        }
      }
    }
    return sums;
  }

 private:
  // Element e of the 16 bytes that a lane loads of a row.
  static uint32_t Element(uint32_t window, uint32_t lane, uint32_t e) {
    return window * gemm_skinny_portable::kWindow + gemm_skinny_portable::LaneElement(lane) + e;
  }

  // mma.m16n8k16 of the fragments that the lanes hold; 16 columns of C are its rows.
  void Multiply(uint32_t window, uint32_t tile, uint32_t rows, uint32_t step,
                std::vector<int>* sums) const {
    int a[16][16];
    int b[16][8];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      for (uint32_t reg = 0; reg < 4; ++reg) {
        // upper.x, lower.x, upper.y, lower.y in the first step; z and w in the second.
        const uint32_t column = tile * 16 + reg % 2 * 8 + lane / 4;
        for (uint32_t e = 0; e < 2; ++e) {
          const uint32_t k = Element(window, lane, step * 4 + reg / 2 * 2 + e);
          a[RowOfA(lane, reg)][ColumnOfA(lane, reg) + e] = B(column, k);
        }
      }
      for (uint32_t reg = 0; reg < 2; ++reg) {
        for (uint32_t e = 0; e < 2; ++e) {
          const uint32_t k = Element(window, lane, step * 4 + reg * 2 + e);
          b[RowOfB(lane, reg) + e][ColumnOfB(lane)] = A(rows * 8 + lane / 4, k);
        }
      }
    }
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      for (uint32_t c = 0; c < 4; ++c) {
        const uint32_t mma_row = lane / 4 + c / 2 * 8;
        const uint32_t mma_column = lane % 4 * 2 + c % 2;
        int sum = 0;
        for (uint32_t k = 0; k < 16; ++k) sum += a[mma_row][k] * b[k][mma_column];
        const uint32_t row = rows * 8 + lane % 4 * 2 + c % 2;
        const uint32_t column = tile * 16 + c / 2 * 8 + lane / 4;
        sums->at(gemm_skinny_portable::SumAt(row, column)) += sum;
      }
    }
  }

  uint32_t m_;
  uint32_t k_;
};

class SkinnyPortableTest : public testing::TestWithParam<uint32_t> {};

// Both operands call the elements of k the same, and each product is made once.
TEST_P(SkinnyPortableTest, FragmentsGiveTheProduct) {
  const uint32_t m = GetParam();
  constexpr uint32_t kK =
      7 * gemm_skinny_portable::kWindow;  // warps with unequal numbers of windows
  const SkinnyPortableEmulation emulation(m, kK);
  std::vector<std::vector<int>> partial;
  for (uint32_t warp = 0; warp < gemm_skinny_portable::kWarps; ++warp) {
    partial.push_back(emulation.WarpSums(warp));
  }
  for (uint32_t row = 0; row < m; ++row) {
    for (uint32_t column = 0; column < gemm_skinny_portable::kColumns; ++column) {
      int expected = 0;
      for (uint32_t k = 0; k < kK; ++k) {
        expected += SkinnyPortableEmulation::A(row, k) * SkinnyPortableEmulation::B(column, k);
      }
      int sum = 0;
      for (const auto& warp : partial) sum += warp.at(gemm_skinny_portable::SumAt(row, column));
      ASSERT_EQ(sum, expected) << "row " << row << ", column " << column;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, SkinnyPortableTest, testing::Values(8U, 16U, 32U));

TEST(GemmSkinnyPortable, LanesHavePlacesOfTheirOwnWithoutConflicts) {
  std::vector<int> uses(gemm_skinny_portable::kWarpStageBytes / 16, 0);
  for (uint32_t load = 0; load < gemm_skinny_portable::kStageLoads; ++load) {
    const auto address = [&](uint32_t lane) { return gemm_skinny_portable::LoadAt(load, lane); };
    EXPECT_EQ(WordsOfOneBank(address, 16), 1U);
    for (uint32_t lane = 0; lane < kLanes; ++lane) ++uses.at(address(lane) / 16);
  }
  EXPECT_TRUE(std::all_of(uses.begin(), uses.end(), [](int n) { return n == 1; }));
}

TEST(GemmSkinnyPortable, PartialSumsHaveNoBankConflicts) {
  for (uint32_t c = 0; c < 4; ++c) {
    const auto address = [&](uint32_t lane) {
      return 4 * gemm_skinny_portable::SumAt(lane % 4 * 2 + c % 2, c / 2 * 8 + lane / 4);
    };
    EXPECT_EQ(WordsOfOneBank(address, 4), 1U);
  }
  for (uint32_t thread = 0; thread < gemm_skinny_portable::kThreadCount; thread += kLanes) {
    const auto address = [&](uint32_t lane) {
      return 4 * gemm_skinny_portable::SumAt((thread + lane) / 16, (thread + lane) % 16 * 4);
    };
    EXPECT_EQ(WordsOfOneBank(address, 16), 1U);
  }
}

// The lane's 16 bytes a row make whole sectors of 32 bytes, and a block's four warps whole lines.
TEST(GemmSkinnyPortable, AWindowIsReadWhole) {
  std::vector<int> reads(gemm_skinny_portable::kWindow, 0);
  for (uint32_t lane = 0; lane < 4; ++lane) {
    for (uint32_t e = 0; e < gemm_skinny_portable::kLoadElements; ++e) {
      ++reads.at(gemm_skinny_portable::LaneElement(lane) + e);
    }
  }
  EXPECT_TRUE(std::all_of(reads.begin(), reads.end(), [](int n) { return n == 1; }));
}

// Each word of the panel is stored once, and the exchange brings its two columns, in order.
TEST(GemmSkinny, LanesExchangeSumsIntoWordsOfC) {
  std::vector<int> stores(gemm_skinny::kRows * gemm_skinny::kColumns, 0);
  for (uint32_t thread = 0; thread < 4 * kLanes; ++thread) {
    const uint32_t warp = thread / kLanes;
    const uint32_t lane = thread % kLanes;
    const uint32_t other = lane ^ gemm_skinny::kExchangedLanes;
    const uint32_t second = gemm_skinny::StoresSecondRow(lane) ? 1 : 0;
    ASSERT_NE(gemm_skinny::StoresSecondRow(other), gemm_skinny::StoresSecondRow(lane));
    for (uint32_t r = 0; r < gemm_skinny::kRows / 2; r += 2) {
      const Element mine = AccumulatorElement(warp, lane, r + second);
      const Element got = AccumulatorElement(warp, other, r + second);
      const gemm_skinny::OutputWord word = gemm_skinny::OutputWordOf(warp, lane, r);
      EXPECT_EQ(word.column % 2, 0U);
      EXPECT_EQ((second != 0 ? got : mine).column, word.row);
      EXPECT_EQ((second != 0 ? got : mine).row, word.column);
      EXPECT_EQ((second != 0 ? mine : got).column, word.row);
      EXPECT_EQ((second != 0 ? mine : got).row, word.column + 1);
      ++stores.at(word.row * gemm_skinny::kColumns + word.column);
    }
  }
  for (uint32_t i = 0; i < stores.size(); ++i) EXPECT_EQ(stores[i], i % 2 == 0 ? 1 : 0) << i;
}

TEST(GemmSkinny, APanelBeginsInsideOfK) {
  for (const uint32_t steps : {1U, 3U, 64U}) {
    for (uint32_t panel = 0; panel < 300; ++panel) {
      EXPECT_LT(gemm_skinny::FirstStep(panel, steps), steps);
    }
  }
  EXPECT_NE(gemm_skinny::FirstStep(1, 64), gemm_skinny::FirstStep(0, 64));
}

}  // namespace
}  // namespace gpushare::kernels
