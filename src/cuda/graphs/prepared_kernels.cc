// Loads functions and graphs before their first launch. See prepared_kernels.h.

#include "src/cuda/graphs/prepared_kernels.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gpushare/device/fused_variants.h"
#include "gpushare/device/launch.h"
#include "gpushare/device/shared_memory_split.h"
#include "src/core/checks/claim_batch.h"
#include "src/core/seams/capture_call.h"
#include "src/core/seams/graph_cut.h"
#include "src/cuda/driver/errors.h"
#include "src/cuda/graphs/graph_binder.h"
#include "src/cuda/graphs/node_times.h"
#include "src/cuda/graphs/warm_nodes.h"

namespace gpushare::cuda {
namespace {

// CUDA's limit of dynamic shared memory for a block without an opt-in.
constexpr int kDefaultSharedBytesMax = 48 * 1024;
// Per cent of an SM's memory that serves as shared memory instead of L1 cache.
constexpr int kCarveOutMax = 100;

CUfunction FunctionOf(void* handle) { return static_cast<CUfunction>(handle); }

absl::Status CheckOne(const core::KernelDesc& kernel, const char* what, int64_t value,
                      int64_t limit) {
  if (value <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Kernel '", kernel.name, "' asks for ", value, " ",
                                                 what, ", and its function allows ", limit, "."));
}

}  // namespace

PreparedKernel::~PreparedKernel() {
  if (leaked) return;
  // The whole device's last: other places may have some of its segments.
  for (core::PlaceIndex place = core::kMaxPlaces; place-- > 0;) DestroyAt(place);
}

void PreparedKernel::DestroyAt(core::PlaceIndex place) {
  DestroySegmentsAt(place);
  CUgraphExec exec = instances[static_cast<size_t>(place)].exchange(nullptr);
  if (exec != nullptr && desc.graph_exec == nullptr) api.cuGraphExecDestroy(exec);
}

void PreparedKernel::DestroySegmentsAt(core::PlaceIndex place) {
  const auto at = static_cast<size_t>(place);
  for (size_t i = 0; i < segments[at].size(); ++i) {
    if (place != core::kWholeDevice && IsWhole(at, i)) continue;
    api.cuGraphExecDestroy(segments[at][i]);
  }
  segments[at].clear();
}

void PreparedKernel::DestroySegments() {
  for (core::PlaceIndex place = core::kMaxPlaces; place-- > 0;) DestroySegmentsAt(place);
}

size_t PreparedKernel::SegmentInstances() const {
  size_t count = 0;
  for (const std::vector<CUgraphExec>& at_place : segments) count += at_place.size();
  return count;
}

void PreparedKernel::Leak() {
  leaked = true;
  static_cast<void>(captured.release());
}

PreparedKernels::~PreparedKernels() {
  if (leaked_) return;
  const ScopedContext current(context_);
  for (std::unique_ptr<PreparedKernel>& kernel : kernels_) kernel.reset();
}

void PreparedKernels::Leak() {
  leaked_ = true;
  for (const std::unique_ptr<PreparedKernel>& kernel : kernels_) {
    if (kernel != nullptr) kernel->Leak();
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
  if (kernel.worker_function != nullptr) {
    int carve_out = kCarveOutMax;
    GPUSHARE_CU_RETURN(
        api, cuFuncGetAttribute(&carve_out, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                FunctionOf(kernel.worker_function)));
    kernel.keeps_l1 = carve_out != kDefaultCarveOut && carve_out != kCarveOutMax;
  }
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
  int preferred = kDefaultCarveOut;
  GPUSHARE_CU_RETURN(
      api, cuFuncGetAttribute(&preferred, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                              prepared.function));
  if (preferred != kDefaultCarveOut) return absl::OkStatus();
  return GPUSHARE_CU(
      api, cuFuncSetAttribute(prepared.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                              kCarveOutMax));
}

// kDefaultCarveOut where it gains nothing, is the caller's choice, or is not known.
int PreparedKernels::OriginalCarveOut(const PreparedKernel& prepared) const {
  const CUfunction original = prepared.original.function;
  if (original == nullptr || !prepared.desc.keeps_l1) return kDefaultCarveOut;
  const DriverApi& api = context_.api();
  const auto threads = static_cast<int>(prepared.block_x * prepared.block_y * prepared.block_z);
  int preferred = 0;
  int shared = 0;
  int blocks = 0;
  const bool known =
      api.cuFuncGetAttribute(&preferred, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                             original) == CUDA_SUCCESS &&
      api.cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, original) ==
          CUDA_SUCCESS &&
      api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
          &blocks, original, threads, prepared.dynamic_shared_bytes) == CUDA_SUCCESS;
  if (!known || preferred != kDefaultCarveOut || blocks <= 0) return kDefaultCarveOut;
  const int reserved = context_.Attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  const int of_sm = context_.Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  return device::SharedMemorySplitPercent(
      blocks, static_cast<size_t>(shared) + prepared.dynamic_shared_bytes,
      static_cast<size_t>(reserved), static_cast<size_t>(of_sm));
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
  prepared.original_carve_out = OriginalCarveOut(prepared);
  return absl::OkStatus();
}

