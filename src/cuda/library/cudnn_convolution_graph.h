// A convolution with cuDNN's graph interface. Unlike the immediate function, its engines can take
// an SM count. Only files that have cudnn.h include it.
//
// It handles alpha 1, beta 0 and operands at multiples of kGraphAlignment. It uses the first engine
// from the heuristics (mode A, then the fallback list) that takes the SM count and needs at most
// kWorkspaceBytes of workspace. float32 keeps its precision: engines that round it for Tensor
// cores, or accumulate with fewer bits, are skipped.
//
// Each call gives cuDNN a pack of its pointers. The object keeps kPacks packs and replaces the
// oldest, so a call that returns to earlier pointers allocates nothing.
//
// Threads: one at a time, also for Execute, because cuDNN does not promise that two threads may run
// one execution plan at once. cudnn_convolution.h describes how lanes share it.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_CONVOLUTION_GRAPH_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_CONVOLUTION_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/library/cudnn_common.h"
#include "src/cuda/library/cudnn_graph_descriptor.h"

namespace gpushare::cuda {

inline constexpr size_t kGraphAlignment = 16;  // in bytes, for the operands and the workspace

class ConvolutionGraph {
 public:
  // `api` must outlive the object.
  ConvolutionGraph(const CudnnApi& api, const core::LibraryCall& call) : api_(api), call_(call) {}

  // `output`: dimensions of the result. `sm_target`: SMs that the engine should use, 0 for all.
  // Errors: NOT_FOUND if no engine can do it; otherwise cuDNN's error.
  absl::Status Make(cudnnHandle_t handle, const CudnnDimensions& output, int32_t sm_target);

  // True if the object keeps a pack of these pointers.
  bool HasPack(const core::LibraryArguments& arguments, const void* workspace) const {
    return Find({arguments.a, arguments.b, arguments.d, workspace}) != nullptr;
  }

  // True if a call with new pointers replaces no pack.
  bool HasRoom() const { return packs_[oldest_].descriptor == nullptr; }

  // Uses only arguments.a, b and d: alpha is 1 and beta 0.
  absl::Status Execute(cudnnHandle_t handle, void* workspace,
                       const core::LibraryArguments& arguments);

 private:
  static constexpr size_t kPacks = 16;

  using Pointers = std::array<const void*, 4>;  // a, b, d, workspace

  struct Pack {
    Pointers pointers{};
    GraphDescriptor descriptor;
  };

  absl::Status Describe(cudnnHandle_t handle, const CudnnDimensions& output);
  absl::Status DescribeTensor(int64_t id, const CudnnDimensions& dimensions, GraphDescriptor& out);
  bool FindEngine(cudnnHandle_t handle, cudnnBackendHeurMode_t mode, int32_t sm_target);
  std::vector<GraphDescriptor> Configurations(cudnnBackendHeurMode_t mode, int32_t sm_target);
  bool UseConfiguration(cudnnHandle_t handle, GraphDescriptor found, int32_t sm_target);
  bool KeepsPrecision(const GraphDescriptor& engine) const;
  int32_t TargetOf(const GraphDescriptor& engine) const;
  bool Retarget(const GraphDescriptor& engine, const GraphDescriptor& found, int32_t sm_target);
  bool MakePlan(cudnnHandle_t handle, const GraphDescriptor& configuration);
  const Pack* Find(const Pointers& pointers) const;
  absl::Status MakePack(const Pointers& pointers, Pack& out) const;

  const CudnnApi& api_;
  const core::LibraryCall call_;
  // Each descriptor is declared before those that refer to it, so it is destroyed after them.
  GraphDescriptor x_, w_, y_, convolution_, operation_, graph_;
  GraphDescriptor found_, engine_;
  std::vector<GraphDescriptor> knobs_;
  GraphDescriptor configuration_;
  GraphDescriptor plan_;
  std::array<Pack, kPacks> packs_;
  size_t oldest_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_CONVOLUTION_GRAPH_H_
