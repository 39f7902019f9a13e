// Makes the instances of graphs before their first launch. See prepared_graphs.h.

#include "src/cuda/graphs/prepared_graphs.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/core/seams/capture_call.h"
#include "src/core/seams/graph_cut.h"
#include "src/cuda/driver/await_stream.h"
#include "src/cuda/driver/errors.h"
#include "src/cuda/graphs/graph_binder.h"
#include "src/cuda/graphs/node_pieces.h"
#include "src/cuda/graphs/node_times.h"
#include "src/cuda/graphs/warm_nodes.h"

namespace gpushare::cuda {
namespace {

absl::Status CannotBeConfined(const PreparedGraph& prepared) {
  return absl::UnimplementedError(absl::StrCat(
      "Graph '", prepared.desc.name, "' has a kernel that is bound to its context: ",
      prepared.functions.WhyNot(), ". So it cannot be confined; register it as not confinable."));
}

}  // namespace

PreparedGraph::~PreparedGraph() {
  if (leaked) return;
  // Destroys the whole device's instances last: other places may use some of its segments.
  for (core::PlaceIndex place = core::kMaxPlaces; place-- > 0;) DestroyAt(place);
}

CUgraphExec PreparedGraph::InstanceFor(core::PlaceIndex place) const {
  CUgraphExec instance = instances[static_cast<size_t>(place)].load(std::memory_order_acquire);
  return instance != nullptr ? instance : instances[core::kWholeDevice].load();
}

void PreparedGraph::DestroyAt(core::PlaceIndex place) {
  DestroySegmentsAt(place);
  CUgraphExec exec = instances[static_cast<size_t>(place)].exchange(nullptr);
  if (exec != nullptr && code().graph_exec == nullptr) api.cuGraphExecDestroy(exec);
}

void PreparedGraph::DestroyGroups() {
  for (CUgraphExec group : own_groups) api.cuGraphExecDestroy(group);
  own_groups.clear();
  groups.clear();
  longer.clear();
}

void PreparedGraph::DestroySegmentsAt(core::PlaceIndex place) {
  if (place == core::kWholeDevice) DestroyGroups();
  const auto at = static_cast<size_t>(place);
  for (size_t i = 0; i < segments[at].size(); ++i) {
    if (place != core::kWholeDevice && IsWhole(at, i)) continue;
    api.cuGraphExecDestroy(segments[at][i]);
  }
  segments[at].clear();
}

void PreparedGraph::DestroySegments() {
  for (core::PlaceIndex place = core::kMaxPlaces; place-- > 0;) DestroySegmentsAt(place);
}

size_t PreparedGraph::SegmentInstances() const {
  size_t count = own_groups.size();
  for (const std::vector<CUgraphExec>& at_place : segments) count += at_place.size();
  return count;
}

void PreparedGraph::Leak() {
  leaked = true;
  functions.Leak();
  for (const std::unique_ptr<NodeTwin>& twin : twins) {
    if (twin != nullptr) twin->twin.library->Leak();
  }
  static_cast<void>(original.release());
}

PreparedGraphs::~PreparedGraphs() {
  if (leaked_) return;
  const ScopedContext current(context_);
  const ScopedRelaxedCapture relaxed(context_.api());
  graphs_ = {};
}

void PreparedGraphs::Leak() {
  leaked_ = true;
  graphs_.ForEach([](PreparedGraph& graph) { graph.Leak(); });
}

void PreparedGraphs::Describe(core::KernelDesc& kernel) {
  // The caller instantiated this graph in a context of the whole device, so it runs on every SM.
  const core::GraphCode* const graph = kernel.graph();
  if (graph != nullptr && graph->graph_exec != nullptr) kernel.confinable = false;
}

// A function of a module keeps its context in a capture on another one's stream.
absl::StatusOr<GraphHandle> PreparedGraphs::Capture(PreparedGraph& prepared,
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
    answer = core::CallCapture(prepared.desc, *stream, places_.place(place).sms);
    status = GPUSHARE_CU(api, cuStreamEndCapture(*stream, &captured));
  }
  GraphHandle graph(captured, {&api});
  api.cuStreamDestroy(*stream);
  if (!answer.ok()) return answer;
  if (!status.ok()) return status;
  return Bind(prepared, std::move(graph), place);
}

