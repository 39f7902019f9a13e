// What gemm_benchmark checks a product with: its operands, cuBLASLt's result, and a catalogue
// kernel that keeps the SMs busy meanwhile. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_GEMM_GEMM_CHECK_H_
#define GPUSHARE_BENCHMARKS_GPU_GEMM_GEMM_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/gpu_library.h"
#include "benchmarks/kernels/device_buffer.h"
#include "benchmarks/kernels/form_launcher.h"
#include "kernels/tensor/gemm_problem.h"

namespace gpushare::benchmarks {

struct GemmShape {
  int m;
  int n;
  int k;
  bool skinny;
};

class GemmMatrices {
 public:
  // Operands from seeds, and cuBLASLt's product of them.
  GemmMatrices(const GemmShape& shape, GpuLibrary& cublaslt, CUstream_st* stream);

  // A kernel's product, into memory of its own.
  kernels::GemmProblem Problem() const {
    return {shape_.m, shape_.n, shape_.k, a_.data(), b_.data(), c_.data()};
  }
  // Enqueues cuBLASLt's product.
  void LaunchCublasLt() const { cublaslt_.Enqueue(planned_, operands_); }

  struct Comparison {
    uint64_t wrong = 0;  // elements outside of the tolerance
    uint64_t not_equal = 0;
    double difference_max = 0;
  };
  // Of the kernel's product with cuBLASLt's, element by element. Spoil() makes every element wrong.
  void Spoil();
  Comparison Compare() const;

 private:
  GemmShape shape_;
  kernels::DeviceBuffer a_, b_, c_, cublaslt_c_;
  GpuLibrary& cublaslt_;
  GpuLibrary::Planned planned_;
  core::LibraryArguments operands_;
  std::vector<uint16_t> expected_;
};

// A catalogue kernel that keeps every SM busy while something else is checked on the same SMs: its
// workers, as many an SM as asked for, on a stream of its own.
class GemmNeighbour {
 public:
  explicit GemmNeighbour(const std::string& kernel);
  const char* name() const { return made_.workload->kernel().name; }

  // Launches its workers and gives them time to be placed; they run for some milliseconds.
  void Begin(uint32_t workers_per_sm);
  // Evicts them and blocks until they have left. True: they had not ended by themselves.
  bool End();

 private:
  kernels::FormLauncher launcher_;
  WorkloadTask made_;
  gpushare_worker_launch header_ = {};
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_GEMM_GEMM_CHECK_H_
