// The two forms of a convolution, and the choice between them for each call. See
// cudnn_convolution.h.

#if __has_include(<cudnn.h>)

#include "src/cuda/library/cudnn_convolution.h"

#include <array>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/cuda/library/cudnn_convolution_graph.h"

namespace gpushare::cuda {
namespace {

// Copies of the graph form. This many threads may call one convolution at once on places of one
// size and all use their SM count.
constexpr size_t kGraphs = 2;

class ImmediateConvolution {
 public:
  ImmediateConvolution(const CudnnApi& api, const core::LibraryCall& call)
      : api_(api), call_(call) {}

  absl::Status Make(cudnnHandle_t handle) {
    if (absl::Status status = MakeCudnnTensor(api_, call_, CudnnInputOf(call_), x_); !status.ok()) {
      return status;
    }
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnCreateFilterDescriptor(filter_.Put(api_.cudnnDestroyFilterDescriptor)));
    GPUSHARE_CUDNN_RETURN(api_, cudnnSetFilter4dDescriptor(
                                    filter_.get(), CudnnTypeOf(call_.type), CudnnFormatOf(call_),
                                    Int(call_.filters), Int(call_.channels / call_.groups),
                                    Int(call_.filter_height), Int(call_.filter_width)));
    GPUSHARE_CUDNN_RETURN(api_, cudnnCreateConvolutionDescriptor(
                                    convolution_.Put(api_.cudnnDestroyConvolutionDescriptor)));
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnSetConvolution2dDescriptor(
                  convolution_.get(), Int(call_.padding), Int(call_.padding), Int(call_.stride),
                  Int(call_.stride), Int(call_.dilation), Int(call_.dilation),
                  CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    GPUSHARE_CUDNN_RETURN(api_,
                          cudnnSetConvolutionGroupCount(convolution_.get(), Int(call_.groups)));
    // The default math type would round float32 to TF32.
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnSetConvolutionMathType(convolution_.get(), call_.type == core::DataType::kFloat32
                                                                  ? CUDNN_FMA_MATH
                                                                  : CUDNN_TENSOR_OP_MATH));
    GPUSHARE_CUDNN_RETURN(api_, cudnnGetConvolution2dForwardOutputDim(
                                    convolution_.get(), x_.get(), filter_.get(), &output_[0],
                                    &output_[1], &output_[2], &output_[3]));
    if (absl::Status status = MakeCudnnTensor(api_, call_, output_, y_); !status.ok()) {
      return status;
    }
    return FindAlgorithm(handle);
  }

  const CudnnDimensions& output() const { return output_; }

  absl::Status Execute(cudnnHandle_t handle, void* workspace,
                       const core::LibraryArguments& arguments) const {
    return GPUSHARE_CUDNN(api_, cudnnConvolutionForward(
                                    handle, &arguments.alpha, x_.get(), arguments.a, filter_.get(),
                                    arguments.b, convolution_.get(), algorithm_, workspace,
                                    kWorkspaceBytes, &arguments.beta, y_.get(), arguments.d));
  }

 private:
  // Takes the first algorithm whose workspace fits; cuDNN sorts them by its own estimate of their
  // speed.
  absl::Status FindAlgorithm(cudnnHandle_t handle) {
    std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> found{};
    int count = 0;
    GPUSHARE_CUDNN_RETURN(api_, cudnnGetConvolutionForwardAlgorithm_v7(
                                    handle, x_.get(), filter_.get(), convolution_.get(), y_.get(),
                                    static_cast<int>(found.size()), &count, found.data()));
    for (int i = 0; i < count; ++i) {
      const cudnnConvolutionFwdAlgoPerf_t& candidate = found[static_cast<size_t>(i)];
      if (candidate.status != CUDNN_STATUS_SUCCESS) continue;
      // The estimate holds for this math type. float32 keeps its own.
      if (call_.type != core::DataType::kFloat32) {
        GPUSHARE_CUDNN_RETURN(api_,
                              cudnnSetConvolutionMathType(convolution_.get(), candidate.mathType));
      }
      size_t bytes = 0;
      const cudnnStatus_t sized = api_.cudnnGetConvolutionForwardWorkspaceSize(
          handle, x_.get(), filter_.get(), convolution_.get(), y_.get(), candidate.algo, &bytes);
      if (sized != CUDNN_STATUS_SUCCESS || bytes > kWorkspaceBytes) continue;
      algorithm_ = candidate.algo;
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("cuDNN has no algorithm for this convolution that needs at most ",
                     kWorkspaceBytes, " bytes of workspace, among ", count, "."));
  }

  const CudnnApi& api_;
  const core::LibraryCall call_;
  CudnnDimensions output_{};
  OwnedCudnn<cudnnTensorDescriptor_t> x_, y_;
  OwnedCudnn<cudnnFilterDescriptor_t> filter_;
  OwnedCudnn<cudnnConvolutionDescriptor_t> convolution_;
  cudnnConvolutionFwdAlgo_t algorithm_ = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
};

// A graph form and a flag that gives it to one call at a time.
struct SharedGraph {
  std::unique_ptr<ConvolutionGraph> graph;
  std::atomic<bool> in_use{false};

  bool Take() { return !in_use.exchange(true, std::memory_order_acquire); }
  void Leave() { in_use.store(false, std::memory_order_release); }
};

class Convolution final : public LibraryPlan {
 public:
  Convolution(const CudnnApi& api, const core::LibraryCall& call)
      : api_(api), call_(call), immediate_(api, call) {}

