// How often a BE kernel is asked to run by itself.

#include "src/core/evidence/solo_runs.h"

#include <gtest/gtest.h>

namespace gpushare::core {
namespace {

constexpr KernelId kKernel{3};
constexpr KernelId kOther{4};

TEST(SoloRunsStateTest, UntilSoManyAreMeasured) {
  SoloRuns runs;
  for (int i = 0; i < kSoloRunsMeasured; ++i) {
    EXPECT_TRUE(WantsSoloRun(runs, kKernel)) << i;
    NoteSoloAsked(runs, kKernel);
    NoteSoloMeasured(runs, kKernel);
  }
  EXPECT_FALSE(WantsSoloRun(runs, kKernel));
  EXPECT_TRUE(WantsSoloRun(runs, kOther));
}

TEST(SoloRunsStateTest, OrItWasTriedSoOften) {
  SoloRuns runs;
  for (int i = 0; i < kSoloRunsAsked; ++i) {
    EXPECT_TRUE(WantsSoloRun(runs, kKernel)) << i;
    NoteSoloAsked(runs, kKernel);
  }
  EXPECT_FALSE(WantsSoloRun(runs, kKernel));
}

}  // namespace
}  // namespace gpushare::core
