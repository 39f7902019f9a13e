// Which kernel gets a row of a full table.

#include "src/core/state/launches/kernel_rows.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace gpushare::core {
namespace {

constexpr int kRows = 8;
constexpr uint32_t kCrowd = 3;
constexpr uint32_t kOther = 5;
constexpr TimeNs kLong = 2 * kRowKeptNs;

class KernelRowsTest : public ::testing::Test {
 protected:
  KernelRowsTest() : kernels_(3 * kRows) {
    for (size_t i = 0; i < kernels_.size(); ++i) {
      kernels_[i].id = KernelId{static_cast<uint32_t>(i + 1)};
    }
  }
  // The crowd has all rows, kernel i row i since i ns.
  void Fill() {
    for (int i = 0; i < kRows; ++i) ASSERT_EQ(Use(i, kCrowd, i), i);
  }
  int32_t Use(int kernel, uint32_t app, TimeNs now_ns, int32_t pinned = -1) {
    return rows_.Use(kernels_[static_cast<size_t>(kernel)], app, now_ns, pinned);
  }
  int32_t RowOf(int kernel) const { return rows_.RowOf(&kernels_[static_cast<size_t>(kernel)]); }

  std::vector<KernelDesc> kernels_;
  KernelRows<kRows> rows_;
};

TEST_F(KernelRowsTest, AKernelKeepsItsRow) {
  Fill();
  for (int i = 0; i < kRows; ++i) EXPECT_EQ(Use(i, kCrowd, 100), i);
  EXPECT_FALSE(rows_.AnyTaken());
}

TEST_F(KernelRowsTest, AnotherAppTakesTheOldestRowOfTheAppWithTheMost) {
  Fill();
  EXPECT_EQ(Use(0, kCrowd, kRows), 0) << "kernel 1 is the oldest now";
  EXPECT_EQ(Use(kRows, kOther, kRows + 1), 1);
  EXPECT_EQ(RowOf(1), -1);
  EXPECT_EQ(&rows_.kernel(1), &kernels_[kRows]);
  EXPECT_TRUE(rows_.IsTaken(1));
  EXPECT_FALSE(rows_.IsTaken(2));
  rows_.ForgetTaken();
  EXPECT_FALSE(rows_.AnyTaken());
}

TEST_F(KernelRowsTest, TwoAppsShareTheRowsEvenly) {
  Fill();
  for (int i = 0; i < kRows / 2; ++i) EXPECT_NE(Use(kRows + i, kOther, 100 + i), -1) << i;
  EXPECT_EQ(Use(kRows + kRows / 2, kOther, 200), -1) << "its own rows are in use";
  EXPECT_EQ(Use(0, kCrowd, 200), -1) << "and so are the crowd's";
  for (int i = 0; i < kRows / 2; ++i) EXPECT_NE(RowOf(kRows + i), -1) << i;
}

TEST_F(KernelRowsTest, AnAppWithTheMostRowsTakesOnlyOneThatItDoesNotUse) {
  Fill();
  EXPECT_EQ(Use(kRows, kCrowd, 50), -1);
  EXPECT_EQ(Use(kRows, kCrowd, kLong), 0);
  EXPECT_EQ(Use(kRows + 1, kCrowd, kLong), 1);
}

TEST_F(KernelRowsTest, APinnedRowStays) {
  Fill();
  EXPECT_EQ(Use(kRows, kOther, 50, 0), 1);
}

}  // namespace
}  // namespace gpushare::core