absl::StatusOr<GraphHandle> PreparedKernels::Capture(const core::KernelDesc& kernel,
                                                     core::PlaceIndex place) const {
  const DriverApi& api = context_.api();
  absl::StatusOr<CUstream> stream = places_.MakeStream(place, 0);
  if (!stream.ok()) return stream.status();
  CUgraph captured = nullptr;
  absl::Status answer;
  // Relaxed mode: this capture and other threads' captures do not disturb each other.
  absl::Status status =
      GPUSHARE_CU(api, cuStreamBeginCapture(*stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  if (status.ok()) {
    answer = core::CallCapture(kernel, *stream, places_.place(place).sms);
    status = GPUSHARE_CU(api, cuStreamEndCapture(*stream, &captured));
  }
  GraphHandle graph(captured, {&api});
  api.cuStreamDestroy(*stream);
  if (answer.ok() && status.ok()) return graph;
  return answer.ok() ? status : answer;
}

// Copies the caller's graph so that its kernels run in the place. Null if they cannot be confined.
absl::StatusOr<GraphHandle> PreparedKernels::CloneFor(CUgraph graph, core::PlaceIndex place) const {
  CUgraph made = nullptr;
  GPUSHARE_CU_RETURN(context_.api(), cuGraphClone(&made, graph));
  GraphHandle clone(made, {&context_.api()});
  if (place == core::kWholeDevice) return clone;
  GraphBinder binder(context_, places_, place);
  absl::StatusOr<bool> bound = binder.BindGraph(made);
  if (!bound.ok()) return bound.status();
  if (!*bound) clone = nullptr;
  return clone;
}

// To a graph of the library's own: a capture, or a copy of the application's.
absl::Status PreparedKernels::AddWarmNodesTo(CUgraph graph, const core::KernelDesc& kernel,
                                             core::PlaceIndex place) const {
  if (kernel.warm_memory.empty()) return absl::OkStatus();
  const auto warm = static_cast<CUkernel>(warm_kernel_());
  if (warm == nullptr) return absl::UnavailableError("This build has no code for the GPU.");
  return AddWarmNodes(context_.api(), warm, places_.place(place).context, kernel.warm_memory,
                      graph);
}

// The graph of the new instance; null where the place gets none.
absl::StatusOr<GraphHandle> PreparedKernels::Instantiate(PreparedKernel& prepared,
                                                         core::PlaceIndex place) const {
  const core::KernelDesc& kernel = prepared.desc;
  std::atomic<CUgraphExec>& instance = prepared.instances[static_cast<size_t>(place)];
  GraphHandle none(nullptr, {&context_.api()});
  if (instance.load() != nullptr) return none;
  if (kernel.graph_exec != nullptr) {
    if (place == core::kWholeDevice) instance.store(static_cast<CUgraphExec>(kernel.graph_exec));
    return none;
  }
  if (place != core::kWholeDevice && !kernel.confinable) return none;
  absl::StatusOr<GraphHandle> graph = kernel.capture != nullptr
                                          ? Capture(kernel, place)
                                          : CloneFor(static_cast<CUgraph>(kernel.graph), place);
  if (!graph.ok()) return graph.status();
  if (*graph == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Graph '", kernel.name,
                     "' has a kernel that is bound to its context (a CUfunction of a "
                     "module), so it cannot be confined; register it as not confinable."));
  }
  if (absl::Status status = AddWarmNodesTo(graph->get(), kernel, place); !status.ok()) {
    return status;
  }
  absl::StatusOr<CUgraphExec> exec = MakeUploaded(graph->get(), place);
  if (!exec.ok()) return exec.status();
  instance.store(*exec, std::memory_order_release);
  return graph;
}

