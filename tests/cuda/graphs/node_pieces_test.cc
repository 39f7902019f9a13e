// Into which pieces a CUDA graph of LC work is cut, with a fake driver.

#include "src/cuda/graphs/node_pieces.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/cuda/driver/places.h"
#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

const CUfunction kGemm = reinterpret_cast<CUfunction>(intptr_t{11});      // NOLINT
const CUfunction kWorker = reinterpret_cast<CUfunction>(intptr_t{12});    // NOLINT
const CUfunction kOfModule = reinterpret_cast<CUfunction>(intptr_t{13});  // NOLINT
constexpr core::KernelId kGemmId{5};

// The device is lost in the call that makes so many more graphs; 0: in none.
int lost_at = 0;

// Of (uint32_t, uint64_t): the second one is aligned, as in C.
struct Parameter {
  size_t offset;
  size_t bytes;
};
constexpr std::array<Parameter, 2> kParameters = {{{0, 4}, {8, 8}}};

DriverApi ApiWithFunctions() {
  DriverApi api = MakeFakeGraphs();
  lost_at = 0;
  static const auto create = api.cuGraphCreate;
  api.cuGraphCreate = [](CUgraph* graph, unsigned int flags) {
    if (lost_at > 0 && --lost_at == 0) return CUDA_ERROR_LAUNCH_FAILED;
    return create(graph, flags);
  };
  api.cuFuncGetName = [](const char** name, CUfunction /*function*/) {
    *name = "gemm";
    return CUDA_SUCCESS;
  };
  api.cuKernelGetFunction = [](CUfunction* function, CUkernel /*kernel*/) {
    *function = nullptr;  // nobody registered the others
    return CUDA_SUCCESS;
  };
  api.cuFuncGetAttribute = [](int* value, CUfunction_attribute, CUfunction /*function*/) {
    *value = 256;
    return CUDA_SUCCESS;
  };
  api.cuFuncGetParamInfo = [](CUfunction function, size_t index, size_t* offset, size_t* bytes) {
    const size_t headers = function == kWorker ? 1 : 0;
    if (index < headers) {
      *offset = 0;
      *bytes = 136;
      return CUDA_SUCCESS;
    }
    if (index - headers >= kParameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = kParameters[index - headers].offset + 136 * headers;
    *bytes = kParameters[index - headers].bytes;
    return CUDA_SUCCESS;
  };
  return api;
}

class NodePiecesTest : public testing::Test {
 protected:
  void SetUp() override {
    network_.name = "network";
    network_.code =
        core::GraphCode{.segment_ns = -1, .measure_nodes = true, .warm_memory = {{0x1000, 64}}};
    network_.simulation.present = true;
    twin_.id = kGemmId;
    twin_.kernel.worker.function = kWorker;
    ASSERT_TRUE(twin_.kernel.original.parameters.Read(context_.api(), kGemm, 0, "gemm").ok());
    twin_.kernel.block_x = 128;
    twin_.entry = "gemm";
    twin_.original = kOfModule;
    twin_.library = std::make_shared<KernelLibrary>(context_.api(), nullptr);
    twin_.library->Leak();
  }
  void AddGemm(int64_t ns) {
    FakeNode& node = graph_.AddKernel();
    node.kernel.kern = nullptr;
    node.kernel.func = kGemm;
    node.kernel.gridDimX = 40;
    node.kernel.gridDimY = 3;
    node.kernel.gridDimZ = 1;
    node.kernel.blockDimX = 128;
    node.kernel.blockDimY = node.kernel.blockDimZ = 1;
    node.kernel.kernelParams = parameters_.data();
    times_ns_.push_back(ns);
  }
  void AddOther(int64_t ns) {
    graph_.AddKernel();
    times_ns_.push_back(ns);
  }
  CutPieces Cut(int64_t least_ns = 100'000) {
    auto cut = TryCut(least_ns);
    EXPECT_TRUE(cut.ok()) << cut.status();
    return cut.ok() ? *std::move(cut) : CutPieces();
  }
  absl::StatusOr<CutPieces> TryCut(int64_t least_ns) {
    absl::StatusOr<SegmentedGraph> sorted = SortGraph(context_.api(), graph_.handle(), false);
    EXPECT_TRUE(sorted.ok()) << sorted.status();
    EXPECT_TRUE(sorted->begins.empty());
    EXPECT_EQ(sorted->whole_reason, "");
    GraphBinder binder(context_, places_, core::kWholeDevice);
    const std::vector<core::NodeKernel> kernels = {{kGemmId, "gemm", least_ns}};
    return CutAtNodes(
        context_.api(), network_, *std::move(sorted), times_ns_, kernels,
        [this](CUfunction function) {
          return function == kGemm ? std::optional<WorkerTwin>(twin_) : std::nullopt;
        },
        binder);
  }
  void Connect(const std::vector<std::pair<size_t, size_t>>& edges) {
    graph_.edges.clear();
    for (const auto& [from, to] : edges) graph_.edges.push_back({from, to, {}});
  }

  const Context context_{ApiWithFunctions(), 0, FakePrimary()};
  Places places_{context_};
  core::KernelDesc network_;
  FakeGraph graph_;
  std::vector<int64_t> times_ns_;
  uint32_t count_ = 77;
  uint64_t pointer_ = 0x1234'5678'9abc;
  std::array<void*, 2> parameters_{&count_, &pointer_};
  WorkerTwin twin_;
};

TEST_F(NodePiecesTest, PartsAndNodesFollowOneAnother) {
  AddOther(10'000);
  AddOther(20'000);
  AddGemm(300'000);
  AddGemm(400'000);
  AddOther(30'000);
  AddGemm(50'000);  // too short
  const CutPieces cut = Cut();
  ASSERT_EQ(cut.pieces.size(), 4U);
  ASSERT_EQ(cut.parts.size(), 2U);
  EXPECT_EQ(cut.pieces[0].part->graph()->graph, cut.parts[0].get());
  EXPECT_EQ(GraphOf(cut.parts[0].get()).nodes.size(), 2U);
  EXPECT_EQ(GraphOf(cut.parts[0].get()).edges.size(), 1U);
  EXPECT_EQ(cut.pieces[0].piece.solo_ns, 30'000);
  EXPECT_EQ(cut.pieces[0].part->solo_hint_ns, 30'000);
  EXPECT_FALSE(cut.pieces[0].part->confinable);
  EXPECT_EQ(cut.pieces[0].part->graph()->warm_memory.size(), 1U);
  for (const size_t node : {size_t{1}, size_t{2}}) {
    EXPECT_TRUE(cut.pieces[node].piece.is_node);
    EXPECT_EQ(cut.pieces[node].piece.kernel, kGemmId);
    EXPECT_EQ(cut.pieces[node].piece.block_tasks, 120);
    EXPECT_EQ(cut.pieces[node].piece.grid, (std::array<int32_t, 3>{40, 3, 1}));
  }
  EXPECT_EQ(cut.pieces[1].piece.solo_ns, 300'000);
  EXPECT_EQ(cut.pieces[2].piece.solo_ns, 400'000);
  EXPECT_EQ(GraphOf(cut.parts[1].get()).nodes.size(), 2U);
  EXPECT_EQ(cut.pieces[3].piece.solo_ns, 80'000);
  EXPECT_TRUE(cut.pieces[3].part->graph()->warm_memory.empty()) << "once a query";
}

TEST_F(NodePiecesTest, ANodesArgumentsArePackedAsItsFunctionReadsThem) {
  AddGemm(300'000);
  AddOther(10'000);
  const CutPieces cut = Cut();
  ASSERT_EQ(cut.pieces.size(), 2U);
  // The application may destroy its graph: the piece has copies.
  const std::vector<std::byte>& arguments = cut.pieces[0].piece.arguments;
  pointer_ = count_ = 0;
  ASSERT_EQ(arguments.size(), 16U);
  uint32_t count = 0;
  uint64_t pointer = 0;
  std::memcpy(&count, arguments.data(), sizeof(count));
  std::memcpy(&pointer, arguments.data() + 8, sizeof(pointer));
  EXPECT_EQ(count, 77U);
  EXPECT_EQ(pointer, 0x1234'5678'9abcU);
}

TEST_F(NodePiecesTest, WithoutANodeThatIsWorthItNothingIsMade) {
  AddOther(10'000);
  AddGemm(300'000);
  EXPECT_TRUE(Cut(400'000).pieces.empty());
  EXPECT_EQ(FakeGraphs().graphs.size(), 0U);
}

// Another block than the kernel's: a launch of the kernel would not be the node's.
TEST_F(NodePiecesTest, ANodeOfAnotherShapeStaysInItsPart) {
  AddGemm(300'000);
  AddGemm(300'000);
  graph_.nodes[0]->kernel.blockDimX = 64;
  const CutPieces cut = Cut();
  ASSERT_EQ(cut.pieces.size(), 2U);
  EXPECT_FALSE(cut.pieces[0].piece.is_node);
  EXPECT_TRUE(cut.pieces[1].piece.is_node);
}

// A cut would run one behind the other.
TEST_F(NodePiecesTest, NodesOfParallelBranchesStayInTheirPart) {
  AddOther(10'000);
  AddGemm(300'000);
  AddGemm(300'000);
  AddOther(10'000);
  AddGemm(400'000);
  Connect({{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}});
  CutPieces cut = Cut();
  ASSERT_EQ(cut.pieces.size(), 2U);
  EXPECT_FALSE(cut.pieces[0].piece.is_node);
  EXPECT_EQ(GraphOf(cut.parts[0].get()).edges.size(), 4U) << "its branches stay";
  EXPECT_EQ(cut.pieces[1].piece.solo_ns, 400'000);
  // A branch of its own, without an edge to the last one.
  Connect({{0, 1}, {0, 2}, {2, 3}, {3, 4}});
  EXPECT_TRUE(Cut().pieces.empty());
  // An edge past a node that is ordered with all of them anyway.
  Connect({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 2}, {0, 4}});
  EXPECT_EQ(Cut().pieces.size(), 5U);
}

// After the loss no call is made: what was made before it stays.
TEST_F(NodePiecesTest, AfterTheLossOfTheDeviceNoGraphIsDestroyed) {
  for (int gemm = 0; gemm < 3; ++gemm) {
    AddOther(10'000);
    AddGemm(300'000);
  }
  AddOther(10'000);
  lost_at = 3;
  EXPECT_EQ(TryCut(100'000).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(FakeGraphs().graphs.size(), 2U);
  for (FakeGraph* graph : FakeGraphs().graphs) delete graph;
  FakeGraphs().graphs.clear();
}

}  // namespace
}  // namespace gpushare::cuda
