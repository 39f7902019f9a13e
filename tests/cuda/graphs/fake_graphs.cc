// The fake driver of fake_graphs.h.

#include "tests/cuda/graphs/fake_graphs.h"

#include <algorithm>
#include <cstdint>

namespace gpushare::cuda {
namespace {

FakeNode& NodeOf(CUgraphNode node) { return *reinterpret_cast<FakeNode*>(node); }

template <class Handle>
Handle HandleOf(int number) {
  return reinterpret_cast<Handle>(static_cast<intptr_t>(number));  // NOLINT: never followed
}

FakeNode& AddTo(CUgraph graph, CUgraphNodeType type, CUgraphNode* node) {
  FakeNode& added = GraphOf(graph).Add(type);
  *node = added.handle();
  return added;
}

void FillNodes(DriverApi& api) {
  api.cuGraphAddKernelNode = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* /*behind*/,
                                size_t /*count*/, const CUDA_KERNEL_NODE_PARAMS* params) {
    AddTo(graph, CU_GRAPH_NODE_TYPE_KERNEL, node).kernel = *params;
    return CUDA_SUCCESS;
  };
  api.cuGraphAddMemcpyNode = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* /*behind*/,
                                size_t /*count*/, const CUDA_MEMCPY3D* params, CUcontext context) {
    FakeNode& added = AddTo(graph, CU_GRAPH_NODE_TYPE_MEMCPY, node);
    added.copy = *params;
    added.context = context;
    return CUDA_SUCCESS;
  };
  api.cuGraphAddMemsetNode = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* /*behind*/,
                                size_t /*count*/, const CUDA_MEMSET_NODE_PARAMS* params,
                                CUcontext context) {
    FakeNode& added = AddTo(graph, CU_GRAPH_NODE_TYPE_MEMSET, node);
    added.fill = *params;
    added.context = context;
    return CUDA_SUCCESS;
  };
  api.cuGraphAddEmptyNode = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* /*behind*/,
                               size_t /*count*/) {
    AddTo(graph, CU_GRAPH_NODE_TYPE_EMPTY, node);
    return CUDA_SUCCESS;
  };
  api.cuGraphAddChildGraphNode = [](CUgraphNode* node, CUgraph graph, const CUgraphNode* /*behind*/,
                                    size_t /*count*/, CUgraph child) {
    AddTo(graph, CU_GRAPH_NODE_TYPE_GRAPH, node).child =
        std::make_unique<FakeGraph>(GraphOf(child));
    return CUDA_SUCCESS;
  };
  api.cuGraphAddDependencies = [](CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                  const CUgraphEdgeData* data, size_t count) {
    FakeGraph& target = GraphOf(graph);
    for (size_t i = 0; i < count; ++i) {
      target.edges.push_back(
          {target.PositionOf(&NodeOf(from[i])), target.PositionOf(&NodeOf(to[i])), data[i]});
    }
    return CUDA_SUCCESS;
  };
  api.cuGraphNodeGetType = [](CUgraphNode node, CUgraphNodeType* type) {
    *type = NodeOf(node).type;
    return CUDA_SUCCESS;
  };
  api.cuGraphKernelNodeGetParams = [](CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
    *params = NodeOf(node).kernel;
    return CUDA_SUCCESS;
  };
  api.cuGraphKernelNodeSetParams = [](CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
    NodeOf(node).kernel = *params;
    return CUDA_SUCCESS;
  };
  api.cuGraphKernelNodeGetAttribute = [](CUgraphNode node, CUlaunchAttributeID id,
                                         CUlaunchAttributeValue* value) {
    const auto& attributes = NodeOf(node).attributes;
    const auto found = attributes.find(id);
    *value = found == attributes.end() ? CUlaunchAttributeValue{} : found->second;
    if (found == attributes.end() && id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) {
      value->memSyncDomainMap.remote = 1;
    }
    return CUDA_SUCCESS;
  };
  api.cuGraphKernelNodeSetAttribute = [](CUgraphNode node, CUlaunchAttributeID id,
                                         const CUlaunchAttributeValue* value) {
    NodeOf(node).attributes[id] = *value;
    return CUDA_SUCCESS;
  };
  api.cuGraphMemcpyNodeGetParams = [](CUgraphNode node, CUDA_MEMCPY3D* params) {
    *params = NodeOf(node).copy;
    return CUDA_SUCCESS;
  };
  api.cuGraphMemsetNodeGetParams = [](CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
    *params = NodeOf(node).fill;
    return CUDA_SUCCESS;
  };
  api.cuGraphChildGraphNodeGetGraph = [](CUgraphNode node, CUgraph* graph) {
    *graph = NodeOf(node).child->handle();
    return CUDA_SUCCESS;
  };
}

