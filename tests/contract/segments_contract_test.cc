// Graphs in segments: how many are on the device when an eviction comes, that none is lost or
// repeated, and that the rest runs elsewhere.

#include <vector>

#include "src/core/base/tuning.h"
#include "tests/contract/device_contract.h"

namespace gpushare::contract {
namespace {

using core::LaneIndex;
using core::LaunchId;
using core::Outcome;
using core::PlaceIndex;
using core::TimeNs;

class SegmentsContract : public DeviceContract {
 protected:
  void SetUp() override {
    DeviceContract::SetUp();
    if (testing::Test::HasFatalFailure()) return;
    if (!capabilities().eviction) GTEST_SKIP() << "no eviction";
    ASSERT_GT(segments(), 4) << long_graph().graph()->cut.whole_reason;
  }
  int32_t segments() const { return long_graph().segments(); }
  LaneIndex EvictableLane() { return MakeLane(core::kWholeDevice, true); }
  void Evict(LaneIndex lane, uint64_t epoch, int32_t keep = 0) {
    const absl::Status status = device().Evict(lane, epoch, keep);
    EXPECT_TRUE(status.ok()) << status;
  }
  // In longer segments, where LimitSegments allows them.
  core::LaunchRequest Longer(LaneIndex lane, bool reset, uint64_t epoch) {
    core::LaunchRequest request = Segments(lane, 0, reset, epoch);
    request.longer_segments = true;
    return request;
  }
  int64_t PairNs() const { return 2 * kGraphNs / segments(); }
  // The duration of the whole graph over its segments.
  static constexpr int64_t kGraphNs = 40 * 50'000;
};

TEST_P(SegmentsContract, TheWholeGraphRunsToItsEnd) {
  const LaunchId launch = Launch(Segments(EvictableLane(), 0, true, 1));
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done, segments());
  if (!GetParam().work_takes_time) return;
  const int64_t took_ns = Of(launch).end_ns - Of(launch).start_ns;
  EXPECT_GT(took_ns, kGraphNs);
  EXPECT_LT(took_ns, kGraphNs * 5 / 4);  // launches are slower under a sanitizer
}

TEST_P(SegmentsContract, AnEvictedGraphRunsWhatIsOnTheDeviceAndNoMore) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex lane = EvictableLane();
  const LaunchId first = Launch(Segments(lane, 0, true, 1));
  WaitUntilTime(device().NowNs() + kGraphNs / 2);
  const TimeNs evicted_at = device().NowNs();
  Evict(lane, 1);
  WaitForCount(1);
  EXPECT_EQ(Of(first).outcome, Outcome::kEvicted);
  EXPECT_GE(Of(first).block_tasks_done, segments() / 4);
  EXPECT_LT(Of(first).block_tasks_done, segments() - 1);
  // The current segment and the one behind it, and the latencies of the host.
  const int64_t segment_ns = kGraphNs / segments();
  EXPECT_LT(Of(first).end_ns - evicted_at, (core::kSegmentsOutstanding + 1) * segment_ns);
  EXPECT_GT(Of(first).end_ns - evicted_at, segment_ns / 2);
  const LaunchId rest = Launch(Segments(lane, 0, false, 2));
  WaitForAll();
  EXPECT_EQ(Of(rest).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(first).block_tasks_done + Of(rest).block_tasks_done, segments());
}

// LC work in segments has a lane without an eviction word for workers.
TEST_P(SegmentsContract, SegmentsAreEvictedOnEveryLane) {
  const LaneIndex lane = MakeLane();
  Evict(lane, 1);
  const LaunchId launch = Launch(Segments(lane, 0, true, 1));
  WaitForCount(1);
  EXPECT_EQ(Of(launch).outcome, Outcome::kEvicted);
  EXPECT_LE(Of(launch).block_tasks_done, core::kSegmentsOutstanding);
  const LaunchId rest = Launch(Segments(lane, 0, false, 2));
  if (GetParam().work_takes_time) {
    WaitUntilTime(device().NowNs() + kGraphNs / 4);
    Evict(lane, 2);
    WaitForCount(2);
    EXPECT_EQ(Of(rest).outcome, Outcome::kEvicted);
    EXPECT_LT(Of(launch).block_tasks_done + Of(rest).block_tasks_done, segments());
  }
  const LaunchId last = Launch(Segments(lane, 0, false, 3));
  WaitForAll();
  EXPECT_EQ(Of(last).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done + Of(rest).block_tasks_done + Of(last).block_tasks_done,
            segments());
}

