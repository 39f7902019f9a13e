// What a query loses beyond the predicted delay of the eviction that it waits for.

#include "src/core/state/start_delay.h"

#include <gtest/gtest.h>

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kQuietNs = 500 * kUs;
constexpr int64_t kPredictedNs = 40 * kUs;

class StartDelayTest : public ::testing::Test {
 protected:
  // First queries, now 4 us longer and now 4 us shorter.
  void Firsts(int count, int64_t latency_ns, int64_t predicted_ns) {
    for (int i = 0; i < count; ++i) {
      now_ns += kUs * 1'000;
      NoteFirst(start, latency_ns + (i % 2 == 0 ? 4 : -4) * kUs, predicted_ns, now_ns);
    }
  }
  void Quiet(int count = kStartQuietLeast) { Firsts(count, kQuietNs, 0); }
  void Behind(int64_t lost_ns, int count = 32) { Firsts(count, kQuietNs + lost_ns, kPredictedNs); }
  void Next(int count = 32) {
    for (int i = 0; i < count; ++i) NoteNext(start, kQuietNs - 16 * kUs);
  }
  double ExcessUs() const { return ExcessOf(start, now_ns) / kUs; }

  TimeNs now_ns = kSecond;
  StartDelay start;
};

TEST_F(StartDelayTest, TheExcessIsWhatNoPredictionSaid) {
  Quiet();
  Behind(kPredictedNs + 90 * kUs);
  EXPECT_LE(ExcessUs(), 90);
  EXPECT_GE(ExcessUs(), 86) << "two standard errors of 4 us";
}

TEST_F(StartDelayTest, APredictionThatIsRightOrTooLongLeavesNone) {
  Quiet();
  Behind(kPredictedNs);
  EXPECT_EQ(ExcessUs(), 0);
  Behind(10 * kUs, 200);
  EXPECT_EQ(ExcessUs(), 0);
}

TEST_F(StartDelayTest, FewQueriesSayNothing) {
  Behind(400 * kUs);
  Quiet(kStartQuietLeast - 1);
  EXPECT_EQ(ExcessUs(), 0);
  Quiet(1);
  EXPECT_GT(ExcessUs(), 300);
  start.behind.count = kStartLeast - 1;
  EXPECT_EQ(ExcessUs(), 0);
}

// Lengths of 200 to 800 us: the means differ by chance.
TEST_F(StartDelayTest, QueriesOfManyLengthsSayNothing) {
  for (int i = 0; i < 64; ++i) {
    NoteFirst(start, (200 + 600 * (i * 7 % 16) / 15) * kUs, i % 4 == 0 ? 0 : kPredictedNs, now_ns);
  }
  EXPECT_EQ(ExcessUs(), 0);
}

TEST_F(StartDelayTest, AnExcessThatNobodyMeasuresFades) {
  Quiet();
  Behind(kPredictedNs + 90 * kUs);
  const double before_us = ExcessUs();
  now_ns += static_cast<int64_t>(kStartFadesNs / 2);
  EXPECT_NEAR(ExcessUs(), before_us / 2, 1);
  now_ns += static_cast<int64_t>(kStartFadesNs / 2);
  EXPECT_EQ(ExcessUs(), 0);
}

TEST_F(StartDelayTest, IdlePeriodsAreFreeOnlyWhereTheBudgetMayBeTooShort) {
  Next();
  Behind(kPredictedNs + 90 * kUs);  // 146 us more than a query that follows another
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(FreeNext(start, 150 * kUs, now_ns));
  int free = 0;
  for (int i = 0; i < 20; ++i) {
    if (!FreeNext(start, 140 * kUs, now_ns)) continue;
    ++free;
    EXPECT_EQ(start.free_until_ns, now_ns + kStartFreeNs);
  }
  EXPECT_EQ(free, 20 / kStartFreeOneOf);
  EXPECT_FALSE(FreeNext(start, kNever, now_ns)) << "no bound";
}

TEST_F(StartDelayTest, EnoughQuietQueriesLastForAWhile) {
  Next();
  Behind(400 * kUs);
  const auto any_free = [&] {
    bool any = false;
    for (int i = 0; i < kStartFreeOneOf; ++i) any = FreeNext(start, 10 * kUs, now_ns) || any;
    return any;
  };
  EXPECT_TRUE(any_free());
  Quiet();
  EXPECT_FALSE(any_free());
  EXPECT_EQ(start.free_until_ns, 0);
  now_ns += kStartQuietEveryNs;
  EXPECT_TRUE(any_free());
}

}  // namespace
}  // namespace gpushare::core