void FillGraphs(DriverApi& api) {
  api.cuGraphCreate = [](CUgraph* graph, unsigned int /*flags*/) {
    auto* const made = new FakeGraph();
    FakeGraphs().graphs.insert(made);
    *graph = made->handle();
    return CUDA_SUCCESS;
  };
  api.cuGraphClone = [](CUgraph* clone, CUgraph graph) {
    auto* const made = new FakeGraph(GraphOf(graph));
    FakeGraphs().graphs.insert(made);
    *clone = made->handle();
    return CUDA_SUCCESS;
  };
  api.cuGraphDestroy = [](CUgraph graph) {
    if (FakeGraphs().graphs.erase(&GraphOf(graph)) == 0) return CUDA_ERROR_INVALID_VALUE;
    delete &GraphOf(graph);
    return CUDA_SUCCESS;
  };
  api.cuGraphGetNodes = [](CUgraph graph, CUgraphNode* nodes, size_t* count) {
    const FakeGraph& from = GraphOf(graph);
    if (nodes != nullptr) {
      for (size_t i = 0; i < *count; ++i) nodes[i] = from.nodes[i]->handle();
    }
    *count = from.nodes.size();
    return CUDA_SUCCESS;
  };
  api.cuGraphGetEdges = [](CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                           size_t* count) {
    const FakeGraph& source = GraphOf(graph);
    if (from != nullptr) {
      for (size_t i = 0; i < *count; ++i) {
        from[i] = source.nodes[source.edges[i].from]->handle();
        to[i] = source.nodes[source.edges[i].to]->handle();
        data[i] = source.edges[i].data;
      }
    }
    *count = source.edges.size();
    return CUDA_SUCCESS;
  };
  api.cuGraphInstantiate = [](CUgraphExec* instance, CUgraph /*graph*/,
                              unsigned long long /*flags*/) {
    FakeGraphDriver& driver = FakeGraphs();
    if (driver.instantiated++ == driver.instantiations_max) return driver.failure;
    auto* const made = new FakeGraph();
    driver.instances.insert(made);
    *instance = reinterpret_cast<CUgraphExec>(made);
    return CUDA_SUCCESS;
  };
  api.cuGraphExecDestroy = [](CUgraphExec instance) {
    if (FakeGraphs().instances.erase(&GraphOf(instance)) == 0) return CUDA_ERROR_INVALID_VALUE;
    delete &GraphOf(instance);
    return CUDA_SUCCESS;
  };
  api.cuGraphUpload = [](CUgraphExec /*instance*/, CUstream /*stream*/) {
    return FakeGraphs().upload;
  };
}

void FillContexts(DriverApi& api) {
  api.cuGetErrorName = api.cuGetErrorString = [](CUresult /*code*/, const char** text) {
    *text = "an error";
    return CUDA_SUCCESS;
  };
  api.cuCtxGetCurrent = [](CUcontext* context) {
    *context = FakeGraphs().current;
    return CUDA_SUCCESS;
  };
  api.cuCtxPushCurrent = [](CUcontext context) {
    FakeGraphs().current = context;
    return CUDA_SUCCESS;
  };
  api.cuCtxPopCurrent = [](CUcontext* context) {
    *context = FakeGraphs().current;
    FakeGraphs().current = FakePrimary();
    return CUDA_SUCCESS;
  };
  api.cuDevicePrimaryCtxRelease = [](CUdevice /*device*/) { return CUDA_SUCCESS; };
  // Functions and streams are the number of their context.
  api.cuKernelGetFunction = [](CUfunction* function, CUkernel /*kernel*/) {
    *function = reinterpret_cast<CUfunction>(FakeGraphs().current);
    return CUDA_SUCCESS;
  };
  api.cuFuncGetName = [](const char** name, CUfunction /*function*/) {
    *name = "a_function";
    return CUDA_SUCCESS;
  };
  api.cuFuncGetAttribute = [](int* value, CUfunction_attribute /*attribute*/,
                              CUfunction /*function*/) {
    *value = 0;
    return CUDA_SUCCESS;
  };
  api.cuStreamCreateWithPriority = [](CUstream* stream, unsigned int /*flags*/, int /*priority*/) {
    *stream = reinterpret_cast<CUstream>(FakePrimary());
    return CUDA_SUCCESS;
  };
  api.cuGreenCtxStreamCreate = [](CUstream* stream, CUgreenCtx green, unsigned int /*flags*/,
                                  int /*priority*/) {
    *stream = reinterpret_cast<CUstream>(green);
    return CUDA_SUCCESS;
  };
  api.cuStreamSynchronize = [](CUstream /*stream*/) { return CUDA_SUCCESS; };
  api.cuStreamQuery = [](CUstream /*stream*/) { return FakeGraphs().upload_end; };
  api.cuThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* /*mode*/) {
    return CUDA_SUCCESS;
  };
  api.cuStreamDestroy = [](CUstream /*stream*/) { return CUDA_SUCCESS; };
}

