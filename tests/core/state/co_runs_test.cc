// Launches of workers beside others: which of them tell how fast a kernel is there, and for how
// long it was.

#include "src/core/state/launches/co_runs.h"

#include "gtest/gtest.h"

namespace gpushare::core {
namespace {

constexpr WorkersOf kOwn = {KernelId{1}, 3};
constexpr WorkersOf kOther = {KernelId{2}, 5};

CoRunLaunch LaunchOf(uint64_t launch, LaneIndex lane, const WorkersOf& workers,
                     TimeNs launched_ns = 0) {
  return {LaunchId{launch}, lane, workers, launched_ns};
}

CoRunEnd EndOf(uint64_t launch, TimeNs start_ns, TimeNs end_ns) {
  return {LaunchId{launch}, start_ns, end_ns, true};
}

TEST(CoRuns, ALaunchTellsHowLongItsNeighbourWasThere) {
  CoRuns runs;
  CoRunTimes out;
  runs.Begin(LaunchOf(1, 1, kOwn));
  runs.Begin(LaunchOf(2, 2, kOther));
  ASSERT_TRUE(runs.End(EndOf(1, 100, 500), out));
  EXPECT_EQ(out.own, kOwn);
  EXPECT_EQ(out.neighbour, kOther);
  EXPECT_EQ(out.ns, 400);
  EXPECT_EQ(out.beside_ns, 400) << "the neighbour still runs";
  ASSERT_TRUE(runs.End(EndOf(2, 200, 1000), out));
  EXPECT_EQ(out.own, kOther);
  EXPECT_EQ(out.neighbour, kOwn);
  EXPECT_EQ(out.ns, 800);
  EXPECT_EQ(out.beside_ns, 300) << "alone from 500 on";
  EXPECT_EQ(runs.size(), 0);
}

TEST(CoRuns, SeveralLaunchesOfOneNeighbourAddUp) {
  CoRuns runs;
  CoRunTimes out;
  runs.Begin(LaunchOf(2, 2, kOther));
  runs.Begin(LaunchOf(1, 1, kOwn, 90));
  runs.Begin(LaunchOf(3, 2, kOther));  // behind launch 2, on its lane
  ASSERT_TRUE(runs.End(EndOf(2, 0, 300), out));
  runs.End(EndOf(3, 310, 400), out);
  runs.Begin(LaunchOf(4, 2, kOther, 350));  // while launch 3 still runs, which ends at 400
  ASSERT_TRUE(runs.End(EndOf(1, 100, 500), out));
  EXPECT_EQ(out.beside_ns, 200 + 90 + 100);
}

TEST(CoRuns, LaunchesOfOneLaneAreNotBesideEachOther) {
  CoRuns runs;
  CoRunTimes out;
  runs.Begin(LaunchOf(1, 1, kOwn));
  runs.Begin(LaunchOf(2, 1, kOther));
  EXPECT_FALSE(runs.End(EndOf(1, 100, 500), out));
  EXPECT_FALSE(runs.End(EndOf(2, 500, 900), out));
}

TEST(CoRuns, AThirdKernelOrOtherWorkSpoilsWhatItMeets) {
  for (const WorkersOf& third :
       {WorkersOf{KernelId{3}, 5}, WorkersOf{KernelId{2}, 4}, WorkersOf{}}) {
    CoRuns runs;
    CoRunTimes out;
    runs.Begin(LaunchOf(1, 1, kOwn));
    runs.Begin(LaunchOf(2, 2, kOther));
    runs.Begin(LaunchOf(3, 3, third));
    EXPECT_FALSE(runs.End(EndOf(3, 200, 300), out));
    EXPECT_FALSE(runs.End(EndOf(1, 100, 500), out));
    runs.Begin(LaunchOf(4, 1, kOwn, 600));
    EXPECT_TRUE(runs.End(EndOf(4, 600, 700), out)) << "the third has gone";
    EXPECT_FALSE(runs.End(EndOf(2, 100, 1000), out));
  }
}

TEST(CoRuns, WhatWasEvictedOrHasNoTimesTellsNothing) {
  CoRuns runs;
  CoRunTimes out;
  runs.Begin(LaunchOf(1, 1, kOwn));
  runs.Begin(LaunchOf(2, 2, kOther));
  CoRunEnd evicted = EndOf(1, 100, 500);
  evicted.whole = false;
  EXPECT_FALSE(runs.End(evicted, out));
  ASSERT_TRUE(runs.End(EndOf(2, 100, 500), out)) << "it was there for all that";
  EXPECT_EQ(out.beside_ns, 400);
  runs.Begin(LaunchOf(3, 1, kOwn));
  runs.Begin(LaunchOf(4, 2, kOther));
  EXPECT_FALSE(runs.End({.launch = LaunchId{3}}, out)) << "lost with its lane";
  EXPECT_FALSE(runs.End(EndOf(4, 100, 500), out)) << "nobody knows when the other left";
  EXPECT_EQ(runs.size(), 0);
}

TEST(CoRuns, FewerWorkersOrAnotherKernelOfTheIdentifierEndIt) {
  CoRuns runs;
  CoRunTimes out;
  runs.Begin(LaunchOf(1, 1, kOwn));
  runs.Begin(LaunchOf(2, 2, kOther));
  runs.Spoil(LaunchId{1});
  EXPECT_FALSE(runs.End(EndOf(2, 100, 500), out));
  EXPECT_FALSE(runs.End(EndOf(1, 100, 500), out));
  runs.Begin(LaunchOf(3, 1, kOwn));
  runs.Begin(LaunchOf(4, 2, kOther));
  runs.Forget(kOther.kernel);
  EXPECT_FALSE(runs.End(EndOf(3, 100, 500), out));
  EXPECT_FALSE(runs.End(EndOf(4, 100, 500), out));
}

TEST(CoRuns, BesideALaunchThatHadNoRoomNothingIsLearned) {
  CoRuns runs;
  CoRunTimes out;
  for (uint64_t i = 1; i <= kMaxRunning; ++i) EXPECT_TRUE(runs.Begin(LaunchOf(i, 1, kOwn)));
  EXPECT_FALSE(runs.Begin(LaunchOf(1000, 2, kOther)));
  EXPECT_EQ(runs.size(), kMaxRunning);
  EXPECT_FALSE(runs.End(EndOf(1, 100, 500), out));
  runs.Begin(LaunchOf(1001, 3, kOther));
  EXPECT_FALSE(runs.End(EndOf(1001, 600, 700), out));
  EXPECT_FALSE(runs.End(EndOf(1000, 100, 800), out));
  runs.Drop(LaunchId{1000}, false);
  for (uint64_t i = 2; i <= kMaxRunning; ++i) runs.End(EndOf(i, 500, 900), out);
  runs.Begin(LaunchOf(1, 1, kOwn));
  runs.Begin(LaunchOf(2, 2, kOther));
  EXPECT_TRUE(runs.End(EndOf(1, 1000, 1500), out)) << "all of it has gone";
}

// A completion ends a launch before it is dropped: that must not count as two.
TEST(CoRuns, TheEndOfOneOfTwoLaunchesWithoutRoomLeavesTheOther) {
  CoRuns runs;
  CoRunTimes out;
  for (uint64_t i = 1; i <= kMaxRunning; ++i) runs.Begin(LaunchOf(i, 1, kOwn));
  runs.Begin(LaunchOf(1000, 2, kOther));
  runs.Begin(LaunchOf(1001, 3, kOther));
  EXPECT_FALSE(runs.End(EndOf(1000, 100, 800), out));
  runs.Drop(LaunchId{1000}, false);
  for (uint64_t i = 1; i <= kMaxRunning; ++i) {
    runs.End(EndOf(i, 500, 900), out);
    runs.Drop(LaunchId{i}, true);
  }
  runs.Begin(LaunchOf(1, 1, kOwn));
  runs.Begin(LaunchOf(2, 2, kOther));
  EXPECT_FALSE(runs.End(EndOf(1, 1000, 1500), out)) << "launch 1001 is on the device";
  runs.Drop(LaunchId{1}, true);
  runs.Drop(LaunchId{2}, true);
  runs.Drop(LaunchId{1001}, false);
  EXPECT_EQ(runs.size(), 0);
  runs.Begin(LaunchOf(3, 1, kOwn));
  runs.Begin(LaunchOf(4, 2, kOther));
  EXPECT_TRUE(runs.End(EndOf(3, 2000, 2500), out));
}

}  // namespace
}  // namespace gpushare::core
