// A catalogue kernel that keeps every SM busy while something else is checked on the same SMs: its
// workers, as many an SM as asked for, on a stream of its own. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_GEMM_NEIGHBOUR_H_
#define GPUSHARE_BENCHMARKS_GPU_GEMM_NEIGHBOUR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "src/cuda/kernels/catalogue.h"
#include "src/cuda/kernels/form_launcher.h"

namespace gpushare::benchmarks {

class GemmNeighbour {
 public:
  // Errors: no such kernel, CUDA's.
  kernels::Status Init(const std::string& kernel);
  const char* name() const { return kernel_->name; }

  // Returns once its workers run; they do for some milliseconds.
  kernels::Status Begin(uint32_t workers_per_sm);
  // Evicts them and blocks until they have left.
  kernels::Status End();

 private:
  const kernels::CatalogueKernel* kernel_ = nullptr;
  std::unique_ptr<kernels::Workload> workload_;
  kernels::FormLauncher launcher_;
  kernels::FormTask task_;
  gpushare_worker_launch header_ = {};
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_GEMM_NEIGHBOUR_H_
