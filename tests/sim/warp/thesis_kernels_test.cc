// The generators of the eight benchmarks: each is a legal program of half an SM. And what
// figures 4.2 and 4.3 show, on shorter runs: GTO's priority inversion, and what RT-PAWS does about
// it.

#include "src/sim/warp/kernels/thesis_kernels.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "src/sim/warp/machine.h"
#include "src/sim/warp/simulation.h"

namespace gpushare::sim::warp {
namespace {

TEST(ThesisKernelsTest, EveryGeneratorMakesHalfAnSmOfEqualWarpsOnEachScheduler) {
  ASSERT_EQ(ThesisKernels().size(), 8u);
  for (const KernelGenerator& generator : ThesisKernels()) {
    const auto program = Generate(generator, generator.iterations);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(program->name, generator.name);
    EXPECT_EQ(program->grid_blocks * program->warps_per_block, TitanV().warps / 2);
    EXPECT_GT(InstructionsPerWarp(*program), 1000);
  }
}

TEST(ThesisKernelsTest, IterationsScaleTheWork) {
  for (const KernelGenerator& generator : ThesisKernels()) {
    const int64_t once = InstructionsPerWarp(*Generate(generator, 10));
    const int64_t twice = InstructionsPerWarp(*Generate(generator, 20));
    EXPECT_GT(twice, once * 18 / 10);
    EXPECT_LE(twice, once * 2);
  }
}

struct Pair {
  int64_t k1 = 0;  // response cycles
  int64_t k2 = 0;
};

Pair RunPair(const std::string& name, int64_t iterations, WarpPolicy policy) {
  for (const KernelGenerator& generator : ThesisKernels()) {
    if (generator.name != name) continue;
    const Program program = *Generate(generator, iterations);
    SimulationOptions options;
    options.machine = TitanV();
    options.policy = policy;
    const int blocks = static_cast<int>(program.grid_blocks);
    const auto result =
        *Simulate(options, {{.program = &program, .resident_blocks = blocks, .priority = 1},
                            {.program = &program,
                             .resident_blocks = blocks,
                             .at_cycle = kSecondLaunchCycle,
                             .priority = 8}});
    return {result.kernels[0].end_cycle, result.kernels[1].end_cycle - kSecondLaunchCycle};
  }
  return {};
}

// Where no bandwidth decides, the younger kernel waits for the older one although it is more
// urgent.
TEST(ThesisKernelsTest, GtoInvertsThePrioritiesAndRtPawsDoesNot) {
  for (const auto& [name, iterations] : {std::pair{"pc", 400}, std::pair{"dxtc", 2}}) {
    const Pair lrr = RunPair(name, iterations, WarpPolicy::kLrr);
    const Pair gto = RunPair(name, iterations, WarpPolicy::kGto);
    const Pair paws = RunPair(name, iterations, WarpPolicy::kRtPaws);
    EXPECT_LT(gto.k1 * 13, gto.k2 * 10) << name;
    EXPECT_GT(gto.k2, lrr.k2) << name;
    EXPECT_LT(paws.k2 * 13, paws.k1 * 10) << name;
    EXPECT_LT(paws.k2 * 10, lrr.k2 * 8) << name;
    EXPECT_LT(paws.k1 + paws.k2, lrr.k1 + lrr.k2) << name;
  }
}

// Round robin runs all warps of atax through L1 at once, which then keeps no line until its next
// use.
TEST(ThesisKernelsTest, OnAtaxBothKernelsEndSoonerThanUnderRoundRobin) {
  const Pair lrr = RunPair("atax", 64, WarpPolicy::kLrr);
  const Pair gto = RunPair("atax", 64, WarpPolicy::kGto);
  const Pair paws = RunPair("atax", 64, WarpPolicy::kRtPaws);
  EXPECT_LT(paws.k1 * 2, lrr.k1);
  EXPECT_LT(paws.k2 * 2, lrr.k2);
  EXPECT_LT(gto.k1, gto.k2);
  EXPECT_LE(paws.k2, paws.k1);
}

TEST(ThesisKernelsTest, WhereDramIsBusyAllTheTimeNoOrderOfWarpsMatters) {
  const Pair lrr = RunPair("vadd", 64, WarpPolicy::kLrr);
  for (const WarpPolicy policy : {WarpPolicy::kGto, WarpPolicy::kRtPaws}) {
    const Pair other = RunPair("vadd", 64, policy);
    EXPECT_NEAR(static_cast<double>(other.k1) / static_cast<double>(lrr.k1), 1, 0.02);
    EXPECT_NEAR(static_cast<double>(other.k2) / static_cast<double>(lrr.k2), 1, 0.02);
  }
}

TEST(ThesisKernelsTest, ABadCountOfIterationsIsAnError) {
  EXPECT_FALSE(Generate(ThesisKernels()[0], 0).ok());
}

}  // namespace
}  // namespace gpushare::sim::warp
