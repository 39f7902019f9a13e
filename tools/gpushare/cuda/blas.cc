#include "tools/gpushare/cuda/blas.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

namespace {

// The type is written out, because the header overloads the function.
using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void*, const void*, cudaDataType, int, const void*,
                                  cudaDataType, int, const void*, void*, cudaDataType, int,
                                  cublasComputeType_t, cublasGemmAlgo_t);

// Opens the folder's own cublasLt first; otherwise cuBLAS would take any that the loader finds.
void* OpenIn(const std::string& folder) {
  const std::string prefix = folder.empty() ? "" : folder + "/";
  if (!folder.empty()) dlopen((prefix + "libcublasLt.so.13").c_str(), RTLD_NOW | RTLD_LOCAL);
  return dlopen((prefix + "libcublas.so.13").c_str(), RTLD_NOW | RTLD_LOCAL);
}

void* OpenBlas() {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("GPUSHARE_CUDA_LIBRARY_PATH"); path != nullptr && *path != 0) {
    folders.emplace_back(path);
  }
  folders.emplace_back();
  folders.emplace_back("/usr/local/cuda/lib64");
  for (const std::string& folder : folders) {
    if (void* library = OpenIn(folder); library != nullptr) return library;
  }
  throw RunError(
      "libcublas.so.13 cannot be opened, and the LC chains need it; GPUSHARE_CUDA_LIBRARY_PATH "
      "names its folder.");
}

template <class Function>
void Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw RunError(std::string("libcublas.so.13 has no function ") + name + ".");
  }
}

void CheckBlas(int status, const char* step) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw RunError(std::string(step) + " fails with the cuBLAS status " + std::to_string(status) +
                 ".");
}

}  // namespace

void CheckCuda(int code, const char* step) {
  if (code == cudaSuccess) return;
  const auto error = static_cast<cudaError_t>(code);
  throw RunError(std::string(step) + " fails with " + cudaGetErrorName(error) + ": " +
                 cudaGetErrorString(error) + ".");
}

DeviceMemory::DeviceMemory(size_t bytes) : bytes_(bytes) {
  void* data = nullptr;
  const std::string step = "Allocating " + std::to_string(bytes) + " bytes of device memory";
  CheckCuda(cudaMalloc(&data, bytes), step.c_str());
  data_.reset(data);
}

void DeviceMemory::Free::operator()(void* data) const { cudaFree(data); }

struct Blas::Library {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasSetSmCountTarget) set_sm_count_target = nullptr;
  GemmEx gemm = nullptr;

  Library() {
    void* library = OpenBlas();
    Find(library, "cublasCreate_v2", create);
    Find(library, "cublasDestroy_v2", destroy);
    Find(library, "cublasSetStream_v2", set_stream);
    Find(library, "cublasSetWorkspace_v2", set_workspace);
    Find(library, "cublasSetMathMode", set_math_mode);
    Find(library, "cublasSetSmCountTarget", set_sm_count_target);
    Find(library, "cublasGemmEx", gemm);
  }
};

const Blas::Library& Blas::Loaded() {
  static const Library library;
  return library;
}

Blas::Blas() : library_(Loaded()) {
  cublasHandle_t handle = nullptr;
  CheckBlas(library_.create(&handle), "Creating a cuBLAS handle");
  handle_ = handle;
  // Partial sums stay in fp32, so that algorithms differ only in the rounding of the result.
  CheckBlas(library_.set_math_mode(handle, static_cast<cublasMath_t>(
                                               CUBLAS_DEFAULT_MATH |
                                               CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
            "Setting the cuBLAS math mode");
}

Blas::~Blas() {
  if (handle_ != nullptr) library_.destroy(static_cast<cublasHandle_t>(handle_));
}

int Blas::Use(void* stream, int32_t sms, void* workspace) {
  auto* handle = static_cast<cublasHandle_t>(handle_);
  // In this order, because setting a stream resets the workspace.
  int status = library_.set_stream(handle, static_cast<cudaStream_t>(stream));
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = library_.set_workspace(handle, workspace, kWorkspaceBytes);
  }
  if (status == CUBLAS_STATUS_SUCCESS) status = library_.set_sm_count_target(handle, sms);
  return status;
}

// cuBLAS is column-major, so this computes the transposes: d^T = weights^T a^T.
int Blas::Enqueue(const Gemm& gemm) {
  const float alpha = 1;
  const float beta = 0;
  const auto m = static_cast<int>(gemm.m);
  const auto n = static_cast<int>(gemm.n);
  const auto k = static_cast<int>(gemm.k);
  return library_.gemm(static_cast<cublasHandle_t>(handle_),
                       gemm.weights_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, n, m, k,
                       &alpha, gemm.weights, CUDA_R_16BF, gemm.weights_transposed ? k : n, gemm.a,
                       CUDA_R_16BF, k, &beta, gemm.d, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT);
}

}  // namespace gpushare::tool
