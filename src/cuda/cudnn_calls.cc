// Convolution, pooling, activation and softmax by cuDNN. See library_backend.h and, for the rows,
// library_calls.h.
//
// These are cuDNN's immediate functions: version 9 keeps them, they take alpha and beta with each
// call, and a call allocates nothing. They know no target number of SMs: that is an attribute of
// the graph interface's engines (CUDNN_ATTR_ENGINE_SM_COUNT_TARGET), whose plans fix alpha and beta
// and need a new pack of pointers for every call. A plan is made for each number of SMs all the
// same, with the context of its place current, whose SMs cuDNN counts.

#include "src/cuda/library_backend.h"

#if __has_include(<cudnn.h>)

#include <cudnn.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/cuda/library_descriptor.h"
#include "src/cuda/library_errors.h"
#include "src/cuda/library_opener.h"

namespace gpushare::cuda {
namespace {

using core::LibraryMode;
using core::LibraryOperation;

constexpr char kLibrary[] = "libcudnn.so.9";

#define GPUSHARE_CUDNN_FUNCTIONS(X)          \
  X(cudnnActivationForward)                  \
  X(cudnnConvolutionForward)                 \
  X(cudnnCreate)                             \
  X(cudnnCreateActivationDescriptor)         \
  X(cudnnCreateConvolutionDescriptor)        \
  X(cudnnCreateFilterDescriptor)             \
  X(cudnnCreatePoolingDescriptor)            \
  X(cudnnCreateTensorDescriptor)             \
  X(cudnnDestroy)                            \
  X(cudnnDestroyActivationDescriptor)        \
  X(cudnnDestroyConvolutionDescriptor)       \
  X(cudnnDestroyFilterDescriptor)            \
  X(cudnnDestroyPoolingDescriptor)           \
  X(cudnnDestroyTensorDescriptor)            \
  X(cudnnGetConvolution2dForwardOutputDim)   \
  X(cudnnGetConvolutionForwardAlgorithm_v7)  \
  X(cudnnGetConvolutionForwardWorkspaceSize) \
  X(cudnnGetErrorString)                     \
  X(cudnnGetPooling2dForwardOutputDim)       \
  X(cudnnPoolingForward)                     \
  X(cudnnSetActivationDescriptor)            \
  X(cudnnSetConvolution2dDescriptor)         \
  X(cudnnSetConvolutionGroupCount)           \
  X(cudnnSetConvolutionMathType)             \
  X(cudnnSetFilter4dDescriptor)              \
  X(cudnnSetPooling2dDescriptor)             \
  X(cudnnSetStream)                          \
  X(cudnnSetTensor4dDescriptor)              \
  X(cudnnSoftmaxForward)

struct CudnnApi {
#define GPUSHARE_DECLARE(function) decltype(&::function) function = nullptr;
  GPUSHARE_CUDNN_FUNCTIONS(GPUSHARE_DECLARE)
#undef GPUSHARE_DECLARE
};

#define GPUSHARE_CUDNN_RETURN(api, call)                                               \
  if (absl::Status gpushare_status = GPUSHARE_CUDNN(api, call); !gpushare_status.ok()) \
  return gpushare_status

template <class Descriptor>
using Owned = OwnedDescriptor<Descriptor, cudnnStatus_t>;

cudnnDataType_t TypeOf(core::DataType type) {
  switch (type) {
    case core::DataType::kFloat16:
      return CUDNN_DATA_HALF;
    case core::DataType::kBfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

int Int(int64_t value) { return static_cast<int>(value); }  // CheckLibraryCall bounds it

class CudnnPlan final : public LibraryPlan {
 public:
  CudnnPlan(const CudnnApi& api, const core::LibraryCall& call)
      : api_(api),
        call_(call),
        format_(call.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW) {}

  absl::Status Make(cudnnHandle_t handle) {
    const std::array<int, 4> input = {Int(call_.batch), Int(call_.channels), Int(call_.height),
                                      Int(call_.width)};
    if (absl::Status status = MakeTensor(x_, input); !status.ok()) return status;
    output_ = input;
    switch (call_.operation) {
      case LibraryOperation::kConvolution:
        return MakeConvolution(handle);
      case LibraryOperation::kPooling:
        return MakePooling();
      case LibraryOperation::kActivation:
        return MakeActivation();
      default:
        return MakeTensor(y_, output_);
    }
  }

  OperandBytes operands() const override {
    const size_t element = BytesOf(call_.type);
    const auto input =
        static_cast<size_t>(call_.batch * call_.channels * call_.height * call_.width);
    const auto filters = static_cast<size_t>(call_.filters * (call_.channels / call_.groups) *
                                             call_.filter_height * call_.filter_width);
    size_t output = 1;
    for (const int dimension : output_) output *= static_cast<size_t>(dimension);
    return {input * element, filters * element, output * element};
  }

  absl::Status Enqueue(void* handle_given, CUstream /*stream*/, void* workspace,
                       const core::LibraryArguments& arguments) const override {
    if (arguments.beta != 0 && arguments.c != arguments.d) {
      return absl::InvalidArgumentError(
          absl::StrCat("A cuDNN call adds beta ", arguments.beta,
                       " times c, and c is not d: cuDNN adds in place only."));
    }
    const auto handle = static_cast<cudnnHandle_t>(handle_given);
    const float* const alpha = &arguments.alpha;
    const float* const beta = &arguments.beta;
    switch (call_.operation) {
      case LibraryOperation::kConvolution:
        return GPUSHARE_CUDNN(
            api_, cudnnConvolutionForward(handle, alpha, x_.get(), arguments.a, filter_.get(),
                                          arguments.b, convolution_.get(), algorithm_, workspace,
                                          kWorkspaceBytes, beta, y_.get(), arguments.d));
      case LibraryOperation::kPooling:
        return GPUSHARE_CUDNN(api_, cudnnPoolingForward(handle, pooling_.get(), alpha, x_.get(),
                                                        arguments.a, beta, y_.get(), arguments.d));
      case LibraryOperation::kActivation:
        return GPUSHARE_CUDNN(
            api_, cudnnActivationForward(handle, activation_.get(), alpha, x_.get(), arguments.a,
                                         beta, y_.get(), arguments.d));
      default:
        return GPUSHARE_CUDNN(
            api_, cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                      alpha, x_.get(), arguments.a, beta, y_.get(), arguments.d));
    }
  }

 private:
  absl::Status MakeTensor(Owned<cudnnTensorDescriptor_t>& tensor, const std::array<int, 4>& nchw) {
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnCreateTensorDescriptor(tensor.Put(api_.cudnnDestroyTensorDescriptor)));
    return GPUSHARE_CUDNN(
        api_, cudnnSetTensor4dDescriptor(tensor.get(), format_, TypeOf(call_.type), nchw[0],
                                         nchw[1], nchw[2], nchw[3]));
  }

  absl::Status MakeConvolution(cudnnHandle_t handle) {
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnCreateFilterDescriptor(filter_.Put(api_.cudnnDestroyFilterDescriptor)));
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnSetFilter4dDescriptor(filter_.get(), TypeOf(call_.type), format_,
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
    // The default would round float32 to TF32.
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnSetConvolutionMathType(convolution_.get(), call_.type == core::DataType::kFloat32
                                                                  ? CUDNN_FMA_MATH
                                                                  : CUDNN_TENSOR_OP_MATH));
    GPUSHARE_CUDNN_RETURN(api_, cudnnGetConvolution2dForwardOutputDim(
                                    convolution_.get(), x_.get(), filter_.get(), &output_[0],
                                    &output_[1], &output_[2], &output_[3]));
    if (absl::Status status = MakeTensor(y_, output_); !status.ok()) return status;
    return FindAlgorithm(handle);
  }

