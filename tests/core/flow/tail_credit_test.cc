// BE work that nothing evicts goes on beside LC apps, on credit of their tail accounts. The whole
// flow on the simulated device, virtual time, one thread.

#include "gtest/gtest.h"
#include "tests/core/flow/open_loop.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;

int64_t P99AloneNs(double load, int queries) {
  OpenLoop loop("adaptive", {.load = load});
  loop.Run(queries);
  return loop.P99Ns();
}

// Beside an LC app of load 0.5, an uncuttable task of 20 ms delays some 30 queries.
TEST(TailCredit, UncuttableTasksMakeProgressAndTheBoundHolds) {
  for (const double load : {0.1, 0.3, 0.5}) {
    constexpr int kQueries = 20'000;
    const int64_t alone_ns = P99AloneNs(load, kQueries);
    for (const int64_t duration_ns : {5 * kMs, 20 * kMs}) {
      OpenLoop loop("adaptive", {.load = load, .p99_bound = 1.05, .p99_alone_ns = alone_ns});
      const int be = loop.AddBe({.duration_ns = duration_ns});
      loop.Run(kQueries);
      const double ratio = static_cast<double>(loop.P99Ns()) / static_cast<double>(alone_ns);
      EXPECT_LE(ratio, 1.05) << "load " << load << ", BE of " << duration_ns << " ns";
      EXPECT_GE(loop.done(be), 1);
    }
  }
}

TEST(TailCredit, ASilentLcAppBlocksNobody) {
  for (const int64_t duration_ns : {kMs / 2, 5 * kMs, 20 * kMs, 200 * kMs}) {
    OpenLoop alone("adaptive", {});
    const int free = alone.AddBe({.duration_ns = duration_ns});
    alone.RunFor(10'000 * kMs);
    OpenLoop loop("adaptive", {.p99_bound = 1.02, .p99_alone_ns = 2 * kMs});
    const int be = loop.AddBe({.duration_ns = duration_ns});
    loop.RunFor(10'000 * kMs);
    EXPECT_GE(static_cast<double>(loop.done(be)), 0.98 * static_cast<double>(alone.done(free)))
        << duration_ns;
  }
}

TEST(TailCredit, AnAppThatFallsSilentBlocksNobodyForLong) {
  OpenLoop loop("adaptive", {.load = 0.5, .p99_bound = 1.05, .p99_alone_ns = 3 * kMs});
  loop.Run(2'000);
  const int be = loop.AddBe({.duration_ns = 20 * kMs});
  loop.RunFor(10'000 * kMs);
  const int64_t before = loop.done(be);
  loop.RunFor(2'000 * kMs);
  EXPECT_GE(loop.done(be) - before, 98);
}

}  // namespace
}  // namespace gpushare::core