// 15 groups of 8 SMs and a remainder of 12.
void FillPlaces(DriverApi& api) {
  api.cuDeviceGetDevResource = [](CUdevice /*device*/, CUdevResource* resource,
                                  CUdevResourceType type) {
    *resource = {};
    resource->type = type;
    resource->sm.smCount = 132;
    return CUDA_SUCCESS;
  };
  api.cuDevSmResourceSplitByCount = [](CUdevResource* groups, unsigned int* count,
                                       const CUdevResource* whole, CUdevResource* remainder,
                                       unsigned int /*flags*/, unsigned int /*least*/) {
    constexpr unsigned int kGroups = 15;
    const unsigned int made = groups == nullptr ? kGroups : std::min(*count, kGroups);
    CUdevResource group = *whole;
    group.sm.smCount = 8;
    if (groups != nullptr) std::fill_n(groups, made, group);
    if (remainder != nullptr) {
      *remainder = *whole;
      remainder->sm.smCount = 12;
    }
    *count = made;
    return CUDA_SUCCESS;
  };
  api.cuDevResourceGenerateDesc = [](CUdevResourceDesc* description, CUdevResource* /*parts*/,
                                     unsigned int /*count*/) {
    *description = nullptr;
    return CUDA_SUCCESS;
  };
  api.cuGreenCtxCreate = [](CUgreenCtx* green, CUdevResourceDesc /*description*/,
                            CUdevice /*device*/, unsigned int /*flags*/) {
    *green = HandleOf<CUgreenCtx>(1000 + ++FakeGraphs().contexts);
    return CUDA_SUCCESS;
  };
  api.cuCtxFromGreenCtx = [](CUcontext* context, CUgreenCtx green) {
    *context = reinterpret_cast<CUcontext>(green);
    return CUDA_SUCCESS;
  };
  api.cuGreenCtxDestroy = [](CUgreenCtx /*green*/) { return CUDA_SUCCESS; };
}

}  // namespace

FakeNode::FakeNode(const FakeNode& other)
    : type(other.type),
      kernel(other.kernel),
      copy(other.copy),
      fill(other.fill),
      context(other.context),
      attributes(other.attributes),
      child(other.child == nullptr ? nullptr : std::make_unique<FakeGraph>(*other.child)) {}

FakeGraph::FakeGraph(const FakeGraph& other) : edges(other.edges) {
  for (const std::unique_ptr<FakeNode>& node : other.nodes) {
    nodes.push_back(std::make_unique<FakeNode>(*node));
    nodes.back()->graph = this;
  }
}

FakeNode& FakeGraph::Add(CUgraphNodeType type) {
  nodes.push_back(std::make_unique<FakeNode>());
  nodes.back()->type = type;
  nodes.back()->graph = this;
  return *nodes.back();
}

FakeNode& FakeGraph::AddKernel() {
  FakeNode& node = Add(CU_GRAPH_NODE_TYPE_KERNEL);
  node.kernel.kern = HandleOf<CUkernel>(7);
  node.kernel.gridDimX = static_cast<unsigned int>(nodes.size());  // tells the nodes apart
  node.kernel.ctx = FakePrimary();
  if (nodes.size() > 1) edges.push_back({nodes.size() - 2, nodes.size() - 1, {}});
  return node;
}

size_t FakeGraph::PositionOf(const FakeNode* node) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [node](const auto& candidate) {
    return candidate.get() == node;
  });
  return static_cast<size_t>(found - nodes.begin());
}

FakeGraphDriver& FakeGraphs() {
  static FakeGraphDriver driver;
  return driver;
}

DriverApi MakeFakeGraphs() {
  // What a test left on purpose.
  for (FakeGraph* graph : FakeGraphs().graphs) delete graph;
  for (FakeGraph* instance : FakeGraphs().instances) delete instance;
  FakeGraphs() = FakeGraphDriver();
  FakeGraphs().current = FakePrimary();
  DriverApi api;
  FillNodes(api);
  FillGraphs(api);
  FillContexts(api);
  FillPlaces(api);
  return api;
}

CUcontext FakePrimary() { return HandleOf<CUcontext>(1000); }

}  // namespace gpushare::cuda
