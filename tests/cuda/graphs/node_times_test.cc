// What measuring the nodes of a graph runs and what it leaves, with a fake driver.

#include "src/cuda/graphs/node_times.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/cuda/driver/context.h"
#include "src/cuda/driver/places.h"
#include "tests/cuda/graphs/fake_graphs.h"

namespace gpushare::cuda {
namespace {

// Events are their number, from 1 on.
struct FakeTimes {
  int events_made = 0;
  int events_alive = 0;
  int launches = 0;
  int waits = 0;
  int calls = 0;          // of those that may fail
  int fails_at = -1;      // the number of the call that fails; -1: none does
  std::string chain;      // of the instantiated graph: E for an event, K for a kernel
  bool in_order = false;  // each of its nodes waits for the one before it alone
  // ms behind each event, by run.
  std::vector<std::vector<float>> behind_ms;
};
FakeTimes& Fake() {
  static FakeTimes fake;
  return fake;
}

bool Fails() { return Fake().calls++ == Fake().fails_at; }

intptr_t NumberOf(CUevent event) { return reinterpret_cast<intptr_t>(event); }

void NoteChain(const FakeGraph& graph) {
  Fake().chain.clear();
  for (const auto& node : graph.nodes) {
    Fake().chain += node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? 'E' : 'K';
  }
  Fake().in_order = graph.edges.size() + 1 == graph.nodes.size();
  for (size_t i = 0; i < graph.edges.size(); ++i) {
    Fake().in_order &= graph.edges[i].from == i && graph.edges[i].to == i + 1;
  }
}

void FillEvents(DriverApi& api) {
  api.cuEventCreate = [](CUevent* event, unsigned int flags) {
    if (Fails() || flags != CU_EVENT_DEFAULT) return CUDA_ERROR_OUT_OF_MEMORY;
    ++Fake().events_alive;
    *event = reinterpret_cast<CUevent>(intptr_t{++Fake().events_made});  // NOLINT: never followed
    return CUDA_SUCCESS;
  };
  api.cuEventDestroy = [](CUevent /*event*/) {
    --Fake().events_alive;
    return CUDA_SUCCESS;
  };
  api.cuEventElapsedTime = [](float* ms, CUevent from, CUevent to) {
    if (Fails() || NumberOf(to) != NumberOf(from) + 1) return CUDA_ERROR_INVALID_HANDLE;
    *ms = Fake().behind_ms[static_cast<size_t>(Fake().launches - 1)]
                          [static_cast<size_t>(NumberOf(from) - 1)];
    return CUDA_SUCCESS;
  };
}

DriverApi FakeDriver() {
  Fake() = FakeTimes();
  DriverApi api = MakeFakeGraphs();
  FillEvents(api);
  api.cuGraphAddEventRecordNode = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* behind,
                                     size_t count, CUevent /*event*/) {
    if (Fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    FakeGraph& target = GraphOf(graph);
    FakeNode& added = target.Add(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    *node = added.handle();
    for (size_t i = 0; i < count; ++i) {
      target.edges.push_back({target.PositionOf(reinterpret_cast<FakeNode*>(behind[i])),
                              target.PositionOf(&added),
                              {}});
    }
    return CUDA_SUCCESS;
  };
  static const auto instantiate = api.cuGraphInstantiate;
  api.cuGraphInstantiate = [](CUgraphExec* instance, CUgraph graph, unsigned long long flags) {
    if (Fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    NoteChain(GraphOf(graph));
    return instantiate(instance, graph, flags);
  };
  api.cuGraphLaunch = [](CUgraphExec /*instance*/, CUstream /*stream*/) {
    if (Fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    ++Fake().launches;
    return CUDA_SUCCESS;
  };
  api.cuStreamQuery = [](CUstream /*stream*/) {
    if (Fails()) return CUDA_ERROR_LAUNCH_FAILED;
    ++Fake().waits;
    return CUDA_SUCCESS;
  };
  return api;
}

class NodeTimesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 3; ++i) graph_.AddKernel();
    Fake().behind_ms = {{0.5F, 0.004F, 0.9F}, {0.25F, 0.006F, 0.9F}};
  }

  absl::StatusOr<std::vector<int64_t>> Measure() {
    std::vector<CUgraphNode> nodes;
    for (const auto& node : graph_.nodes) nodes.push_back(node->handle());
    GraphBinder binder(context_, places_, core::kWholeDevice);
    return MeasureNodes(context_.api(), nodes, binder, nullptr);
  }

  static bool NothingIsLeft() {
    return Fake().events_alive == 0 && FakeGraphs().graphs.empty() &&
           FakeGraphs().instances.empty();
  }

  const Context context_{FakeDriver(), 0, FakePrimary()};
  Places places_{context_};
  FakeGraph graph_;
};

TEST_F(NodeTimesTest, TheNodesRunOneAfterAnotherWithAnEventOnEachSide) {
  ASSERT_TRUE(Measure().ok());
  EXPECT_EQ(Fake().chain, "EKEKEKE");
  EXPECT_TRUE(Fake().in_order);
}

TEST_F(NodeTimesTest, TheShorterOfTwoRunsCounts) {
  const auto times_ns = Measure().value();
  EXPECT_EQ(times_ns, (std::vector<int64_t>{250'000, 4'000, 900'000}));
  EXPECT_EQ(Fake().launches, 2);
  EXPECT_EQ(Fake().waits, 2) << "events are read behind each run";
  EXPECT_TRUE(NothingIsLeft());
}

TEST_F(NodeTimesTest, ANodeWithoutDurationTakesANanosecond) {
  Fake().behind_ms = {{0, 0, 0}, {0, 0, 0}};
  const auto times_ns = Measure().value();
  EXPECT_EQ(times_ns, (std::vector<int64_t>(3, 1)));
}

TEST_F(NodeTimesTest, AnErrorOfAnyCallIsReportedAndLeavesNothing) {
  ASSERT_TRUE(Measure().ok());
  const int calls = Fake().calls;
  // Four events, four nodes of them, an instance; in each run a launch, a wait and three times.
  EXPECT_EQ(calls, 4 + 4 + 1 + 2 * 5);
  for (int failing = 0; failing < calls; ++failing) {
    Fake().calls = Fake().launches = Fake().events_made = 0;
    Fake().fails_at = failing;
    EXPECT_FALSE(Measure().ok()) << "call " << failing;
    EXPECT_TRUE(NothingIsLeft()) << "call " << failing;
  }
}

}  // namespace
}  // namespace gpushare::cuda
