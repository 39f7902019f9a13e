// The wait for segments: its moments against draws, and its limits.

#include "src/core/queueing/segment_blocking.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "src/core/queueing/vacation.h"

namespace gpushare::core {
namespace {

constexpr int64_t kSegment = 100'000;

// E[exp(eta W)] by draws of the instant at which a query arrives.
double DrawnMoment(const std::vector<int64_t>& durations_ns, double tail_rate) {
  std::mt19937_64 random(5);
  std::discrete_distribution<size_t> running(durations_ns.begin(), durations_ns.end());
  std::uniform_real_distribution<double> part(0, 1);
  constexpr int kDraws = 200'000;
  double sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const size_t i = running(random);
    double wait_ns = part(random) * static_cast<double>(durations_ns[i]);
    if (i + 1 < durations_ns.size() && durations_ns[i] + durations_ns[i + 1] <= 2 * kSegment) {
      wait_ns += static_cast<double>(durations_ns[i + 1]);
    }
    sum += std::exp(tail_rate * wait_ns);
  }
  return sum / kDraws;
}

std::vector<int64_t> TrainingStep() {
  std::vector<int64_t> durations_ns(200, 90'000);
  for (size_t i = 0; i < 10; ++i)
    durations_ns[20 * i] = 400'000 + 100'000 * static_cast<int64_t>(i);
  return durations_ns;
}

TEST(SegmentBlockingTest, TheMomentIsThatOfDrawnArrivals) {
  const std::vector<int64_t> durations_ns = TrainingStep();
  const SegmentBlocking blocking(durations_ns, kSegment);
  for (const double tail_rate : {1e-7, 1e-6, 3e-6}) {
    const double drawn = DrawnMoment(durations_ns, tail_rate);
    EXPECT_NEAR(blocking.Moment(tail_rate), drawn, 0.02 * drawn) << tail_rate;
  }
}

TEST(SegmentBlockingTest, EqualSegmentsWaitForOneAndTheRestOfAnother) {
  const SegmentBlocking blocking(std::vector<int64_t>(1000, kSegment), kSegment);
  EXPECT_EQ(blocking.longest_ns(), 2 * kSegment);
  const double eta = 1e-6;
  const double expected_ns = kSegment + ShiftOfVacation(eta * kSegment) / eta;
  EXPECT_NEAR(static_cast<double>(blocking.ShiftNs(eta)), expected_ns, 200);
}

// A node of 800 us that leaves after each 20 us, among segments of 90 us.
TEST(SegmentBlockingTest, ASegmentThatLeavesBetweenBlockTasksBlocksForOne) {
  const std::vector<int64_t> durations_ns = {90'000, 800'000, 90'000, 90'000};
  const SegmentBlocking whole(durations_ns, kSegment);
  const SegmentBlocking evictable(durations_ns, kSegment, std::vector<int64_t>{0, 20'000, 0, 0});
  EXPECT_EQ(whole.longest_ns(), 800'000);
  EXPECT_EQ(evictable.longest_ns(), 180'000) << "the third segment and the one behind it";
  const double sum_ns = 1'070'000;
  EXPECT_NEAR(
      evictable.mean_ns(),
      (90'000 * 65'000.0 + 800'000 * 10'000.0 + 90'000 * 135'000.0 + 90'000 * 45'000.0) / sum_ns,
      1);
  EXPECT_LT(evictable.ShiftNs(1e-6), whole.ShiftNs(1e-6) / 4);
}

TEST(SegmentBlockingTest, NothingJoinsASegmentThatMayLeaveWithBlockTasksUndone) {
  const SegmentLoad short_one{1'000, false};
  const SegmentLoad evictable{1'000, true};
  EXPECT_TRUE(JoinsOutstanding(short_one, short_one, kSegment));
  EXPECT_FALSE(JoinsOutstanding(evictable, short_one, kSegment));
  EXPECT_FALSE(JoinsOutstanding(evictable, evictable, kSegment));
  EXPECT_TRUE(JoinsOutstanding({10 * kSegment, false}, evictable, kSegment)) << "it leaves soon";
}

TEST(SegmentBlockingTest, TwoSegmentsThatTakeLongerThanTwoDoNotJoin) {
  EXPECT_EQ(SegmentBlocking(std::vector<int64_t>{110'000, 90'000}, kSegment).longest_ns(), 200'000);
  EXPECT_EQ(SegmentBlocking(std::vector<int64_t>{110'000, 90'001}, kSegment).longest_ns(), 110'000);
}

TEST(SegmentBlockingTest, OneLongSegmentAmongShortOnesMovesTheTailByLessThanItsLength) {
  std::vector<int64_t> durations_ns(100, kSegment);
  durations_ns[50] = 1'000'000;
  const SegmentBlocking blocking(durations_ns, kSegment);
  EXPECT_EQ(blocking.longest_ns(), 1'000'000);
  EXPECT_LT(blocking.ShiftNs(1e-6), 300'000);
  EXPECT_GT(blocking.ShiftNs(1e-6), 150'000);
}

TEST(SegmentBlockingTest, AnUnknownTailCountsTheLongestWait) {
  const SegmentBlocking blocking(TrainingStep(), kSegment);
  EXPECT_EQ(blocking.ShiftNs(0), 1'300'000);
  EXPECT_EQ(blocking.ShiftNs(1), 1'300'000);  // a tail that no wait fits
}

TEST(SegmentBlockingTest, TheShiftGrowsWithTheRateFromTheMeanToTheLongest) {
  const SegmentBlocking blocking(TrainingStep(), kSegment);
  int64_t before_ns = 0;
  for (double tail_rate = 1e-9; tail_rate < 1e-4; tail_rate *= 2) {
    const int64_t shift_ns = blocking.ShiftNs(tail_rate);
    EXPECT_GE(shift_ns, before_ns - 1) << tail_rate;
    EXPECT_LE(shift_ns, blocking.longest_ns());
    before_ns = shift_ns;
  }
}

TEST(SegmentBlockingTest, ShorterWaitsThanTheCutSaysMoveTheTailLess) {
  const SegmentBlocking blocking(TrainingStep(), kSegment);
  const double eta = 1e-6;
  const double half_ns = blocking.mean_ns() / 2;
  // Segments of half the length have the same wait.
  std::vector<int64_t> halves = TrainingStep();
  for (int64_t& duration_ns : halves) duration_ns /= 2;
  const SegmentBlocking of_halves(halves, kSegment / 2);
  EXPECT_NEAR(static_cast<double>(blocking.ShiftNs(eta, half_ns)),
              static_cast<double>(of_halves.ShiftNs(eta)), 2);
  EXPECT_EQ(blocking.ShiftNs(0, half_ns), blocking.longest_ns() / 2);
  EXPECT_EQ(blocking.ShiftNs(eta, 10 * half_ns), blocking.ShiftNs(eta)) << "never longer";
}

TEST(SegmentBlockingTest, NothingIsKnownWithoutDurations) {
  EXPECT_FALSE(SegmentBlocking().known());
  EXPECT_FALSE(SegmentBlocking(std::vector<int64_t>(3, 0), kSegment).known());
}

}  // namespace
}  // namespace gpushare::core
