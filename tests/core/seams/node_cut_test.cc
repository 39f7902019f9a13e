// Where an LC graph is cut at kernel nodes: from which gain on, at which nodes, into which parts.

#include "src/core/seams/node_cut.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/limits.h"

namespace gpushare::core {
namespace {

constexpr KernelId kGemm{7};
constexpr KernelId kOther{8};
constexpr int64_t kCutNs = 10'000;

FusedKernelDesc Pair(double load_ratio, double duration_ratio) {
  FusedKernelDesc fused;
  fused.tensor_part = kGemm;
  fused.cuda_part = kOther;
  fused.opportune_load_ratio = load_ratio;
  fused.opportune_duration_ratio = duration_ratio;
  return fused;
}

KernelDesc GraphOf(const std::vector<GraphNode>& nodes) {
  KernelDesc graph;
  graph.name = "network";
  graph.code = GraphCode{.segment_ns = -1, .measure_nodes = true};
  graph.simulation.present = true;
  graph.simulation.nodes = nodes;
  graph.simulation.node_gap_ns = 1'000;
  return graph;
}
GraphNode Gemm(int64_t duration_ns) {
  return {.duration_ns = duration_ns, .blocks = 1056, .demand = {}, .kernel = "gemm"};
}
GraphNode Small(int32_t repeat = 1) {
  return {.duration_ns = 5'000, .blocks = 132, .repeat = repeat, .demand = {}};
}

TEST(NodeCut, ANodeHasToGainWhatACutCosts) {
  // A quarter of the node is saved.
  EXPECT_EQ(LeastNodeNs(Pair(0.5, 1.25), true, kCutNs), kCutNs * 4);
  // As the CUDA-core part it takes half of the Tensor-core part's time.
  EXPECT_EQ(LeastNodeNs(Pair(0.5, 1.25), false, kCutNs), kCutNs * 2);
  EXPECT_EQ(LeastNodeNs(Pair(0.5, 1.5), true, kCutNs), kNever);
  EXPECT_EQ(LeastNodeNs(Pair(0.5, 1.8), true, kCutNs), kNever);
  EXPECT_EQ(LeastNodeNs(Pair(0, 1), true, kCutNs), kNever);
}

TEST(NodeCut, TheBestFusedKernelOfAKernelCounts) {
  std::vector<NodeKernel> kernels;
  AddNodeKernel(Pair(0.5, 1.5), kGemm, "gemm", kCutNs, kernels);
  EXPECT_TRUE(kernels.empty());
  AddNodeKernel(Pair(0.5, 1.375), kGemm, "gemm", kCutNs, kernels);
  AddNodeKernel(Pair(0.5, 1.25), kGemm, "gemm", kCutNs, kernels);
  ASSERT_EQ(kernels.size(), 1);
  EXPECT_EQ(kernels[0].least_ns, kCutNs * 4);
}

TEST(NodeCut, PartsAndNodesAreTheWholeGraph) {
  const KernelDesc graph =
      GraphOf({Small(3), Gemm(50'000), Small(), Gemm(90'000), Gemm(80'000), Small(2)});
  const std::vector<NodeKernel> kernels = {{kGemm, "gemm", 60'000}};
  const std::vector<NodePiece> pieces = PiecesOfRecord(graph, kernels);
  ASSERT_EQ(pieces.size(), 4);
  // The short GEMM stays in the first part.
  ASSERT_TRUE(pieces[0].part.has_value());
  EXPECT_EQ(pieces[0].part->name, "network, nodes 0 to 4");
  EXPECT_EQ(pieces[0].part->kind(), TaskKind::kGraph);
  EXPECT_EQ(pieces[0].part->graph()->segment_ns, -1);
  ASSERT_EQ(pieces[0].part->simulation.nodes.size(), 3);
  EXPECT_EQ(pieces[0].part->simulation.nodes[0].repeat, 3);
  EXPECT_EQ(pieces[0].part->simulation.node_gap_ns, 1'000);
  EXPECT_EQ(pieces[0].piece.solo_ns, 3 * 5'000 + 50'000 + 5'000 + 4 * 1'000);
  for (const size_t node : {size_t{1}, size_t{2}}) {
    EXPECT_FALSE(pieces[node].part.has_value());
    EXPECT_TRUE(pieces[node].piece.is_node);
    EXPECT_EQ(pieces[node].piece.kernel, kGemm);
    EXPECT_EQ(pieces[node].piece.block_tasks, 1056);
  }
  EXPECT_EQ(pieces[1].piece.solo_ns, 90'000);
  EXPECT_EQ(pieces[2].piece.solo_ns, 80'000);
  EXPECT_EQ(pieces[3].part->name, "network, nodes 7 to 8");
  EXPECT_EQ(pieces[3].piece.solo_ns, 2 * 5'000 + 1'000);
}

TEST(NodeCut, ANodeThatIsRepeatedIsCutAtEachRepeat) {
  GraphNode layers = Gemm(90'000);
  layers.repeat = 3;
  const std::vector<NodePiece> pieces =
      PiecesOfRecord(GraphOf({layers}), std::vector<NodeKernel>{{kGemm, "gemm", 60'000}});
  ASSERT_EQ(pieces.size(), 3);
  for (const NodePiece& piece : pieces) EXPECT_TRUE(piece.piece.is_node);
}

TEST(NodeCut, AGraphWithoutSuchNodesStaysWhole) {
  const std::vector<NodeKernel> kernels = {{kGemm, "gemm", 60'000}};
  EXPECT_TRUE(PiecesOfRecord(GraphOf({Small(), Gemm(50'000)}), kernels).empty());
  EXPECT_TRUE(PiecesOfRecord(GraphOf({Small(), Gemm(90'000)}), {}).empty());
  EXPECT_TRUE(PiecesOfRecord(GraphOf({}), kernels).empty());
}

TEST(NodeCut, TheLongestNodesAreCutOutWhereThereAreTooMany) {
  std::vector<GraphNode> nodes;
  for (int i = 0; i < 2 * kMaxCutNodes; ++i) nodes.push_back(Gemm(100'000 + i * 1'000));
  const std::vector<NodePiece> pieces =
      PiecesOfRecord(GraphOf(nodes), std::vector<NodeKernel>{{kGemm, "gemm", 60'000}});
  ASSERT_EQ(pieces.size(), kMaxCutNodes + 1);
  EXPECT_TRUE(pieces[0].part.has_value());
  EXPECT_EQ(pieces[1].piece.solo_ns, 100'000 + kMaxCutNodes * 1'000);
}

TEST(NodeCut, TheNameOfAPartIsAKernelsName) {
  KernelDesc graph = GraphOf({Small(), Gemm(90'000)});
  for (size_t length = 1; length < kMaxNameBytes; ++length) {
    graph.name = std::string(length, 'n');
    const std::string name = PartOf(graph, 0, 1).name;
    EXPECT_LT(name.size(), kMaxNameBytes) << length;
    EXPECT_NE(name, PartOf(graph, 0, 2).name) << length;
    EXPECT_EQ(name, PartOf(graph, 0, 1).name) << length;
  }
}

// Names tell the model which kernel learned what.
TEST(NodeCut, PartsOfTwoGraphsHaveTwoNames) {
  KernelDesc graph = GraphOf({Small(), Gemm(90'000)});
  KernelDesc other = graph;
  graph.name = std::string(kMaxNameBytes - 2, 'n') + "a";
  other.name = std::string(kMaxNameBytes - 2, 'n') + "b";
  EXPECT_NE(PartOf(graph, 0, 1).name, PartOf(other, 0, 1).name);
}

}  // namespace
}  // namespace gpushare::core
