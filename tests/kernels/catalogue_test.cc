// What of the catalogue needs no GPU: names, sizes, refusals, the CPU reference of md5.

#include "benchmarks/kernels/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string>

#include "benchmarks/kernels/compute/ffma.h"
#include "benchmarks/kernels/compute/md5_reference.h"
#include "benchmarks/kernels/compute/sincos.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

TEST(CatalogueTest, EveryKernelIsFoundByItsOwnName) {
  std::set<std::string> names;
  for (const CatalogueKernel& kernel : Catalogue()) {
    EXPECT_EQ(FindKernel(kernel.name), &kernel);
    EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name << " is there twice";
  }
  EXPECT_EQ(FindKernel("no such kernel"), nullptr);
}

TEST(CatalogueTest, DurationsBecomeWholeWavesOfWorkers) {
  WorkloadOptions options = {.solo_ms = 10, .sms = 132};
  EXPECT_EQ(CountBlockTasks(options, 50), 200U * 132 * 8);
  options.solo_ms = 0.01;  // less than a block task: one wave
  EXPECT_EQ(CountBlockTasks(options, 50), 132U * 8);
  options.block_tasks = 17;
  EXPECT_EQ(CountBlockTasks(options, 50), 17U);
}

// The stencil's grid of 60 ms once was 8 x 134244.
TEST(CatalogueTest, TallGridsStayWithinCudasBounds) {
  for (const double solo_ms : {1.0, 10.0, 20.0, 60.0, 333.0, 1000.0}) {
    for (const double block_task_us : {1.0, 20.0, 59.0}) {
      WorkloadOptions options;
      options.solo_ms = solo_ms;
      const uint32_t block_tasks = CountBlockTasks(options, block_task_us);
      const Grid grid = GridOf(block_tasks, 8);
      EXPECT_EQ(grid.x * grid.y, block_tasks) << solo_ms << " ms";
      EXPECT_EQ(grid.x % 8, 0U) << solo_ms << " ms";
      EXPECT_LE(grid.y, 65535U) << solo_ms << " ms";
      EXPECT_LE(grid.x, 2147483647U) << solo_ms << " ms";
      EXPECT_EQ(grid.z, 1U);
    }
  }
  EXPECT_EQ(GridOf(134244 * 8, 8).y, 134244U / 3);
  EXPECT_EQ(GridOf(72, 8).y, 9U);
  EXPECT_EQ(GridOf(65537, 1).y, 1U);  // a prime: one row
}

TEST(CatalogueTest, ASecondOfEveryKernelFitsAGridAndTheClaimCounter) {
  for (const CatalogueKernel& kernel : Catalogue()) {
    WorkloadOptions options;
    options.solo_ms = 1000;
    const uint32_t block_tasks = CountBlockTasks(options, kernel.block_task_us);
    EXPECT_GT(block_tasks, 0U) << kernel.name;
    EXPECT_LE(block_tasks, 2147483647U) << kernel.name;
  }
}

TEST(CatalogueTest, MoreBlockTasksThanTheCounterHoldsAreRefused) {
  WorkloadOptions options;
  options.solo_ms = 1e9;
  std::unique_ptr<Workload> workload;
  const Status status = MakeWorkload(*FindKernel("ffma"), options, &workload);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message.find("2^31"), std::string::npos) << status.message;
}

TEST(CatalogueTest, NegativeDurationsAreRefused) {
  WorkloadOptions options;
  options.solo_ms = -1;
  std::unique_ptr<Workload> workload;
  EXPECT_FALSE(MakeWorkload(*FindKernel("ffma"), options, &workload).ok());
}

// hashlib.md5(bytes(range(16))).hexdigest() and hashlib.md5(bytes(16)).hexdigest()
TEST(Md5ReferenceTest, KnownAnswers) {
  const std::array<uint32_t, 4> zeros = {0x3613E74A, 0xBFF94BE4, 0x2E75D279, 0xA5184823};
  EXPECT_EQ(Md5Of16Bytes({0, 0, 0, 0}), zeros);
  const std::array<uint32_t, 4> counted = {0x01EFC11A, 0x1BAF6CE9, 0x3329D3E0, 0xA8C24F1A};
  EXPECT_EQ(Md5Of16Bytes({0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C}), counted);
}

// The bound on ffma's rounding errors takes coordinates below 1 at the start.
TEST(FfmaTest, PointsStartAllOverTheSquareBelowOne) {
  std::set<float> seen;
  double sum = 0;
  constexpr uint32_t kPoints = 100000;
  for (uint32_t point = 0; point < kPoints; ++point) {
    const FfmaPoint start = FfmaStart(1, point);
    ASSERT_GE(std::min(start.x, start.y), -1.0F);
    ASSERT_LT(std::max(start.x, start.y), 1.0F);
    seen.insert(start.x);
    sum += start.x;
  }
  EXPECT_GT(seen.size(), 45000U);  // of 2^16
  EXPECT_NEAR(sum / kPoints, 0, 0.01);
}

TEST(SincosTest, PhaseStepsKeepTheSumsBounded) {
  constexpr double kTurn = 1U << kPhaseBits;
  for (uint32_t thread = 0; thread < 100000; ++thread) {
    const double turns = SincosPhaseStep(1, thread) / kTurn;
    ASSERT_GE(turns, 0.1);
    ASSERT_LE(turns, 0.9 + 1e-6);
  }
}

}  // namespace
}  // namespace gpushare::kernels