// An eviction that keeps workers keeps no segment: a graph has none to keep.
TEST_P(SegmentsContract, AnEvictionThatKeepsWorkersEndsTheGraph) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex lane = EvictableLane();
  const LaunchId launch = Launch(Segments(lane, 0, true, 1));
  WaitUntilTime(device().NowNs() + kGraphNs / 4);
  Evict(lane, 1, 8);
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kEvicted);
}

TEST_P(SegmentsContract, ALateLaunchDoesNotLoseItsEviction) {
  const LaneIndex lane = EvictableLane();
  // A launcher read epoch 1, an LC caller raised the word to 1, and only then the launch arrives.
  Evict(lane, 1);
  const LaunchId launch = Launch(Segments(lane, 0, true, 1));
  WaitForCount(1);
  EXPECT_EQ(Of(launch).outcome, Outcome::kEvicted);
  EXPECT_LE(Of(launch).block_tasks_done, core::kSegmentsOutstanding);
  const LaunchId rest = Launch(Segments(lane, 0, false, 2));
  WaitForAll();
  EXPECT_EQ(Of(rest).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done + Of(rest).block_tasks_done, segments());
}

// Of the graph's segments of up to 200 us, two are a group of up to 400 us.
TEST_P(SegmentsContract, AnEvictedGraphInLongerSegmentsRunsWhatIsOnTheDevice) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex lane = EvictableLane();
  device().LimitSegments(400'000);
  const LaunchId first = Launch(Longer(lane, true, 1));
  WaitUntilTime(device().NowNs() + PairNs() * 5 / 4);
  Evict(lane, 1);
  WaitForCount(1);
  EXPECT_EQ(Of(first).outcome, Outcome::kEvicted);
  EXPECT_EQ(Of(first).block_tasks_done, 6) << "the second group and the one behind it";
  const LaunchId rest = Launch(Longer(lane, false, 2));
  WaitForAll();
  EXPECT_EQ(Of(rest).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(rest).block_tasks_done, segments() - 6);
}

TEST_P(SegmentsContract, ARunThatIsToldToBeShortIsShortFromTheNextBoundaryOn) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex lane = EvictableLane();
  device().LimitSegments(400'000);
  const LaunchId first = Launch(Longer(lane, true, 1));
  const TimeNs begin_ns = device().NowNs();
  WaitUntilTime(begin_ns + PairNs() * 3 / 4);
  device().LimitSegments(0);
  // Two groups are on the device then, and own segments follow them.
  WaitUntilTime(begin_ns + PairNs() * 19 / 8);
  Evict(lane, 1);
  WaitForCount(1);
  EXPECT_EQ(Of(first).outcome, Outcome::kEvicted);
  EXPECT_GE(Of(first).block_tasks_done, 5);
  EXPECT_LE(Of(first).block_tasks_done, 7);
  EXPECT_EQ(Of(first).longest_segment_ns, 0) << "it says nothing of the graph's own segments";
  const LaunchId rest = Launch(Longer(lane, false, 2));
  WaitForAll();
  EXPECT_EQ(Of(rest).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(first).block_tasks_done + Of(rest).block_tasks_done, segments());
}

TEST_P(SegmentsContract, WhatBeganBeforeTheChangeRunsToItsEnd) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex lane = EvictableLane();
  device().LimitSegments(400'000);
  const LaunchId first = Launch(Longer(lane, true, 1));
  WaitUntilTime(device().NowNs() + PairNs() / 4);
  device().LimitSegments(0);
  Evict(lane, 1);
  WaitForCount(1);
  EXPECT_EQ(Of(first).block_tasks_done, 4) << "two groups";
  const LaunchId rest = Launch(Longer(lane, false, 2));
  WaitForAll();
  EXPECT_EQ(Of(rest).block_tasks_done, segments() - 4);
}