// The graph of each place goes to `graphs`.
absl::Status PreparedKernels::InstantiateEverywhere(PreparedKernel& prepared,
                                                    std::vector<GraphHandle>& graphs) const {
  for (core::PlaceIndex place = 0; place < places_.count(); ++place) {
    absl::StatusOr<GraphHandle> graph = Instantiate(prepared, place);
    if (!graph.ok()) return graph.status();
    graphs.push_back(*std::move(graph));
  }
  return absl::OkStatus();
}

// An uploaded one. Null: a library's kernel with clusters needs more SMs than the place has.
absl::StatusOr<CUgraphExec> PreparedKernels::MakeUploaded(CUgraph graph,
                                                          core::PlaceIndex place) const {
  absl::StatusOr<CUgraphExec> exec = MakeInstance(graph, place);
  if (exec.ok() && *exec != nullptr) Upload(place, absl::MakeConstSpan(&*exec, 1));
  return exec;
}

absl::StatusOr<CUgraphExec> PreparedKernels::MakeInstance(CUgraph graph,
                                                          core::PlaceIndex place) const {
  const DriverApi& api = context_.api();
  CUgraphExec exec = nullptr;
  const CUresult code = api.cuGraphInstantiate(&exec, graph, 0);
  if (code == CUDA_ERROR_INVALID_CLUSTER_SIZE && place != core::kWholeDevice) return nullptr;
  absl::Status status = StatusOf(api, code, "cuGraphInstantiate", __FILE__, __LINE__);
  if (!status.ok()) return status;
  return exec;
}

// Puts instances on the device, so that their first launch does not wait for that.
void PreparedKernels::Upload(core::PlaceIndex place,
                             absl::Span<const CUgraphExec> instances) const {
  absl::StatusOr<CUstream> stream = places_.MakeStream(place, 0);
  if (!stream.ok()) return;
  for (CUgraphExec instance : instances) context_.api().cuGraphUpload(instance, *stream);
  context_.api().cuStreamSynchronize(*stream);
  context_.api().cuStreamDestroy(*stream);
}

absl::StatusOr<std::vector<int64_t>> PreparedKernels::TimeNodes(
    const std::vector<CUgraphNode>& nodes) const {
  absl::StatusOr<CUstream> stream = places_.MakeStream(core::kWholeDevice, 0);
  if (!stream.ok()) return stream.status();
  GraphBinder binder(context_, places_, core::kWholeDevice);
  absl::StatusOr<std::vector<int64_t>> times_ns =
      MeasureNodes(context_.api(), nodes, binder, *stream);
  context_.api().cuStreamDestroy(*stream);
  return times_ns;
}

// A graph that is never cut keeps the fastest of several instances in each place.
absl::Status PreparedKernels::TimePlaces(PreparedKernel& prepared,
                                         absl::Span<const GraphHandle> graphs) const {
  MeasuredPlaces measured(context_.api(), places_, prepared.instances);
  MeasuredPlaces::MakeInstance make;
  if (prepared.desc.segment_ns < 0) {
    make = [&](core::PlaceIndex place) {
      return MakeUploaded(graphs[static_cast<size_t>(place)].get(), place);
    };
  }
  absl::Status status = measured.Measure(make);
  if (status.ok()) prepared.speeds = measured.Speeds();
  return status;
}

absl::Status PreparedKernels::CutIntoSegments(PreparedKernel& prepared) const {
  const core::KernelDesc& kernel = prepared.desc;
  if (kernel.graph_exec != nullptr) {
    prepared.cut.whole_reason = "The graph came as an instance (graph_exec), which has no nodes.";
    return absl::OkStatus();
  }
  const CUgraph graph =
      kernel.capture != nullptr ? prepared.captured.get() : static_cast<CUgraph>(kernel.graph);
  SegmentRoom room;
  room.places = kernel.confinable ? static_cast<size_t>(places_.count()) : 1;
  room.used = SegmentInstances();
  absl::StatusOr<SegmentedGraph> cut =
      CutGraph(context_.api(), graph, kernel, room,
               [this](const std::vector<CUgraphNode>& nodes) { return TimeNodes(nodes); });
  if (!cut.ok()) return cut.status();
  prepared.cut = *std::move(cut);
  return absl::OkStatus();
}