  // The first, fastest by cuDNN's own estimate, whose workspace fits.
  absl::Status FindAlgorithm(cudnnHandle_t handle) {
    std::array<cudnnConvolutionFwdAlgoPerf_t, CUDNN_CONVOLUTION_FWD_ALGO_COUNT> found{};
    int count = 0;
    GPUSHARE_CUDNN_RETURN(api_, cudnnGetConvolutionForwardAlgorithm_v7(
                                    handle, x_.get(), filter_.get(), convolution_.get(), y_.get(),
                                    static_cast<int>(found.size()), &count, found.data()));
    for (int i = 0; i < count; ++i) {
      const cudnnConvolutionFwdAlgoPerf_t& candidate = found[static_cast<size_t>(i)];
      if (candidate.status != CUDNN_STATUS_SUCCESS) continue;
      // The math type that the estimate is for; float32 stays float32.
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

  absl::Status MakePooling() {
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnCreatePoolingDescriptor(pooling_.Put(api_.cudnnDestroyPoolingDescriptor)));
    const cudnnPoolingMode_t mode = call_.mode == LibraryMode::kAveragePooling
                                        ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                                        : CUDNN_POOLING_MAX;
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnSetPooling2dDescriptor(pooling_.get(), mode, CUDNN_PROPAGATE_NAN,
                                          Int(call_.filter_height), Int(call_.filter_width),
                                          Int(call_.padding), Int(call_.padding), Int(call_.stride),
                                          Int(call_.stride)));
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnGetPooling2dForwardOutputDim(pooling_.get(), x_.get(), &output_[0], &output_[1],
                                                &output_[2], &output_[3]));
    return MakeTensor(y_, output_);
  }

