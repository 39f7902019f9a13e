// Profit and finish times of pairs, on the paper's two GPUs.

#include "src/models/markov/co_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "gtest/gtest.h"
#include "src/models/markov/pair_cache.h"
#include "tests/faults/failing_allocations.h"

namespace gpushare::models::markov {
namespace {

// Table 2; the latencies and the limits of an SM are those of the architectures.
constexpr GpuShape kC2050 = {.sms = 14,
                             .schedulers_per_sm = 1,  // two of half a warp a cycle
                             .warps_per_sm = 48,
                             .blocks_per_sm = 8,
                             .registers_per_sm = 32768,
                             .shared_bytes_per_sm = 49152,
                             .clock_hz = 1147e6,
                             .bandwidth_bytes_per_s = 144e9,
                             .latency_cycles = 400};
constexpr GpuShape kGtx680 = {.sms = 8,
                              .schedulers_per_sm = 4,
                              .warps_per_sm = 64,
                              .blocks_per_sm = 16,
                              .registers_per_sm = 65536,
                              .shared_bytes_per_sm = 49152,
                              .clock_hz = 706e6,
                              .bandwidth_bytes_per_s = 192e9,
                              .latency_cycles = 300};

constexpr KernelCounters kCompute = {
    .instructions_per_block = 4000, .memory_share = 0.002, .warps_per_block = 8};
constexpr KernelCounters kMemory = {
    .instructions_per_block = 1000, .memory_share = 0.2, .warps_per_block = 4};

class MarkovCoScheduleTest : public testing::Test {
 protected:
  PairPrediction Predict(const GpuShape& gpu, const Side& a, const Side& b,
                         Unit unit = Unit::kWarp) {
    return PredictPair(gpu, {a, b}, unit, *workspace_);
  }