// A segment that does not fit the place is there the one of the whole device, so that the others
// stay in the place. The whole device is the first place.
absl::Status PreparedKernels::InstantiateSegments(PreparedKernel& prepared,
                                                  core::PlaceIndex place) const {
  const SegmentedGraph& cut = prepared.cut;
  if (cut.begins.size() < 2) return absl::OkStatus();
  if (place != core::kWholeDevice && !prepared.desc.confinable) return absl::OkStatus();
  const DriverApi& api = context_.api();
  GraphBinder binder(context_, places_, place);
  const std::vector<CUgraphExec>& whole = prepared.segments[core::kWholeDevice];
  std::vector<CUgraphExec>& segments = prepared.segments[static_cast<size_t>(place)];
  segments.reserve(cut.begins.size());
  while (segments.size() < cut.begins.size()) {
    absl::StatusOr<GraphHandle> graph = BuildSegment(api, cut, segments.size(), binder);
    if (!graph.ok()) return graph.status();
    absl::StatusOr<CUgraphExec> exec = MakeInstance(graph->get(), place);
    if (!exec.ok()) return exec.status();
    segments.push_back(*exec != nullptr ? *exec : whole[segments.size()]);
  }
  Upload(place, segments);
  return absl::OkStatus();
}

// Cuts the graph and instantiates its segments for every place. A graph of which that fails runs
// whole, unless the device is lost.
absl::Status PreparedKernels::MakeSegments(PreparedKernel& prepared) const {
  absl::Status status = CutIntoSegments(prepared);
  for (core::PlaceIndex place = 0; status.ok() && place < places_.count(); ++place) {
    status = InstantiateSegments(prepared, place);
  }
  if (status.ok() || absl::IsDataLoss(status)) return status;
  prepared.DestroySegments();
  prepared.cut = SegmentedGraph();
  prepared.cut.whole_reason = absl::StrCat("Its segments cannot be made: ", status.message());
  return absl::OkStatus();
}

size_t PreparedKernels::SegmentInstances() const {
  size_t count = 0;
  for (const auto& kernel : kernels_) {
    if (kernel != nullptr) count += kernel->SegmentInstances();
  }
  return count;
}

absl::Status PreparedKernels::PrepareGraph(PreparedKernel& prepared) const {
  const core::KernelDesc& kernel = prepared.desc;
  if (kernel.graph == nullptr && kernel.graph_exec == nullptr && kernel.capture == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Graph '", kernel.name,
                     "' comes as no cudaGraph_t, no instance and no capture, and a CUDA device "
                     "needs one of them."));
  }
  if (absl::Status status = CheckWarmMemory(context_, kernel); !status.ok()) {
    return status;
  }
  std::vector<GraphHandle> graphs;
  absl::Status status = InstantiateEverywhere(prepared, graphs);
  if (status.ok() && kernel.measure_places && kernel.confinable) {
    status = TimePlaces(prepared, graphs);
  }
  if (absl::IsDataLoss(status)) {
    for (GraphHandle& graph : graphs) static_cast<void>(graph.release());
  }
  if (!status.ok()) return status;
  if (kernel.capture != nullptr) prepared.captured = std::move(graphs[core::kWholeDevice]);
  graphs.clear();  // before the next call that may lose the device
  return MakeSegments(prepared);
}

absl::Status PreparedKernels::Prepare(const core::KernelDesc& kernel) {
  if (kernel.id.value == 0 || kernel.id.value >= kernels_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel identifier ", kernel.id.value, " is not between 1 and ", core::kMaxKernels, "."));
  }
  const ScopedContext current(context_);
  auto prepared = std::make_unique<PreparedKernel>(context_.api(), kernel);
  absl::Status status;
  if (kernel.kind == core::TaskKind::kKernel) status = LoadFunctions(kernel, *prepared);
  if (kernel.kind == core::TaskKind::kGraph) status = PrepareGraph(*prepared);
  if (!status.ok()) {
    // The library makes no call to a device that is lost.
    if (absl::IsDataLoss(status)) prepared->Leak();
    return status;
  }
  kernels_[kernel.id.value] = std::move(prepared);
  return absl::OkStatus();
}

