// A fake driver with graphs, instances and green contexts: what the driver would copy, it copies,
// and it counts what is alive. One at a time. Threads: the test's.

#ifndef GPUSHARE_TESTS_CUDA_GRAPHS_FAKE_GRAPHS_H_
#define GPUSHARE_TESTS_CUDA_GRAPHS_FAKE_GRAPHS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

struct FakeGraph;

struct FakeNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  FakeGraph* graph = nullptr;
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  CUDA_MEMCPY3D copy = {};
  CUDA_MEMSET_NODE_PARAMS fill = {};
  CUcontext context = nullptr;  // of a copy or a fill
  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;
  std::unique_ptr<FakeGraph> child;

  FakeNode() = default;
  FakeNode(const FakeNode& other);
  CUgraphNode handle() { return reinterpret_cast<CUgraphNode>(this); }
};

struct FakeEdge {
  size_t from = 0;  // positions in the graph
  size_t to = 0;
  CUgraphEdgeData data = {};
};

struct FakeGraph {
  std::vector<std::unique_ptr<FakeNode>> nodes;
  std::vector<FakeEdge> edges;

  FakeGraph() = default;
  FakeGraph(const FakeGraph& other);
  FakeNode& Add(CUgraphNodeType type);
  // A kernel of a library, which any context may run, behind the node before it.
  FakeNode& AddKernel();
  size_t PositionOf(const FakeNode* node) const;
  CUgraph handle() { return reinterpret_cast<CUgraph>(this); }
};

// What exists, and what the next calls answer.
struct FakeGraphDriver {
  std::set<FakeGraph*> graphs;     // those that the library made
  std::set<FakeGraph*> instances;  // empty: nobody looks into one
  int instantiated = 0;
  int instantiations_max = -1;  // the next one fails; -1: none does
  CUresult failure = CUDA_ERROR_OUT_OF_MEMORY;
  CUresult upload = CUDA_SUCCESS;
  CUresult upload_end = CUDA_SUCCESS;  // what the stream of an upload answers
  CUcontext current = nullptr;
  int contexts = 0;
};
FakeGraphDriver& FakeGraphs();

// Starts anew and returns its functions. The primary context is FakePrimary().
DriverApi MakeFakeGraphs();
CUcontext FakePrimary();

inline FakeGraph& GraphOf(CUgraph graph) { return *reinterpret_cast<FakeGraph*>(graph); }
inline FakeGraph& GraphOf(CUgraphExec instance) { return *reinterpret_cast<FakeGraph*>(instance); }

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_GRAPHS_FAKE_GRAPHS_H_
