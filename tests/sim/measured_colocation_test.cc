// hardware.md's tables of one LC app and one BE app (eviction, partition, elastic partition,
// spatial overlap), reproduced over 3,000 queries through the seam.
//
// Latencies are compared as ratios to LC alone on the same arrivals. Tolerances: LC p50 and service
// time 10 %; the p99 ratio 0.10 if the page has less than 1.2, otherwise 15 %; BE share 0.05.
// src/sim/README.md says which rows were fitted.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/sim/measured_rows.h"
#include "tests/sim/sim_fixture.h"

namespace gpushare::sim {
namespace {

void ExpectP99Ratio(double simulated, double measured) {
  EXPECT_NEAR(simulated, measured, measured < 1.2 ? 0.10 : 0.15 * measured);
}

void ExpectWithin10Percent(double simulated, double measured) {
  EXPECT_NEAR(simulated, measured, 0.10 * measured);
}

class MeasuredTest : public testing::TestWithParam<Tier> {
 protected:
  Colocation FirstChain(const char* be, Mechanism mechanism) const {
    Colocation colocation = {.tier = GetParam(), .be = be, .mechanism = mechanism};
    return colocation;
  }
  Colocation SecondChain(double load, const char* be, Mechanism mechanism) const {
    Colocation colocation = FirstChain(be, mechanism);
    colocation.lc = "decode16";
    colocation.lc_solo_ns = 546'000;
    colocation.lc_groups = 9;
    colocation.load = load;
    return colocation;
  }
};

INSTANTIATE_TEST_SUITE_P(Tiers, MeasuredTest, testing::Values(Tier::kKernel, Tier::kBlock),
                         [](const auto& tier) {
                           return tier.param == Tier::kKernel ? "Kernel" : "Block";
                         });

TEST_P(MeasuredTest, TheEvictionTable) {
  const auto alone = sim::Run(FirstChain("sincos_27us", Mechanism::kAlone));
  ExpectWithin10Percent(alone.service_ns / 1e3, measured::kChain1SoloUs);
  for (const measured::EvictionRow& row : measured::kEvictionRows) {
    SCOPED_TRACE(row.be_kernel);
    const auto run = sim::Run(FirstChain(row.be_kernel, Mechanism::kEvictAll));
    ASSERT_EQ(run.queries, 3000);
    ExpectWithin10Percent(run.lc_p50_ns / alone.lc_p50_ns,
                          row.lc_p50_us / measured::kChain1AloneP50Us);
    ExpectWithin10Percent(run.service_ns / 1e3, measured::kChain1SoloUs);
    ExpectP99Ratio(run.lc_p99_ns / alone.lc_p99_ns, row.lc_p99_us / measured::kChain1AloneP99Us);
    EXPECT_NEAR(run.be_rate, row.be, 0.05);
    // The page states no tolerance for this; 25 % keeps the residual where it was fitted.
    EXPECT_NEAR(run.eviction_p50_ns / 1e3, row.eviction_p50_us, 0.25 * row.eviction_p50_us);
  }
}

TEST_P(MeasuredTest, YieldPointsMakeLongBlockTasksHarmless) {
  const auto alone = sim::Run(FirstChain("sincos_2700us_yield", Mechanism::kAlone));
  const auto run = sim::Run(FirstChain("sincos_2700us_yield", Mechanism::kEvictAll));
  EXPECT_LT(run.lc_p99_ns, 1.10 * alone.lc_p99_ns);
  EXPECT_LT(run.eviction_p99_ns, 175'000);
  EXPECT_GT(run.be_rate, 0.65);
}

TEST_P(MeasuredTest, TheStaticPartitionRow) {
  const auto alone = sim::Run(FirstChain("sincos_267us", Mechanism::kAlone));
  auto colocation = FirstChain("sincos_267us", Mechanism::kPartition);
  colocation.lc_groups = 10;  // 92 SMs with the remainder; BE has 40
  const auto run = sim::Run(colocation);
  ExpectWithin10Percent(run.lc_p50_ns / alone.lc_p50_ns,
                        measured::kChain1PartitionP50Us / measured::kChain1AloneP50Us);
  ExpectP99Ratio(run.lc_p99_ns / alone.lc_p99_ns,
                 measured::kChain1PartitionP99Us / measured::kChain1AloneP99Us);
  EXPECT_NEAR(run.be_rate, measured::kChain1PartitionBe, 0.05);
}

// Direction only: a query takes longer than the time between arrivals.
TEST_P(MeasuredTest, StreamsAndPrioritiesAreUnstable) {
  const auto alone = sim::Run(FirstChain("sincos_267us", Mechanism::kAlone));
  for (Mechanism mechanism : {Mechanism::kStreams, Mechanism::kPriority}) {
    auto colocation = FirstChain("sincos_267us", mechanism);
    colocation.give_up_ns = 2'500'000'000;
    const auto run = sim::Run(colocation);
    ASSERT_GT(run.queries, 0);
    EXPECT_GT(run.lc_p99_ns, 20 * alone.lc_p99_ns);
    EXPECT_GT(run.be_rate, 0.90);
  }
}

// Direction only: a spread quota leaves no whole SM, so a query waits until a BE task ends.
TEST_P(MeasuredTest, ASpreadQuotaDoesNotHelpAWholeSmGemm) {
  const auto alone = sim::Run(FirstChain("sincos_267us", Mechanism::kAlone));
  auto colocation = FirstChain("sincos_267us", Mechanism::kQuota);
  colocation.be_task_ns = 5e6;
  colocation.queries = 300;
  colocation.give_up_ns = 1'500'000'000;
  const auto run = sim::Run(colocation);
  EXPECT_GT(run.lc_p50_ns, 2 * alone.lc_p50_ns);
  EXPECT_LT(run.be_rate, 0.45);
}

TEST_P(MeasuredTest, TheElasticTable) {
  for (const measured::ElasticRow& row : measured::kElasticRows) {
    SCOPED_TRACE(row.load);
    const auto alone = sim::Run(SecondChain(row.load, "sincos_27us", Mechanism::kAlone));
    auto expect = [&](const ColocationResult& run, double p99_us, double be) {
      ASSERT_EQ(run.queries, 3000);
      ExpectP99Ratio(run.lc_p99_ns / alone.lc_p99_ns, p99_us / row.alone_p99_us);
      ExpectWithin10Percent(run.service_ns, 546'000);
      EXPECT_NEAR(run.be_rate, be, 0.05);
    };
    expect(sim::Run(SecondChain(row.load, "sincos_27us", Mechanism::kEvictAll)),
           row.evict_all_p99_us, row.evict_all_be);
    expect(sim::Run(SecondChain(row.load, "sincos_27us", Mechanism::kElastic)), row.elastic_p99_us,
           row.elastic_be);
    expect(sim::Run(SecondChain(row.load, "ffma", Mechanism::kElastic)), row.ffma_p99_us,
           row.ffma_be);
    expect(sim::Run(SecondChain(row.load, "sincos_267us", Mechanism::kPartition)),
           row.static_p99_us, row.static_be);
  }
}

// Direction only: a neighbour that saturates DRAM ruins LC on the same partition.
TEST_P(MeasuredTest, StreamingBesideAPartitionRuinsLc) {
  const auto alone = sim::Run(SecondChain(0.3, "streaming", Mechanism::kAlone));
  const auto run = sim::Run(SecondChain(0.3, "streaming", Mechanism::kElastic));
  EXPECT_GT(run.lc_p99_ns, 2 * alone.lc_p99_ns);
}

TEST_P(MeasuredTest, TheSpatialTable) {
  const double solo_us = 411.4;  // decode12 alone on the whole GPU
  for (const measured::SpatialRow& row : measured::kSpatialRows) {
    auto run = [&](const char* be) {
      Colocation colocation;
      colocation.tier = GetParam();
      colocation.lc = "decode12";
      colocation.lc_solo_ns = solo_us * 1e3;
      colocation.be = be;
      colocation.be_task_ns = 1e6;
      colocation.mechanism = Mechanism::kPartition;
      colocation.lc_groups = (row.lc_sms - 12) / 8;
      colocation.lc_saturated = true;
      colocation.queries = 3000;
      return sim::Run(colocation);
    };
    auto expect = [&](const char* be, const measured::SpatialRow::Pair& pair) {
      SCOPED_TRACE(std::to_string(row.lc_sms) + " SMs beside " + be);
      const auto result = run(be);
      ExpectWithin10Percent(solo_us * 1e3 / result.service_ns, pair.lc);
      EXPECT_NEAR(result.be_rate, pair.be, 0.05);
    };
    expect("sincos", row.sincos);
    expect("ffma", row.ffma);
    expect("gemm_be", row.gemm);
    // Streaming beside a partition, direction only: LC becomes slower as its neighbour grows.
    SCOPED_TRACE(std::to_string(row.lc_sms) + " SMs beside streaming");
    const auto streaming = run("streaming");
    EXPECT_NEAR(solo_us * 1e3 / streaming.service_ns, row.streaming.lc, 0.15 * row.streaming.lc);
    EXPECT_NEAR(streaming.be_rate, row.streaming.be, 0.10);
  }
}

}  // namespace
}  // namespace gpushare::sim