// The same graph, whose kernels run in the place. UNIMPLEMENTED if one cannot leave its context.
absl::StatusOr<GraphHandle> PreparedGraphs::Bind(PreparedGraph& prepared, GraphHandle graph,
                                                 core::PlaceIndex place) const {
  if (place == core::kWholeDevice) return graph;
  GraphBinder binder(context_, places_, place, &prepared.functions);
  absl::StatusOr<bool> bound = prepared.code().capture != nullptr
                                   ? binder.BindFunctions(graph.get())
                                   : binder.BindGraph(graph.get());
  if (!bound.ok()) return bound.status();
  if (!*bound) return CannotBeConfined(prepared);
  return graph;
}

// Copies the caller's graph so that its kernels run in the place.
absl::StatusOr<GraphHandle> PreparedGraphs::CloneFor(PreparedGraph& prepared,
                                                     core::PlaceIndex place) const {
  CUgraph made = nullptr;
  const auto graph = static_cast<CUgraph>(prepared.code().graph);
  GPUSHARE_CU_RETURN(context_.api(), cuGraphClone(&made, graph));
  return Bind(prepared, GraphHandle(made, {&context_.api()}), place);
}

// Adds the nodes that warm L2. `graph` belongs to the library: a capture, or a copy of the
// application's graph.
absl::Status PreparedGraphs::AddWarmNodesTo(CUgraph graph,
                                            absl::Span<const core::MemoryRange> memory,
                                            core::PlaceIndex place) const {
  if (memory.empty()) return absl::OkStatus();
  const auto warm = static_cast<CUkernel>(warm_kernel_());
  if (warm == nullptr) return absl::UnavailableError("This build has no code for the GPU.");
  return AddWarmNodes(context_.api(), warm, places_.place(place).context, memory, graph);
}

// Makes the place's instance. Returns the graph that it was made of; null if the place gets no
// instance.
absl::StatusOr<GraphHandle> PreparedGraphs::Instantiate(PreparedGraph& prepared,
                                                        core::PlaceIndex place) const {
  const core::KernelDesc& kernel = prepared.desc;
  const core::GraphCode& code = prepared.code();
  std::atomic<CUgraphExec>& instance = prepared.instances[static_cast<size_t>(place)];
  GraphHandle none(nullptr, {&context_.api()});
  if (instance.load() != nullptr) return none;
  if (code.graph_exec != nullptr) {
    if (place == core::kWholeDevice) instance.store(static_cast<CUgraphExec>(code.graph_exec));
    return none;
  }
  if (place != core::kWholeDevice && !kernel.confinable) return none;
  absl::StatusOr<GraphHandle> graph =
      code.capture != nullptr ? Capture(prepared, place) : CloneFor(prepared, place);
  if (!graph.ok()) return graph.status();
  if (code.capture != nullptr && place == core::kWholeDevice) {
    if (absl::Status status = CheckConfinable(prepared, graph->get()); !status.ok()) return status;
  }
  if (absl::Status status = AddWarmNodesTo(graph->get(), code.warm_memory, place); !status.ok()) {
    return status;
  }
  absl::StatusOr<CUgraphExec> exec = MakeUploaded(graph->get(), place);
  if (!exec.ok()) return exec.status();
  instance.store(*exec, std::memory_order_release);
  return graph;
}

// Makes the instance of each place. `graphs` gets the graph that it was made of, by place; null
// where there is no place.
absl::Status PreparedGraphs::InstantiateEverywhere(PreparedGraph& prepared,
                                                   std::vector<GraphHandle>& graphs) const {
  for (core::PlaceIndex place = 0; place < places_.count(); ++place) {
    if (!places_.Has(place)) {
      graphs.emplace_back(nullptr, graphs[core::kWholeDevice].get_deleter());
      continue;
    }
    absl::StatusOr<GraphHandle> graph = Instantiate(prepared, place);
    if (!graph.ok()) return graph.status();
    graphs.push_back(*std::move(graph));
  }
  return absl::OkStatus();
}

