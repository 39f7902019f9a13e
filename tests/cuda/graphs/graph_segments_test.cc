// How a CUDA graph is cut and copied, with a fake driver.

#include "src/cuda/graphs/graph_segments.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/cuda/driver/places.h"
#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

class GraphSegmentsTest : public testing::Test {
 protected:
  void SetUp() override {
    kernel_.code = core::GraphCode();
    ASSERT_TRUE(places_.Split(132).ok());
    core::PlaceSpec spec;
    spec.groups = 4;
    ASSERT_TRUE(places_.Create(place_ = 1, spec).ok());
  }

  void AddKernels(int count) {
    for (int i = 0; i < count; ++i) graph_.AddKernel();
  }

  SegmentedGraph Cut() {
    auto cut = CutGraph(context_.api(), graph_.handle(), kernel_, room_,
                        [this](const std::vector<CUgraphNode>& nodes) {
                          timed_nodes_ = nodes.size();
                          return absl::StatusOr<std::vector<int64_t>>(times_ns_);
                        });
    EXPECT_TRUE(cut.ok()) << cut.status();
    return *std::move(cut);
  }

  // Segments of one node each for the place, with attributes and parameters as made.
  std::vector<GraphHandle> Build(const SegmentedGraph& cut, core::PlaceIndex place) {
    GraphBinder binder(context_, places_, place);
    std::vector<GraphHandle> out;
    for (size_t i = 0; i < cut.begins.size(); ++i) {
      auto segment = BuildSegments(context_.api(), cut, i, i + 1, binder);
      EXPECT_TRUE(segment.ok()) << segment.status();
      out.push_back(*std::move(segment));
    }
    return out;
  }

  const Context context_{MakeFakeGraphs(), 0, FakePrimary()};
  Places places_{context_};
  core::PlaceIndex place_ = 0;
  core::KernelDesc kernel_;
  SegmentRoom room_;
  FakeGraph graph_;
  std::vector<int64_t> times_ns_;  // of the nodes, as measured
  size_t timed_nodes_ = 0;
};

TEST_F(GraphSegmentsTest, NoNodeIsMeasuredUnlessAsked) {
  AddKernels(100);
  Cut();
  EXPECT_EQ(timed_nodes_, 0U);
}

TEST_F(GraphSegmentsTest, MeasuredNodesFillSegmentsAndALongNodeIsOneOfItsOwn) {
  AddKernels(8);
  kernel_.graph()->measure_nodes = true;
  kernel_.graph()->segment_ns = 100;
  times_ns_ = {40, 40, 40, 900, 10, 60, 30, 20};
  const SegmentedGraph cut = Cut();
  EXPECT_EQ(timed_nodes_, 8U);
  EXPECT_EQ(cut.begins, (std::vector<size_t>{0, 2, 3, 4, 7}));
  EXPECT_EQ(cut.durations_ns, (std::vector<int64_t>{80, 40, 900, 100, 20}));
}

