// Nodes with a twin: a graph in segments leaves in the middle of a long node, and goes on there.
//
// The record has five segments: 80 us, a node of 1 ms with block tasks of 20 us, 80 us, another
// such node, 80 us. A CUDA device makes twins of PTX, so its clauses are tested with kernels of its
// own (tests/cuda/graphs/evictable_nodes_test.cc).

#include <random>

#include "tests/contract/device_contract.h"

namespace gpushare::contract {
namespace {

using core::LaneIndex;
using core::LaunchId;
using core::Outcome;
using core::TimeNs;

constexpr int64_t kShortNs = 80'000;
constexpr int64_t kNodeNs = 1'000'000;
constexpr int64_t kBlockTaskNs = 20'000;
constexpr int64_t kGraphNs = 3 * kShortNs + 2 * kNodeNs;
// Latencies of the write, of launches and of reports.
constexpr int64_t kLatenciesNs = 30'000;

core::KernelDesc MakeEvictable() {
  core::KernelDesc graph;
  graph.id = core::KernelId{5};
  graph.name = "contract_evictable_nodes";
  graph.code = core::GraphCode{.measure_nodes = true};
  graph.simulation.present = true;
  graph.simulation.node_gap_ns = 500;
  const core::GraphNode brief{.duration_ns = kShortNs, .blocks = 132, .demand = {}};
  const core::GraphNode node{
      .duration_ns = kNodeNs, .blocks = 132, .demand = {}, .block_task_ns = kBlockTaskNs};
  graph.simulation.nodes = {brief, node, brief, node, brief};
  return graph;
}

class EvictableNodesContract : public DeviceContract {
 protected:
  void SetUp() override {
    DeviceContract::SetUp();
    if (testing::Test::HasFatalFailure()) return;
    if (!capabilities().eviction || !GetParam().work_takes_time || !capabilities().simulated) {
      GTEST_SKIP() << "no nodes of a record that take time";
    }
    ASSERT_TRUE(device().PrepareKernel(graph_).ok());
    graph_.graph()->cut = device().CutOf(graph_);
    ASSERT_EQ(graph_.segments(), 5);
    ASSERT_EQ(graph_.graph()->cut.evictable_segments, 2);
    lane_ = MakeLane(core::kWholeDevice, true);
  }
  LaunchId LaunchRest(bool reset, bool longer = false, LaneIndex lane = core::kNoLane) {
    core::LaunchRequest request =
        Segments(lane == core::kNoLane ? lane_ : lane, 0, reset, ++epoch_);
    request.parts[0].work.kernel = &graph_;
    request.parts[0].block_count = graph_.segments();
    request.longer_segments = longer;
    return Launch(request);
  }
  void Evict() {
    const absl::Status status = device().Evict(lane_, epoch_, 0);
    EXPECT_TRUE(status.ok()) << status;
  }
  int64_t TookNs(LaunchId launch) { return Of(launch).end_ns - Of(launch).start_ns; }

