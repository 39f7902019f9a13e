// Kernels on the simulated SM: throughput of units, hiding of latencies, barriers, waves of blocks,
// and the limits.

#include "src/sim/warp/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/sim/warp/trace.h"

namespace gpushare::sim::warp {
namespace {

using testing::HasSubstr;

Program Parse(const std::string& body) {
  auto program = ParseTrace("warp-trace 1\nkernel k\n" + body, "test");
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : Program{};
}

SimulationOptions On(const Machine& machine, WarpPolicy policy = WarpPolicy::kLrr) {
  SimulationOptions options;
  options.machine = machine;
  options.policy = policy;
  return options;
}

SimulationResult RunOn(const SimulationOptions& options,
                       const std::vector<KernelLaunch>& launches) {
  const auto result = Simulate(options, launches);
  EXPECT_TRUE(result.ok()) << result.status();
  SimulationResult none;
  none.kernels.resize(launches.size());
  return result.ok() ? *result : none;
}

TEST(WarpSimulationTest, IndependentFfmaFillEveryIssueSlotOfAnH200AndHalfOfATitanV) {
  const Program ffma = Parse("warps 8\nblocks 1\nloop 500\nfloat after=8 repeat=32\nend\n");
  const auto on_h200 = RunOn(On(H200()), {{.program = &ffma}});
  EXPECT_EQ(on_h200.instructions, 8 * 500 * 32);
  EXPECT_GT(static_cast<double>(on_h200.instructions) / static_cast<double>(on_h200.slots), 0.99);
  const auto on_titan = RunOn(On(TitanV()), {{.program = &ffma}});
  EXPECT_NEAR(static_cast<double>(on_titan.instructions) / static_cast<double>(on_titan.slots), 0.5,
              0.01);
}

TEST(WarpSimulationTest, DependentInstructionsOfOneWarpTakeTheirLatencyEach) {
  const Program chain = Parse("loop 1000\nfloat after=1\nend\n");
  EXPECT_NEAR(static_cast<double>(RunOn(On(H200()), {{.program = &chain}}).cycles), 4000, 5);
}

TEST(WarpSimulationTest, WarpsGoToSchedulersInTurn) {
  const Program program = Parse("warps 8\nint repeat=3\n");
  std::vector<IssueRecord> log;
  SimulationOptions options = On(TitanV());
  options.log = &log;
  options.log_max = 1000;
  RunOn(options, {{.program = &program}});
  ASSERT_EQ(log.size(), 24u);
  for (const IssueRecord& issue : log) EXPECT_EQ(issue.scheduler, issue.warp % 4);
}

TEST(WarpSimulationTest, BlocksRunInWavesOfTheResidentOnes) {
  const Program one = Parse("warps 4\nblocks 1\nloop 100\nint after=1\nend\n");
  Program six = one;
  six.grid_blocks = 6;
  const int64_t alone = RunOn(On(TitanV()), {{.program = &one}}).cycles;
  const int64_t waves = RunOn(On(TitanV()), {{.program = &six, .resident_blocks = 2}}).cycles;
  EXPECT_NEAR(static_cast<double>(waves), 3.0 * static_cast<double>(alone), 12);
}

TEST(WarpSimulationTest, NoWarpPassesABarrierBeforeTheLastOneHasReachedIt) {
  // Warps of two schedulers: four warps share a unit that takes one instruction in 2 cycles.
  const Program program = Parse("warps 8\nint repeat=5\nbarrier\nspecial\n");
  std::vector<IssueRecord> log;
  SimulationOptions options = On(TitanV(), WarpPolicy::kGto);
  options.log = &log;
  options.log_max = 1000;
  RunOn(options, {{.program = &program}});
  ASSERT_EQ(log.size(), 8u * 7);
  std::vector<int> issued(8, 0);
  int64_t last_barrier = 0;
  for (const IssueRecord& issue : log) {
    const int number = ++issued[static_cast<size_t>(issue.warp)];
    if (number == 6) last_barrier = issue.cycle;
    if (number == 7) {
      EXPECT_GT(issue.cycle, last_barrier);
    }
  }
  for (const int count : issued) EXPECT_EQ(count, 7);
}

TEST(WarpSimulationTest, AWarpThatEndsReleasesABarrier) {
  // The program ends with the barrier: the last warp reaches it by its end.
  const Program program = Parse("warps 3\nblocks 4\nint\nbarrier\n");
  EXPECT_EQ(RunOn(On(TitanV()), {{.program = &program}}).instructions, 3 * 4 * 2);
}

TEST(WarpSimulationTest, MoreWarpsHideTheLatencyOfMemory) {
  const std::string body =
      "blocks 1\nregion a 1048576\nloop 64\nload a warp=8192 i=128\nfloat after=1\nend\n";
  const Program one = Parse("warps 1\n" + body);
  const Program eight = Parse("warps 8\n" + body);
  const int64_t cycles_one = RunOn(On(TitanV()), {{.program = &one}}).cycles;
  const int64_t cycles_eight = RunOn(On(TitanV()), {{.program = &eight}}).cycles;
  EXPECT_LT(cycles_eight, 2 * cycles_one);
}

TEST(WarpSimulationTest, GtoServesTheOlderKernelFirstAndLrrBothAlike) {
  const Program ffma = Parse("warps 8\nblocks 4\nloop 200\nfloat after=8 repeat=16\nend\n");
  const std::vector<KernelLaunch> launches = {
      {.program = &ffma, .resident_blocks = 4},
      {.program = &ffma, .resident_blocks = 4, .at_cycle = 10}};
  const auto gto = RunOn(On(H200(), WarpPolicy::kGto), launches);
  EXPECT_NEAR(
      static_cast<double>(gto.kernels[0].end_cycle) / static_cast<double>(gto.kernels[1].end_cycle),
      0.5, 0.02);
  const auto lrr = RunOn(On(H200(), WarpPolicy::kLrr), launches);
  EXPECT_NEAR(
      static_cast<double>(lrr.kernels[0].end_cycle) / static_cast<double>(lrr.kernels[1].end_cycle),
      1, 0.02);
}

SimulationResult RunUrgentBehind(const Program& program) {
  return RunOn(On(H200(), WarpPolicy::kRtPaws),
               {{.program = &program, .resident_blocks = 4, .priority = 1},
                {.program = &program, .resident_blocks = 4, .at_cycle = 10, .priority = 8}});
}

TEST(WarpSimulationTest, RtPawsServesTheMoreUrgentKernelFirstAlthoughItIsYounger) {
  const Program chain = Parse("warps 8\nblocks 4\nloop 200\nfloat after=1 repeat=16\nend\n");
  const auto paws = RunUrgentBehind(chain);
  EXPECT_LT(paws.kernels[1].end_cycle, paws.kernels[0].end_cycle);
}

// Algorithm 5 charges a budget only when the head of the queue stalls. A warp that can always issue
// is never charged, so the older kernel runs to its end whatever the priorities are.
TEST(WarpSimulationTest, RtPawsCannotMoveAKernelAsideThatNeverStalls) {
  const Program ffma = Parse("warps 8\nblocks 4\nloop 200\nfloat after=8 repeat=16\nend\n");
  const auto paws = RunUrgentBehind(ffma);
  EXPECT_NEAR(static_cast<double>(paws.kernels[1].end_cycle),
              2 * static_cast<double>(paws.kernels[0].end_cycle), 100);
}

TEST(WarpSimulationTest, TheSeedAloneDecidesBankConflicts) {
  const Program program = Parse("warps 8\nblocks 4\nloop 100\nshared ways=1-8\nint after=1\nend\n");
  const std::vector<KernelLaunch> launches = {{.program = &program, .resident_blocks = 4}};
  SimulationOptions options = On(TitanV());
  const int64_t first = RunOn(options, launches).cycles;
  EXPECT_EQ(RunOn(options, launches).cycles, first);
  options.seed = 2;
  EXPECT_NE(RunOn(options, launches).cycles, first);
}

TEST(WarpSimulationTest, IdleCyclesAreSkipped) {
  // 2^30 instructions of 100,000 cycles would be 10^14 cycles; the bound ends it after few steps.
  const Program slow = Parse("loop 1000000000\nint latency=100000 after=1\nend\n");
  SimulationOptions options = On(TitanV());
  options.cycles_max = int64_t{1} << 32;
  const auto result = Simulate(options, {{.program = &slow}});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("4294967296 cycles"));
}

TEST(WarpSimulationTest, ErrorsNameTheValueAndTheLimit) {
  const Program program = Parse("warps 8\nint\n");
  const auto message = [&](const SimulationOptions& options,
                           const std::vector<KernelLaunch>& launches) {
    const auto result = Simulate(options, launches);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  EXPECT_THAT(message(On(TitanV()), {}), HasSubstr("0 launches"));
  EXPECT_THAT(message(On(TitanV()), {{}}), HasSubstr("no program"));
  EXPECT_THAT(message(On(TitanV()), {{.program = &program, .resident_blocks = 65}}),
              HasSubstr("65"));
  EXPECT_THAT(message(On(TitanV()), {{.program = &program, .priority = -1}}), HasSubstr("-1"));
  EXPECT_THAT(message(On(ExampleMachine()), {{.program = &program}}),
              HasSubstr("8 warps, and the SM holds 4"));
  EXPECT_THAT(message(On(TitanV(), WarpPolicy::kRtPaws), {{.program = &program, .priority = 1},
                                                          {.program = &program, .priority = 2},
                                                          {.program = &program, .priority = 3}}),
              HasSubstr("3 priorities, and rt-paws knows two"));
  Program large = program;
  large.shared_bytes = 64 << 10;
  large.grid_blocks = 2;
  EXPECT_THAT(message(On(TitanV()), {{.program = &large, .resident_blocks = 2}}),
              HasSubstr("leaves 0 of 131072"));
  SimulationOptions broken = On(TitanV());
  broken.machine.schedulers = 9;
  EXPECT_THAT(message(broken, {{.program = &program}}), HasSubstr("schedulers"));
}

}  // namespace
}  // namespace gpushare::sim::warp
