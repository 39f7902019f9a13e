// The cuDNN backend: its handles, and pooling, activation and softmax by the immediate functions.
// See library_backend.h, library_calls.h for the layouts, and cudnn_convolution.h for convolutions.
//
// The immediate functions take alpha and beta with each call, allocate nothing, and accept no
// number of SMs. These three operations need none: their grids follow from the number of elements.

#include "src/cuda/library/library_backend.h"

#if __has_include(<cudnn.h>)

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <utility>

#include "src/cuda/library/cudnn_common.h"
#include "src/cuda/library/cudnn_convolution.h"

namespace gpushare::cuda {
namespace {

using core::LibraryMode;
using core::LibraryOperation;

// SMs of the device whose context is current; 0 if the runtime does not say.
int32_t SmsOfDevice() {
  int device = 0;
  int sms = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) {
    return 0;
  }
  return sms;
}

class CudnnPlan final : public LibraryPlan {
 public:
  CudnnPlan(const CudnnApi& api, const core::LibraryCall& call)
      : api_(api), call_(call), output_(CudnnInputOf(call)) {}

  absl::Status Make() {
    if (absl::Status status = MakeCudnnTensor(api_, call_, output_, x_); !status.ok()) {
      return status;
    }
    switch (call_.operation) {
      case LibraryOperation::kPooling:
        return MakePooling();
      case LibraryOperation::kActivation:
        return MakeActivation();
      default:
        return MakeCudnnTensor(api_, call_, output_, y_);
    }
  }

  OperandBytes operands() const override {
    const size_t element = BytesOf(call_.type);
    const auto input =
        static_cast<size_t>(call_.batch * call_.channels * call_.height * call_.width);
    size_t output = 1;
    for (const int dimension : output_) output *= static_cast<size_t>(dimension);
    return {input * element, 0, output * element};
  }

  absl::Status Enqueue(void* handle_given, CUstream /*stream*/, void* /*workspace*/,
                       const core::LibraryArguments& arguments) const override {
    if (absl::Status status = CheckAddsInPlace(arguments); !status.ok()) return status;
    const auto handle = static_cast<cudnnHandle_t>(handle_given);
    const float* const alpha = &arguments.alpha;
    const float* const beta = &arguments.beta;
    switch (call_.operation) {
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
    return MakeCudnnTensor(api_, call_, output_, y_);
  }

  absl::Status MakeActivation() {
    GPUSHARE_CUDNN_RETURN(api_, cudnnCreateActivationDescriptor(
                                    activation_.Put(api_.cudnnDestroyActivationDescriptor)));
    cudnnActivationMode_t mode = CUDNN_ACTIVATION_RELU;
    if (call_.mode == LibraryMode::kTanh) mode = CUDNN_ACTIVATION_TANH;
    if (call_.mode == LibraryMode::kSigmoid) mode = CUDNN_ACTIVATION_SIGMOID;
    GPUSHARE_CUDNN_RETURN(
        api_, cudnnSetActivationDescriptor(activation_.get(), mode, CUDNN_PROPAGATE_NAN, 0.0));
    return MakeCudnnTensor(api_, call_, output_, y_);
  }

  const CudnnApi& api_;
  const core::LibraryCall call_;
  CudnnDimensions output_;
  OwnedCudnn<cudnnTensorDescriptor_t> x_, y_;
  OwnedCudnn<cudnnPoolingDescriptor_t> pooling_;
  OwnedCudnn<cudnnActivationDescriptor_t> activation_;
};

class Cudnn final : public LibraryBackend {
 public:
  explicit Cudnn(const CudnnApi& api) : api_(api) {}

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
                                                        int32_t sm_count) override {
    const core::LibraryCall& call = *kernel.library_call();
    if (call.operation == LibraryOperation::kConvolution) {
      return MakeCudnnConvolution(api_, static_cast<cudnnHandle_t>(handle), call,
                                  SmTarget(sm_count, SmsOfDevice()));
    }
    auto plan = std::make_unique<CudnnPlan>(api_, call);
    if (absl::Status status = plan->Make(); !status.ok()) return status;
    return std::unique_ptr<LibraryPlan>(std::move(plan));
  }

 private:
  const CudnnApi api_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LibraryBackend>> OpenCudnn() {
  absl::StatusOr<CudnnApi> api = OpenCudnnApi();
  if (!api.ok()) return api.status();
  return std::unique_ptr<LibraryBackend>(std::make_unique<Cudnn>(*api));
}

}  // namespace gpushare::cuda

#else  // cudnn.h is missing

namespace gpushare::cuda {

absl::StatusOr<std::unique_ptr<LibraryBackend>> OpenCudnn() {
  return absl::UnimplementedError(
      "This build of gpushare makes no convolutions, pooling, activations and softmax: cudnn.h was "
      "not found when it was compiled.");
}

}  // namespace gpushare::cuda

#endif
