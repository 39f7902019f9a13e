// What registration leaves for launches: loaded functions with their attributes, and one graph
// instance for each place.
//
// Everything is loaded ahead (modules, local memory, graphs), because implicit loading at the first
// launch would wait for BE workers.
// Invariants: an entry that Find returns never changes, except that instances for new places are
// added, and stays until its kernel is released.
// Threads: one at a time prepares and releases; any calls Find.

#ifndef GPUSHARE_SRC_CUDA_GRAPHS_PREPARED_KERNELS_H_
#define GPUSHARE_SRC_CUDA_GRAPHS_PREPARED_KERNELS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "src/core/base/limits.h"
#include "src/core/seams/kernel.h"
#include "src/cuda/code/parameter_layout.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/places.h"
#include "src/cuda/graphs/graph_handle.h"
#include "src/cuda/graphs/graph_segments.h"
#include "src/cuda/graphs/measured_places.h"
#include "src/cuda/graphs/warm_kernel.h"

namespace gpushare::cuda {

// A carve-out that the driver chooses.
inline constexpr int kDefaultCarveOut = -1;

struct PreparedFunction {
  CUfunction function = nullptr;
  // of workers and slices: the launch header, then the task's parameters
  ParameterLayout parameters;
};

// Owns its graphs and their instances. The primary context is current when it is destroyed.
struct PreparedKernel {
  PreparedKernel(const DriverApi& driver, const core::KernelDesc& kernel)
      : api(driver), desc(kernel), captured(nullptr, {&api}) {}
  ~PreparedKernel();
  PreparedKernel(const PreparedKernel&) = delete;
  PreparedKernel& operator=(const PreparedKernel&) = delete;

  // Destroys what the place has.
  void DestroyAt(core::PlaceIndex place);
  void DestroySegmentsAt(core::PlaceIndex place);
  void DestroySegments();
  // Whether the place's segment is that of the whole device.
  bool IsWhole(size_t place, size_t segment) const {
    return segments[place][segment] == segments[core::kWholeDevice][segment];
  }
  // How many instances its segments have.
  size_t SegmentInstances() const;
  // Keeps everything until the process ends: the context is lost or busy.
  void Leak();

  const DriverApi& api;
  core::KernelDesc desc;
  PreparedFunction original;
  PreparedFunction worker;
  PreparedFunction slice;  // the worker function if the kernel has no slice function
  unsigned int block_x = 1, block_y = 1, block_z = 1;
  unsigned int dynamic_shared_bytes = 0;
  // Of the original function, where its body keeps L1: the shared memory that all its blocks need,
  // per cent of an SM's memory.
  int original_carve_out = kDefaultCarveOut;
  int32_t workers_per_sm = 1;
  uint32_t claim_batch = 1;
  bool yields = false;  // block tasks have yield points
  GraphInstances instances{};
  // A graph that is cut: how, and by place its segments. One that does not fit the place is there
  // the whole device's. Both are complete before the first lane of the place is made.
  SegmentedGraph cut;
  std::array<std::vector<CUgraphExec>, core::kMaxPlaces> segments;
  std::vector<core::SpeedPoint> speeds;  // of a graph whose places were measured
  GraphHandle captured;  // the capture for the whole device, which `cut` names the nodes of
  bool leaked = false;
};

struct PreparedFused {
  CUfunction function = nullptr;
  unsigned int threads = 1;
  unsigned int dynamic_shared_bytes = 0;
  int32_t blocks_per_sm = 1;
  int32_t tensor_blocks = 1;
  int32_t cuda_blocks = 1;
  // Bytes that the function reads at the address of each part's parameters.
  size_t tensor_arguments_bytes = 0;
  size_t cuda_arguments_bytes = 0;
};

class PreparedKernels {
 public:
  // `warm_kernel`: WarmKernel, or a test's.
  PreparedKernels(const Context& context, const Places& places,
                  void* (*warm_kernel)() = &WarmKernel)
      : context_(context), places_(places), warm_kernel_(warm_kernel) {}
  ~PreparedKernels();
  PreparedKernels(const PreparedKernels&) = delete;
  PreparedKernels& operator=(const PreparedKernels&) = delete;