  std::unique_ptr<ChainWorkspace> workspace_ = std::make_unique<ChainWorkspace>();
};

TEST(MarkovVirtualSmTest, BandwidthOfTable2IsDividedBySmsAndSchedulers) {
  // 144 GB/s / 128 B / 1147 MHz / 14 and 192 GB/s / 128 B / 706 MHz / 8 / 4.
  EXPECT_NEAR(MakeVirtualSm(kC2050).requests_per_cycle, 0.07006, 1e-5);
  EXPECT_NEAR(MakeVirtualSm(kGtx680).requests_per_cycle, 0.06639, 1e-5);
}

TEST(MarkovProfitTest, ProfitIsEquation1) {
  using Ipcs = std::array<double, 2>;
  EXPECT_NEAR(CoScheduleProfit(Ipcs{0.4, 0.3}, Ipcs{0.5, 0.5}), 1 - 1 / 1.4, 1e-15);
  EXPECT_DOUBLE_EQ(CoScheduleProfit(Ipcs{0.25, 0.2}, Ipcs{0.5, 0.4}), 0) << "turns of half each";
  EXPECT_LT(CoScheduleProfit(Ipcs{0.1, 0.1}, Ipcs{0.5, 0.5}), 0);
  EXPECT_EQ(CoScheduleProfit(Ipcs{0, 0}, Ipcs{0.5, 0.5}), -std::numeric_limits<double>::infinity());
}

// Table 4, C2050. The peak IPC is one, so that PUR is the measured IPC.
struct MeasuredKernel {
  double ipc;
  double mur;
  double occupancy;
};
constexpr std::array<MeasuredKernel, 8> kTable4 = {{{0.0096, 0.1404, 1},
                                                    {0.1498, 0.1120, 0.167},
                                                    {0.3464, 0.0030, 1},
                                                    {0.3629, 0.1156, 0.667},
                                                    {0.5804, 0.0161, 0.677},
                                                    {0.8539, 0.0002, 0.833},
                                                    {0.8642, 0.0604, 0.677},
                                                    {0.9978, 0.0196, 0.677}}};

ResidentKernel Resident(const MeasuredKernel& measured, double memory_share) {
  return {.units = static_cast<int32_t>(std::lround(48 * measured.occupancy)),
          .memory_share = memory_share,
          .uncoalesced_requests = 32};
}

TEST_F(MarkovCoScheduleTest, EveryIpcOfTable4IsWithinTheModelsReach) {
  // The paper prints no R_m. Some R_m must give each measured IPC at the printed occupancy.
  const VirtualSm sm = MakeVirtualSm(kC2050);
  for (const MeasuredKernel& measured : kTable4) {
    double low = 0;
    double high = 1;
    double ipc = 0;
    for (int i = 0; i < 40; ++i) {
      const double share = (low + high) / 2;
      ResidentKernel kernel = Resident(measured, share);
      kernel.uncoalesced_share = measured.ipc < 0.1 ? 1 : 0;  // PC reads at random
      ipc = SolveChain(sm, std::span(&kernel, 1), kStatesMax, *workspace_).ipc[0];
      (ipc > measured.ipc ? low : high) = share;
    }
    EXPECT_NEAR(ipc, measured.ipc, 1e-3);
  }
}

TEST_F(MarkovCoScheduleTest, DramRequestsAlonePutFiveOfTable4InFigure7sBand) {
  // R_m must count accesses that hit in caches too; MUR does not, so three kernels come out too
  // fast.
  const VirtualSm sm = MakeVirtualSm(kC2050);
  int within = 0;
  for (const MeasuredKernel& measured : kTable4) {
    const double requests = measured.mur * sm.requests_per_cycle / measured.ipc;
    const ResidentKernel kernel = Resident(measured, std::min(1.0, requests));
    const double ipc = SolveChain(sm, std::span(&kernel, 1), kStatesMax, *workspace_).ipc[0];
    EXPECT_GT(ipc, measured.ipc) << "accesses are missing, none is invented";
    within += std::abs(ipc - measured.ipc) <= 0.2 ? 1 : 0;
  }
  EXPECT_EQ(within, 5);
}

TEST_F(MarkovCoScheduleTest, AComputeKernelBesideAMemoryKernelGains) {
  for (const GpuShape& gpu : {kC2050, kGtx680}) {
    const double mixed = Predict(gpu, {kCompute, 3, 100}, {kMemory, 4, 100}).profit;
    EXPECT_GT(mixed, 0.05);
    EXPECT_LT(mixed, 0.5) << "two kernels at their full speeds";
    EXPECT_GT(mixed, Predict(gpu, {kCompute, 3, 100}, {kCompute, 3, 100}).profit);
    EXPECT_GT(mixed, Predict(gpu, {kMemory, 4, 100}, {kMemory, 4, 100}).profit);
  }
}

TEST_F(MarkovCoScheduleTest, IpcStaysBelowThePeakAndASwapSwapsTheSides) {
  for (const Unit unit : {Unit::kWarp, Unit::kBlock}) {
    const Side a = {kCompute, 2, 900};
    const Side b = {kMemory, 6, 5000};
    const PairPrediction ab = Predict(kGtx680, a, b, unit);
    const PairPrediction ba = Predict(kGtx680, b, a, unit);
    ASSERT_TRUE(ab.known && ba.known);
    EXPECT_LE(ab.sides[0].ipc + ab.sides[1].ipc, 4);
    EXPECT_NEAR(ab.profit, ba.profit, 1e-12);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(ab.sides[i].ipc, ba.sides[1 - i].ipc, 1e-12);
      EXPECT_NEAR(ab.sides[i].finish_ns / ba.sides[1 - i].finish_ns, 1, 1e-12);
    }
  }
}

TEST_F(MarkovCoScheduleTest, WhoIsLeftRunsOnAtItsSpeedAlone) {
  const PairPrediction pair = Predict(kC2050, {kCompute, 3, 14 * 100}, {kMemory, 4, 14 * 10});
  ASSERT_TRUE(pair.known);
  const SidePrediction& compute = pair.sides[0];
  const SidePrediction& memory = pair.sides[1];
  const double cycles = 1000 * 10 / memory.ipc;
  ASSERT_LT(cycles, 4000 * 100 / compute.ipc);
  EXPECT_NEAR(memory.finish_ns, cycles / 1.147, 1e-6);
  const double left = 4000 * 100 - cycles * compute.ipc;
  EXPECT_NEAR(compute.finish_ns, (cycles + left / compute.ipc_alone) / 1.147, 1e-6);
  EXPECT_NEAR(compute.finish_alone_ns, 4000 * 100 / compute.ipc_alone / 1.147, 1e-6);
  EXPECT_GT(compute.finish_ns, compute.finish_alone_ns);
}

TEST_F(MarkovCoScheduleTest, RegistersAndSharedMemoryBoundTheBlocks) {
  KernelCounters kernel = kMemory;
  EXPECT_EQ(BlocksAlone(kGtx680, kernel), 16);
  kernel.registers_per_block = 16384;
  EXPECT_EQ(BlocksAlone(kGtx680, kernel), 4);
  kernel.shared_bytes_per_block = 24 * 1024;
  EXPECT_EQ(BlocksAlone(kGtx680, kernel), 2);
  EXPECT_EQ(BlocksBeside(kGtx680, kernel, kernel, 2), 0);
  EXPECT_FALSE(Predict(kGtx680, {kernel, 2, 10}, {kernel, 1, 10}).known) << "three do not fit";
}

TEST_F(MarkovCoScheduleTest, InputsOutOfRangeHaveNoPrediction) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Side good = {kMemory, 2, 10};
  ASSERT_TRUE(Predict(kC2050, good, good).known);
  EXPECT_FALSE(Predict(kC2050, {kMemory, 0, 10}, good).known);
  EXPECT_FALSE(Predict(kC2050, good, {kMemory, 2, nan}).known);
  EXPECT_FALSE(Predict(GpuShape{}, good, good).known);
  for (const double share : {nan, -0.1, 1.1}) {
    KernelCounters wrong = kMemory;
    wrong.memory_share = share;
    EXPECT_FALSE(Predict(kC2050, {wrong, 2, 10}, good).known) << share;
  }
}

TEST_F(MarkovCoScheduleTest, APredictionAllocatesNothing) {
  if (!gpushare_test::CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  const auto cache = std::make_unique<PairCache>();
  const Side a = {kCompute, 2, 900};
  const Side b = {kMemory, 4, 5000};
  gpushare_test::FailingAllocations failures(1, gpushare_test::Failing::kFromThereOn);
  const PairPrediction pair = Predict(kGtx680, a, b);
  cache->Insert({1, 2, 900}, {2, 4, 5000}, pair);
  const bool found = cache->Find({1, 2, 900}, {2, 4, 5000}) != nullptr;
  failures.Stop();
  EXPECT_EQ(failures.failed(), 0);
  EXPECT_TRUE(pair.known && found);
}

}  // namespace
}  // namespace gpushare::models::markov
