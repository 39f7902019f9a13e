// See fake_cublaslt.h. It never reads its handles and descriptors.

#include "tests/cuda/library/fake_cublaslt.h"

#include <cublasLt.h>

#include <atomic>
#include <cstddef>

namespace {

template <class Handle>
cublasStatus_t Give(Handle* handle) {
  static char anything;
  *handle = reinterpret_cast<Handle>(&anything);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): cuBLAS's names
extern "C" {

gpushare::cuda::FakeCublasLtControl fake_cublaslt_control;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static char handles[64];
  static std::atomic<size_t> next{0};
  *handle = reinterpret_cast<cublasLtHandle_t>(&handles[next++ % sizeof(handles)]);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
const char* cublasLtGetStatusString(cublasStatus_t) { return "as the test asked"; }

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t, const void*,
                              const void*, cublasLtMatrixLayout_t, const void*,
                              cublasLtMatrixLayout_t, const void*, const void*,
                              cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t* algorithm, void*, size_t, cudaStream_t) {
  const int index = static_cast<int>(algorithm->data[0]);
  fake_cublaslt_control.product_handle = handle;
  if (fake_cublaslt_control.products++ == 0) fake_cublaslt_control.first_algorithm = index;
  if (index >= fake_cublaslt_control.first_good) return CUBLAS_STATUS_SUCCESS;
  return static_cast<cublasStatus_t>(fake_cublaslt_control.answer);
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t*,
                                       cublasLtMatmulHeuristicResult_t*) {
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t*,
                                                    cublasLtMatmulAlgoConfigAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_NOT_SUPPORTED;  // no algorithm has a form without clusters
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t found[], int* count) {
  fake_cublaslt_control.plan_handle = handle;
  *count = fake_cublaslt_control.algorithms;
  for (int i = 0; i < *count; ++i) {
    found[i].state = CUBLAS_STATUS_SUCCESS;
    found[i].algo.data[0] = static_cast<uint64_t>(i);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* descriptor, cublasComputeType_t,
                                        cudaDataType_t) {
  return Give(descriptor);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
                                              const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return Give(preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType, uint64_t,
                                          uint64_t, int64_t) {
  return Give(layout);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t,
                                                cublasLtMatrixLayoutAttribute_t, const void*,
                                                size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