// The group that runs is the last one: nothing of the shorter length is behind it yet.
TEST_P(SegmentsContract, AShorterLengthIsInForceAtTheEndOfTheGroupsThatBegan) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex lane = EvictableLane();
  device().LimitSegments(400'000);
  const LaunchId first = Launch(Longer(lane, true, 1));
  const TimeNs begin_ns = device().NowNs();
  WaitUntilTime(begin_ns + PairNs() * 5 / 4);
  device().LimitSegments(0);
  WaitUntilTime(begin_ns + PairNs() * 9 / 4);
  const TimeNs evicted_ns = device().NowNs();
  Evict(lane, 1);
  WaitForCount(1);
  EXPECT_EQ(Of(first).outcome, Outcome::kEvicted);
  EXPECT_EQ(Of(first).block_tasks_done, 6) << "the third group, to its end";
  EXPECT_LT(Of(first).end_ns - evicted_ns, PairNs());
  const LaunchId rest = Launch(Longer(lane, false, 2));
  WaitForAll();
  EXPECT_EQ(Of(rest).block_tasks_done, segments() - 6);
}

TEST_P(SegmentsContract, AWholeGraphThatBeganRunsToItsEndWhateverIsAllowedThen) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex lane = EvictableLane();
  device().LimitSegments(core::kNever);
  const LaunchId launch = Launch(Longer(lane, true, 1));
  WaitUntilTime(device().NowNs() + 100'000);
  device().LimitSegments(0);
  const TimeNs evicted_ns = device().NowNs();
  Evict(lane, 1);
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done, segments());
  EXPECT_LT(Of(launch).end_ns - evicted_ns, kGraphNs * 5 / 4);
}

TEST_P(SegmentsContract, ARunThatIsToldToBeLongEndsWithTheSameSegments) {
  const LaneIndex lane = EvictableLane();
  const LaunchId first = Launch(Longer(lane, true, 1));
  WaitUntilTime(device().NowNs() + 100'000);
  device().LimitSegments(core::kNever);
  WaitForAll();
  EXPECT_EQ(Of(first).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(first).block_tasks_done, segments());
}

// The plan has counted on the whole graph.
TEST_P(SegmentsContract, AWholeGraphIsNotEvicted) {
  const LaneIndex lane = EvictableLane();
  device().LimitSegments(core::kNever);
  const LaunchId launch = Launch(Longer(lane, true, 1));
  WaitUntilTime(device().NowNs() + 100'000);
  Evict(lane, 1);
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done, segments());
}

// As those of an LC app that yields, and all in a partition.
TEST_P(SegmentsContract, ALaunchThatDoesNotAskHasItsOwnSegments) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  device().LimitSegments(core::kNever);
  std::vector<core::LaunchRequest> requests = {Segments(EvictableLane(), 0, true, 1)};
  if (capabilities().partitions) {
    const PlaceIndex side = MakePlace(0, capabilities().profile.Groups() / 2);
    requests.push_back(Longer(MakeLane(side, true), true, 1));
  }
  for (const core::LaunchRequest& request : requests) {
    const LaunchId launch = Launch(request);
    WaitUntilTime(device().NowNs() + 300'000);
    Evict(request.parts[0].lane, 1);
    WaitForAll();
    EXPECT_EQ(Of(launch).outcome, Outcome::kEvicted);
    EXPECT_LT(Of(launch).block_tasks_done, segments());
  }
}

TEST_P(SegmentsContract, TheRestRunsInAnotherPlace) {
  if (!capabilities().partitions) GTEST_SKIP() << "no partitions";
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before an eviction";
  const LaneIndex whole = EvictableLane();
  const LaneIndex side = MakeLane(MakePlace(0, capabilities().profile.Groups() / 2), true);
  int64_t done = 0;
  uint64_t epoch = 1;
  bool reset = true;
  for (int turn = 0; turn < 50 && done < segments(); ++turn) {
    const LaneIndex lane = turn % 2 == 0 ? whole : side;
    const LaunchId launch = Launch(Segments(lane, 0, reset, epoch));
    reset = false;
    WaitUntilTime(device().NowNs() + kGraphNs / segments());
    Evict(lane, epoch);
    WaitForCount(completions().size() + (IsReported(launch) ? 0 : 1));
    done += Of(launch).block_tasks_done;
    ++epoch;
  }
  EXPECT_EQ(done, segments());
  WaitForAll();
  EXPECT_GT(completions().size(), 2U);
}

TEST_P(SegmentsContract, NothingElseIsLaunchedOnTheLaneOfAGraphInSegments) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before another one comes";
  const LaneIndex lane = EvictableLane();
  Launch(Segments(lane, 0, true, 1));
  EXPECT_EQ(device().Launch(Graph(lane)).code(), absl::StatusCode::kFailedPrecondition);
  WaitForAll();
  Launch(Graph(lane));
  WaitForAll();
}

