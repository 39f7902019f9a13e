// Where a record is cut: the length of a segment, long nodes, and the bound on their number.

#include "src/core/seams/graph_cut.h"

#include "gtest/gtest.h"
#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

KernelDesc GraphOf(const std::vector<GraphNode>& nodes, int64_t gap_ns = 0) {
  KernelDesc graph;
  graph.name = "graph";
  graph.code = GraphCode();
  graph.simulation.present = true;
  graph.simulation.nodes = nodes;
  graph.simulation.node_gap_ns = gap_ns;
  return graph;
}

std::vector<int64_t> BeginsOf(const KernelDesc& graph) {
  return CutRecord(graph.simulation, SegmentNsOf(graph)).begins;
}

TEST(GraphCut, ASegmentHoldsAsManyNodesAsFit) {
  const KernelDesc graph = GraphOf({{.duration_ns = 30'000, .repeat = 10, .demand = {}}});
  EXPECT_EQ(BeginsOf(graph), (std::vector<int64_t>{0, 3, 6, 9}));
  EXPECT_EQ(CutOfRecord(graph).segments, 4);
  EXPECT_EQ(CutOfRecord(graph).longest_ns, 90'000);
  EXPECT_EQ(CutOfRecord(graph).whole_reason, "");
}

TEST(GraphCut, TheGapsBetweenNodesCount) {
  const KernelDesc graph = GraphOf({{.duration_ns = 50'000, .repeat = 4, .demand = {}}}, 500);
  EXPECT_EQ(BeginsOf(graph), (std::vector<int64_t>{0, 1, 2, 3}));
}

// Two nodes and the gap between them fill a segment.
TEST(GraphCut, TheGapBehindASegmentDoesNotCount) {
  const KernelDesc graph = GraphOf({{.duration_ns = 49'750, .repeat = 4, .demand = {}}}, 500);
  EXPECT_EQ(BeginsOf(graph), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(CutOfRecord(graph).longest_ns, 100'000);
}

TEST(GraphCut, ALongNodeIsASegmentOfItsOwn) {
  const KernelDesc graph = GraphOf({{.duration_ns = 10'000, .demand = {}},
                                    {.duration_ns = 400'000, .repeat = 2, .demand = {}},
                                    {.duration_ns = 10'000, .repeat = 3, .demand = {}}});
  EXPECT_EQ(BeginsOf(graph), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(CutOfRecord(graph).longest_ns, 400'000);
}

// Of nodes with a twin: one that fits into a segment, a long one, one of a single block task.
TEST(GraphCut, ALongNodeWithATwinIsEvictable) {
  KernelDesc graph =
      GraphOf({{.duration_ns = 90'000, .demand = {}, .block_task_ns = 10'000},
               {.duration_ns = 400'000, .repeat = 2, .demand = {}, .block_task_ns = 20'000},
               {.duration_ns = 400'000, .demand = {}, .block_task_ns = 400'000},
               {.duration_ns = 400'000, .demand = {}}});
  const RecordCut cut = CutRecord(graph.simulation, SegmentNsOf(graph));
  EXPECT_EQ(cut.block_tasks_ns, (std::vector<int64_t>{0, 20'000, 20'000, 0, 0}));
  EXPECT_EQ(CutOfRecord(graph).evictable_segments, 0) << "nobody measured its nodes";
  graph.graph()->measure_nodes = true;
  EXPECT_EQ(CutOfRecord(graph).evictable_segments, 2);
  EXPECT_EQ(CutOfRecord(graph).blocking.longest_ns(), 400'000);
  graph.simulation.nodes.resize(2);
  EXPECT_EQ(CutOfRecord(graph).blocking.longest_ns(), 110'000) << "one block task is behind it";
  EXPECT_EQ(CutOfRecord(graph).longest_ns, 400'000);
}

TEST(GraphCut, TheOptionSetsTheLength) {
  KernelDesc graph = GraphOf({{.duration_ns = 10'000, .repeat = 10, .demand = {}}});
  EXPECT_EQ(CutOfRecord(graph).segments, 1);
  EXPECT_EQ(CutOfRecord(graph).whole_reason,
            "The graph takes 100000 ns, and a segment has 100000 ns.");
  graph.graph()->segment_ns = 25'000;
  EXPECT_EQ(CutOfRecord(graph).segments, 5);
  graph.graph()->segment_ns = -1;
  EXPECT_EQ(CutOfRecord(graph).segments, 1);
}

TEST(GraphCut, NoGraphHasMoreSegmentsThanTheBound) {
  KernelDesc graph = GraphOf({{.duration_ns = 150'000, .repeat = 1 << 20, .demand = {}}});
  EXPECT_LE(CutOfRecord(graph).segments, kMaxSegments);
  EXPECT_GT(CutOfRecord(graph).segments, kMaxSegments / 4);
  graph.simulation.nodes.assign(kMaxGraphNodes,
                                {.duration_ns = kMaxDurationNs, .repeat = 1 << 20, .demand = {}});
  EXPECT_LE(CutOfRecord(graph).segments, kMaxSegments);
  graph.graph()->segment_ns = 1;
  EXPECT_LE(CutOfRecord(graph).segments, kMaxSegments);
}

}  // namespace
}  // namespace gpushare::core