TEST_F(GraphSegmentsTest, MeasuredSegmentsAreLongerWhereTheRoomIsSmall) {
  AddKernels(1'000);
  kernel_.graph()->measure_nodes = true;
  kernel_.graph()->segment_ns = 1;
  times_ns_.assign(1'000, 10);
  room_.places = 164;  // room for 99 segments in each
  const SegmentedGraph cut = Cut();
  EXPECT_LE(cut.begins.size(), room_.SegmentsMax());
  EXPECT_GE(cut.begins.size(), room_.SegmentsMax() / 3);
}

TEST_F(GraphSegmentsTest, AMeasuredGraphOfOneSegmentRunsWhole) {
  AddKernels(3);
  kernel_.graph()->measure_nodes = true;
  kernel_.graph()->segment_ns = 100;
  times_ns_ = {30, 30, 30};
  const SegmentedGraph cut = Cut();
  EXPECT_TRUE(cut.begins.empty());
  EXPECT_EQ(cut.whole_reason, "All 3 nodes fit into a segment.");
}

TEST_F(GraphSegmentsTest, AGraphThatCannotBeCutIsNotExecuted) {
  AddKernels(1);
  kernel_.graph()->measure_nodes = true;
  EXPECT_EQ(Cut().whole_reason, "All 1 nodes fit into a segment.");
  AddKernels(7);
  kernel_.graph()->segment_ns = -1;
  Cut();
  kernel_.graph()->segment_ns = 1;
  room_.places = kMaxSegmentInstances;
  Cut();
  room_.places = 1;
  graph_.Add(CU_GRAPH_NODE_TYPE_HOST);
  Cut();
  EXPECT_EQ(timed_nodes_, 0U);
}

TEST_F(GraphSegmentsTest, ASegmentIsNotLongerThanAskedAtTheMeanDuration) {
  AddKernels(100);
  for (const auto& [solo_ns, segment_ns, nodes] :
       {std::tuple{1'000'000, 39'999, 3}, std::tuple{1'000'000, 40'000, 4},
        std::tuple{1'000'000, 5'000, 1}, std::tuple{700'000, 70'000, 10},
        std::tuple{0, 35'999, 3}}) {
    kernel_.solo_hint_ns = solo_ns;
    kernel_.graph()->segment_ns = segment_ns;
    const SegmentedGraph cut = Cut();
    EXPECT_EQ(cut.EndOf(0), static_cast<size_t>(nodes)) << solo_ns << " in " << segment_ns;
    EXPECT_EQ(cut.begins.size(), static_cast<size_t>((100 + nodes - 1) / nodes));
  }
}

TEST_F(GraphSegmentsTest, ManyPlacesMakeSegmentsLongerInsteadOfFillingTheDevice) {
  AddKernels(6'000);
  kernel_.graph()->segment_ns = 1;
  EXPECT_EQ(Cut().begins.size(), 3'000U);  // 4,096 at most, and all but the last of one size
  room_.places = 29;
  const size_t segments = Cut().begins.size();
  EXPECT_LE(segments * room_.places, kMaxSegmentInstances / 2);
  EXPECT_GT(segments * room_.places, kMaxSegmentInstances / 2 * 9 / 10);
  room_.used = kMaxSegmentInstances - 29 * 20;
  EXPECT_EQ(Cut().begins.size(), 10U);
}

TEST_F(GraphSegmentsTest, AGraphWithoutRoomRunsWholeAndTellsWhy) {
  AddKernels(100);
  kernel_.graph()->segment_ns = 1;
  room_.places = 29;
  room_.used = kMaxSegmentInstances - 29 * 3;
  const SegmentedGraph cut = Cut();
  EXPECT_TRUE(cut.begins.empty());
  EXPECT_EQ(
      cut.whole_reason,
      "Two segments in 29 places take more than half of the 87 instances of segments that are "
      "left of the device's 32768.");
  room_.used = 2 * kMaxSegmentInstances;
  EXPECT_TRUE(Cut().begins.empty());
}

TEST_F(GraphSegmentsTest, AKernelThatACopyWouldChangeKeepsTheGraphWhole) {
  kernel_.graph()->segment_ns = 1;
  const auto reason_with = [this](CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
    graph_.nodes.clear();
    graph_.edges.clear();
    AddKernels(3);
    graph_.nodes[1]->attributes[id] = value;
    const SegmentedGraph cut = Cut();
    EXPECT_EQ(cut.begins.empty(), !cut.whole_reason.empty());
    return cut.whole_reason;
  };
  CUlaunchAttributeValue value = {};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  EXPECT_EQ(
      reason_with(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, value),
      "The kernel of node 1 can be updated from the device, which a copy of the node would lose.");
  value = {};
  value.preferredClusterDim.x = 4;
  value.preferredClusterDim.y = value.preferredClusterDim.z = 1;
  EXPECT_NE(reason_with(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, value), "");
  value = {};
  value.memSyncDomainMap.remote = 3;
  EXPECT_NE(reason_with(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, value), "");
  value = {};
  value.nvlinkUtilCentricScheduling = 1;
  EXPECT_NE(reason_with(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, value), "");
}

TEST_F(GraphSegmentsTest, AKernelInAChildGraphThatACopyWouldChangeKeepsTheGraphWhole) {
  kernel_.graph()->segment_ns = 1;
  AddKernels(2);
  FakeNode& node = graph_.Add(CU_GRAPH_NODE_TYPE_GRAPH);
  node.child = std::make_unique<FakeGraph>();
  CUlaunchAttributeValue value = {};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  node.child->AddKernel().attributes[CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE] = value;
  EXPECT_NE(Cut().whole_reason, "");
}

// A library sets the preferred size to the size, which changes nothing.
TEST_F(GraphSegmentsTest, AKernelInClustersIsCutAround) {
  kernel_.graph()->segment_ns = 1;
  AddKernels(3);
  CUlaunchAttributeValue value = {};
  value.clusterDim.x = 2;
  value.clusterDim.y = value.clusterDim.z = 1;
  graph_.nodes[1]->attributes[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION] = value;
  graph_.nodes[1]->attributes[CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION] = value;
  EXPECT_EQ(Cut().begins.size(), 3U);
}

TEST_F(GraphSegmentsTest, TheAttributesOfAKernelAreThoseOfItsCopyInAPlace) {
  kernel_.graph()->segment_ns = 1;
  AddKernels(2);
  auto& attributes = graph_.nodes[1]->attributes;
  attributes[CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW].accessPolicyWindow.num_bytes = 4096;
  attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = 1;
  attributes[CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION].clusterDim = {2, 1, 1};
  attributes[CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE]
      .clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = -3;
  attributes[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN].memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
  attributes[CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT].sharedMemCarveout = 50;
  const SegmentedGraph cut = Cut();
  for (const core::PlaceIndex place : {core::kWholeDevice, place_}) {
    const std::vector<GraphHandle> segments = Build(cut, place);
    ASSERT_EQ(segments.size(), 2U);
    const FakeNode& plain = *GraphOf(segments[0].get()).nodes[0];
    EXPECT_TRUE(plain.attributes.empty());
    const FakeNode& node = *GraphOf(segments[1].get()).nodes[0];
    EXPECT_EQ(node.kernel.ctx, places_.place(place).context);
    ASSERT_EQ(node.attributes.size(), attributes.size());
    for (const auto& [id, value] : attributes) {
      const auto copied = node.attributes.find(id);
      ASSERT_NE(copied, node.attributes.end()) << id;
      EXPECT_EQ(std::string(copied->second.pad, sizeof(value)),
                std::string(value.pad, sizeof(value)))
          << id;
    }
  }
}

TEST_F(GraphSegmentsTest, AProgrammaticEdgeIsAFullOneInsideASegmentAndStreamOrderAcrossACut) {
  AddKernels(4);
  for (FakeEdge& edge : graph_.edges) {
    edge.data.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    edge.data.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  }
  kernel_.solo_hint_ns = 4'000;
  kernel_.graph()->segment_ns = 2'000;
  const std::vector<GraphHandle> segments = Build(Cut(), place_);
  ASSERT_EQ(segments.size(), 2U);
  for (const GraphHandle& segment : segments) {
    const FakeGraph& part = GraphOf(segment.get());
    ASSERT_EQ(part.edges.size(), 1U);
    EXPECT_EQ(part.edges[0].data.type, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
    EXPECT_EQ(part.edges[0].data.from_port, CU_GRAPH_KERNEL_NODE_PORT_DEFAULT);
  }
}

TEST_F(GraphSegmentsTest, CopiesFillsAndChildGraphsAreThoseOfTheGraph) {
  kernel_.graph()->segment_ns = 1;
  FakeNode& copy = graph_.Add(CU_GRAPH_NODE_TYPE_MEMCPY);
  copy.copy.WidthInBytes = 64;
  copy.copy.Height = 3;
  copy.copy.dstPitch = 128;
  FakeNode& fill = graph_.Add(CU_GRAPH_NODE_TYPE_MEMSET);
  fill.fill.width = 5;
  fill.fill.elementSize = 4;
  fill.fill.value = 9;
  FakeNode& nested = graph_.Add(CU_GRAPH_NODE_TYPE_GRAPH);
  nested.child = std::make_unique<FakeGraph>();
  nested.child->AddKernel();
  nested.child->AddKernel().attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = -2;
  graph_.edges = {{0, 1, {}}, {1, 2, {}}};
  const std::vector<GraphHandle> segments = Build(Cut(), place_);
  ASSERT_EQ(segments.size(), 3U);
  const FakeNode& copied = *GraphOf(segments[0].get()).nodes[0];
  EXPECT_EQ(copied.copy.WidthInBytes, 64U);
  EXPECT_EQ(copied.copy.Height, 3U);
  EXPECT_EQ(copied.copy.dstPitch, 128U);
  EXPECT_EQ(copied.context, places_.place(place_).context);
  const FakeNode& filled = *GraphOf(segments[1].get()).nodes[0];
  EXPECT_EQ(filled.fill.width, 5U);
  EXPECT_EQ(filled.fill.elementSize, 4U);
  EXPECT_EQ(filled.fill.value, 9U);
  EXPECT_EQ(filled.context, places_.place(place_).context);
  const FakeGraph& child = *GraphOf(segments[2].get()).nodes[0]->child;
  ASSERT_EQ(child.nodes.size(), 2U);
  EXPECT_EQ(child.edges.size(), 1U);
  EXPECT_EQ(child.nodes[1]->kernel.ctx, places_.place(place_).context);
  EXPECT_EQ(child.nodes[1]->attributes.at(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority, -2);
  EXPECT_EQ(nested.child->nodes[1]->kernel.ctx, FakePrimary())
      << "The caller's graph is unchanged.";
  EXPECT_EQ(FakeGraphs().graphs.size(), 3U) << "The clone of the child graph is destroyed.";
}

TEST_F(GraphSegmentsTest, BranchesComeInTheOrderOfTheirCreation) {
  kernel_.graph()->segment_ns = 1;
  for (int i = 0; i < 4; ++i) graph_.Add(CU_GRAPH_NODE_TYPE_EMPTY);
  graph_.edges = {{3, 0, {}}, {1, 2, {}}};
  const SegmentedGraph cut = Cut();
  std::vector<size_t> order;
  for (CUgraphNode node : cut.nodes) {
    order.push_back(graph_.PositionOf(reinterpret_cast<FakeNode*>(node)));
  }
  EXPECT_EQ(order, (std::vector<size_t>{1, 2, 3, 0}));
}

}  // namespace
}  // namespace gpushare::cuda
