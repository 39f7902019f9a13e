// The vacation model against its inverse and against simulated queues.

#include "src/core/queueing/vacation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "src/core/evidence/latency_tail.h"
#include "src/core/queueing/queue_tail.h"
#include "tests/core/md1_queue.h"

namespace gpushare::core {
namespace {

constexpr double kServiceNs = 1e6;

// eta of the M/D/1 queue.
double RateOf(double load) { return TailRateOverService(load) / kServiceNs; }

// Latencies of a FIFO server of one service time. While no query is in the system, vacations of
// `vacation_ns` follow each other; 0: none.
std::vector<double> Simulate(double load, double vacation_ns, int queries) {
  std::mt19937_64 random(11);
  std::exponential_distribution<double> gap(load / kServiceNs);
  std::vector<double> latencies;
  double arrival = 0;
  double free_at = 0;
  for (int i = 0; i < queries; ++i) {
    arrival += gap(random);
    if (arrival > free_at && vacation_ns > 0) {
      free_at += std::ceil((arrival - free_at) / vacation_ns) * vacation_ns;
    }
    free_at = std::max(free_at, arrival) + kServiceNs;
    latencies.push_back(free_at - arrival);
  }
  return latencies;
}

double P99(std::vector<double> latencies) {
  const auto at = latencies.begin() + static_cast<int64_t>(latencies.size() * 99 / 100);
  std::nth_element(latencies.begin(), at, latencies.end());
  return *at;
}

TEST(Vacation, LiesBetweenTheShiftAndTwiceIt) {
  for (const double rate : {1e-12, 1e-9, 1e-6, 1e-3, 1.0}) {
    for (const int64_t shift_ns : {int64_t{1'000}, int64_t{100'000}, int64_t{10'000'000}}) {
      const int64_t longest_ns = LongestVacation(shift_ns, rate);
      EXPECT_GE(longest_ns, shift_ns);
      EXPECT_LE(longest_ns, 2 * shift_ns);
      const double x = rate * static_cast<double>(longest_ns);
      EXPECT_NEAR(ShiftOfVacation(x) / rate / static_cast<double>(shift_ns), 1, 2e-3);
    }
  }
}

TEST(Vacation, OfAnUnknownTailIsNoLongerThanTheShift) {
  EXPECT_EQ(LongestVacation(100'000, 0), 100'000);
  EXPECT_EQ(LongestVacation(0, 1e-6), 0);
  EXPECT_EQ(LongestVacation(kNever, 1e-6), kNever);
}

// MEASURED.md's bounds and loads. 2 %: the p99 of so many queries.
TEST(Vacation, MovesTheP99OfASimulatedQueueByWhatTheBoundAllows) {
  for (const double load : {0.3, 0.5, 0.7}) {
    const double alone_ns = P99(Simulate(load, 0, 400'000));
    for (const double bound : {1.02, 1.05, 1.2, 1.5, 2.0}) {
      const auto shift_ns = static_cast<int64_t>((bound - 1) * alone_ns);
      const auto vacation_ns = static_cast<double>(LongestVacation(shift_ns, RateOf(load)));
      EXPECT_NEAR(P99(Simulate(load, vacation_ns, 400'000)) / alone_ns, bound, 0.02 * bound)
          << "load " << load;
    }
  }
}

TEST(LatencyTail, IsEstimatedFromLatenciesAndErrsTowardsASteeperTail) {
  for (const double load : {0.3, 0.5, 0.7}) {
    for (const double vacation_ns : {0.0, 0.4e6}) {
      LatencyTail tail;
      for (const double latency_ns : Simulate(load, vacation_ns, 8'192)) {
        tail.Add(static_cast<int64_t>(latency_ns));
      }
      EXPECT_GT(tail.Rate({}), RateOf(load) * 0.9) << load;
      EXPECT_LT(tail.Rate({}), RateOf(load) * 1.8) << load;
    }
  }
}

// Windows of one long run. The true tail is steeper than the estimate in few of them, also where
// the queries of a busy period wait together.
TEST(LatencyTail, TheErrorBarHoldsAtHighLoadsToo) {
  constexpr int kWindow = 4'096;
  constexpr int kWindows = 100;
  for (const double load : {0.3, 0.5, 0.7, 0.85}) {
    const std::vector<double> latencies = Simulate(load, 0, kWindow * kWindows);
    int steep = 0;
    for (int w = 0; w < kWindows; ++w) {
      LatencyTail tail;
      for (int i = 0; i < kWindow; ++i) {
        tail.Add(static_cast<int64_t>(latencies[static_cast<size_t>(w * kWindow + i)]));
      }
      const LoadTail at = {PoissonTailRate(load, kServiceNs), TailSpread(load)};
      if (tail.Rate(at) >= RateOf(load)) ++steep;
    }
    EXPECT_GE(steep, 94) << load;
  }
}

TEST(LatencyTail, TheErrorBarGrowsWithTheLoad) {
  EXPECT_EQ(TailSpread(0), 1);
  EXPECT_EQ(TailSpread(0.5), 1);
  EXPECT_NEAR(TailSpread(0.75), 1.8, 1e-9);
  EXPECT_EQ(TailSpread(0.75), TailSpread(0.73)) << "rounded up";
  EXPECT_EQ(TailSpread(5), kTailSpreadMax);
}

TEST(LatencyTail, OfFewQueriesIsThatOfRandomArrivalsAtTheLoad) {
  LatencyTail few;
  EXPECT_NEAR(few.Rate({PoissonTailRate(0.5, kServiceNs), 1}) / RateOf(0.5), kPoissonTailMargin,
              1e-3);
  EXPECT_EQ(PoissonTailRate(0.05, kServiceNs), 0) << "hardly a query waits";
  for (const double load : {0.1, 0.3, 0.52, 0.7, 0.9}) {
    EXPECT_GE(PoissonTailRate(load, kServiceNs), RateOf(load) * 0.999) << load;
  }
}

// Regular arrivals never wait, so whatever a query meets is its tail.
TEST(LatencyTail, SteeperThanThatOfRandomArrivalsIsBelieved) {
  LatencyTail tail;
  std::mt19937_64 random(3);
  std::exponential_distribution<double> late(10 / kServiceNs);
  for (int i = 0; i < 4'000; ++i) {
    tail.Add(static_cast<int64_t>(0.5 * kServiceNs + 3 * late(random)));
  }
  EXPECT_GT(tail.Rate({PoissonTailRate(0.5, kServiceNs), 1}), 0.9 * 10 / 3 / kServiceNs);
}

TEST(LatencyTail, IsUnknownForFewQueriesAndWhereNobodyWaits) {
  LatencyTail few;
  for (const double latency_ns : Simulate(0.5, 0, 150)) few.Add(static_cast<int64_t>(latency_ns));
  EXPECT_EQ(few.Rate({}), 0);
  LatencyTail light;
  for (const double latency_ns : Simulate(0.005, 0, 5'000)) {
    light.Add(static_cast<int64_t>(latency_ns));
  }
  EXPECT_EQ(light.Rate({}), 0);
}

TEST(LatencyTail, ADelayBeyondTheBoundMakesQueriesLateThatLieAboveTheMedian) {
  constexpr int64_t kShift = 30'000;
  const TailQuantiles few{.count = 10};
  const TailQuantiles periodic{1000, 600'000, 620'000, 700'000};
  const TailQuantiles random{1000, 700'000, 1'500'000, 2'000'000};
  // A stated p99: the median of the latencies, or the solo duration before there are enough.
  EXPECT_EQ(LateDelay(kShift, 600'000, 590'000, few), kShift + 10'000);
  EXPECT_EQ(LateDelay(kShift, 600'000, 590'000, periodic), kShift);
  EXPECT_EQ(LateDelay(kShift, 500'000, 590'000, periodic), kShift);
  EXPECT_EQ(LateDelay(kShift, 1'900'000, 590'000, random), kShift + 1'200'000);
  // None: BE work may be all that lies above the median.
  EXPECT_EQ(LateDelay(kShift, 0, 590'000, few), kNever);
  EXPECT_EQ(LateDelay(kShift, 0, 590'000, periodic), 65'000);
  EXPECT_EQ(LateDelay(kShift, 0, 590'000, random), 665'000);
  EXPECT_EQ(LateDelay(kNever, 600'000, 590'000, periodic), kNever);
}

// Whatever the load, also where hardly anybody waits, and with the rate as it is estimated beside
// the vacations themselves.
TEST(LatencyTail, KeepsEveryBoundAtEveryLoad) {
  for (const double load : {0.005, 0.0105, 0.03, 0.05, 0.07, 0.1, 0.2, 0.5, 0.7, 0.8}) {
    const double alone_ns = P99(Simulate(load, 0, 200'000));
    for (const double bound : {1.02, 1.05, 1.2, 2.0}) {
      const auto shift_ns = static_cast<int64_t>((bound - 1) * alone_ns);
      double rate = 0;
      double p99_ns = 0;
      for (int round = 0; round < 3; ++round) {
        const auto vacation_ns = static_cast<double>(LongestVacation(shift_ns, rate));
        const std::vector<double> latencies = Simulate(load, vacation_ns, 200'000);
        p99_ns = P99(latencies);
        RecentLatencies recent;
        for (size_t i = 0; i < 8'000; ++i) recent.Add(static_cast<int64_t>(latencies[i]));
        rate = TailRate(QuantilesOf(recent), {PoissonTailRate(load, kServiceNs), 1});
      }
      EXPECT_LE(p99_ns / alone_ns, bound + 0.03) << "load " << load;
    }
  }
}

}  // namespace
}  // namespace gpushare::core
