// Loads functions and graphs before their first launch. See prepared_kernels.h.

#include "src/cuda/prepared_kernels.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gpushare/device/fused_variants.h"
#include "gpushare/device/launch.h"
#include "src/core/seams/capture_call.h"
#include "src/core/seams/claim_batch.h"
#include "src/cuda/errors.h"

namespace gpushare::cuda {
namespace {

// CUDA's limit of dynamic shared memory for a block without an opt-in.
constexpr int kDefaultSharedBytesMax = 48 * 1024;
// The depth of child graphs is bounded, and so is the recursion.
constexpr int kGraphDepthMax = 8;
// Per cent of an SM's memory that serves as shared memory instead of L1 cache.
constexpr int kCarveOutMax = 100;
constexpr int kCarveOutDefault = -1;

CUfunction FunctionOf(void* handle) { return static_cast<CUfunction>(handle); }

absl::Status CheckOne(const core::KernelDesc& kernel, const char* what, int64_t value,
                      int64_t limit) {
  if (value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Kernel '", kernel.name, "' asks for ", value, " ",
                                                 what, ", and its function allows ", limit, "."));
}

}  // namespace

PreparedKernels::~PreparedKernels() {
  if (leaked_) return;
  const ScopedContext current(context_);
  for (const auto& kernel : kernels_) {
    if (kernel == nullptr || kernel->desc.graph_exec != nullptr) continue;
    for (const auto& instance : kernel->instances) {
      if (CUgraphExec exec = instance.load(); exec != nullptr)
        context_.api().cuGraphExecDestroy(exec);
    }
  }
}

