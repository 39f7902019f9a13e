// Chains of nodes. Alone, a chain advances as one event. Beside other launches each node waits for
// whole SMs, and priorities take effect only where blocks end.

#include <gtest/gtest.h>

#include <array>

#include "tests/core/make_place.h"
#include "tests/sim/sim_fixture.h"

namespace gpushare::sim {
namespace {

class GraphsTest : public testing::TestWithParam<Tier> {
 protected:
  GraphsTest() : device_(MakeDevice(GetParam())) {
    high_ = *device_->CreateLane({core::kWholeDevice, core::LanePriority::kHigh, false});
    low_ = *device_->CreateLane({core::kWholeDevice, core::LanePriority::kLow, true});
    equal_ = *device_->CreateLane({core::kWholeDevice, core::LanePriority::kHigh, true});
  }
  void Graph(core::LaneIndex lane, const core::KernelDesc& kernel, uint64_t id) {
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{id};
    request.parts[0].lane = lane;
    request.form = core::Form::kGraph;
    request.parts[0].work.kernel = &kernel;
    ASSERT_TRUE(device_->Launch(request).ok());
  }
  void Graph(core::LaneIndex lane, const char* kernel, uint64_t id) {
    Graph(lane, Kernel(kernel), id);
  }
  void Grid(core::LaneIndex lane, const char* kernel, int64_t blocks, uint64_t id) {
    core::LaunchRequest request;
    request.parts[0].launch = core::LaunchId{id};
    request.parts[0].lane = lane;
    request.parts[0].work.kernel = &Kernel(kernel);
    request.parts[0].block_count = blocks;
    ASSERT_TRUE(device_->Launch(request).ok());
  }
  std::unique_ptr<core::Device> device_;
  core::LaneIndex high_, low_, equal_;
};

INSTANTIATE_TEST_SUITE_P(Tiers, GraphsTest, testing::Values(Tier::kKernel, Tier::kBlock),
                         [](const auto& tier) {
                           return tier.param == Tier::kKernel ? "Kernel" : "Block";
                         });

TEST_P(GraphsTest, AGraphAloneTakesItsTimeInAFewEvents) {
  Graph(high_, "chain1", 1);
  int events = 0;
  while (device_->NextEventNs() != core::kNever) {
    device_->AdvanceTo(device_->NextEventNs());
    ++events;
  }
  EXPECT_LE(events, 5) << "72 nodes that run undisturbed must not be 72 events";
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_NEAR(static_cast<double>(device_->NowNs()), 667'000, 1'500);
}

TEST_P(GraphsTest, TwoGraphsOnTheSameSmsTakeTheirSum) {
  Graph(high_, "chain1", 1);
  Graph(equal_, "chain1", 2);
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 2u);
  // The nodes of each chain fill the gaps of the other.
  EXPECT_GT(done[1].end_ns, 2 * 620'000);
  EXPECT_LT(done[1].end_ns, 2 * 667'000);
  EXPECT_GT(done[0].end_ns, 1'150'000) << "the chains alternate";
}

TEST_P(GraphsTest, APriorityHelpsOnlyWhereABlockEnds) {
  // Each of the 72 nodes waits until a wave of 267 us blocks has ended.
  Grid(low_, "sincos_267us", 1056 * 400, 1);
  device_->AdvanceTo(1'000'000);
  Graph(high_, "chain1", 2);
  std::array<core::DeviceCompletion, 1> out;
  while (device_->PollCompletions(absl::MakeSpan(out)) == 0) {
    device_->AdvanceTo(device_->NextEventNs());
  }
  EXPECT_EQ(out[0].launch.value, 2u);
  const double latency = static_cast<double>(out[0].end_ns - 1'000'000);
  EXPECT_GT(latency, 60 * 267'000);
  EXPECT_LT(latency, 75 * 290'000);
}

TEST_P(GraphsTest, AtEqualPriorityTheEarlierGridGoesFirst) {
  Grid(equal_, "sincos_267us", 1056 * 50, 1);
  device_->AdvanceTo(1'000'000);
  Graph(high_, "chain1", 2);
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].launch.value, 1u);
  EXPECT_GE(done[1].start_ns, 49 * 267'000);
}

TEST_P(GraphsTest, AWholeSmNodeCannotRunBesideASpreadQuota) {
  core::LaunchRequest request;
  request.parts[0].launch = core::LaunchId{1};
  request.parts[0].lane = low_;
  request.form = core::Form::kWorkers;
  request.parts[0].counter =
      static_cast<int32_t>(request.parts[0].launch.value % core::kMaxCounters);
  request.parts[0].reset_counter = true;
  request.parts[0].work.kernel = &Kernel("sincos_27us");
  request.parts[0].block_count = 100'000;
  request.workers = 132;  // one an SM
  ASSERT_TRUE(device_->Launch(request).ok());
  device_->AdvanceTo(100'000);
  Graph(high_, "chain1", 2);
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_GE(done[1].start_ns, done[0].end_ns);
}

TEST_P(GraphsTest, SpeedFollowsTheTableOfThePlace) {
  const auto place = *core::MakePlace(*device_, {0, 9, true});  // 84 SMs are faster than 124
  const auto worse = *core::MakePlace(*device_, {0, 14, true});
  const auto lane = *device_->CreateLane({place, core::LanePriority::kHigh, false});
  const auto worse_lane = *device_->CreateLane({worse, core::LanePriority::kHigh, false});
  Graph(lane, "decode16", 1);
  auto done = RunUntilIdle(*device_);
  EXPECT_NEAR(static_cast<double>(done[0].end_ns - done[0].start_ns), 538'060 / 1.0055, 50);
  Graph(worse_lane, "decode16", 2);
  done = RunUntilIdle(*device_);
  EXPECT_NEAR(static_cast<double>(done[0].end_ns - done[0].start_ns), 538'060 / 0.80, 50);
}

TEST_P(GraphsTest, ALibraryCallTakesWhatItsCallerDeclares) {
  core::LaunchRequest request;
  request.parts[0].launch = core::LaunchId{1};
  request.parts[0].lane = high_;
  request.form = core::Form::kLibrary;
  request.parts[0].work.declared_ns = 123'000;
  ASSERT_TRUE(device_->Launch(request).ok());
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].end_ns - done[0].start_ns, 123'000);
}

// Ten nodes of 100 us with one of 1 ms in their middle, each a segment.
core::KernelDesc UnevenGraph(bool measure_nodes) {
  core::KernelDesc graph;
  graph.id = core::KernelId{measure_nodes ? 901U : 900U};
  graph.name = "uneven";
  graph.code = core::GraphCode{.measure_nodes = measure_nodes};
  graph.simulation.present = true;
  for (const int64_t us : {100, 1000, 100}) {
    core::GraphNode& node = graph.simulation.nodes.emplace_back();
    node.duration_ns = us * 1000;
    node.blocks = 132;
    node.repeat = us == 100 ? 5 : 1;
  }
  return graph;
}

core::LaunchRequest InSegments(const core::KernelDesc& graph, core::LaneIndex lane) {
  core::LaunchRequest request;
  core::LaunchPart& part = request.parts[0];
  request.form = core::Form::kSegments;
  part.launch = core::LaunchId{1};
  part.lane = lane;
  part.work.kernel = &graph;
  part.block_count = graph.segments();
  part.counter = 0;
  part.reset_counter = true;
  part.epoch = 1;
  return request;
}

// Of an eviction in the fifth segment, in front of the long one.
core::DeviceCompletion EvictedBeforeTheLongSegment(core::Device& device, core::LaneIndex lane,
                                                   bool measure_nodes) {
  core::KernelDesc graph = UnevenGraph(measure_nodes);
  EXPECT_TRUE(device.PrepareKernel(graph).ok());
  graph.graph()->cut = device.CutOf(graph);
  EXPECT_EQ(graph.segments(), 11);
  const absl::Status launched = device.Launch(InSegments(graph, lane));
  EXPECT_TRUE(launched.ok()) << launched;
  device.AdvanceTo(device.NowNs() + 450'000);
  EXPECT_TRUE(device.Evict(lane, 1, 0).ok());
  const auto done = RunUntilIdle(device);
  EXPECT_EQ(done.size(), 1U);
  return done.empty() ? core::DeviceCompletion() : done[0];
}

TEST_P(GraphsTest, AnEvictionDoesNotWaitForALongSegmentBehindAShortOne) {
  const core::DeviceCompletion done = EvictedBeforeTheLongSegment(*device_, low_, true);
  EXPECT_EQ(done.outcome, core::Outcome::kEvicted);
  EXPECT_EQ(done.block_tasks_done, 5);
}

TEST_P(GraphsTest, AnEvictionWaitsForTheSegmentBehindIfNobodyMeasuredIt) {
  const core::DeviceCompletion done = EvictedBeforeTheLongSegment(*device_, low_, false);
  EXPECT_EQ(done.outcome, core::Outcome::kEvicted);
  EXPECT_EQ(done.block_tasks_done, 6);
}

// 538 us of LC work on 84 SMs hold none of the other 48.
TEST_P(GraphsTest, TheLastSegmentsGoOnBesideLcWorkInAPartition) {
  const auto side = *core::MakePlace(*device_, {0, 9, true});
  const auto lc = *device_->CreateLane({side, core::LanePriority::kHigh, false});
  core::KernelDesc graph = UnevenGraph(true);
  graph.simulation.nodes = {{10'000, 132, 100, true, {}}};
  graph.graph()->segment_ns = 50'000;
  ASSERT_TRUE(device_->PrepareKernel(graph).ok());
  graph.graph()->cut = device_->CutOf(graph);
  core::LaunchRequest request = InSegments(graph, low_);
  ASSERT_TRUE(device_->Launch(request).ok());
  const core::TimeNs evicted_at = 220'000;
  device_->AdvanceTo(evicted_at);
  Graph(lc, "decode16", 2);
  ASSERT_TRUE(device_->Evict(low_, 1, 0).ok());
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].launch.value, 1U) << "it stood still until the LC work had ended";
  EXPECT_EQ(done[0].outcome, core::Outcome::kEvicted);
  // At most two segments of 50 us, in turns of 48 SMs.
  EXPECT_GT(done[0].end_ns - evicted_at, 100'000);
  EXPECT_LT(done[0].end_ns - evicted_at, 100'000 * 132 / 48 + 50'000);
  EXPECT_NEAR(static_cast<double>(done[1].end_ns - evicted_at), 538'000, 30'000);
}

// A graph of nodes of 20 us, each with so many blocks.
core::KernelDesc SmallNodes(uint32_t id, int32_t blocks, int32_t nodes) {
  core::KernelDesc graph;
  graph.id = core::KernelId{id};
  graph.name = "small";
  graph.code = core::GraphCode();
  graph.simulation.present = true;
  graph.simulation.nodes = {{20'000, blocks, nodes, true, {}}};
  return graph;
}

// 56 of 132 SMs each.
TEST_P(GraphsTest, GraphsOfSmallNodesRunBesideEachOther) {
  const core::KernelDesc one = SmallNodes(900, 56, 50);
  const core::KernelDesc other = SmallNodes(901, 56, 50);
  for (const core::KernelDesc* graph : {&one, &other}) {
    ASSERT_TRUE(device_->PrepareKernel(*graph).ok());
    Graph(graph == &one ? high_ : low_, *graph, graph->id.value);
    // While the first graph runs alone it holds all SMs. When the second one comes, it keeps only
    // those that its present node needs.
    device_->AdvanceTo(device_->NowNs() + 110'000);
  }
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].launch.value, 900U);
  EXPECT_LT(done[0].end_ns, 1'050'000);
  EXPECT_LT(done[1].end_ns, 1'050'000 + 140'000) << "they alternated";
}

// LC work of 1 ms on 56 of 132 SMs, and segments whose nodes would fill the device.
TEST_P(GraphsTest, SegmentsTakeTurnsOnTheSmsThatLcWorkLeaves) {
  const core::KernelDesc query = SmallNodes(901, 56, 50);
  ASSERT_TRUE(device_->PrepareKernel(query).ok());
  core::KernelDesc graph = SmallNodes(900, 132, 500);
  graph.graph()->segment_ns = 100'000;
  ASSERT_TRUE(device_->PrepareKernel(graph).ok());
  graph.graph()->cut = device_->CutOf(graph);
  ASSERT_TRUE(device_->Launch(InSegments(graph, low_)).ok());
  const auto alone = RunUntilIdle(*device_);
  ASSERT_EQ(alone.size(), 1U);
  const core::TimeNs begin_ns = device_->NowNs();
  ASSERT_TRUE(device_->Launch(InSegments(graph, low_)).ok());
  const core::TimeNs query_ns = begin_ns + 1'010'000;
  device_->AdvanceTo(query_ns);
  Graph(high_, query, 2);
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].launch.value, 2U);
  const int64_t took_ns = done[0].end_ns - query_ns;
  EXPECT_LT(took_ns, 1'025'000 + 2 * 35'000) << "the highest priority goes first";
  const int64_t lost_ns = done[1].end_ns - begin_ns - alone[0].end_ns;
  EXPECT_LT(lost_ns, took_ns * 2 / 3) << "they waited for the whole device";
  EXPECT_GT(lost_ns, took_ns / 3) << "76 of 132 SMs are less than all";
}

// One cell is free beside each second node of the LC work. A node of 10 us that begins there must
// not hold it for all of its blocks.
TEST_P(GraphsTest, LcWorkWaitsForOneTurnOfASegmentAtMost) {
  core::KernelDesc query = SmallNodes(901, 132, 1);
  query.simulation.nodes.clear();
  for (int i = 0; i < 20; ++i) {
    query.simulation.nodes.push_back({20'000, i % 2 == 0 ? 132 : 124, 1, true, {}});
  }
  ASSERT_TRUE(device_->PrepareKernel(query).ok());
  core::KernelDesc graph = SmallNodes(900, 132, 1'000);
  graph.simulation.nodes[0].duration_ns = 10'000;
  graph.graph()->segment_ns = 100'000;
  ASSERT_TRUE(device_->PrepareKernel(graph).ok());
  graph.graph()->cut = device_->CutOf(graph);
  ASSERT_TRUE(device_->Launch(InSegments(graph, low_)).ok());
  device_->AdvanceTo(1'010'000);
  Graph(high_, query, 2);
  const auto done = RunUntilIdle(*device_);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].launch.value, 2U);
  // In the gap behind each node a turn of 10 us may begin.
  EXPECT_LT(done[0].end_ns - 1'010'000, 20 * (20'500 + 10'000) + 20'000);
}

}  // namespace
}  // namespace gpushare::sim
