// Opens cuDNN and makes tensors. See cudnn_common.h.

#if __has_include(<cudnn.h>)

#include "src/cuda/library/cudnn_common.h"

#include "absl/strings/str_cat.h"
#include "src/cuda/driver/library_opener.h"

namespace gpushare::cuda {
namespace {

constexpr char kLibrary[] = "libcudnn.so.9";

}  // namespace

absl::StatusOr<CudnnApi> OpenCudnnApi() {
  absl::StatusOr<void*> library = OpenLibrary(kLibrary);
  if (!library.ok()) return library.status();
  CudnnApi api;
#define GPUSHARE_RESOLVE(function)                                                        \
  if (absl::Status status = ResolveFunction(*library, kLibrary, #function, api.function); \
      !status.ok()) {                                                                     \
    return status;                                                                        \
  }
  GPUSHARE_CUDNN_FUNCTIONS(GPUSHARE_RESOLVE)
#undef GPUSHARE_RESOLVE
  return api;
}

absl::Status MakeCudnnTensor(const CudnnApi& api, const core::LibraryCall& call,
                             const CudnnDimensions& dimensions,
                             OwnedCudnn<cudnnTensorDescriptor_t>& tensor) {
  GPUSHARE_CUDNN_RETURN(api,
                        cudnnCreateTensorDescriptor(tensor.Put(api.cudnnDestroyTensorDescriptor)));
  return GPUSHARE_CUDNN(
      api, cudnnSetTensor4dDescriptor(tensor.get(), CudnnFormatOf(call), CudnnTypeOf(call.type),
                                      dimensions[0], dimensions[1], dimensions[2], dimensions[3]));
}

absl::Status CheckAddsInPlace(const core::LibraryArguments& arguments) {
  if (arguments.beta == 0 || arguments.c == arguments.d) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("A cuDNN call adds beta ", arguments.beta,
                   " times c, and c is not d: cuDNN adds in place only."));
}

}  // namespace gpushare::cuda

#endif
