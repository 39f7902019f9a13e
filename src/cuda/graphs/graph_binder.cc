// Moves the kernels of a graph to a place. See graph_binder.h.

#include "src/cuda/graphs/graph_binder.h"

#include <array>
#include <cstring>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {
namespace {

// The attributes of a function that cuFuncSetAttribute can set and that its launches depend on.
constexpr std::array kFunctionAttributes = {
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
};
bool IsZero(const CUlaunchAttributeValue& value) {
  static constexpr CUlaunchAttributeValue kZero = {};
  return std::memcmp(&value, &kZero, sizeof(value)) == 0;
}

// An attribute that a copy of the node does not get, and how to tell that a node has it.
struct Lost {
  CUlaunchAttributeID id;
  const char* what;
  bool (*has)(const CUlaunchAttributeValue& value, const CUlaunchAttributeValue& cluster);
};
constexpr std::array kLost = {
    // The application's kernels update the node that the application made, not a copy.
    Lost{CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, "can be updated from the device",
         [](const CUlaunchAttributeValue& value, const CUlaunchAttributeValue& /*cluster*/) {
           return value.deviceUpdatableKernelNode.deviceUpdatable != 0;
         }},
    Lost{CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, "prefers another cluster size",
         [](const CUlaunchAttributeValue& value, const CUlaunchAttributeValue& cluster) {
           const auto& preferred = value.preferredClusterDim;
           const auto differs = [](unsigned int wanted, unsigned int size) {
             return wanted > 1 && wanted != size;
           };
           return differs(preferred.x, cluster.clusterDim.x) ||
                  differs(preferred.y, cluster.clusterDim.y) ||
                  differs(preferred.z, cluster.clusterDim.z);
         }},
    // The map of a node that set none is {0, 1}, or {0, 0} on a GPU with one domain.
    Lost{CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, "has its own memory synchronization domains",
         [](const CUlaunchAttributeValue& value, const CUlaunchAttributeValue& /*cluster*/) {
           return value.memSyncDomainMap.default_ != 0 || value.memSyncDomainMap.remote > 1;
         }},
    Lost{CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, "is scheduled for NVLink",
         [](const CUlaunchAttributeValue& value, const CUlaunchAttributeValue& /*cluster*/) {
           return value.nvlinkUtilCentricScheduling != 0;
         }},
};

using KernelVisitor =
    absl::FunctionRef<absl::StatusOr<bool>(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS& params)>;

// Visits the kernels of the graph and of its child graphs until one visit answers false.
absl::StatusOr<bool> VisitKernels(const DriverApi& api, CUgraph graph, KernelVisitor visit,
                                  int depth = 0) {
  size_t count = 0;
  GPUSHARE_CU_RETURN(api, cuGraphGetNodes(graph, nullptr, &count));
  std::vector<CUgraphNode> nodes(count);
  GPUSHARE_CU_RETURN(api, cuGraphGetNodes(graph, nodes.data(), &count));
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    GPUSHARE_CU_RETURN(api, cuGraphNodeGetType(node, &type));
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CUgraph child = nullptr;
      GPUSHARE_CU_RETURN(api, cuGraphChildGraphNodeGetGraph(node, &child));
      if (depth == kGraphDepthMax) return false;
      absl::StatusOr<bool> all = VisitKernels(api, child, visit, depth + 1);
      if (!all.ok() || !*all) return all;
    }
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    CUDA_KERNEL_NODE_PARAMS params = {};
    GPUSHARE_CU_RETURN(api, cuGraphKernelNodeGetParams(node, &params));
    absl::StatusOr<bool> visited = visit(node, params);
    if (!visited.ok() || !*visited) return visited;
  }
  return true;
}

}  // namespace

const char* NodeAttributes::LostByCopy(const DriverApi& api, CUgraphNode node) {
  CUlaunchAttributeValue cluster = {};
  api.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &cluster);
  for (const Lost& lost : kLost) {
    CUlaunchAttributeValue value = {};
    if (api.cuGraphKernelNodeGetAttribute(node, lost.id, &value) != CUDA_SUCCESS) continue;
    if (lost.has(value, cluster)) return lost.what;
  }
  return nullptr;
}

