// How long the stalls of two kernels wait for one pipe: against the definition, over random loads.

#include "src/models/markov/pipes/pipe_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace gpushare::models::markov {
namespace {

double UseAt(const PipeLoad& load, double factor) {
  return load.cycles > 0 ? load.queued / (load.elsewhere + load.cycles * factor) : 0;
}

TEST(PipeQueueTest, NobodyWaitsForAPipeThatIsNotFull) {
  const auto slowdown = PipeSlowdowns({4, 6, 2}, {2, 3, 1}, 0.3);
  EXPECT_EQ(slowdown[0], 1);
  EXPECT_EQ(slowdown[1], 1);
}

TEST(PipeQueueTest, AFullPipeIsUsedWhollyAndTheOlderKernelWaitsLess) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> unit(0, 1);
  int both_wait = 0;
  int one_waits = 0;
  for (int i = 0; i < 2000; ++i) {
    std::array<PipeLoad, 2> loads;
    for (PipeLoad& load : loads) {
      load.cycles = unit(random) < 0.1 ? 0 : 20 * unit(random);
      load.elsewhere = 100 * unit(random);
      load.queued = 16 * unit(random) * load.cycles;
    }
    const double wait = i % 2 == 0 ? 1 : 0.05 + 0.95 * unit(random);
    const auto slowdown = PipeSlowdowns(loads[0], loads[1], wait);
    const double use = UseAt(loads[0], slowdown[0]) + UseAt(loads[1], slowdown[1]);
    if (UseAt(loads[0], 1) + UseAt(loads[1], 1) <= 1) {
      EXPECT_EQ(slowdown[0] * slowdown[1], 1);
      continue;
    }
    EXPECT_NEAR(use, 1, 1e-9) << "case " << i;
    EXPECT_GE(slowdown[0], 1);
    EXPECT_GE(slowdown[1], 1);
    if (loads[0].cycles <= 0 || loads[1].cycles <= 0) continue;
    if (slowdown[0] > 1) {
      EXPECT_NEAR(slowdown[0], wait * slowdown[1], 1e-9 * slowdown[1]);
      ++both_wait;
    } else {
      EXPECT_LE(slowdown[1], 1 / wait + 1e-9);
      ++one_waits;
    }
  }
  EXPECT_GT(both_wait, 100);
  EXPECT_GT(one_waits, 20);
}

}  // namespace
}  // namespace gpushare::models::markov
