// Finds the nodes of a graph that have a twin. See node_twins.h.

#include "src/cuda/graphs/node_twins.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/core/base/status.h"
#include "src/core/checks/claim_batch.h"
#include "src/core/seams/graph_cut.h"
#include "src/cuda/code/parameter_layout.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {
namespace {

// A launch numbers its block tasks with 32 bits, and CUDA's grids end there too.
constexpr int64_t kBlockTasksMax = 2147483647;

bool HasZeros(const CUlaunchAttributeValue& value, size_t bytes) {
  const auto* const begin = reinterpret_cast<const unsigned char*>(&value);
  return std::all_of(begin, begin + bytes, [](unsigned char byte) { return byte == 0; });
}

// Whether the node is launched in a way that workers are not, or nobody can say.
bool IsSpecial(const DriverApi& api, CUgraphNode node) {
  bool known = true;
  const auto read = [&](CUlaunchAttributeID id) {
    CUlaunchAttributeValue value = {};
    const CUresult code = api.cuGraphKernelNodeGetAttribute(node, id, &value);
    if (code == CUDA_SUCCESS) return value;
    // A driver that does not know the attribute cannot have launched the node with it.
    known = known && code == CUDA_ERROR_NOT_SUPPORTED;
    return CUlaunchAttributeValue{};
  };
  const auto cluster = read(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
  if (cluster.x > 1 || cluster.y > 1 || cluster.z > 1) return true;
  if (read(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative != 0) return true;
  if (read(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN).memSyncDomain != 0) return true;
  const CUlaunchAttributeValue window = read(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW);
  return !known || !HasZeros(window, sizeof(window.accessPolicyWindow));
}

// Whether the node's function is still the one that the twin was made for, as far as its name and
// its needs tell: the driver may give an address to another function.
absl::StatusOr<bool> IsOriginal(const DriverApi& api, CUfunction function, const WorkerTwin& twin) {
  if (api.cuFuncGetName != nullptr) {
    const char* name = nullptr;
    GPUSHARE_CU_RETURN(api, cuFuncGetName(&name, function));
    if (name == nullptr || name != twin.entry) return false;
  }
  for (const CUfunction_attribute attribute :
       {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK}) {
    int of_node = 0;
    int of_module = 0;
    GPUSHARE_CU_RETURN(api, cuFuncGetAttribute(&of_node, attribute, function));
    GPUSHARE_CU_RETURN(api, cuFuncGetAttribute(&of_module, attribute, twin.original));
    if (of_node != of_module) return false;
  }
  return true;
}

// Copies the node's arguments. False if the twin does not take the same ones: its text is that of
// another kernel.
absl::StatusOr<bool> CopyArguments(const DriverApi& api, CUfunction original, void** parameters,
                                   NodeTwin& out) {
  const CUfunction worker = out.twin.kernel.worker.function;
  for (size_t i = 0; i < kParametersMax; ++i) {
    size_t offset = 0;
    size_t bytes = 0;
    size_t twin_bytes = 0;
    const CUresult code = api.cuFuncGetParamInfo(original, i, &offset, &bytes);
    const CUresult twin_code = api.cuFuncGetParamInfo(worker, i + 1, &offset, &twin_bytes);
    const bool is_over = code == CUDA_ERROR_INVALID_VALUE;
    if (is_over != (twin_code == CUDA_ERROR_INVALID_VALUE)) return false;
    if (is_over) return true;
    GPUSHARE_RETURN_IF_ERROR(StatusOf(api, code, "cuFuncGetParamInfo", __FILE__, __LINE__));
    GPUSHARE_RETURN_IF_ERROR(StatusOf(api, twin_code, "cuFuncGetParamInfo", __FILE__, __LINE__));
    if (bytes != twin_bytes || parameters == nullptr) return false;
    const auto* const value = static_cast<const std::byte*>(parameters[i]);
    out.offsets.push_back(out.arguments.size());
    out.arguments.insert(out.arguments.end(), value, value + bytes);
  }
  return false;
}

// Null if the node has no twin that is evicted before the node ends.
absl::StatusOr<std::unique_ptr<NodeTwin>> TwinOf(const DriverApi& api, CUgraphNode node,
                                                 int64_t duration_ns, int64_t segment_ns,
                                                 int32_t sms, TwinOfFunction twin_of) {
  GPUSHARE_ASSIGN_OR_RETURN(std::unique_ptr<NodeTwin> made, FindNodeLaunch(api, node, twin_of));
  if (made == nullptr) return nullptr;
  PreparedKernel& kernel = made->twin.kernel;
  const int64_t workers = int64_t{sms} * std::max(1, kernel.workers_per_sm);
  const int64_t rounds = (made->block_tasks + workers - 1) / workers;
  made->block_task_ns = std::max<int64_t>(1, duration_ns / rounds);
  if (!core::IsEvictableNode(duration_ns, made->block_task_ns, segment_ns)) return nullptr;
  kernel.claim_batch = core::PredictClaimBatch(static_cast<double>(made->block_task_ns));
  kernel.yields = false;
  return made;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeTwin>> FindNodeLaunch(const DriverApi& api, CUgraphNode node,
                                                         TwinOfFunction twin_of) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  GPUSHARE_CU_RETURN(api, cuGraphNodeGetType(node, &type));
  if (type != CU_GRAPH_NODE_TYPE_KERNEL) return nullptr;
  CUDA_KERNEL_NODE_PARAMS params = {};
  GPUSHARE_CU_RETURN(api, cuGraphKernelNodeGetParams(node, &params));
  CUfunction function = params.func;
  std::optional<WorkerTwin> found;
  if (function != nullptr) found = twin_of(function);
  if (!found.has_value() && params.kern != nullptr) {
    GPUSHARE_CU_RETURN(api, cuKernelGetFunction(&function, params.kern));
    found = twin_of(function);
  }
  if (!found.has_value() || IsSpecial(api, node)) return nullptr;
  GPUSHARE_ASSIGN_OR_RETURN(const bool is_original, IsOriginal(api, function, *found));
  if (!is_original) return nullptr;
  const PreparedKernel& kernel = found->kernel;
  if (params.blockDimX != kernel.block_x || params.blockDimY != kernel.block_y ||
      params.blockDimZ != kernel.block_z || params.sharedMemBytes != kernel.dynamic_shared_bytes) {
    return nullptr;
  }
  auto made = std::make_unique<NodeTwin>();
  made->grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
  made->block_tasks = int64_t{params.gridDimX} * params.gridDimY * params.gridDimZ;
  if (made->block_tasks < 1 || made->block_tasks > kBlockTasksMax) return nullptr;
  made->twin = *std::move(found);
  absl::StatusOr<bool> same = CopyArguments(api, function, params.kernelParams, *made);
  if (!same.ok()) return same.status();
  if (!*same) return nullptr;
  return made;
}

void NodeTwin::Fill(ParameterAddresses& addresses) const {
  for (size_t i = 0; i < offsets.size(); ++i) {
    addresses[i + 1] = const_cast<std::byte*>(arguments.data() + offsets[i]);
  }
}

absl::StatusOr<NodeTwins> FindNodeTwins(const DriverApi& api, const SegmentedGraph& cut,
                                        int64_t segment_ns, int32_t sms, TwinOfFunction twin_of) {
  NodeTwins twins(cut.begins.size());
  bool any = false;
  for (size_t i = 0; i < cut.durations_ns.size(); ++i) {
    if (cut.EndOf(i) != cut.begins[i] + 1 || cut.durations_ns[i] <= segment_ns) continue;
    absl::StatusOr<std::unique_ptr<NodeTwin>> twin =
        TwinOf(api, cut.nodes[cut.begins[i]], cut.durations_ns[i], segment_ns, sms, twin_of);
    if (absl::IsDataLoss(twin.status())) return twin.status();
    if (!twin.ok()) continue;  // the node runs to its end, as without twins
    twins[i] = *std::move(twin);
    any = any || twins[i] != nullptr;
  }
  if (!any) twins.clear();
  return twins;
}

}  // namespace gpushare::cuda
