// The soak's memory check: what passes and what it reports.

#include "benchmarks/soak/soak_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gpushare::soak {
namespace {

constexpr int64_t kMb = 1 << 20;

std::vector<int64_t> Flat(size_t count) { return std::vector<int64_t>(count, 100 * kMb); }

TEST(SoakMemoryTest, FewSamplesSayNothing) {
  EXPECT_FALSE(GrowthOf(Flat(kMemorySamplesMin - 1)).enough);
  EXPECT_TRUE(GrowthOf(Flat(kMemorySamplesMin)).enough);
}

TEST(SoakMemoryTest, WarmUpIsNoLeak) {
  std::vector<int64_t> samples = Flat(100);
  for (size_t i = 0; i < 20; ++i) samples[i] = static_cast<int64_t>(i) * kMb;
  EXPECT_EQ(GrowthOf(samples).bytes(), 0);
}

TEST(SoakMemoryTest, OneSampleIsNoLeak) {
  std::vector<int64_t> samples = Flat(100);
  samples.back() = 500 * kMb;
  EXPECT_EQ(GrowthOf(samples).bytes(), 0);
}

TEST(SoakMemoryTest, SteadyGrowthIsALeak) {
  std::vector<int64_t> samples = Flat(100);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] += static_cast<int64_t>(i) * kMb;
  EXPECT_GT(GrowthOf(samples).bytes(), 50 * kMb);
}

TEST(SoakMemoryTest, ReadsThisProcess) { EXPECT_GT(ResidentBytes(), kMb); }

}  // namespace
}  // namespace gpushare::soak
