// The two tiers agree: LC p50, p99 and service time within 3 %, BE share within 0.025, SM-busy
// share within 0.03, eviction latency within 8 %. They differ because SMs of one launch end up to
// an eighth of a block task apart at block level, and together at kernel level.

#include <gtest/gtest.h>

#include <string>

#include "tests/sim/sim_fixture.h"

namespace gpushare::sim {
namespace {

void ExpectTiersAgree(Colocation colocation) {
  colocation.tier = Tier::kKernel;
  const auto kernel = Run(colocation);
  colocation.tier = Tier::kBlock;
  const auto block = Run(colocation);
  EXPECT_NEAR(block.lc_p50_ns, kernel.lc_p50_ns, 0.03 * kernel.lc_p50_ns);
  EXPECT_NEAR(block.lc_p99_ns, kernel.lc_p99_ns, 0.03 * kernel.lc_p99_ns);
  EXPECT_NEAR(block.service_ns, kernel.service_ns, 0.03 * kernel.service_ns);
  EXPECT_NEAR(block.be_rate, kernel.be_rate, 0.025);
  EXPECT_NEAR(block.busy_share, kernel.busy_share, 0.03);
  EXPECT_NEAR(block.eviction_p50_ns, kernel.eviction_p50_ns, 0.08 * kernel.eviction_p50_ns);
}

TEST(TiersAgreeTest, UnderEviction) {
  for (const char* be :
       {"sincos_27us", "streaming_59us", "sincos_267us", "sincos_2700us", "sincos_2700us_yield"}) {
    SCOPED_TRACE(be);
    Colocation colocation = {.be = be, .mechanism = Mechanism::kEvictAll};
    ExpectTiersAgree(colocation);
  }
}

TEST(TiersAgreeTest, OnPartitions) {
  for (Mechanism mechanism : {Mechanism::kPartition, Mechanism::kElastic}) {
    for (const char* be : {"sincos_27us", "ffma", "streaming"}) {
      SCOPED_TRACE(be);
      Colocation colocation = {.lc = "decode16", .be = be, .mechanism = mechanism, .lc_groups = 9};
      ExpectTiersAgree(colocation);
    }
  }
}

TEST(TiersAgreeTest, UnderPriorities) {
  Colocation colocation = {
      .be = "sincos_267us", .mechanism = Mechanism::kPriority, .give_up_ns = 1'000'000'000};
  ExpectTiersAgree(colocation);
}

}  // namespace
}  // namespace gpushare::sim
