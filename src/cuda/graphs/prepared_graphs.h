// What registration leaves of graphs: for each place an instance, or the instances of segments.
//
// Instances are made and put on the device ahead, because doing so at the first launch would wait
// for BE workers.
// Invariants: an entry that Find returns never changes, except that instances for new places are
// added, and stays until its graph is released.
// Threads: one at a time prepares and releases; any calls Find.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_PREPARED_GRAPHS_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_PREPARED_GRAPHS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/core/base/limits.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/node_cut.h"
#include "src/core/seams/segment_lengths.h"
#include "src/cuda/code/kernel_table.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/places.h"
#include "src/cuda/graphs/function_kernels.h"
#include "src/cuda/graphs/graph_handle.h"
#include "src/cuda/graphs/graph_segments.h"
#include "src/cuda/graphs/measured_places.h"
#include "src/cuda/graphs/node_twins.h"
#include "src/cuda/graphs/warm_kernel.h"

namespace gpushare::cuda {

// Owns its graphs and their instances. The primary context is current when it is destroyed.
struct PreparedGraph {
  PreparedGraph(const DriverApi& driver, const core::KernelDesc& kernel, KernelLibraries& libraries)
      : api(driver), desc(kernel), functions(driver, libraries), original(nullptr, {&api}) {}
  ~PreparedGraph();
  PreparedGraph(const PreparedGraph&) = delete;
  PreparedGraph& operator=(const PreparedGraph&) = delete;

  const core::GraphCode& code() const { return *desc.graph(); }
  // The instance to launch in the place. The whole device's where the place is too small for one
  // of the graph's kernels: the graph then runs on every SM, in the lane's order.
  CUgraphExec InstanceFor(core::PlaceIndex place) const;
  // Destroys the place's instances.
  void DestroyAt(core::PlaceIndex place);
  void DestroySegmentsAt(core::PlaceIndex place);
  void DestroySegments();
  void DestroyGroups();
  // Whether the place runs this segment by the whole device's instance.
  bool IsWhole(size_t place, size_t segment) const {
    return segments[place][segment] == segments[core::kWholeDevice][segment];
  }
  // How many instances of segments and of groups of them the graph has in all places.
  size_t SegmentInstances() const;
  // Keeps everything until the process ends: the context is lost or busy.
  void Leak();

  const DriverApi& api;
  core::KernelDesc desc;
  FunctionKernels functions;  // of its kernels
  GraphInstances instances{};
  // How the graph is cut, and the instances of its segments by place. If a segment does not fit a
  // place, the place has the whole device's instance. Complete before the place's first lane is
  // made.
  SegmentedGraph cut;
  std::array<std::vector<CUgraphExec>, core::kMaxPlaces> segments;
  NodeTwins twins;                      // of the segments that may run as workers
  std::vector<int64_t> block_tasks_ns;  // one block task of each of these, 0 for others
  // The longer cuts, and the instance of each of their groups: on the whole device alone, because
  // elsewhere graphs run beside LC work. A group of one segment, and one that a longer cut has too,
  // share an instance. What is in `own_groups` is destroyed.
  std::vector<core::LongerCut> longer;
  std::vector<std::vector<CUgraphExec>> groups;
  std::vector<CUgraphExec> own_groups;
  std::vector<core::SpeedPoint> speeds;  // empty unless the graph was measured in its places
  // The capture for the whole device, or a copy of the application's graph, of which instances for
  // places that are made later come; `cut` names its nodes.
  GraphHandle original;
  bool leaked = false;
};

class PreparedGraphs {
 public:
  // `warm_kernel`: WarmKernel, or a test's. `functions`: the kernels whose twins nodes may have;
  // null: none.
  PreparedGraphs(const Context& context, const Places& places, void* (*warm_kernel)() = &WarmKernel,
                 const PreparedFunctions* functions = nullptr)
      : context_(context),
        places_(places),
        warm_kernel_(warm_kernel),
        functions_(functions),
        libraries_(context.api()) {}
  ~PreparedGraphs();
  PreparedGraphs(const PreparedGraphs&) = delete;
  PreparedGraphs& operator=(const PreparedGraphs&) = delete;

  // Says of a graph that came as an instance that no place confines it. Leaves other work as it is.
  static void Describe(core::KernelDesc& kernel);
  // Makes the instances of a kernel that is a graph, whose identifier passed CheckKernelId.
  absl::Status Prepare(const core::KernelDesc& kernel);
  // The pieces of a prepared graph that is never cut into segments (node_pieces.h), after a run of
  // its nodes that measures them. Each part's graph stays as long as NodePiece::code.
  absl::StatusOr<std::vector<core::NodePiece>> CutAtNodes(
      core::KernelId id, absl::Span<const core::NodeKernel> kernels);
  // Destroys what Prepare made of the graph, which has no launch and gets none.
  void Release(core::KernelId id);
  // Makes the instances of the prepared graphs in a new place. After an error no graph has one
  // there.
  absl::Status AddPlace(core::PlaceIndex place);
  // Destroys the instances in a place that has no launch and gets none.
  void RemovePlace(core::PlaceIndex place);