// Makes an instance and puts it on the device. Null as MakeInstance.
absl::StatusOr<CUgraphExec> PreparedGraphs::MakeUploaded(CUgraph graph,
                                                         core::PlaceIndex place) const {
  absl::StatusOr<CUgraphExec> exec = MakeInstance(graph, place);
  if (!exec.ok() || *exec == nullptr) return exec;
  absl::Status status = Upload(place, absl::MakeConstSpan(&*exec, 1));
  if (status.ok()) return exec;
  if (!absl::IsDataLoss(status)) context_.api().cuGraphExecDestroy(*exec);
  return status;
}

// Null if the graph does not fit the place: a kernel of a library needs clusters of more SMs than
// the place has.
absl::StatusOr<CUgraphExec> PreparedGraphs::MakeInstance(CUgraph graph,
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
// DEADLINE_EXCEEDED if the device does not take them in time; the driver keeps what is under way.
absl::Status PreparedGraphs::Upload(core::PlaceIndex place,
                                    absl::Span<const CUgraphExec> instances) const {
  const DriverApi& api = context_.api();
  absl::StatusOr<CUstream> stream = places_.MakeStream(place, 0);
  if (!stream.ok()) return stream.status();
  absl::Status status;
  for (CUgraphExec instance : instances) {
    if (status.ok()) status = GPUSHARE_CU(api, cuGraphUpload(instance, *stream));
  }
  if (status.ok()) {
    const CUresult code = AwaitStream(api, *stream);
    status = code == CUDA_ERROR_NOT_READY
                 ? absl::DeadlineExceededError(
                       absl::StrCat("The device did not take an instance of a graph within ",
                                    kOwnWorkMax.count(), " s: other work holds it."))
                 : StatusOf(api, code, "cuStreamQuery(*stream)", __FILE__, __LINE__);
  }
  if (!absl::IsDataLoss(status)) api.cuStreamDestroy(*stream);
  return status;
}

absl::StatusOr<std::vector<int64_t>> PreparedGraphs::TimeNodes(
    const std::vector<CUgraphNode>& nodes) const {
  absl::StatusOr<CUstream> stream = places_.MakeStream(core::kWholeDevice, 0);
  if (!stream.ok()) return stream.status();
  GraphBinder binder(context_, places_, core::kWholeDevice);
  absl::StatusOr<std::vector<int64_t>> times_ns =
      MeasureNodes(context_.api(), nodes, binder, *stream);
  context_.api().cuStreamDestroy(*stream);
  return times_ns;
}

// Measures the graph in each size of place. A graph that is never cut keeps the fastest of several
// instances in each place.
absl::Status PreparedGraphs::TimePlaces(PreparedGraph& prepared,
                                        absl::Span<const GraphHandle> graphs) const {
  MeasuredPlaces measured(context_.api(), places_, prepared.instances);
  MeasuredPlaces::MakeInstance make;
  if (prepared.code().segment_ns < 0) {
    make = [&](core::PlaceIndex place) {
      return MakeUploaded(graphs[static_cast<size_t>(place)].get(), place);
    };
  }
  absl::Status status = measured.Measure(make);
  if (status.ok()) prepared.speeds = measured.Speeds();
  return status;
}

absl::Status PreparedGraphs::CutIntoSegments(PreparedGraph& prepared) const {
  const core::KernelDesc& kernel = prepared.desc;
  const core::GraphCode& code = prepared.code();
  if (code.graph_exec != nullptr) {
    prepared.cut.whole_reason = "The graph came as an instance (graph_exec), which has no nodes.";
    return absl::OkStatus();
  }
  const CUgraph graph = prepared.original.get();
  SegmentRoom room;
  room.places = kernel.confinable ? static_cast<size_t>(places_.made()) : 1;
  room.used = SegmentInstances();
  absl::StatusOr<SegmentedGraph> cut = CutGraph(
      context_.api(), graph, kernel, room,
      [this](const std::vector<CUgraphNode>& nodes) { return TimeNodes(nodes); },
      &prepared.functions);
  if (!cut.ok()) return cut.status();
  prepared.cut = *std::move(cut);
  return absl::OkStatus();
}

// The nodes that may run as workers. Their block tasks are those of the whole device, whose nodes
// were measured.
absl::Status PreparedGraphs::FindTwins(PreparedGraph& prepared) const {
  if (functions_ == nullptr || !functions_->HasTwins()) return absl::OkStatus();
  if (prepared.cut.begins.size() < 2) return absl::OkStatus();
  absl::StatusOr<NodeTwins> twins =
      FindNodeTwins(context_.api(), prepared.cut, core::SegmentNsOf(prepared.desc),
                    places_.place(core::kWholeDevice).sms,
                    [this](CUfunction function) { return functions_->TwinOf(function); });
  if (!twins.ok()) return twins.status();
  prepared.twins = *std::move(twins);
  for (const std::unique_ptr<NodeTwin>& twin : prepared.twins) {
    prepared.block_tasks_ns.push_back(twin == nullptr ? 0 : twin->block_task_ns);
  }
  return absl::OkStatus();
}

// Makes the place's instances of segments. For a segment that does not fit the place, takes the
// whole device's instance, so that the other segments stay in the place. The whole device comes
// first.
absl::Status PreparedGraphs::InstantiateSegments(PreparedGraph& prepared,
                                                 core::PlaceIndex place) const {
  const SegmentedGraph& cut = prepared.cut;
  if (cut.begins.size() < 2) return absl::OkStatus();
  if (place != core::kWholeDevice && !prepared.desc.confinable) return absl::OkStatus();
  const DriverApi& api = context_.api();
  GraphBinder binder(context_, places_, place, &prepared.functions);
  const std::vector<CUgraphExec>& whole = prepared.segments[core::kWholeDevice];
  std::vector<CUgraphExec>& segments = prepared.segments[static_cast<size_t>(place)];
  segments.reserve(cut.begins.size());
  while (segments.size() < cut.begins.size()) {
    const size_t next = segments.size();
    absl::StatusOr<GraphHandle> graph = BuildSegments(api, cut, next, next + 1, binder);
    if (!graph.ok()) return graph.status();
    absl::StatusOr<CUgraphExec> exec = MakeInstance(graph->get(), place);
    if (!exec.ok()) return exec.status();
    segments.push_back(*exec != nullptr ? *exec : whole[segments.size()]);
  }
  return Upload(place, segments);
}

// The instance of some segments that are launched as one, where the graph has none of them yet.
absl::StatusOr<CUgraphExec> PreparedGraphs::GroupOf(PreparedGraph& prepared, size_t begin,
                                                    size_t end) const {
  const SegmentedGraph& cut = prepared.cut;
  if (end == begin + 1) return prepared.segments[core::kWholeDevice][begin];
  const bool is_whole = begin == 0 && end == cut.begins.size();
  if (is_whole && !cut.programmatic) return prepared.instances[core::kWholeDevice].load();
  GraphBinder binder(context_, places_, core::kWholeDevice);
  absl::StatusOr<GraphHandle> graph = BuildSegments(context_.api(), cut, begin, end, binder);
  if (!graph.ok()) return graph.status();
  absl::StatusOr<CUgraphExec> exec = MakeInstance(graph->get(), core::kWholeDevice);
  if (exec.ok()) prepared.own_groups.push_back(*exec);
  return exec;
}

// Makes the instances of the longer cuts, the longest first. A cut for which there is no room is
// left out, and so are the shorter ones, which need more. As a graph, its groups take at most half
// of what is left. They stay: a run may be about to launch one when another graph needs room.
absl::Status PreparedGraphs::InstantiateGroups(PreparedGraph& prepared) const {
  const SegmentedGraph& cut = prepared.cut;
  const size_t segments = cut.begins.size();
  const int64_t segment_ns = std::max(core::SegmentNsOf(prepared.desc), cut.mean_ns);
  SegmentRoom room;
  room.used = SegmentInstances() + prepared.SegmentInstances();
  const size_t groups_max = room.Left() / 2;
  for (core::LongerCut& longer : core::LongerCuts(cut.durations_ns, segments, segment_ns)) {
    const std::vector<size_t>& begins = longer.begins;
    if (prepared.own_groups.size() + begins.size() > groups_max) break;
    std::vector<CUgraphExec> groups;
    for (size_t i = 0; i < begins.size(); ++i) {
      const size_t end = i + 1 < begins.size() ? begins[i + 1] : segments;
      const core::SegmentStep same =
          core::StepAt(prepared.longer, begins[i], begins[i], segments, core::kNever);
      const bool is_same = same.cut != core::SegmentStep::kOwn && same.end == end;
      absl::StatusOr<CUgraphExec> exec =
          is_same ? prepared.groups[same.cut][same.group] : GroupOf(prepared, begins[i], end);
      if (!exec.ok()) return exec.status();
      groups.push_back(*exec);
    }
    prepared.longer.push_back(std::move(longer));
    prepared.groups.push_back(std::move(groups));
  }
  if (prepared.own_groups.empty()) return absl::OkStatus();
  return Upload(core::kWholeDevice, prepared.own_groups);
}

// Cuts the graph and instantiates its segments for every place. If that fails and the device is not
// lost, the graph runs whole.
absl::Status PreparedGraphs::MakeSegments(PreparedGraph& prepared) const {
  absl::Status status = CutIntoSegments(prepared);
  if (status.ok()) status = FindTwins(prepared);
  for (core::PlaceIndex place = 0; status.ok() && place < places_.count(); ++place) {
    if (places_.Has(place)) status = InstantiateSegments(prepared, place);
  }
  if (status.ok() && prepared.cut.begins.size() > 1) {
    status = InstantiateGroups(prepared);
    if (status.ok() || absl::IsDataLoss(status)) return status;
    prepared.DestroyGroups();  // the segments are enough
    return absl::OkStatus();
  }
  if (status.ok() || absl::IsDataLoss(status)) return status;
  prepared.DestroySegments();
  prepared.twins.clear();
  prepared.block_tasks_ns.clear();
  prepared.cut = SegmentedGraph();
  prepared.cut.whole_reason = absl::StrCat("Its segments cannot be made: ", status.message());
  return absl::OkStatus();
}

size_t PreparedGraphs::SegmentInstances() const {
  size_t count = 0;
  graphs_.ForEach([&count](const PreparedGraph& graph) { count += graph.SegmentInstances(); });
  return count;
}

// A graph that no place can have would refuse places that are made later to every graph, so it is
// refused itself.
absl::Status PreparedGraphs::CheckConfinable(PreparedGraph& prepared, CUgraph graph) const {
  if (!prepared.desc.confinable) return absl::OkStatus();
  absl::StatusOr<bool> moves = GraphBinder::CanBind(context_.api(), graph, prepared.functions);
  if (!moves.ok()) return moves.status();
  return *moves ? absl::OkStatus() : CannotBeConfined(prepared);
}

// Places that are made later need the graph when the application may have destroyed its own.
absl::Status PreparedGraphs::CopyOriginal(PreparedGraph& prepared) const {
  core::GraphCode& code = *prepared.desc.graph();
  if (code.graph == nullptr || code.capture != nullptr) return absl::OkStatus();
  CUgraph copy = nullptr;
  GPUSHARE_CU_RETURN(context_.api(), cuGraphClone(&copy, static_cast<CUgraph>(code.graph)));
  prepared.original.reset(copy);
  code.graph = copy;
  return CheckConfinable(prepared, copy);
}

absl::Status PreparedGraphs::PrepareGraph(PreparedGraph& prepared) const {
  const core::KernelDesc& kernel = prepared.desc;
  const core::GraphCode& code = prepared.code();
  if (code.graph == nullptr && code.graph_exec == nullptr && code.capture == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Graph '", kernel.name,
                     "' comes as no cudaGraph_t, no instance and no capture, and a CUDA device "
                     "needs one of them."));
  }
  if (absl::Status status = CheckWarmMemory(context_, kernel); !status.ok()) {
    return status;
  }
  std::vector<GraphHandle> graphs;
  absl::Status status = CopyOriginal(prepared);
  if (status.ok()) status = InstantiateEverywhere(prepared, graphs);
  if (status.ok() && code.measure_places && kernel.confinable) {
    status = TimePlaces(prepared, graphs);
  }
  if (absl::IsDataLoss(status)) {
    for (GraphHandle& graph : graphs) static_cast<void>(graph.release());
  }
  if (!status.ok()) return status;
  if (code.capture != nullptr) prepared.original = std::move(graphs[core::kWholeDevice]);
  graphs.clear();  // before the next call that may lose the device
  return MakeSegments(prepared);
}

