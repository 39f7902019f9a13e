// One side of a co-run: a kernel of the catalogue with a task of a wanted duration alone, in all of
// its forms, counted and checked.
//
// A side has two launchers, so that two of its launches can run at once: one goes on with the other
// one's block tasks (a top-up), or executes the task once more. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_SIDE_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_SIDE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/beside.h"
#include "benchmarks/gpu/overlap_gpu.h"
#include "benchmarks/kernels/form_launcher.h"

namespace gpushare::benchmarks {

class Side {
 public:
  explicit Side(OverlapGpu& gpu) : gpu_(gpu) {}
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // A task of the kernel's own workload that takes about so long alone.
  kernels::Status Make(const kernels::CatalogueKernel& kernel, double solo_ms);
  // A product of bf16 matrices by a kernel that makes them. `solo_ms` 0: of this shape; else with
  // as many columns as take about so long.
  kernels::Status MakeProduct(const kernels::CatalogueKernel& kernel, int m, int n, int k,
                              double solo_ms);

  const kernels::CatalogueKernel& kernel() const { return *kernel_; }
  const kernels::FormTask& task() const { return task_; }
  double original_ms() const { return original_ms_; }
  uint32_t claim_batch() const { return claim_batch_; }
  bool is_product() const { return product_.m > 0; }
  const OverlapGpu::Product& product() const { return product_; }
  uint32_t workers_per_sm() const { return task_.variants.workers_per_sm; }
  BlockNeeds Needs() const;  // of a worker

  // Zeroes counters and yield lists. Blocks.
  kernels::Status BeginTask();
  enum Launcher : uint8_t { kFirst = 0, kSecond = 1 };
  // A launch of the whole task by this launcher's own counter.
  gpushare_worker_launch Header(Launcher launcher = kFirst);
  // A launch by the second launcher that goes on with `header`'s block tasks.
  gpushare_worker_launch TopUp(const gpushare_worker_launch& header);
  kernels::Status EnqueueOriginal(CUstream stream) const;
  kernels::Status EnqueueWorkers(const gpushare_worker_launch& header, uint32_t workers,
                                 CUstream stream) const;
  kernels::Status Evict(Launcher launcher, const gpushare_worker_launch& header);
  // After the end of the launch: the block tasks that it executed.
  kernels::Status Finish(Launcher launcher, const gpushare_worker_launch& header,
                         gpushare_worker_completion* record);

  kernels::Status ClearOutput();
  // Whether the output has the bits of the original grid.
  kernels::Status IsRight(bool* right);

 private:
  kernels::Status Describe(const kernels::CatalogueKernel& kernel);
  kernels::Status TakeWorkload(const kernels::WorkloadOptions& options);
  kernels::Status TakeProduct(int m, int n, int k);
  kernels::Status TimeAlone();
  kernels::Status Checksum(uint64_t* checksum) const;
  // Of the original grid's output; sizes and claim batch are final.
  kernels::Status Settle();

  OverlapGpu& gpu_;
  const kernels::CatalogueKernel* kernel_ = nullptr;
  kernels::FormTask task_;
  std::unique_ptr<kernels::Workload> workload_;
  std::vector<unsigned char> product_params_;
  std::unique_ptr<kernels::DeviceBuffer> a_, b_, c_;
  OverlapGpu::Product product_;
  std::array<kernels::FormLauncher, 2> launchers_;
  bool initialised_ = false;
  double original_ms_ = 0;
  uint32_t claim_batch_ = 1;
  uint64_t checksum_ = 0;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_SIDE_H_
