// What all calls of cuDNN share: the table of functions, tensors, and the rule for operand c. Only
// files that compile with cudnn.h include it.
//
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_COMMON_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_COMMON_H_

#include <cudnn.h>

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/library/library_descriptor.h"
#include "src/cuda/library/library_errors.h"

namespace gpushare::cuda {

#define GPUSHARE_CUDNN_FUNCTIONS(X)          \
  X(cudnnActivationForward)                  \
  X(cudnnBackendCreateDescriptor)            \
  X(cudnnBackendDestroyDescriptor)           \
  X(cudnnBackendExecute)                     \
  X(cudnnBackendFinalize)                    \
  X(cudnnBackendGetAttribute)                \
  X(cudnnBackendSetAttribute)                \
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

// Errors: UNAVAILABLE if the library is not installed, or has another version.
absl::StatusOr<CudnnApi> OpenCudnnApi();

#define GPUSHARE_CUDNN_RETURN(api, call)                                               \
  if (absl::Status gpushare_status = GPUSHARE_CUDNN(api, call); !gpushare_status.ok()) \
  return gpushare_status

template <class Descriptor>
using OwnedCudnn = OwnedDescriptor<Descriptor, cudnnStatus_t>;

using CudnnDimensions = std::array<int, 4>;  // images, channels, height, width

inline cudnnDataType_t CudnnTypeOf(core::DataType type) {
  switch (type) {
    case core::DataType::kFloat16:
      return CUDNN_DATA_HALF;
    case core::DataType::kBfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

inline cudnnTensorFormat_t CudnnFormatOf(const core::LibraryCall& call) {
  return call.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

// CheckLibraryCall bounds the value
inline int Int(int64_t value) { return static_cast<int>(value); }

inline CudnnDimensions CudnnInputOf(const core::LibraryCall& call) {
  return {Int(call.batch), Int(call.channels), Int(call.height), Int(call.width)};
}

// Makes a tensor descriptor in the call's type and format.
absl::Status MakeCudnnTensor(const CudnnApi& api, const core::LibraryCall& call,
                             const CudnnDimensions& dimensions,
                             OwnedCudnn<cudnnTensorDescriptor_t>& tensor);

// Errors: INVALID_ARGUMENT if beta is not 0 and c is not the result's own memory.
absl::Status CheckAddsInPlace(const core::LibraryArguments& arguments);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_CUDNN_COMMON_H_