  const PreparedGraph* Find(core::KernelId id) const { return graphs_.Find(id); }
  // How the prepared graph is cut.
  core::GraphCut CutOf(core::KernelId id) const;
  // The instances of the graph's segments for the place; the whole device's if the place has none.
  absl::Span<const CUgraphExec> SegmentsFor(core::KernelId id, core::PlaceIndex place) const;
  // The longer cuts of the graph for the place, and the instances of their groups; empty: none.
  absl::Span<const core::LongerCut> LongerFor(core::KernelId id, core::PlaceIndex place) const;
  absl::Span<const std::vector<CUgraphExec>> GroupsFor(core::KernelId id,
                                                       core::PlaceIndex place) const;
  // How long each segment takes alone on the whole device, in ns; empty if it was not measured.
  absl::Span<const int64_t> SegmentTimes(core::KernelId id) const;
  // One block task of each segment that may run as workers, 0 for others; empty: none may.
  absl::Span<const int64_t> BlockTasksOf(core::KernelId id) const;
  // The twin of such a segment's node.
  const NodeTwin& TwinOf(core::KernelId id, size_t segment) const;
  // How fast the graph is in each size of place; empty if it was not measured.
  absl::Span<const core::SpeedPoint> SpeedsOf(core::KernelId id) const;
  // Whether launches in the place stay on its SMs. False for a graph that has no instance there.
  bool Confines(core::KernelId id, core::PlaceIndex place) const;

  void Leak();

 private:
  absl::StatusOr<GraphHandle> Instantiate(PreparedGraph& prepared, core::PlaceIndex place) const;
  absl::Status InstantiateEverywhere(PreparedGraph& prepared,
                                     std::vector<GraphHandle>& graphs) const;
  absl::StatusOr<GraphHandle> Capture(PreparedGraph& prepared, core::PlaceIndex place) const;
  absl::StatusOr<GraphHandle> CloneFor(PreparedGraph& prepared, core::PlaceIndex place) const;
  absl::StatusOr<GraphHandle> Bind(PreparedGraph& prepared, GraphHandle graph,
                                   core::PlaceIndex place) const;
  absl::Status AddWarmNodesTo(CUgraph graph, absl::Span<const core::MemoryRange> memory,
                              core::PlaceIndex place) const;
  absl::StatusOr<CUgraphExec> MakeUploaded(CUgraph graph, core::PlaceIndex place) const;
  absl::StatusOr<CUgraphExec> MakeInstance(CUgraph graph, core::PlaceIndex place) const;
  absl::Status Upload(core::PlaceIndex place, absl::Span<const CUgraphExec> instances) const;
  absl::StatusOr<std::vector<int64_t>> TimeNodes(const std::vector<CUgraphNode>& nodes) const;
  absl::Status TimePlaces(PreparedGraph& prepared, absl::Span<const GraphHandle> graphs) const;
  absl::Status MakeSegments(PreparedGraph& prepared) const;
  absl::Status CheckConfinable(PreparedGraph& prepared, CUgraph graph) const;
  absl::Status CopyOriginal(PreparedGraph& prepared) const;
  absl::Status PrepareGraph(PreparedGraph& prepared) const;
  absl::Status AddPlaceTo(PreparedGraph& prepared, core::PlaceIndex place) const;
  size_t SegmentInstances() const;
  absl::Status CutIntoSegments(PreparedGraph& prepared) const;
  absl::Status FindTwins(PreparedGraph& prepared) const;
  std::shared_ptr<void> Keep(GraphHandle& graph) const;
  absl::Status InstantiateSegments(PreparedGraph& prepared, core::PlaceIndex place) const;
  absl::Status InstantiateGroups(PreparedGraph& prepared) const;
  absl::StatusOr<CUgraphExec> GroupOf(PreparedGraph& prepared, size_t begin, size_t end) const;

  const Context& context_;
  const Places& places_;
  void* (*const warm_kernel_)();
  const PreparedFunctions* const functions_;
  bool leaked_ = false;
  bool lost_ = false;          // a call has found the device lost
  KernelLibraries libraries_;  // of kernels that the graphs have
  KernelTable<PreparedGraph> graphs_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_PREPARED_GRAPHS_H_