  core::KernelDesc graph_ = MakeEvictable();
  LaneIndex lane_ = core::kNoLane;
  uint64_t epoch_ = 0;
};

TEST_P(EvictableNodesContract, TheWholeGraphTakesItsTime) {
  const LaunchId launch = LaunchRest(true);
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done, 5);
  EXPECT_GT(TookNs(launch), kGraphNs);
  EXPECT_LT(TookNs(launch), kGraphNs + 4 * kLatenciesNs);
}

TEST_P(EvictableNodesContract, AnEvictionInTheMiddleOfANodeWaitsForOneBlockTask) {
  const LaunchId first = LaunchRest(true);
  WaitUntilTime(device().NowNs() + kShortNs + kNodeNs / 2);
  const TimeNs evicted_ns = device().NowNs();
  Evict();
  WaitForCount(1);
  EXPECT_EQ(Of(first).outcome, Outcome::kEvicted);
  EXPECT_EQ(Of(first).block_tasks_done, 1) << "the node is not done";
  EXPECT_LT(Of(first).end_ns - evicted_ns, kBlockTaskNs + kLatenciesNs);
  // The other half of the node, and what is behind it.
  const LaunchId rest = LaunchRest(false);
  WaitForAll();
  EXPECT_EQ(Of(rest).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(rest).block_tasks_done, 4);
  const int64_t both_ns = TookNs(first) + TookNs(rest);
  EXPECT_GT(both_ns, kGraphNs - kBlockTaskNs) << "no block task is lost";
  EXPECT_LT(both_ns, kGraphNs + kBlockTaskNs + 4 * kLatenciesNs) << "none is repeated";
}

// The node behind the first segment is on the device too, and leaves before its first block task.
TEST_P(EvictableNodesContract, AnEvictionInTheSegmentBeforeANodeDoesNotWaitForTheNode) {
  const LaunchId first = LaunchRest(true);
  WaitUntilTime(device().NowNs() + kShortNs / 2);
  Evict();
  WaitForCount(1);
  EXPECT_EQ(Of(first).outcome, Outcome::kEvicted);
  EXPECT_EQ(Of(first).block_tasks_done, 1);
  EXPECT_LT(TookNs(first), kShortNs + kBlockTaskNs + kLatenciesNs);
  const LaunchId rest = LaunchRest(false);
  WaitForAll();
  EXPECT_EQ(Of(rest).block_tasks_done, 4);
}

// The chain rule: an eviction in a node runs nothing of what follows it.
TEST_P(EvictableNodesContract, EvictionsAtRandomTimesLoseAndRepeatNothing) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int64_t> wait(10'000, 400'000);
  int64_t ran_ns = 0;
  int64_t done = 0;
  int launches = 0;
  for (bool reset = true; done < 5; reset = false) {
    ASSERT_LT(launches, 200) << "it makes no progress";
    const LaunchId launch = LaunchRest(reset);
    WaitUntilTime(device().NowNs() + wait(random));
    if (!IsReported(launch)) Evict();
    WaitForCount(static_cast<size_t>(++launches));
    ran_ns += TookNs(launch);
    done += Of(launch).block_tasks_done;
    const bool over = Of(launch).outcome == Outcome::kFinished;
    EXPECT_EQ(over, done == 5);
  }
  EXPECT_GT(launches, 6) << "some evictions must have come inside a node";
  EXPECT_GT(ran_ns, kGraphNs - kBlockTaskNs);
  EXPECT_LT(ran_ns, kGraphNs + launches * (kBlockTaskNs + kLatenciesNs));
}

TEST_P(EvictableNodesContract, TheRestOfANodeRunsElsewhere) {
  if (!capabilities().partitions) GTEST_SKIP() << "no partitions";
  const LaneIndex side = MakeLane(MakePlace(0, 8), true);
  LaunchRest(true);
  WaitUntilTime(device().NowNs() + kShortNs + kNodeNs * 3 / 4);
  Evict();
  WaitForCount(1);
  const LaunchId rest = LaunchRest(false, false, side);
  WaitForAll();
  EXPECT_EQ(Of(rest).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(rest).block_tasks_done, 4);
  // A quarter of the node, and what is behind it. A node that began again would take 1.5 ms more.
  constexpr int64_t kRestNs = kNodeNs * 5 / 4 + 2 * kShortNs;
  EXPECT_GT(TookNs(rest), kRestNs * 132 / 64 * 9 / 10);
  EXPECT_LT(TookNs(rest), (kRestNs + kNodeNs / 4) * 132 / 64);
}