absl::Status PreparedGraphs::Prepare(const core::KernelDesc& kernel) {
  const ScopedContext current(context_);
  auto prepared = std::make_unique<PreparedGraph>(context_.api(), kernel, libraries_);
  prepared->functions.Offer(kernel.graph()->function_images);
  prepared->desc.graph()->function_images.clear();
  absl::Status status = PrepareGraph(*prepared);
  prepared->functions.Close();
  if (!status.ok()) {
    // The library makes no call to a device that is lost.
    if (absl::IsDataLoss(status)) prepared->Leak();
    lost_ = lost_ || absl::IsDataLoss(status);
    return status;
  }
  graphs_.Put(kernel.id, std::move(prepared));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<core::NodePiece>> PreparedGraphs::CutAtNodes(
    core::KernelId id, absl::Span<const core::NodeKernel> kernels) {
  PreparedGraph* const prepared = graphs_.Find(id);
  if (prepared == nullptr || prepared->original == nullptr) return std::vector<core::NodePiece>();
  if (kernels.empty() || functions_ == nullptr || !functions_->HasTwins()) {
    return std::vector<core::NodePiece>();
  }
  const ScopedContext current(context_);
  const DriverApi& api = context_.api();
  // Its pieces run on the whole device, so nothing has to leave its context.
  absl::StatusOr<SegmentedGraph> sorted = SortGraph(api, prepared->original.get(), false);
  if (!sorted.ok()) return sorted.status();
  if (!sorted->whole_reason.empty()) return std::vector<core::NodePiece>();
  absl::StatusOr<std::vector<int64_t>> times_ns = TimeNodes(sorted->nodes);
  if (!times_ns.ok()) return times_ns.status();
  GraphBinder binder(context_, places_, core::kWholeDevice);
  absl::StatusOr<CutPieces> cut = cuda::CutAtNodes(
      api, prepared->desc, *std::move(sorted), *times_ns, kernels,
      [this](CUfunction function) { return functions_->TwinOf(function); }, binder);
  if (!cut.ok()) return cut.status();
  auto part = cut->parts.begin();
  for (core::NodePiece& piece : cut->pieces) {
    if (piece.part.has_value()) piece.code = Keep(*part++);
  }
  return std::move(cut->pieces);
}

// Destroys the graph with the last copy of what it returns. A prepared graph has a copy of its own.
std::shared_ptr<void> PreparedGraphs::Keep(GraphHandle& graph) const {
  const auto destroy = [this](CUgraph kept) {
    if (lost_ || leaked_) return;  // the library makes no call to a device that is lost
    const ScopedContext current(context_);
    context_.api().cuGraphDestroy(kept);
  };
  return {graph.release(), destroy};
}

void PreparedGraphs::Release(core::KernelId id) {
  if (Find(id) == nullptr) return;
  const ScopedContext current(context_);
  graphs_.Erase(id);
}

core::GraphCut PreparedGraphs::CutOf(core::KernelId id) const {
  const PreparedGraph* const kernel = Find(id);
  if (kernel == nullptr) return {.segments = 1, .whole_reason = "The graph is not prepared."};
  const SegmentedGraph& cut = kernel->cut;
  const std::vector<int64_t>& durations_ns = cut.durations_ns;
  return {
      .segments = static_cast<int32_t>(std::max<size_t>(1, cut.begins.size())),
      .longest_ns =
          durations_ns.empty() ? 0 : *std::max_element(durations_ns.begin(), durations_ns.end()),
      .blocking = core::SegmentBlocking(durations_ns, core::SegmentNsOf(kernel->desc),
                                        kernel->block_tasks_ns),
      .whole_reason = cut.whole_reason,
      .evictable_segments =
          static_cast<int32_t>(std::count_if(kernel->twins.begin(), kernel->twins.end(),
                                             [](const auto& twin) { return twin != nullptr; }))};
}

absl::Span<const int64_t> PreparedGraphs::SegmentTimes(core::KernelId id) const {
  const PreparedGraph* const kernel = Find(id);
  if (kernel == nullptr) return {};
  return kernel->cut.durations_ns;
}

absl::Span<const int64_t> PreparedGraphs::BlockTasksOf(core::KernelId id) const {
  const PreparedGraph* const kernel = Find(id);
  if (kernel == nullptr) return {};
  return kernel->block_tasks_ns;
}

const NodeTwin& PreparedGraphs::TwinOf(core::KernelId id, size_t segment) const {
  return *Find(id)->twins[segment];
}

absl::Span<const core::SpeedPoint> PreparedGraphs::SpeedsOf(core::KernelId id) const {
  const PreparedGraph* const kernel = Find(id);
  if (kernel == nullptr) return {};
  return kernel->speeds;
}

absl::Span<const CUgraphExec> PreparedGraphs::SegmentsFor(core::KernelId id,
                                                          core::PlaceIndex place) const {
  const PreparedGraph* const kernel = Find(id);
  if (kernel == nullptr) return {};
  const std::vector<CUgraphExec>& segments = kernel->segments[static_cast<size_t>(place)];
  return segments.empty() ? kernel->segments[core::kWholeDevice] : segments;
}

absl::Span<const core::LongerCut> PreparedGraphs::LongerFor(core::KernelId id,
                                                            core::PlaceIndex place) const {
  const PreparedGraph* const kernel = Find(id);
  if (kernel == nullptr || place != core::kWholeDevice) return {};
  return kernel->longer;
}

absl::Span<const std::vector<CUgraphExec>> PreparedGraphs::GroupsFor(core::KernelId id,
                                                                     core::PlaceIndex place) const {
  const PreparedGraph* const kernel = Find(id);
  if (kernel == nullptr || place != core::kWholeDevice) return {};
  return kernel->groups;
}

bool PreparedGraphs::Confines(core::KernelId id, core::PlaceIndex place) const {
  const PreparedGraph* const kernel = Find(id);
  if (kernel == nullptr) return true;
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

absl::Status PreparedGraphs::AddPlaceTo(PreparedGraph& prepared, core::PlaceIndex place) const {
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

absl::Status PreparedGraphs::AddPlace(core::PlaceIndex place) {
  const ScopedContext current(context_);
  absl::Status status;
  graphs_.ForEach([&](PreparedGraph& graph) {
    if (status.ok()) status = AddPlaceTo(graph, place);
  });
  if (status.ok() || absl::IsDataLoss(status)) return status;
  graphs_.ForEach([place](PreparedGraph& graph) { graph.DestroyAt(place); });
  return status;
}

void PreparedGraphs::RemovePlace(core::PlaceIndex place) {
  const ScopedContext current(context_);
  graphs_.ForEach([place](PreparedGraph& graph) { graph.DestroyAt(place); });
}

}  // namespace gpushare::cuda
