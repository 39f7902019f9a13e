// The generators of the eight benchmarks: each is a legal program of half an SM, and its mix is
// what the thesis's type says.

#include "src/sim/warp/kernels/thesis_kernels.h"

#include <gtest/gtest.h>

#include "src/sim/warp/machine.h"

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

TEST(ThesisKernelsTest, ABadCountOfIterationsIsAnError) {
  EXPECT_FALSE(Generate(ThesisKernels()[0], 0).ok());
}

}  // namespace
}  // namespace gpushare::sim::warp
