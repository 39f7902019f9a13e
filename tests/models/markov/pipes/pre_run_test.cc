// Inputs from a pre-run: the chain alone has the IPC that was measured; pairs of such kernels.

#include "src/models/markov/pipes/pre_run.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <span>

#include "src/models/markov/pipes/pipe_pair.h"
#include "tests/faults/failing_allocations.h"

namespace gpushare::models::markov {
namespace {

constexpr GpuShape kGpu = {.sms = 132,
                           .schedulers_per_sm = 4,
                           .warps_per_sm = 64,
                           .blocks_per_sm = 32,
                           .registers_per_sm = 65536,
                           .shared_bytes_per_sm = 233472,
                           .clock_hz = 1.98e9,
                           .bandwidth_bytes_per_s = 4.8e12};

core::KernelCounters Counters(double issue, double memory_share) {
  core::KernelCounters counters = {
      .instructions = 4000, .memory_instructions = 4000 * memory_share, .issue = issue};
  return counters;
}

// Counted on an H200, four workers of eight warps an SM.
core::KernelCounters Sincos() {
  core::KernelCounters counters = Counters(0.5975, 0.0004);
  counters.alu = 0.3388;
  counters.special = 0.8552;
  return counters;
}
core::KernelCounters Streaming() {
  core::KernelCounters counters = Counters(0.032, 0.2267);
  counters.l1 = 0.26;
  counters.l2 = 0.87;
  counters.dram = 0.81;
  return counters;
}

class PreRunTest : public testing::Test {
 protected:
  CalibratedKernel Of(const core::KernelCounters& counters, double saturating, int32_t blocks = 4) {
    return Calibrate(MakePreRun(counters, saturating, blocks, 8, 4), *workspace_);
  }
  double Ipc(const CalibratedKernel& kernel, int32_t blocks) {
    const PipeResident resident = {kernel.kernel, blocks, 2};
    return SolvePipeChain(1, std::span(&resident, 1), {}, *workspace_).ipc[0];
  }
  PairPrediction Pair(const CalibratedKernel& one, int32_t blocks, const CalibratedKernel& two,
                      int32_t others) {
    Side side;
    side.counters = {.instructions_per_block = 4000, .memory_share = 0.1, .warps_per_block = 8};
    side.blocks = 1000;
    std::array<Side, 2> sides = {side, side};
    sides[0].blocks_per_sm = blocks;
    sides[1].blocks_per_sm = others;
    return PredictPairWithPipes(kGpu, sides, {one, two}, {}, *workspace_);
  }

  std::unique_ptr<ChainWorkspace> workspace_ = std::make_unique<ChainWorkspace>();
};

TEST_F(PreRunTest, AKernelAloneHasTheIpcThatWasMeasured) {
  for (const double issue : {0.02, 0.1, 0.3, 0.6, 0.9}) {
    for (const double pipe : {0.0, 0.5, 0.95}) {
      for (const double saturating : {0.25, 0.5, 1.0}) {
        core::KernelCounters counters = Counters(issue, 0.1);
        counters.special = pipe;
        const CalibratedKernel kernel = Of(counters, saturating);
        ASSERT_TRUE(kernel.known);
        EXPECT_NEAR(kernel.ipc_alone, issue, 1e-4 * issue) << pipe << " " << saturating;
        EXPECT_NEAR(Ipc(kernel, 4), kernel.ipc_alone, 1e-12);
      }
    }
  }
}

TEST_F(PreRunTest, FewerWorkersRunAtTheSpeedOfTheirOccupancy) {
  // 0.82 and 0.90 were measured of one worker of four.
  EXPECT_NEAR(Ipc(Of(Sincos(), 0.30), 1) / 0.5975, 0.8, 0.15);
  EXPECT_NEAR(Ipc(Of(Streaming(), 0.28), 1) / 0.032, 0.85, 0.15);
  EXPECT_NEAR(Ipc(Of(Counters(0.1, 0.22), 1), 2) / 0.1, 0.5, 0.05) << "latency alone";
}

TEST_F(PreRunTest, ThePipeThatLimitsAKernelLimitsItsPair) {
  const CalibratedKernel sincos = Of(Sincos(), 0.3);
  core::KernelCounters other = Sincos();
  other.special = 0.1;
  other.alu = 0.8552;
  const CalibratedKernel alu = Of(other, 0.3);
  const PairPrediction same = Pair(sincos, 2, sincos, 2);
  const PairPrediction mixed = Pair(sincos, 2, alu, 2);
  ASSERT_TRUE(same.known);
  ASSERT_TRUE(mixed.known);
  EXPECT_GT(mixed.sides[0].ipc, 1.1 * same.sides[0].ipc);
}

TEST_F(PreRunTest, APairDoesNotDependOnTheOrderOfItsSides) {
  const CalibratedKernel one = Of(Sincos(), 0.3);
  const CalibratedKernel two = Of(Streaming(), 0.28);
  const PairPrediction pair = Pair(one, 3, two, 1);
  const PairPrediction swapped = Pair(two, 1, one, 3);
  ASSERT_TRUE(pair.known);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_DOUBLE_EQ(pair.sides[i].ipc, swapped.sides[1 - i].ipc);
    EXPECT_DOUBLE_EQ(pair.sides[i].finish_ns, swapped.sides[1 - i].finish_ns);
    EXPECT_LE(pair.sides[i].ipc, pair.sides[i].ipc_alone * (1 + 1e-9));
    EXPECT_GT(pair.sides[i].ipc, 0);
  }
  EXPECT_DOUBLE_EQ(pair.profit, swapped.profit);
  EXPECT_FALSE(Pair(one, 5, two, 4).known) << "72 warps do not fit";
  EXPECT_FALSE(Pair(one, 3, CalibratedKernel(), 1).known);
}

TEST_F(PreRunTest, NeitherInputsNorAPairAllocate) {
  if (!gpushare_test::CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  gpushare_test::FailingAllocations failures(1, gpushare_test::Failing::kFromThereOn);
  const CalibratedKernel kernel = Of(Sincos(), 0.3);
  const PairPrediction pair = Pair(kernel, 2, kernel, 2);
  failures.Stop();
  EXPECT_EQ(failures.failed(), 0);
  EXPECT_TRUE(pair.known);
}

TEST_F(PreRunTest, CountersOutOfRangeGiveNoKernel) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Of(Counters(0, 0.1), 0.5).known) << "nobody counted issue";
  EXPECT_FALSE(Of(Counters(nan, 0.1), 0.5).known);
  EXPECT_FALSE(Of(Counters(0.5, nan), 0.5).known);
  EXPECT_FALSE(Of(Counters(0.5, 0.1), 0).known);
  EXPECT_FALSE(Of(Counters(0.5, 0.1), nan).known);
  EXPECT_FALSE(Of(Counters(0.5, 0.1), 0.5, 0).known);
  core::KernelCounters negative = Counters(0.5, 0.1);
  negative.dram = -0.1;
  EXPECT_FALSE(Of(negative, 0.5).known);
  EXPECT_TRUE(Of(Counters(1.01, 0.1), 0.5).known) << "rounding of the profiler";
}

}  // namespace
}  // namespace gpushare::models::markov
