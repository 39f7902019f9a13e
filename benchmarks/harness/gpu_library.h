// cuBLASLt's products as the library itself calls it: opened at run time, the first answer of its
// heuristic, kWorkspaceBytes of workspace. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_HARNESS_GPU_CUBLASLT_H_
#define GPUSHARE_BENCHMARKS_HARNESS_GPU_CUBLASLT_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "benchmarks/kernels/device_buffer.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/driver_api.h"
#include "src/cuda/library_backend.h"

namespace gpushare::benchmarks {

// C[m, n] = A[m, k] * B[n, k]^T in bf16, row-major.
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  core::LibraryArguments operands;
};

class CublasLt {
 public:
  // Fails where the library is not installed.
  CublasLt();

  // Enqueues the product. `sm_count`: how many SMs the library is told, 0 for none, as an
  // application does. The stream's context is current. Plans are kept by shape, stream and SMs.
  void Enqueue(const Product& product, CUstream stream, int32_t sm_count);

 private:
  struct Planned {
    void* handle = nullptr;
    std::unique_ptr<cuda::LibraryPlan> plan;
  };
  void Plan(const Product& product, CUstream stream, int32_t sm_count, Planned& planned);

  cuda::DriverApi api_;
  std::unique_ptr<cuda::LibraryBackend> backend_;
  std::map<CUstream, void*> handles_;  // live as long as the process: contexts may be gone by then
  std::map<std::array<int64_t, 5>, Planned> plans_;
  kernels::DeviceBuffer workspace_;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_GPU_CUBLASLT_H_
