// A convolution by cuDNN's graph interface, whose engines, unlike the immediate function, can be
// told how many SMs to use. Included only where cudnn.h is.
//
// Fixed when it is made: alpha 1, beta 0, and operands that start at multiples of
// kGraphAlignment. Which engine: the first that the heuristics name (mode A, then its fallback
// list), that takes the number of SMs, and that needs no more than kWorkspaceBytes of workspace.
// float32 stays float32: engines that round it for tensor cores or sum it in fewer digits are
// passed over.
//
// A call hands cuDNN a pack of its pointers. Packs are kept: kPacks of them, the oldest replaced,
// so that calls which come back to their pointers allocate nothing.
//
// Threads: one at a time, a call included: cuDNN does not promise that one execution plan may run
// in two threads at once. See cudnn_convolution.h for how lanes share.

#ifndef GPUSHARE_SRC_CUDA_CUDNN_CONVOLUTION_GRAPH_H_
#define GPUSHARE_SRC_CUDA_CUDNN_CONVOLUTION_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/cudnn_common.h"
#include "src/cuda/cudnn_graph_descriptor.h"

namespace gpushare::cuda {

inline constexpr size_t kGraphAlignment = 16;  // of the operands and the workspace, in bytes

class ConvolutionGraph {
 public:
  // `api` outlives the object.
  ConvolutionGraph(const CudnnApi& api, const core::LibraryCall& call) : api_(api), call_(call) {}

  // `output`: dimensions of the result. `sm_target`: SMs that the engine is to use, 0 for all.
  // Errors: NOT_FOUND no engine does it; else what cuDNN answers.
  absl::Status Make(cudnnHandle_t handle, const CudnnDimensions& output, int32_t sm_target);

  // True if a call with these pointers finds its pack.
  bool Knows(const core::LibraryArguments& arguments, const void* workspace) const {
    return Find({arguments.a, arguments.b, arguments.d, workspace}) != nullptr;
  }

  // True if a call with other pointers would displace no pack.
  bool HasRoom() const { return packs_[oldest_].descriptor == nullptr; }

  // Takes arguments.a, b and d alone, see above.
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
  bool Take(cudnnHandle_t handle, GraphDescriptor found, int32_t sm_target);
  bool KeepsPrecision(const GraphDescriptor& engine) const;
  int32_t TargetOf(const GraphDescriptor& engine) const;
  bool Retarget(const GraphDescriptor& engine, const GraphDescriptor& found, int32_t sm_target);
  bool MakePlan(cudnnHandle_t handle, const GraphDescriptor& configuration);
  const Pack* Find(const Pointers& pointers) const;
  absl::Status MakePack(const Pointers& pointers, Pack& out) const;

  const CudnnApi& api_;
  const core::LibraryCall call_;
  // Each before what is made of it.
  GraphDescriptor x_, w_, y_, convolution_, operation_, graph_;
  GraphDescriptor found_, engine_;
  std::vector<GraphDescriptor> knobs_;
  GraphDescriptor configuration_;
  GraphDescriptor plan_;
  std::array<Pack, kPacks> packs_;
  size_t oldest_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CUDNN_CONVOLUTION_GRAPH_H_