absl::Status PreparedKernels::Describe(core::KernelDesc& kernel) const {
  // The caller instantiated this graph in a context of the whole device, so it runs on every SM.
  if (kernel.graph_exec != nullptr) kernel.confinable = false;
  void* handle = kernel.worker_function;
  if (handle == nullptr) handle = kernel.original_function;
  if (handle == nullptr) handle = kernel.slice_function;
  if (kernel.kind != core::TaskKind::kKernel || handle == nullptr) return absl::OkStatus();
  const ScopedContext current(context_);
  const DriverApi& api = context_.api();
  const CUfunction function = FunctionOf(handle);
  int registers = 0;
  int shared = 0;
  int threads_max = 0;
  GPUSHARE_CU_RETURN(api, cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
  GPUSHARE_CU_RETURN(api,
                     cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  GPUSHARE_CU_RETURN(
      api, cuFuncGetAttribute(&threads_max, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  if (kernel.threads_per_block == 0) kernel.threads_per_block = threads_max;
  if (absl::Status status =
          CheckOne(kernel, "threads a block", kernel.threads_per_block, threads_max);
      !status.ok()) {
    return status;
  }
  if (kernel.registers_per_thread == 0) kernel.registers_per_thread = registers;
  if (kernel.shared_memory_bytes == 0) {
    kernel.shared_memory_bytes = shared + kernel.dynamic_shared_memory_bytes;
  }
  if (kernel.dynamic_shared_memory_bytes > kDefaultSharedBytesMax) {
    GPUSHARE_CU_RETURN(api,
                       cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          kernel.dynamic_shared_memory_bytes));
  }
  int workers = 0;
  GPUSHARE_CU_RETURN(api, cuOccupancyMaxActiveBlocksPerMultiprocessor(
                              &workers, function, kernel.threads_per_block,
                              static_cast<size_t>(kernel.dynamic_shared_memory_bytes)));
  if (workers == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("No block of kernel '", kernel.name, "' fits on an SM of this GPU."));
  }
  if (kernel.workers_per_sm_max == 0) kernel.workers_per_sm_max = workers;
  return CheckOne(kernel, "workers an SM", kernel.workers_per_sm_max, workers);
}

// `headers`: 1 if a launch header precedes the task's parameters, otherwise 0.
absl::Status PreparedKernels::LoadFunction(const core::KernelDesc& kernel, void* handle,
                                           size_t headers, PreparedFunction& prepared) const {
  prepared.function = FunctionOf(handle);
  if (handle == nullptr) return absl::OkStatus();
  const DriverApi& api = context_.api();
  GPUSHARE_CU_RETURN(api, cuFuncLoad(prepared.function));
  if (kernel.dynamic_shared_memory_bytes > kDefaultSharedBytesMax) {
    GPUSHARE_CU_RETURN(
        api, cuFuncSetAttribute(prepared.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                kernel.dynamic_shared_memory_bytes));
  }
  ParameterLayout& parameters = prepared.parameters;
  if (absl::Status status = parameters.Read(api, prepared.function, headers, kernel.name);
      !status.ok()) {
    return status;
  }
  if (headers == 0) return absl::OkStatus();
  if (parameters.header_bytes() != sizeof(gpushare_worker_launch)) {
    return absl::InvalidArgumentError(
        absl::StrCat("The first parameter of a worker or slice function of kernel '", kernel.name,
                     "' has ", parameters.header_bytes(), " bytes, and it is a launch header of ",
                     sizeof(gpushare_worker_launch), "."));
  }
  // Ask for the most shared memory unless the caller chose a split. An SM changes its split only
  // when it is empty; otherwise LC blocks that need shared memory would wait until the last BE
  // block leaves.
  int preferred = kCarveOutDefault;
  GPUSHARE_CU_RETURN(
      api, cuFuncGetAttribute(&preferred, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                              prepared.function));
  if (preferred != kCarveOutDefault) return absl::OkStatus();
  return GPUSHARE_CU(
      api, cuFuncSetAttribute(prepared.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                              kCarveOutMax));
}

absl::Status PreparedKernels::LoadFunctions(const core::KernelDesc& kernel,
                                            PreparedKernel& prepared) const {
  if (kernel.original_function == nullptr && kernel.worker_function == nullptr &&
      kernel.slice_function == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel.name, "' comes without a function, and a CUDA device needs one."));
  }
  if (kernel.evictable && kernel.worker_function == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel.name, "' is evictable, and it has no worker function to evict."));
  }
  absl::Status status = LoadFunction(kernel, kernel.original_function, 0, prepared.original);
  if (status.ok()) status = LoadFunction(kernel, kernel.worker_function, 1, prepared.worker);
  if (status.ok()) status = LoadFunction(kernel, kernel.slice_function, 1, prepared.slice);
  if (!status.ok()) return status;
  if (prepared.slice.function == nullptr) prepared.slice = prepared.worker;
  const bool shaped = kernel.block_x > 0;
  prepared.block_x = static_cast<unsigned int>(shaped ? kernel.block_x : kernel.threads_per_block);
  prepared.block_y = static_cast<unsigned int>(shaped ? kernel.block_y : 1);
  prepared.block_z = static_cast<unsigned int>(shaped ? kernel.block_z : 1);
  prepared.dynamic_shared_bytes = static_cast<unsigned int>(kernel.dynamic_shared_memory_bytes);
  prepared.workers_per_sm = std::max(1, kernel.workers_per_sm_max);
  prepared.claim_batch =
      core::PredictClaimBatch(static_cast<double>(kernel.simulation.block_task_ns));
  prepared.yields = prepared.worker.function != nullptr && kernel.yield_interval_ns > 0;
  return absl::OkStatus();
}

absl::StatusOr<CUgraph> PreparedKernels::Capture(const core::KernelDesc& kernel,
                                                 core::PlaceIndex place) const {
  const DriverApi& api = context_.api();
  absl::StatusOr<CUstream> stream = places_.MakeStream(place, 0);
  if (!stream.ok()) return stream.status();
  CUgraph graph = nullptr;
  absl::Status answer;
  // Relaxed mode: this capture and other threads' captures do not disturb each other.
  absl::Status status =
      GPUSHARE_CU(api, cuStreamBeginCapture(*stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  if (status.ok()) {
    answer = core::CallCapture(kernel, *stream, places_.place(place).sms);
    status = GPUSHARE_CU(api, cuStreamEndCapture(*stream, &graph));
  }
  api.cuStreamDestroy(*stream);
  if (answer.ok() && status.ok()) return graph;
  if (graph != nullptr) api.cuGraphDestroy(graph);
  return answer.ok() ? status : answer;
}

// Moves the kernels of a captured graph to the context of the place. A graph binds its nodes to the
// context of its capture. A kernel node can change context if its CUkernel is known, but not if
// only its CUfunction is, which belongs to one context. Copies need no SM and stay. Returns false
// if a kernel cannot move.
absl::StatusOr<bool> PreparedKernels::BindToPlace(CUgraph graph, core::PlaceIndex place,
                                                  int depth) const {
  const DriverApi& api = context_.api();
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
      absl::StatusOr<bool> bound = BindToPlace(child, place, depth + 1);
      if (!bound.ok() || !*bound) return bound;
    }
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    CUDA_KERNEL_NODE_PARAMS params = {};
    GPUSHARE_CU_RETURN(api, cuGraphKernelNodeGetParams(node, &params));
    if (params.kern == nullptr) return false;
    params.func = nullptr;
    params.ctx = places_.place(place).context;
    GPUSHARE_CU_RETURN(api, cuGraphKernelNodeSetParams(node, &params));
  }
  return true;
}

