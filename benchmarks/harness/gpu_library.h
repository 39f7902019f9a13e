// Calls of cuBLASLt and cuDNN as gpushare itself makes them: opened at run time, the first answer
// of the library's heuristic, kWorkspaceBytes of workspace. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_HARNESS_GPU_LIBRARY_H_
#define GPUSHARE_BENCHMARKS_HARNESS_GPU_LIBRARY_H_

#include <cstdint>
#include <map>
#include <memory>

#include "benchmarks/kernels/device_buffer.h"
#include "src/core/seams/library_call.h"
#include "src/cuda/driver/driver_api.h"
#include "src/cuda/library/library_backend.h"

namespace gpushare::benchmarks {

// C[m, n] = A[m, k] * B[n, k]^T in bf16, row-major.
core::LibraryCall MatmulCall(int64_t m, int64_t n, int64_t k);

class GpuLibrary {
 public:
  enum class Kind : uint8_t { kCublasLt, kCudnn };
  // Fails where the library is not installed.
  explicit GpuLibrary(Kind kind);

  struct Planned {
    void* handle = nullptr;
    CUstream stream = nullptr;
    std::unique_ptr<cuda::LibraryPlan> plan;
  };
  // `sm_count`: how many SMs the library shall use; 0: it decides, as for an application. The
  // stream's context is current, here and in Enqueue.
  Planned Plan(const core::LibraryCall& call, CUstream stream, int32_t sm_count);
  void Enqueue(const Planned& planned, const core::LibraryArguments& operands) const;

 private:
  cuda::DriverApi api_;
  std::unique_ptr<cuda::LibraryBackend> backend_;
  std::map<CUstream, void*> handles_;  // live as long as the process: contexts may be gone by then
  kernels::DeviceBuffer workspace_;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_GPU_LIBRARY_H_