void PreparedKernels::Release(core::KernelId id) {
  if (Find(id) == nullptr) return;
  const ScopedContext current(context_);
  kernels_[id.value].reset();
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

core::GraphCut PreparedKernels::CutOf(core::KernelId id) const {
  const PreparedKernel* const kernel = Find(id);
  if (kernel == nullptr) return {.segments = 1, .whole_reason = "The graph is not prepared."};
  const SegmentedGraph& cut = kernel->cut;
  const std::vector<int64_t>& durations_ns = cut.durations_ns;
  return {.segments = static_cast<int32_t>(std::max<size_t>(1, cut.begins.size())),
          .longest_ns = durations_ns.empty()
                            ? 0
                            : *std::max_element(durations_ns.begin(), durations_ns.end()),
          .blocking = core::SegmentBlocking(durations_ns, core::SegmentNsOf(kernel->desc)),
          .whole_reason = cut.whole_reason};
}

absl::Span<const int64_t> PreparedKernels::SegmentTimes(core::KernelId id) const {
  const PreparedKernel* const kernel = Find(id);
  if (kernel == nullptr) return {};
  return kernel->cut.durations_ns;
}

absl::Span<const core::SpeedPoint> PreparedKernels::SpeedsOf(core::KernelId id) const {
  const PreparedKernel* const kernel = Find(id);
  if (kernel == nullptr) return {};
  return kernel->speeds;
}

absl::Span<const CUgraphExec> PreparedKernels::SegmentsFor(core::KernelId id,
                                                           core::PlaceIndex place) const {
  const PreparedKernel* const kernel = Find(id);
  if (kernel == nullptr) return {};
  const std::vector<CUgraphExec>& segments = kernel->segments[static_cast<size_t>(place)];
  return segments.empty() ? kernel->segments[core::kWholeDevice] : segments;
}

bool PreparedKernels::Confines(core::KernelId id, core::PlaceIndex place) const {
  const PreparedKernel* const kernel = Find(id);
  if (kernel == nullptr || kernel->desc.kind != core::TaskKind::kGraph) return true;
  const auto at = static_cast<size_t>(place);
  if (kernel->instances[at].load(std::memory_order_acquire) == nullptr) return false;
  const size_t segments = kernel->segments[core::kWholeDevice].size();
  if (place == core::kWholeDevice || segments == 0) return true;
  if (kernel->segments[at].empty()) return false;
  for (size_t i = 0; i < segments; ++i) {
    if (kernel->IsWhole(at, i)) return false;
  }
  return true;
}

absl::Status PreparedKernels::AddPlaceTo(PreparedKernel& prepared, core::PlaceIndex place) const {
  if (absl::Status status = Instantiate(prepared, place).status(); !status.ok()) return status;
  const size_t segments = prepared.desc.confinable ? prepared.cut.begins.size() : 0;
  const size_t used = SegmentInstances();
  if (used + segments > kMaxSegmentInstances) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "Graph '", prepared.desc.name, "' needs ", segments,
        " instances of segments in a new place, and the device has ", used, " of at most ",
        kMaxSegmentInstances, "; make places before graphs, or make segments longer."));
  }
  return InstantiateSegments(prepared, place);
}

absl::Status PreparedKernels::AddPlace(core::PlaceIndex place) {
  const ScopedContext current(context_);
  absl::Status status;
  for (const auto& kernel : kernels_) {
    if (kernel == nullptr || kernel->desc.kind != core::TaskKind::kGraph) continue;
    status = AddPlaceTo(*kernel, place);
    if (!status.ok()) break;
  }
  if (status.ok() || absl::IsDataLoss(status)) return status;
  for (const auto& kernel : kernels_) {
    if (kernel != nullptr) kernel->DestroyAt(place);
  }
  return status;
}

}  // namespace gpushare::cuda