// Copies the caller's graph so that its kernels run in the place. Null if they cannot be confined.
absl::StatusOr<CUgraph> PreparedKernels::CloneFor(CUgraph graph, core::PlaceIndex place) const {
  CUgraph clone = nullptr;
  GPUSHARE_CU_RETURN(context_.api(), cuGraphClone(&clone, graph));
  if (place == core::kWholeDevice) return clone;
  absl::StatusOr<bool> bound = BindToPlace(clone, place, 0);
  if (bound.ok() && *bound) return clone;
  context_.api().cuGraphDestroy(clone);
  if (!bound.ok()) return bound.status();
  return nullptr;
}

absl::Status PreparedKernels::Instantiate(PreparedKernel& prepared, core::PlaceIndex place) const {
  const core::KernelDesc& kernel = prepared.desc;
  std::atomic<CUgraphExec>& instance = prepared.instances[static_cast<size_t>(place)];
  if (instance.load() != nullptr) return absl::OkStatus();
  if (kernel.graph_exec != nullptr) {
    if (place == core::kWholeDevice) instance.store(static_cast<CUgraphExec>(kernel.graph_exec));
    return absl::OkStatus();
  }
  if (place != core::kWholeDevice && !kernel.confinable) return absl::OkStatus();
  const DriverApi& api = context_.api();
  absl::StatusOr<CUgraph> graph = kernel.capture != nullptr
                                      ? Capture(kernel, place)
                                      : CloneFor(static_cast<CUgraph>(kernel.graph), place);
  if (!graph.ok()) return graph.status();
  if (*graph == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Graph '", kernel.name,
                     "' has a kernel that is bound to its context (a CUfunction of a "
                     "module), so it cannot be confined; register it as not confinable."));
  }
  CUgraphExec exec = nullptr;
  const CUresult code = api.cuGraphInstantiate(&exec, *graph, 0);
  api.cuGraphDestroy(*graph);
  // A library's kernel with clusters may need more SMs than the place has: make no instance there.
  if (code == CUDA_ERROR_INVALID_CLUSTER_SIZE && place != core::kWholeDevice) {
    return absl::OkStatus();
  }
  if (absl::Status status = StatusOf(api, code, "cuGraphInstantiate", __FILE__, __LINE__);
      !status.ok()) {
    return status;
  }
  absl::StatusOr<CUstream> stream = places_.MakeStream(place, 0);
  if (stream.ok()) {
    api.cuGraphUpload(exec, *stream);
    api.cuStreamSynchronize(*stream);
    api.cuStreamDestroy(*stream);
  }
  instance.store(exec, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status PreparedKernels::Prepare(const core::KernelDesc& kernel) {
  if (kernel.id.value == 0 || kernel.id.value >= kernels_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel identifier ", kernel.id.value, " is not between 1 and ", core::kMaxKernels, "."));
  }
  const ScopedContext current(context_);
  auto prepared = std::make_unique<PreparedKernel>();
  prepared->desc = kernel;
  if (kernel.kind == core::TaskKind::kKernel) {
    if (absl::Status status = LoadFunctions(kernel, *prepared); !status.ok()) return status;
  } else if (kernel.kind == core::TaskKind::kGraph) {
    if (kernel.graph == nullptr && kernel.graph_exec == nullptr && kernel.capture == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("Graph '", kernel.name,
                       "' comes as no cudaGraph_t, no instance and no capture, and a CUDA device "
                       "needs one of them."));
    }
    for (core::PlaceIndex place = 0; place < places_.count(); ++place) {
      if (absl::Status status = Instantiate(*prepared, place); !status.ok()) return status;
    }
  }
  kernels_[kernel.id.value] = std::move(prepared);
  return absl::OkStatus();
}

