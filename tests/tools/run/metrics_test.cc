// Quantiles against their definition, and the formulas of violations, ANTT and STP by hand.

#include "tools/gpushare/run/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tools/gpushare/base/random.h"

namespace gpushare::tool {
namespace {

TEST(QuantileTest, IsTheNearestRank) {
  std::vector<int64_t> samples;
  for (int64_t i = 1; i <= 100; ++i) samples.push_back(i);
  EXPECT_EQ(Quantile(samples, 0.5), 50);
  EXPECT_EQ(Quantile(samples, 0.99), 99);
  EXPECT_EQ(Quantile(samples, 1), 100);
  EXPECT_EQ(Quantile(samples, 0), 1);
  EXPECT_EQ(Quantile({7}, 0.99), 7);
  EXPECT_EQ(Quantile({}, 0.99), 0);
}

TEST(QuantileTest, AgreesWithCountingOnRandomSamples) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> samples(static_cast<size_t>(1 + 300 * random.Uniform()));
    for (int64_t& sample : samples) sample = static_cast<int64_t>(50 * random.Uniform());
    std::sort(samples.begin(), samples.end());
    const double fraction = random.Uniform();
    const int64_t answer = Quantile(samples, fraction);
    const auto at_most = std::upper_bound(samples.begin(), samples.end(), answer) - samples.begin();
    const auto below = std::lower_bound(samples.begin(), samples.end(), answer) - samples.begin();
    const auto count = static_cast<double>(samples.size());
    EXPECT_GE(static_cast<double>(at_most), fraction * count - 1e-6);
    EXPECT_LT(static_cast<double>(below), fraction * count + 1e-6);
  }
}

TEST(MetricsTest, ViolationsCountAgainstTheBoundFirst) {
  std::vector<int64_t> alone_samples(100, 1000);
  LcResult alone = SummariseLatencies("a", alone_samples);
  std::vector<int64_t> samples(100, 1000);
  samples[3] = 1051;
  samples[4] = 1050;
  LcResult result = SummariseLatencies("a", samples);
  CompareWithAlone(alone, samples, 1.05, 100, result);
  EXPECT_EQ(result.qos_ns, 1050);
  EXPECT_EQ(result.violations, 1);
  EXPECT_DOUBLE_EQ(result.violation_share, 0.01);
  EXPECT_DOUBLE_EQ(result.p99_over_alone, 1.05);
  EXPECT_TRUE(result.qos_met);

  LcResult with_target = SummariseLatencies("a", samples);
  CompareWithAlone(alone, samples, 0, 1049, with_target);
  EXPECT_EQ(with_target.violations, 2);
  EXPECT_FALSE(with_target.qos_met);
}

TEST(MetricsTest, ThroughputFollowsSmguardEquations9And10) {
  RunResult run;
  run.realised_load = 0.3;
  run.lc.resize(1);
  run.lc[0].mean_over_alone = 1.25;  // T_co / T_alone
  run.be.resize(2);
  run.be[0].rate_of_solo = 0.5;  // T_alone / T_co
  run.be[1].rate_of_solo = 0.25;
  FillThroughput(run);
  EXPECT_DOUBLE_EQ(run.antt, (1.25 + 2 + 4) / 3);
  EXPECT_DOUBLE_EQ(run.stp, 0.8 + 0.5 + 0.25);
  EXPECT_DOUBLE_EQ(run.be_rate_of_solo, 0.75);
  EXPECT_DOUBLE_EQ(run.work_rate, 1.05);
}

TEST(MetricsTest, WorkIsCountedByTheTimeInsideTheSpan) {
  EXPECT_DOUBLE_EQ(OverlapShare(0, 100, 0, 1000), 1);
  EXPECT_DOUBLE_EQ(OverlapShare(950, 1050, 0, 1000), 0.5);
  EXPECT_DOUBLE_EQ(OverlapShare(-50, 50, 0, 1000), 0.5);
  EXPECT_DOUBLE_EQ(OverlapShare(1000, 1100, 0, 1000), 0);
  EXPECT_DOUBLE_EQ(OverlapShare(10, 10, 0, 1000), 1);
  EXPECT_DOUBLE_EQ(OverlapShare(-100, 2000, 0, 1050), 0.5);
}

TEST(MetricsTest, TheCurveRisesAndReachesTheWorstQuery) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < 5000; ++i) samples.push_back(i * i);
  const std::vector<CurvePoint> curve = PercentileCurve(samples);
  for (size_t i = 1; i < curve.size(); ++i) {
    EXPECT_GE(curve[i].latency_ns, curve[i - 1].latency_ns);
    EXPECT_GE(curve[i].fraction, curve[i - 1].fraction);
  }
  EXPECT_EQ(curve.front().latency_ns, samples.front());
  EXPECT_EQ(curve.back().latency_ns, samples.back());
}

}  // namespace
}  // namespace gpushare::tool