// The flow launches a refused task again: its function would be called twice.
TEST_P(SegmentsContract, AnOpaqueTaskOnTheLaneOfAGraphInSegmentsIsNotCalled) {
  if (!GetParam().work_takes_time) GTEST_SKIP() << "a launch is over before another one comes";
  const LaneIndex lane = EvictableLane();
  int calls = 0;
  core::LaunchRequest opaque;
  opaque.form = core::Form::kOpaque;
  opaque.parts[0].launch = NewLaunch();
  opaque.parts[0].lane = lane;
  opaque.parts[0].work.declared_ns = 20'000;
  opaque.parts[0].work.host_user = &calls;
  opaque.parts[0].work.host_function = [](void*, void* user) { ++*static_cast<int*>(user); };
  Launch(Segments(lane, 0, true, 1));
  EXPECT_EQ(device().Launch(opaque).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(calls, 0);
  WaitForAll();
  Launch(opaque);
  EXPECT_EQ(calls, 1);
  WaitForAll();
}

TEST_P(SegmentsContract, ItStartsBehindWhatIsOnTheLane) {
  const LaneIndex lane = EvictableLane();
  const LaunchId graph = Launch(Graph(lane));
  const LaunchId launch = Launch(Segments(lane, 0, true, 1));
  WaitForAll();
  EXPECT_LE(Of(graph).end_ns, Of(launch).start_ns);
  EXPECT_EQ(Of(launch).block_tasks_done, segments());
}

TEST_P(SegmentsContract, ClaimsShowTheProgressOfAGraph) {
  if (!capabilities().reads_claims) GTEST_SKIP() << "claims are not read";
  Launch(Segments(EvictableLane(), 0, true, 1));
  WaitUntilTime(device().NowNs() + kGraphNs / 2);
  const auto half = device().ReadClaims(0);
  ASSERT_TRUE(half.has_value());
  EXPECT_GT(*half, segments() / 4);
  EXPECT_LT(*half, segments());
  WaitForAll();
  EXPECT_EQ(device().ReadClaims(0), segments());
}

TEST_P(SegmentsContract, AnotherNumberOfSegmentsIsRefused) {
  const LaneIndex lane = EvictableLane();
  core::LaunchRequest request = Segments(lane, 0, true, 1);
  request.parts[0].block_count = segments() + 1;
  EXPECT_EQ(device().Launch(request).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(SegmentsContract, AGraphThatMustNotBeCutTellsWhy) {
  core::KernelDesc graph = long_graph();
  graph.id = core::KernelId{5};
  graph.name = "never_cut";
  graph.graph()->segment_ns = -1;
  ASSERT_TRUE(device().PrepareKernel(graph).ok());
  EXPECT_EQ(device().CutOf(graph).segments, 1);
  EXPECT_EQ(device().CutOf(graph).whole_reason,
            "The kernel option segment_ns asks for the whole graph.");
}

INSTANTIATE_TEST_SUITE_P(Devices, SegmentsContract, testing::ValuesIn(DeviceFactories()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace gpushare::contract