absl::Status PreparedKernels::PrepareFused(core::FusedKernelDesc& fused) {
  if (fused.id.value == 0 || fused.id.value >= fused_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("Fused kernel identifier ", fused.id.value,
                                                   " is not between 1 and ", core::kMaxKernels,
                                                   "."));
  }
  if (fused.function == nullptr) {
    fused.blocks_per_sm = std::max(1, fused.blocks_per_sm);
    return absl::OkStatus();
  }
  const ScopedContext current(context_);
  const DriverApi& api = context_.api();
  auto prepared = std::make_unique<PreparedFused>();
  const CUfunction function = prepared->function = FunctionOf(fused.function);
  GPUSHARE_CU_RETURN(api, cuFuncLoad(function));
  // The function takes (header, tensor parameters, header, CUDA-core parameters).
  std::array<size_t, 4> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    size_t offset = 0;
    GPUSHARE_CU_RETURN(api, cuFuncGetParamInfo(function, i, &offset, &bytes[i]));
  }
  if (bytes[0] == sizeof(gpushare_direct_launch) && bytes[2] == sizeof(gpushare_direct_launch)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Fused kernel '", fused.name,
        "' is of form GPUSHARE_FUSED_DIRECT, a baseline for benchmarks whose launches report no "
        "end; register one of form GPUSHARE_FUSED_PLAIN or GPUSHARE_FUSED_SETMAXNREG."));
  }
  if (bytes[0] != sizeof(gpushare_worker_launch) || bytes[2] != sizeof(gpushare_worker_launch)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The parameters of fused kernel '", fused.name, "' have ", bytes[0], ", ", bytes[1], ", ",
        bytes[2], " and ", bytes[3], " bytes, and the first and third are launch headers of ",
        sizeof(gpushare_worker_launch), "."));
  }
  prepared->tensor_arguments_bytes = bytes[1];
  prepared->cuda_arguments_bytes = bytes[3];
  int threads_max = 0;
  GPUSHARE_CU_RETURN(
      api, cuFuncGetAttribute(&threads_max, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  if (fused.threads_per_block == 0) fused.threads_per_block = threads_max;
  if (fused.threads_per_block > threads_max) {
    return absl::InvalidArgumentError(
        absl::StrCat("Fused kernel '", fused.name, "' asks for ", fused.threads_per_block,
                     " threads a block, and its function allows ", threads_max, "."));
  }
  if (fused.dynamic_shared_memory_bytes > kDefaultSharedBytesMax) {
    GPUSHARE_CU_RETURN(api,
                       cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          fused.dynamic_shared_memory_bytes));
  }
  int blocks = 0;
  GPUSHARE_CU_RETURN(api, cuOccupancyMaxActiveBlocksPerMultiprocessor(
                              &blocks, function, fused.threads_per_block,
                              static_cast<size_t>(fused.dynamic_shared_memory_bytes)));
  if (blocks == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("No block of fused kernel '", fused.name, "' fits on an SM of this GPU."));
  }
  if (fused.blocks_per_sm == 0) fused.blocks_per_sm = blocks;
  prepared->threads = static_cast<unsigned int>(fused.threads_per_block);
  prepared->dynamic_shared_bytes = static_cast<unsigned int>(fused.dynamic_shared_memory_bytes);
  prepared->blocks_per_sm = std::min(blocks, fused.blocks_per_sm);
  prepared->tensor_blocks = fused.tensor_blocks;
  prepared->cuda_blocks = fused.cuda_blocks;
  fused_[fused.id.value] = std::move(prepared);
  return absl::OkStatus();
}

bool PreparedKernels::Confines(core::KernelId id, core::PlaceIndex place) const {
  const PreparedKernel* const kernel = Find(id);
  if (kernel == nullptr || kernel->desc.kind != core::TaskKind::kGraph) return true;
  return kernel->instances[static_cast<size_t>(place)].load(std::memory_order_acquire) != nullptr;
}

absl::Status PreparedKernels::AddPlace(core::PlaceIndex place) {
  const ScopedContext current(context_);
  for (const auto& kernel : kernels_) {
    if (kernel == nullptr || kernel->desc.kind != core::TaskKind::kGraph) continue;
    if (absl::Status status = Instantiate(*kernel, place); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gpushare::cuda