  absl::Status Make(cudnnHandle_t handle, int32_t sm_target) {
    if (absl::Status status = immediate_.Make(handle); !status.ok()) return status;
    for (SharedGraph& shared : graphs_) {
      absl::Status status = MakeGraph(handle, sm_target, shared);
      if (absl::IsNotFound(status) && sm_target > 0) status = MakeGraph(handle, 0, shared);
      // The graph interface does not support this call; the immediate function runs it.
      if (absl::IsNotFound(status) || absl::IsInvalidArgument(status)) break;
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  OperandBytes operands() const override {
    const size_t element = BytesOf(call_.type);
    const auto input =
        static_cast<size_t>(call_.batch * call_.channels * call_.height * call_.width);
    const auto filters = static_cast<size_t>(call_.filters * (call_.channels / call_.groups) *
                                             call_.filter_height * call_.filter_width);
    size_t output = 1;
    for (const int dimension : immediate_.output()) output *= static_cast<size_t>(dimension);
    return {input * element, filters * element, output * element};
  }

  absl::Status EnqueueFirst(void* handle, CUstream /*stream*/, void* workspace,
                            const core::LibraryArguments& arguments) const override {
    // Run every copy: cuDNN may compile an engine at run time into a module for each copy.
    for (SharedGraph& shared : graphs_) {
      if (shared.graph == nullptr || refused_.load(std::memory_order_relaxed)) break;
      if (!shared.Take()) continue;  // another thread runs it already
      const absl::Status status = ExecuteGraph(shared, handle, workspace, arguments);
      shared.Leave();
      if (!status.ok()) return status;
    }
    return immediate_.Execute(static_cast<cudnnHandle_t>(handle), workspace, arguments);
  }

  absl::Status Enqueue(void* handle, CUstream /*stream*/, void* workspace,
                       const core::LibraryArguments& arguments) const override {
    if (absl::Status status = CheckAddsInPlace(arguments); !status.ok()) return status;
    SharedGraph* const shared =
        FitsGraph(arguments, workspace) ? TakeGraph(arguments, workspace) : nullptr;
    if (shared == nullptr) {
      return immediate_.Execute(static_cast<cudnnHandle_t>(handle), workspace, arguments);
    }
    absl::Status status = ExecuteGraph(*shared, handle, workspace, arguments);
    shared->Leave();
    return status;
  }

 private:
  absl::Status ExecuteGraph(const SharedGraph& shared, void* handle_given, void* workspace,
                            const core::LibraryArguments& arguments) const {
    const auto handle = static_cast<cudnnHandle_t>(handle_given);
    absl::Status status = shared.graph->Execute(handle, workspace, arguments);
    if (status.ok()) return status;
    // If the immediate function fails too, the operands are wrong or the device is lost. That says
    // nothing about the graph form.
    if (!immediate_.Execute(handle, workspace, arguments).ok()) return status;
    if (!absl::IsResourceExhausted(status)) refused_.store(true, std::memory_order_relaxed);
    return absl::OkStatus();
  }

  absl::Status MakeGraph(cudnnHandle_t handle, int32_t sm_target, SharedGraph& shared) {
    auto graph = std::make_unique<ConvolutionGraph>(api_, call_);
    absl::Status status = graph->Make(handle, immediate_.output(), sm_target);
    if (status.ok()) shared.graph = std::move(graph);
    return status;
  }

  bool FitsGraph(const core::LibraryArguments& arguments, const void* workspace) const {
    if (refused_.load(std::memory_order_relaxed)) return false;
    if (arguments.alpha != 1 || arguments.beta != 0) return false;
    uintptr_t bits = 0;
    for (const void* pointer :
         {arguments.a, arguments.b, static_cast<const void*>(arguments.d), workspace}) {
      bits |= reinterpret_cast<uintptr_t>(pointer);
    }
    return bits % kGraphAlignment == 0;
  }

  // Null if all copies are in use, or there are none.
  SharedGraph* TakeGraph(const core::LibraryArguments& arguments, const void* workspace) const {
    for (SharedGraph& shared : graphs_) {
      if (shared.graph == nullptr || !shared.Take()) continue;
      if (shared.graph->HasPack(arguments, workspace)) return &shared;
      shared.Leave();
    }
    // Prefer a copy that keeps a pack of these pointers; then one with a free entry for it.
    for (const bool with_room : {true, false}) {
      for (SharedGraph& shared : graphs_) {
        if (shared.graph == nullptr || !shared.Take()) continue;
        if (!with_room || shared.graph->HasRoom()) return &shared;
        shared.Leave();
      }
    }
    return nullptr;
  }

  const CudnnApi& api_;
  const core::LibraryCall call_;
  ImmediateConvolution immediate_;
  mutable std::array<SharedGraph, kGraphs> graphs_;
  mutable std::atomic<bool> refused_{false};
};

}  // namespace

absl::StatusOr<std::unique_ptr<LibraryPlan>> MakeCudnnConvolution(const CudnnApi& api,
                                                                  cudnnHandle_t handle,
                                                                  const core::LibraryCall& call,
                                                                  int32_t sm_target) {
  auto plan = std::make_unique<Convolution>(api, call);
  if (absl::Status status = plan->Make(handle, sm_target); !status.ok()) return status;
  return std::unique_ptr<LibraryPlan>(std::move(plan));
}

}  // namespace gpushare::cuda

#endif
