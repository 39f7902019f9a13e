// A catalogue kernel that keeps every SM busy while something else is checked on the same SMs: its
// workers, as many an SM as asked for, on a stream of its own. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_GEMM_NEIGHBOUR_H_
#define GPUSHARE_BENCHMARKS_GPU_GEMM_NEIGHBOUR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/form_launcher.h"

namespace gpushare::kernels {

class GemmNeighbour {
 public:
  // Errors: no such kernel, CUDA's.
  Status Init(const std::string& kernel);
  const char* name() const { return kernel_->name; }

  // Launches its workers and gives them time to be placed; they run for some milliseconds.
  Status Begin(uint32_t workers_per_sm);
  // Evicts them and blocks until they have left. `was_running`: they had not ended by themselves.
  Status End(bool* was_running);

 private:
  const CatalogueKernel* kernel_ = nullptr;
  std::unique_ptr<Workload> workload_;
  FormLauncher launcher_;
  FormTask task_;
  gpushare_worker_launch header_ = {};
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_GPU_GEMM_NEIGHBOUR_H_