  absl::Status MakeActivation() {
    GPUSHARE_CUDNN_RETURN(api_, cudnnCreateActivationDescriptor(
                                    activation_.Put(api_.cudnnDestroyActivationDescriptor)));
    cudnnActivationMode_t mode = CUDNN_ACTIVATION_RELU;
    if (call_.mode == LibraryMode::kTanh) mode = CUDNN_ACTIVATION_TANH;
    if (call_.mode == LibraryMode::kSigmoid) mode = CUDNN_ACTIVATION_SIGMOID;
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnSetActivationDescriptor(activation_.get(), mode, CUDNN_PROPAGATE_NAN, 0.0));
    return MakeTensor(y_, output_);
  }

  const CudnnApi& api_;
  const core::LibraryCall call_;
  const cudnnTensorFormat_t format_;
  std::array<int, 4> output_{};
  Owned<cudnnTensorDescriptor_t> x_, y_;
  Owned<cudnnFilterDescriptor_t> filter_;
  Owned<cudnnConvolutionDescriptor_t> convolution_;
  Owned<cudnnPoolingDescriptor_t> pooling_;
  Owned<cudnnActivationDescriptor_t> activation_;
  cudnnConvolutionFwdAlgo_t algorithm_ = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
};

class Cudnn final : public LibraryBackend {
 public:
  absl::Status Open() {
    absl::StatusOr<void*> library = OpenLibrary(kLibrary);
    if (!library.ok()) return library.status();
#define GPUSHARE_RESOLVE(function)                                                         \
  if (absl::Status status = ResolveFunction(*library, kLibrary, #function, api_.function); \
      !status.ok()) {                                                                      \
    return status;                                                                         \
  }
    GPUSHARE_CUDNN_FUNCTIONS(GPUSHARE_RESOLVE)
#undef GPUSHARE_RESOLVE
    return absl::OkStatus();
  }

  absl::StatusOr<void*> MakeHandle(CUstream stream) override {
    cudnnHandle_t handle = nullptr;
    GPUSHARE_CUDNN_RETURN(api_, cudnnCreate(&handle));
    if (absl::Status status = GPUSHARE_CUDNN(api_, cudnnSetStream(handle, stream)); !status.ok()) {
      api_.cudnnDestroy(handle);
      return status;
    }
    return static_cast<void*>(handle);
  }
  void DestroyHandle(void* handle) override {
    api_.cudnnDestroy(static_cast<cudnnHandle_t>(handle));
  }
  absl::StatusOr<std::unique_ptr<LibraryPlan>> MakePlan(void* handle,
                                                        const core::KernelDesc& kernel,
                                                        int32_t /*sm_count*/) override {
    auto plan = std::make_unique<CudnnPlan>(api_, kernel.library_call);
    if (absl::Status status = plan->Make(static_cast<cudnnHandle_t>(handle)); !status.ok()) {
      return status;
    }
    return std::unique_ptr<LibraryPlan>(std::move(plan));
  }

 private:
  CudnnApi api_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LibraryBackend>> OpenCudnn() {
  auto backend = std::make_unique<Cudnn>();
  if (absl::Status status = backend->Open(); !status.ok()) return status;
  return std::unique_ptr<LibraryBackend>(std::move(backend));
}

}  // namespace gpushare::cuda

#else  // no cudnn.h

namespace gpushare::cuda {

absl::StatusOr<std::unique_ptr<LibraryBackend>> OpenCudnn() {
  return absl::UnimplementedError(
      "This build of gpushare makes no convolutions, pooling, activations and softmax: cudnn.h was "
      "not found when it was compiled.");
}

}  // namespace gpushare::cuda

#endif
