// cuBLASLt's product of a GEMM's operands, by the library's own backend: what the kernels are
// compared with. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_GEMM_LIBRARY_H_
#define GPUSHARE_BENCHMARKS_GPU_GEMM_LIBRARY_H_

#include <memory>

#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/device_buffer.h"
#include "kernels/tensor/gemm_problem.h"
#include "src/cuda/driver_api.h"
#include "src/cuda/library_backend.h"

struct CUstream_st;

namespace gpushare::kernels {

class GemmLibrary {
 public:
  GemmLibrary() = default;
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary&) = delete;
  GemmLibrary& operator=(const GemmLibrary&) = delete;

  Status Init(CUstream_st* stream);
  // The heuristic's first answer with the library's usual workspace.
  Status Plan(const GemmProblem& problem);
  Status Launch();  // enqueues

 private:
  cuda::DriverApi api_;
  std::unique_ptr<cuda::LibraryBackend> backend_;
  std::unique_ptr<cuda::LibraryPlan> plan_;
  void* handle_ = nullptr;
  CUstream_st* stream_ = nullptr;
  DeviceBuffer workspace_;
  core::LibraryArguments operands_;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_GPU_GEMM_LIBRARY_H_
