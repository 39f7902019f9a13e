// Fused runs: which of them tell how long a fused kernel takes.

#include "src/core/state/launches/fused_runs.h"

#include "gtest/gtest.h"

namespace gpushare::core {
namespace {

const FusedKernelDesc kKernel;

FusedRun RunOf(uint64_t first, uint64_t second, LaneIndex lane) {
  FusedRun run;
  run.features.kernel = &kKernel;
  run.launches = {LaunchId{first}, LaunchId{second}};
  run.order_lane = lane;
  return run;
}

FusedPartEnd PartOf(uint64_t launch, TimeNs start_ns, TimeNs end_ns) {
  return {LaunchId{launch}, start_ns, end_ns, true};
}

TEST(FusedRuns, ARunLastsFromItsFirstStartToItsLastEnd) {
  FusedRuns runs;
  FusedRun out;
  runs.Begin(RunOf(1, 2, 5));
  EXPECT_FALSE(runs.End(PartOf(2, 20, 100), out));
  ASSERT_TRUE(runs.End(PartOf(1, 10, 90), out));
  EXPECT_EQ(out.start_ns, 10);
  EXPECT_EQ(out.end_ns, 100);
  EXPECT_EQ(runs.size(), 0);
}

TEST(FusedRuns, WorkOnAnotherLaneSpoilsARun) {
  FusedRuns runs;
  FusedRun out;
  runs.Begin(RunOf(1, 2, 5));
  runs.Begin(RunOf(3, 4, 6));
  runs.Spoil(LaunchId{9}, 5);  // behind the first run, on its lane
  EXPECT_FALSE(runs.End(PartOf(1, 10, 90), out));
  EXPECT_TRUE(runs.End(PartOf(2, 10, 90), out));
  EXPECT_FALSE(runs.End(PartOf(3, 10, 90), out));
  EXPECT_FALSE(runs.End(PartOf(4, 10, 90), out)) << "it ran beside launch 9";
  EXPECT_EQ(runs.size(), 0);
}

TEST(FusedRuns, APartThatDidNotDoAllItsWorkTellsNothing) {
  FusedRuns runs;
  FusedRun out;
  runs.Begin(RunOf(1, 2, 5));
  FusedPartEnd evicted = PartOf(1, 10, 50);
  evicted.whole = false;
  EXPECT_FALSE(runs.End(evicted, out));
  EXPECT_FALSE(runs.End(PartOf(2, 10, 90), out));
  EXPECT_EQ(runs.size(), 0);
}

// The verb that drops a launch ends it once more.
TEST(FusedRuns, ALaunchThatNobodyEndedLeavesNoRunBehind) {
  FusedRuns runs;
  FusedRun out;
  runs.Begin(RunOf(1, 2, 5));
  EXPECT_FALSE(runs.End(PartOf(1, 10, 50), out));
  EXPECT_FALSE(runs.End({.launch = LaunchId{1}}, out));
  EXPECT_EQ(runs.size(), 1);
  EXPECT_FALSE(runs.End({.launch = LaunchId{2}}, out)) << "lost with its lane";
  EXPECT_EQ(runs.size(), 0);
}

}  // namespace
}  // namespace gpushare::core
