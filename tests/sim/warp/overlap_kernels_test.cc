// The overlap table of docs/hardware.md in the simulator: a kernel that fills every issue slot
// starves its neighbour under greedy-then-oldest, whichever was launched first, and not under round
// robin.

#include "src/sim/warp/kernels/overlap_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "src/sim/warp/simulation.h"

namespace gpushare::sim::warp {
namespace {

struct Sized {
  Program program;
  int64_t cycles = 0;  // alone
};

SimulationResult RunOn(WarpPolicy policy, const std::vector<KernelLaunch>& launches) {
  SimulationOptions options;
  options.machine = H200();
  options.policy = policy;
  return *Simulate(options, launches);
}

Sized OfCycles(const std::string& name, int64_t cycles) {
  const KernelGenerator& generator = *FindOverlapKernel(name);
  Sized sized = {*Generate(generator, 20), 0};
  const int64_t sample = RunOn(WarpPolicy::kGto, {{.program = &sized.program}}).cycles;
  sized.program = *Generate(generator, 20 * cycles / sample + 1);
  sized.cycles = RunOn(WarpPolicy::kGto, {{.program = &sized.program}}).kernels[0].end_cycle;
  return sized;
}

// Share of the time of both, one after the other, that is saved when they run together.
double Saved(WarpPolicy policy, const std::string& first, const std::string& second) {
  const Sized a = OfCycles(first, 30'000);
  const Sized b = OfCycles(second, 30'000);
  const auto both =
      RunOn(policy, {{.program = &a.program}, {.program = &b.program, .at_cycle = 1}});
  return 1 - static_cast<double>(std::max(both.kernels[0].end_cycle, both.kernels[1].end_cycle)) /
                 static_cast<double>(a.cycles + b.cycles);
}

TEST(OverlapKernelsTest, FfmaFillsNearlyEveryIssueSlotAndTheOthersFew) {
  const auto share = [](const std::string& name) {
    const Program program = *Generate(*FindOverlapKernel(name), 100);
    const auto result = RunOn(WarpPolicy::kGto, {{.program = &program}});
    return static_cast<double>(result.instructions) / static_cast<double>(result.slots);
  };
  EXPECT_GT(share("ffma"), 0.98);
  EXPECT_LT(share("wgmma"), 0.1);
  EXPECT_LT(share("streaming"), 0.1);
  EXPECT_LT(share("sincos"), 0.75);
}

// Of 0.5. A neighbour that is first issues what it can before ffma arrives.
TEST(OverlapKernelsTest, UnderGreedyThenOldestFfmaSavesNothingInEitherOrder) {
  for (const char* neighbour : {"streaming", "wgmma", "sincos"}) {
    EXPECT_LT(Saved(WarpPolicy::kGto, "ffma", neighbour), 0.08) << neighbour;
    EXPECT_LT(Saved(WarpPolicy::kGto, neighbour, "ffma"), 0.08) << neighbour;
  }
}

TEST(OverlapKernelsTest, UnderRoundRobinFfmaOverlapsWithEverything) {
  EXPECT_GT(Saved(WarpPolicy::kLrr, "ffma", "streaming"), 0.4);
  EXPECT_GT(Saved(WarpPolicy::kLrr, "ffma", "wgmma"), 0.4);
  EXPECT_GT(Saved(WarpPolicy::kLrr, "ffma", "sincos"), 0.2);
}

TEST(OverlapKernelsTest, KernelsWithOtherBottlenecksOverlapUnderEveryPolicy) {
  for (const WarpPolicy policy : {WarpPolicy::kLrr, WarpPolicy::kGto}) {
    EXPECT_GT(Saved(policy, "wgmma", "streaming"), 0.4);
    EXPECT_GT(Saved(policy, "wgmma", "sincos"), 0.4);
  }
}

TEST(OverlapKernelsTest, AnUnknownNameIsNull) { EXPECT_EQ(FindOverlapKernel("saxpy"), nullptr); }

}  // namespace
}  // namespace gpushare::sim::warp