const std::array<CUlaunchAttributeID, NodeAttributes::kCount> NodeAttributes::kIds = {
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    CU_LAUNCH_ATTRIBUTE_PRIORITY,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
};

NodeAttributes NodeAttributes::Of(const DriverApi& api, CUgraphNode node) {
  NodeAttributes out;
  for (size_t i = 0; i < kCount; ++i) {
    CUlaunchAttributeValue value = {};
    if (api.cuGraphKernelNodeGetAttribute(node, kIds[i], &value) != CUDA_SUCCESS) continue;
    out.values_[i] = value;
    out.present_[i] = !IsZero(value);
  }
  return out;
}

absl::Status NodeAttributes::Set(const DriverApi& api, CUgraphNode node) const {
  for (size_t i = 0; i < kCount; ++i) {
    if (!present_[i]) continue;
    GPUSHARE_CU_RETURN(api, cuGraphKernelNodeSetAttribute(node, kIds[i], &values_[i]));
  }
  return absl::OkStatus();
}

absl::Status GraphBinder::CopyFunctionAttributes(CUkernel kernel, CUfunction from) {
  if (!matched_.insert({kernel, from}).second) return absl::OkStatus();
  CUfunction to = nullptr;
  if (from == nullptr) GPUSHARE_CU_RETURN(api_, cuKernelGetFunction(&from, kernel));
  std::array<int, kFunctionAttributes.size()> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    GPUSHARE_CU_RETURN(api_, cuFuncGetAttribute(&values[i], kFunctionAttributes[i], from));
  }
  const ScopedContext current(api_, target_);
  GPUSHARE_CU_RETURN(api_, cuKernelGetFunction(&to, kernel));
  for (size_t i = 0; i < values.size(); ++i) {
    int there = 0;
    GPUSHARE_CU_RETURN(api_, cuFuncGetAttribute(&there, kFunctionAttributes[i], to));
    if (there == values[i]) continue;
    // Of two functions of one kernel the one with more memory counts: less of it fails.
    const bool is_most = kFunctionAttributes[i] == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    if (is_most && there > values[i]) continue;
    GPUSHARE_CU_RETURN(api_, cuFuncSetAttribute(to, kFunctionAttributes[i], values[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> GraphBinder::BindParams(CUDA_KERNEL_NODE_PARAMS& params) {
  if (place_ == core::kWholeDevice) return true;
  CUfunction from = nullptr;  // null: the kernel's own in the first context
  if (params.kern == nullptr) {
    from = params.func;
    params.kern = functions_ == nullptr ? nullptr : functions_->KernelOf(from);
    if (params.kern == nullptr) return false;
  }
  if (absl::Status status = CopyFunctionAttributes(params.kern, from); !status.ok()) return status;
  params.func = nullptr;
  params.ctx = target_;
  return true;
}

absl::StatusOr<bool> GraphBinder::Bind(CUgraph graph, bool functions_only) {
  return VisitKernels(
      api_, graph, [&](CUgraphNode node, CUDA_KERNEL_NODE_PARAMS& params) -> absl::StatusOr<bool> {
        if (functions_only && params.kern != nullptr) return true;
        absl::StatusOr<bool> bound = BindParams(params);
        if (!bound.ok() || !*bound) return bound;
        GPUSHARE_CU_RETURN(api_, cuGraphKernelNodeSetParams(node, &params));
        return true;
      });
}

absl::StatusOr<bool> GraphBinder::CanBind(const DriverApi& api, CUgraph graph,
                                          FunctionKernels& functions) {
  return VisitKernels(api, graph, [&](CUgraphNode, CUDA_KERNEL_NODE_PARAMS& params) {
    return absl::StatusOr<bool>(params.kern != nullptr ||
                                functions.KernelOf(params.func) != nullptr);
  });
}

}  // namespace gpushare::cuda
