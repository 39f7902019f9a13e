#include "tools/gpushare/datacenter/gpu_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tools/gpushare/base/random.h"
#include "tools/gpushare/datacenter/row_summary.h"
#include "tools/gpushare/run/metrics.h"

namespace gpushare::tool {
namespace {

std::vector<const SortedLatencies*> PointersTo(const std::vector<SortedLatencies>& parts) {
  std::vector<const SortedLatencies*> out;
  out.reserve(parts.size());
  for (const SortedLatencies& part : parts) out.push_back(&part);
  return out;
}

// The p99 of a GPU is that of all its queries, whatever slot they were in.
TEST(GpuFiguresTest, ThePooledQuantileIsThatOfAllSamplesTogether) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<SortedLatencies> parts(1 + static_cast<size_t>(random.Uniform() * 9));
    SortedLatencies all;
    for (SortedLatencies& part : parts) {
      const auto count = static_cast<size_t>(random.Uniform() * 40);
      for (size_t i = 0; i < count; ++i) {
        part.push_back(static_cast<int64_t>(random.Uniform() * 50));
      }
      std::sort(part.begin(), part.end());
      all.insert(all.end(), part.begin(), part.end());
    }
    std::sort(all.begin(), all.end());
    for (const double fraction : {0.0, 0.5, 0.9, 0.99, 1.0}) {
      EXPECT_EQ(PooledQuantile(PointersTo(parts), fraction), Quantile(all, fraction))
          << "round " << round << ", fraction " << fraction;
    }
  }
}

TEST(GpuFiguresTest, AQueryAtTheLimitIsNotLate) {
  const std::vector<SortedLatencies> parts = {{10, 20, 30}, {30, 31}};
  const Latency latency = LatencyOf(PointersTo(parts), 30);
  EXPECT_EQ(latency.queries, 5);
  EXPECT_EQ(latency.late, 1);
  EXPECT_EQ(latency.p99_ns, 31);
  EXPECT_TRUE(latency.Violated());
  EXPECT_FALSE(LatencyOf(PointersTo(parts), 31).Violated());
  EXPECT_NEAR(latency.Excess(), 1.0 / 30, 1e-12);
}

Warehouse TwoApps() {
  Warehouse warehouse;
  warehouse.apps.lc.resize(2);
  warehouse.apps.lc[0].name = "a";
  warehouse.apps.lc[1].name = "b";
  warehouse.services = {{"a@0.2", 0, 0.2}, {"a@0.4", 0, 0.4}, {"b@0.2", 1, 0.2}};
  return warehouse;
}

GpuFigures Gpu(int32_t service, int64_t p99_ns, const std::vector<int64_t>& slot_p99_ns,
               double be_time) {
  GpuFigures gpu;
  gpu.service = service;
  gpu.latency = {100, p99_ns > 100 ? 2 : 0, p99_ns, 100};
  for (const int64_t p99 : slot_p99_ns) gpu.colocations.push_back({{50, 0, p99, 100}, be_time});
  return gpu;
}

TEST(RowSummaryTest, AnAppIsViolatedByItsWholeP99AndACoLocationByItsOwn) {
  const RowSummary row =
      Summarise(TwoApps(), "adaptive", Placing::kRandom,
                {Gpu(0, 100, {90, 120}, 0.75), Gpu(1, 150, {100, 170}, 0.25), Gpu(2, 50, {50}, 1)});
  EXPECT_EQ(row.apps.count, 3);
  EXPECT_EQ(row.apps.violated, 1);
  EXPECT_EQ(row.apps.severe, 1);  // 150 is more than 40 % above 100
  EXPECT_NEAR(row.apps.worst_excess, 0.5, 1e-12);
  EXPECT_EQ(row.colocations.count, 5);
  EXPECT_EQ(row.colocations.violated, 2);
  EXPECT_NEAR(row.be_time, (0.75 + 0.25 + 1) / 3, 1e-12);
  ASSERT_EQ(row.by_app.size(), 2U);
  EXPECT_EQ(row.by_app[0].apps.count, 2);  // of both loads
  EXPECT_NEAR(row.by_app[0].late_share, 2.0 / 200, 1e-12);
  EXPECT_NEAR(row.by_app[1].be_time, 1, 1e-12);
  EXPECT_EQ(row.levels[2], 1);
  EXPECT_EQ(row.levels[7], 1);
  EXPECT_EQ(row.levels[kLevels - 1], 1);  // all of the time, or more
}

// A slot in which no query arrives has no p99, and with a bound over the p99 alone no limit either.
TEST(GpuFiguresTest, ASlotWithoutAQueryViolatesNothing) {
  const SortedLatencies none;
  for (const int64_t limit_ns : {0, 30}) {
    Violations violations;
    violations.Add(LatencyOf({&none}, limit_ns));
    EXPECT_EQ(violations.count, 1);
    EXPECT_EQ(violations.violated, 0);
    EXPECT_EQ(violations.severe, 0);
    EXPECT_EQ(violations.worst_excess, -1);
  }
}

}  // namespace
}  // namespace gpushare::tool