  // Derives from the functions what the caller left at 0 (src/core/seams/device.h).
  absl::Status Describe(core::KernelDesc& kernel) const;
  absl::Status Prepare(const core::KernelDesc& kernel);
  // Destroys what Prepare made of the kernel, which has no launch and gets none.
  void Release(core::KernelId id);
  // Prepares a fused kernel and fills in what its function says. Accepts one without a function,
  // which cannot be launched.
  absl::Status PrepareFused(core::FusedKernelDesc& fused);
  // Call after making a place: prepared graphs get an instance there. After an error no graph has
  // one.
  absl::Status AddPlace(core::PlaceIndex place);

  const PreparedKernel* Find(core::KernelId id) const {
    return id.value < kernels_.size() ? kernels_[id.value].get() : nullptr;
  }
  const PreparedFused* FindFused(core::KernelId id) const {
    return id.value < fused_.size() ? fused_[id.value].get() : nullptr;
  }
  // How the prepared graph is cut.
  core::GraphCut CutOf(core::KernelId id) const;
  // The graph's segments for the place; for the whole device where it has none.
  absl::Span<const CUgraphExec> SegmentsFor(core::KernelId id, core::PlaceIndex place) const;
  // How long each takes alone on the whole device; empty where nobody measured it.
  absl::Span<const int64_t> SegmentTimes(core::KernelId id) const;
  absl::Span<const core::SpeedPoint> SpeedsOf(core::KernelId id) const;
  // Whether launches in the place stay on its SMs. False for a graph that has no instance there.
  bool Confines(core::KernelId id, core::PlaceIndex place) const;

  void Leak();

 private:
  absl::Status LoadFunction(const core::KernelDesc& kernel, void* handle, size_t headers,
                            PreparedFunction& prepared) const;
  int OriginalCarveOut(const PreparedKernel& prepared) const;
  absl::Status LoadFunctions(const core::KernelDesc& kernel, PreparedKernel& prepared) const;
  absl::StatusOr<GraphHandle> Instantiate(PreparedKernel& prepared, core::PlaceIndex place) const;
  absl::Status InstantiateEverywhere(PreparedKernel& prepared,
                                     std::vector<GraphHandle>& graphs) const;
  absl::StatusOr<GraphHandle> Capture(const core::KernelDesc& kernel, core::PlaceIndex place) const;
  absl::StatusOr<GraphHandle> CloneFor(CUgraph graph, core::PlaceIndex place) const;
  absl::Status AddWarmNodesTo(CUgraph graph, const core::KernelDesc& kernel,
                              core::PlaceIndex place) const;
  absl::StatusOr<CUgraphExec> MakeUploaded(CUgraph graph, core::PlaceIndex place) const;
  absl::StatusOr<CUgraphExec> MakeInstance(CUgraph graph, core::PlaceIndex place) const;
  void Upload(core::PlaceIndex place, absl::Span<const CUgraphExec> instances) const;
  absl::StatusOr<std::vector<int64_t>> TimeNodes(const std::vector<CUgraphNode>& nodes) const;
  absl::Status TimePlaces(PreparedKernel& prepared, absl::Span<const GraphHandle> graphs) const;
  absl::Status MakeSegments(PreparedKernel& prepared) const;
  absl::Status PrepareGraph(PreparedKernel& prepared) const;
  absl::Status AddPlaceTo(PreparedKernel& prepared, core::PlaceIndex place) const;
  size_t SegmentInstances() const;
  absl::Status CutIntoSegments(PreparedKernel& prepared) const;
  absl::Status InstantiateSegments(PreparedKernel& prepared, core::PlaceIndex place) const;

  const Context& context_;
  const Places& places_;
  void* (*const warm_kernel_)();
  bool leaked_ = false;
  std::array<std::unique_ptr<PreparedKernel>, core::kMaxKernels + 1> kernels_;
  std::array<std::unique_ptr<PreparedFused>, core::kMaxKernels + 1> fused_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_GRAPHS_PREPARED_KERNELS_H_