// Workers could not leave there, so the node runs whole. The rest of a node ends too.
TEST_P(EvictableNodesContract, OnALaneWithoutAnEvictionWordANodeRunsToItsEnd) {
  const LaneIndex plain = MakeLane();
  const LaunchId first = LaunchRest(true, false, plain);
  WaitUntilTime(device().NowNs() + kShortNs + kNodeNs / 2);
  ASSERT_TRUE(device().Evict(plain, epoch_, 0).ok());
  WaitForCount(1);
  EXPECT_EQ(Of(first).outcome, Outcome::kEvicted);
  EXPECT_EQ(Of(first).block_tasks_done, 2) << "the node is done";
  EXPECT_GT(TookNs(first), kShortNs + kNodeNs);
  const LaunchId second = LaunchRest(false);
  WaitUntilTime(device().NowNs() + kShortNs + kNodeNs / 2);
  Evict();
  WaitForCount(2);
  EXPECT_EQ(Of(second).block_tasks_done, 1) << "a lane with a word leaves the other node";
  const LaunchId rest = LaunchRest(false, false, plain);
  WaitUntilTime(device().NowNs() + kNodeNs / 4);
  ASSERT_TRUE(device().Evict(plain, epoch_, 0).ok());
  WaitForAll();
  EXPECT_EQ(Of(rest).block_tasks_done, 1) << "the rest of the node";
  const int64_t ran_ns = TookNs(first) + TookNs(second) + TookNs(rest);
  EXPECT_GT(ran_ns, kGraphNs - kShortNs - kBlockTaskNs);
  EXPECT_LT(ran_ns, kGraphNs - kShortNs + kBlockTaskNs + 4 * kLatenciesNs);
}

// A longer segment of up to 2 ms begins with the second node, and with its first block task.
TEST_P(EvictableNodesContract, TheRestOfANodeIsNoPartOfALongerSegment) {
  const LaunchId first = LaunchRest(true);
  WaitUntilTime(device().NowNs() + 2 * kShortNs + kNodeNs * 3 / 2);
  Evict();
  WaitForCount(1);
  EXPECT_EQ(Of(first).block_tasks_done, 3);
  device().LimitSegments(core::kNever);
  const LaunchId second = LaunchRest(false, true);
  const TimeNs begin_ns = device().NowNs();
  WaitUntilTime(begin_ns + kNodeNs / 4);
  const TimeNs evicted_ns = device().NowNs();
  Evict();
  WaitForCount(2);
  EXPECT_EQ(Of(second).outcome, Outcome::kEvicted);
  EXPECT_EQ(Of(second).block_tasks_done, 0);
  EXPECT_LT(Of(second).end_ns - evicted_ns, kBlockTaskNs + kLatenciesNs);
  const LaunchId rest = LaunchRest(false, true);
  WaitForAll();
  EXPECT_EQ(Of(rest).outcome, Outcome::kFinished);
  const int64_t ran_ns = TookNs(first) + TookNs(second) + TookNs(rest);
  EXPECT_GT(ran_ns, kGraphNs - kBlockTaskNs);
  EXPECT_LT(ran_ns, kGraphNs + 2 * kBlockTaskNs + 4 * kLatenciesNs);
}

// The length changes while the node runs alone: it stays evictable.
TEST_P(EvictableNodesContract, ANodeThatRunsWhenLengthsChangeIsStillEvictable) {
  const LaunchId launch = LaunchRest(true, true);
  WaitUntilTime(device().NowNs() + kShortNs + kNodeNs / 4);
  device().LimitSegments(core::kNever);
  WaitUntilTime(device().NowNs() + kNodeNs / 4);
  const TimeNs evicted_ns = device().NowNs();
  Evict();
  WaitForCount(1);
  EXPECT_EQ(Of(launch).outcome, Outcome::kEvicted);
  EXPECT_EQ(Of(launch).block_tasks_done, 1);
  EXPECT_LT(Of(launch).end_ns - evicted_ns, kBlockTaskNs + kLatenciesNs);
  const LaunchId rest = LaunchRest(false);
  WaitForAll();
  EXPECT_EQ(Of(rest).block_tasks_done, 4);
}

// The plan that allowed it has counted on the whole graph.
TEST_P(EvictableNodesContract, ANodeInALongerSegmentRunsToItsEnd) {
  device().LimitSegments(core::kNever);
  const LaunchId launch = LaunchRest(true, true);
  WaitUntilTime(device().NowNs() + kShortNs + kNodeNs / 2);
  Evict();
  WaitForAll();
  EXPECT_EQ(Of(launch).outcome, Outcome::kFinished);
  EXPECT_EQ(Of(launch).block_tasks_done, 5);
}

INSTANTIATE_TEST_SUITE_P(Devices, EvictableNodesContract, testing::ValuesIn(DeviceFactories()),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace gpushare::contract
