// The table of M/D/1 tails against the equation it comes from, and the budget of a bare target.

#include "src/core/queueing/queue_tail.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/md1_queue.h"

namespace gpushare::core {
namespace {

// p99 / S from the root.
double ByEquation(double load) {
  const double x = TailRateOverService(load);
  const double share = (1 - load) / (load * std::exp(x) - 1);
  return 1 + std::log(100 * share) / x;
}

TEST(QueueTail, TheTableIsTheEquations) {
  EXPECT_EQ(P99OverService(0), 1);
  for (int i = 1; i < 64; ++i) {
    EXPECT_NEAR(P99OverService(i / 64.0), ByEquation(i / 64.0), 0.001) << i;
  }
}

TEST(QueueTail, TheTableOfRatesIsTheEquations) {
  constexpr double kServiceNs = 1e6;
  const int entries = static_cast<int>(kTailRateOverService.size());
  for (int i = kTailRateFirst; i < kTailRateFirst + entries; ++i) {
    const double rate = PoissonTailRate(i / 32.0, kServiceNs) * kServiceNs;
    EXPECT_NEAR(rate, TailRateOverService(i / 32.0), 0.001) << i;
    EXPECT_EQ(PoissonTailRate((i + 0.9) / 32, kServiceNs) * kServiceNs, rate) << "rounded down";
  }
  EXPECT_EQ(PoissonTailRate(0.09, kServiceNs), 0) << "hardly a query waits";
  EXPECT_EQ(PoissonTailRate(0.5, 0), 0) << "nothing is known of the queries";
  EXPECT_GT(PoissonTailRate(7, kServiceNs), 0);
}

TEST(QueueTail, IsInterpolatedAndEndsWithTheTable) {
  EXPECT_NEAR(P99OverService(0.3), 2.907, 0.005);
  EXPECT_EQ(P99OverService(-1), 1);
  EXPECT_EQ(P99OverService(5), P99OverService(63.0 / 64));
  for (double load = 0; load < 0.98; load += 0.001) {
    EXPECT_LT(P99OverService(load), P99OverService(load + 0.001));
  }
}

// Chain1 of the H200 at load 0.3: p99 alone was 1.88 ms.
TEST(QueueTail, EstimatesP99AloneOfAServiceFromItsLoad) {
  EXPECT_NEAR(QueueP99(667e3, 667e3, 0.3), 1.88e6, 0.08e6);
}

// Of an exponential tail beyond the p99.
TEST(QueueTail, AQuantileIsTheP99AndWhatTheTailAdds) {
  constexpr double kServiceNs = 1e6;
  EXPECT_DOUBLE_EQ(QueueQuantile(kServiceNs, kServiceNs, 0.5, kLateOfP99),
                   QueueP99(kServiceNs, kServiceNs, 0.5));
  const double tail_ns = std::log(10) / PoissonTailRate(0.5, kServiceNs);
  EXPECT_NEAR(QueueQuantile(kServiceNs, kServiceNs, 0.5, 0.001),
              QueueP99(kServiceNs, kServiceNs, 0.5) + tail_ns, 1);
  EXPECT_EQ(QueueQuantile(kServiceNs, kServiceNs, 0.48, 0.001),
            QueueQuantile(kServiceNs, kServiceNs, 0.5, 0.001))
      << "a load is rounded up";
  EXPECT_GT(QueueQuantile(kServiceNs, kServiceNs, 0, 0.001), kServiceNs);
  EXPECT_EQ(QueueQuantile(3 * kServiceNs, kServiceNs, 0.5, 0.001),
            2 * kServiceNs + QueueQuantile(kServiceNs, kServiceNs, 0.5, 0.001))
      << "a query of another length waits in the same queue";
}

}  // namespace
}  // namespace gpushare::core
