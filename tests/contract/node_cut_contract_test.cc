// Graphs of LC work cut at kernel nodes: the pieces are the whole graph, each can be prepared and
// launched by itself, and one behind another on a lane they do the graph's work in its order.

#include <set>
#include <string>
#include <vector>

#include "tests/contract/device_contract.h"

namespace gpushare::contract {
namespace {

using core::NodeKernel;
using core::NodePiece;

constexpr int64_t kNodeNs = 400'000;   // of the kernel, and cut out
constexpr int64_t kSmallNs = 50'000;   // of others
constexpr int64_t kShortNs = 100'000;  // of the kernel, and not worth a cut
constexpr int64_t kLeastNs = 200'000;
constexpr uint32_t kFirstId = 100;

class NodeCutContract : public DeviceContract {
 protected:
  void SetUp() override {
    DeviceContract::SetUp();
    if (testing::Test::HasFatalFailure()) return;
    network_ = Network(kFirstId, "network");
    const absl::Status status = device().PrepareKernel(network_);
    ASSERT_TRUE(status.ok()) << status;
  }
  core::KernelDesc Network(uint32_t id, const std::string& name) {
    core::KernelDesc network = graph();
    network.id = core::KernelId{id};
    network.name = name;
    network.graph()->segment_ns = -1;
    network.graph()->measure_nodes = true;
    network.simulation.nodes = {Small(3), NodeOf(kNodeNs), Small(1), NodeOf(kShortNs),
                                NodeOf(kNodeNs)};
    network.simulation.node_gap_ns = 1'000;
    return network;
  }
  core::GraphNode Small(int32_t repeat) {
    return {.duration_ns = kSmallNs,
            .blocks = capabilities().profile.sm_count,
            .repeat = repeat,
            .demand = {}};
  }
  core::GraphNode NodeOf(int64_t duration_ns) {
    core::GraphNode node = Small(1);
    node.duration_ns = duration_ns;
    // Block tasks of 10 us, eight workers an SM.
    node.blocks = static_cast<int32_t>(duration_ns / 10'000) * 8 * node.blocks;
    node.kernel = kernel().name;
    return node;
  }
  std::vector<NodePiece> Cut(int64_t least_ns) { return Cut(network_, least_ns); }
  std::vector<NodePiece> Cut(const core::KernelDesc& network, int64_t least_ns) {
    const std::vector<NodeKernel> kernels = {{kernel().id, kernel().name, least_ns}};
    auto pieces = device().CutAtNodes(network, kernels);
    EXPECT_TRUE(pieces.ok()) << pieces.status();
    return pieces.ok() ? *std::move(pieces) : std::vector<NodePiece>();
  }

  core::KernelDesc network_;
};

TEST_P(NodeCutContract, WithoutANodeThatIsWorthItAGraphStaysWhole) {
  EXPECT_TRUE(Cut(core::kMaxDurationNs).empty());
  const auto none = device().CutAtNodes(network_, {});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->empty());
}

TEST_P(NodeCutContract, ThePiecesDoTheGraphsWorkInItsOrder) {
  std::vector<NodePiece> pieces = Cut(kLeastNs);
  // A GPU knows nodes by their functions: tests/cuda/graphs/evictable_nodes_test.cc.
  if (pieces.empty()) GTEST_SKIP() << "no node of this device's graph has a registered function";
  ASSERT_EQ(pieces.size(), 4);
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].piece.is_node, i % 2 == 1);
    ASSERT_EQ(pieces[i].part.has_value(), i % 2 == 0);
    EXPECT_GT(pieces[i].piece.solo_ns, 0);
    if (!pieces[i].part.has_value()) continue;
    pieces[i].part->id = core::KernelId{kFirstId + 1 + static_cast<uint32_t>(i)};
    const absl::Status status = device().PrepareKernel(*pieces[i].part);
    ASSERT_TRUE(status.ok()) << status;
  }
  const core::LaneIndex lane = MakeLane();
  std::vector<core::LaunchId> launched;
  for (const NodePiece& piece : pieces) {
    core::LaunchRequest request =
        piece.piece.is_node ? Original(lane, piece.piece.block_tasks) : Graph(lane);
    if (piece.part.has_value()) request.parts[0].work.kernel = &*piece.part;
    launched.push_back(Launch(request));
  }
  WaitForAll();
  ASSERT_EQ(completions().size(), launched.size());
  int64_t sum_ns = 0;
  for (size_t i = 0; i < launched.size(); ++i) {
    EXPECT_EQ(completions()[i].launch.value, launched[i].value) << "out of order";
    EXPECT_EQ(Of(launched[i]).outcome, core::Outcome::kFinished);
    sum_ns += pieces[i].piece.solo_ns;
  }
  EXPECT_EQ(sum_ns, 2 * kNodeNs + 4 * kSmallNs + kShortNs + 2 * 1'000 + 1 * 1'000);
  if (!GetParam().work_takes_time) return;
  const int64_t took_ns = Of(launched.back()).end_ns - Of(launched.front()).start_ns;
  EXPECT_GT(took_ns, sum_ns * 9 / 10);
  EXPECT_LT(took_ns, sum_ns * 5 / 4);  // launches are slower under a sanitizer
}

// A part is registered as any kernel, and the model knows kernels by their names.
TEST_P(NodeCutContract, PartsHaveNamesOfTheirOwnHoweverLongTheNameOfTheirGraph) {
  std::set<std::string> names;
  size_t parts = 0;
  for (uint32_t i = 0; i < 2; ++i) {
    const std::string name = std::string(core::kMaxNameBytes - 2, 'n') + std::to_string(i);
    const core::KernelDesc network = Network(kFirstId + 50 + i, name);
    const absl::Status status = device().PrepareKernel(network);
    ASSERT_TRUE(status.ok()) << status;
    const std::vector<NodePiece> pieces = Cut(network, kLeastNs);
    EXPECT_LE(pieces.size(), core::kMaxPieces);
    for (const NodePiece& piece : pieces) {
      if (!piece.part.has_value()) continue;
      ++parts;
      names.insert(piece.part->name);
      EXPECT_LT(piece.part->name.size(), core::kMaxNameBytes);
    }
  }
  // A GPU knows nodes by their functions: tests/cuda/graphs/evictable_nodes_test.cc.
  if (parts == 0) GTEST_SKIP() << "no node of this device's graph has a registered function";
  EXPECT_EQ(names.size(), parts);
}

INSTANTIATE_TEST_SUITE_P(Devices, NodeCutContract, testing::ValuesIn(DeviceFactories()),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace gpushare::contract
