// Latency targets: an LC app that states target_ns alone keeps it wherever it would keep it alone,
// and BE runs beside it. On the simulated device.

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/faults/tenants.h"

namespace gpushare_test {
namespace {

// The load is learned in the first seconds; BE's rate is counted from then on, late queries from
// the start.
constexpr int64_t kLearned = 2'500 * kMs;
constexpr int64_t kEnd = 4'000 * kMs;

double LateAlone(int64_t target_ns) {
  Tenants tenants("adaptive");
  tenants.AddService({.target_ns = target_ns});
  tenants.RunUntil(kEnd);
  return tenants.LateShare(target_ns);
}

struct Outcome {
  double late = 0;
  double be_rate = 0;
};
Outcome Beside(const char* kernel, const Tenants::Service& service) {
  Tenants tenants("adaptive");
  const int train = tenants.AddBe("train", 1, kernel, 105'600);
  tenants.AddService(service);
  tenants.RunUntil(kLearned);
  const double before = tenants.Work(train);
  tenants.RunUntil(kEnd);
  return {tenants.LateShare(service.target_ns), (tenants.Work(train) - before) / (kEnd - kLearned)};
}

class BareTarget : public testing::TestWithParam<const char*> {};

// Alone p99 is 1.88 ms. Taken for the solo time of 0.67 ms, it let BE have most SMs: 24 % were
// late.
TEST_P(BareTarget, CloseToP99AloneIsKept) {
  const int64_t target_ns = 2 * kMs;
  const Outcome beside = Beside(GetParam(), {.target_ns = target_ns});
  EXPECT_LE(beside.late, LateAlone(target_ns) + 0.005);
  EXPECT_GT(beside.be_rate, 0.6);
}

TEST_P(BareTarget, OfTwiceP99AloneIsKept) {
  const Outcome beside = Beside(GetParam(), {.target_ns = 4 * kMs});
  EXPECT_LE(beside.late, 0.012);
  EXPECT_GT(beside.be_rate, 0.65);
}

TEST_P(BareTarget, ThatIsLooseLeavesBeAsMuchAsAKnownP99Does) {
  const Outcome bare = Beside(GetParam(), {.target_ns = 10 * kMs});
  const Outcome known = Beside(GetParam(), {.target_ns = 10 * kMs, .p99_alone_ns = 1'880 * kUs});
  EXPECT_LE(bare.late, 0.012);
  EXPECT_GT(bare.be_rate, 0.95 * known.be_rate);
}

// The load is unknown at first. On a side that is too small for it, the queue never empties again.
TEST_P(BareTarget, ThatIsVeryLooseNeverOverloadsLcsSide) {
  const Outcome beside = Beside(GetParam(), {.target_ns = 20 * kMs, .interval_ns = 1'100 * kUs});
  EXPECT_LE(beside.late, 0.012);
  EXPECT_GT(beside.be_rate, 0.3);
}

// No query can keep it, whatever BE does: BE runs in the gaps all the same.
TEST_P(BareTarget, BelowTheSoloTimeDoesNotStopBe) {
  EXPECT_GT(Beside(GetParam(), {.target_ns = 400 * kUs}).be_rate, 0.5);
}

INSTANTIATE_TEST_SUITE_P(Beside, BareTarget, testing::Values("sincos_27us", "streaming_59us"));

// T_tgt - T_self is negative, so no T_q fits under the gate.
TEST(BaymaxTarget, BelowTheSoloTimeLetsBeRunWhileNoQueryIsActive) {
  Tenants tenants("baymax");
  const int train = tenants.AddBe("train", 1, "sincos_27us", 26'400);
  tenants.AddService({.target_ns = 400 * kUs, .solo_ns = 667 * kUs});
  tenants.RunUntil(500 * kMs);
  EXPECT_GT(tenants.Work(train) / (500 * kMs), 0.2);
  EXPECT_FALSE(tenants.latencies_ns().empty());
}

}  // namespace
}  // namespace gpushare_test
