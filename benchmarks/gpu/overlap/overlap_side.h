// One side of a co-run: a kernel of the catalogue with a task of a wanted duration alone, in all of
// its forms, counted and checked.
//
// A side has two launchers, so that two of its launches can run at once: one goes on with the other
// one's block tasks (a top-up), or executes the task once more. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_SIDE_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_SIDE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/overlap/beside.h"
#include "benchmarks/gpu/overlap/overlap_gpu.h"
#include "benchmarks/gpu/overlap/overlap_pairs.h"
#include "benchmarks/kernels/form_launcher.h"

namespace gpushare::benchmarks {

class Side {
 public:
  // A task of the kernel's own workload that takes about `solo_ms` alone; of a kernel that makes
  // products (shape.m above 0) a product of bf16 matrices, of this shape where solo_ms is 0, else
  // with as many columns as take about so long.
  Side(OverlapGpu& gpu, const std::string& kernel, const ProductShape& shape, double solo_ms);
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  const char* name() const { return kernel_.name; }
  const kernels::FormTask& task() const { return task_; }
  double original_ms() const { return original_ms_; }
  uint32_t claim_batch() const { return claim_batch_; }
  bool is_product() const { return product_.m > 0; }
  const Product& product() const { return product_; }
  uint32_t workers_per_sm() const { return task_.variants.workers_per_sm; }
  uint32_t Workers(int32_t sms) const { return workers_per_sm() * static_cast<uint32_t>(sms); }
  BlockNeeds Needs() const;  // of a worker

  // From here on only the first block tasks: as many as `sms` of all SMs execute of the whole task
  // in the same time. Of kernels with a grid of one dimension.
  void KeepShareOf(int32_t sms);
  // Compares the output of the original grid with the reference, for about so long.
  void Verify(double seconds);

  enum Launcher : uint8_t { kFirst = 0, kSecond = 1 };
  kernels::FormLauncher& launcher(Launcher launcher = kFirst) { return launchers_[launcher]; }
  // Zeroes counters and yield lists. Blocks.
  void BeginTask();
  // A launch of the whole task by this launcher's own counter.
  gpushare_worker_launch Header(Launcher launcher = kFirst);
  // A launch by the second launcher that goes on with `header`'s block tasks.
  gpushare_worker_launch TopUp(const gpushare_worker_launch& header);
  void EnqueueOriginal(CUstream stream);
  void EnqueueWorkers(const gpushare_worker_launch& header, uint32_t workers, CUstream stream);
  // After the end of the launch: its record.
  gpushare_worker_completion Finish(const gpushare_worker_launch& header,
                                    Launcher launcher = kFirst);
  // Fails where the block tasks that were executed are not those that there were.
  void CheckCount(uint64_t done, uint64_t of) const;
  void CheckCount(uint64_t done) const { CheckCount(done, task_.block_tasks()); }

  void ClearOutput();
  // Fails where the output has not the bits of the original grid: "... bits WHEN than ...".
  void CheckBits(const std::string& when) const;

 private:
  void Size(double solo_ms);
  // `block_tasks` 0: as many as the kernel's own figures give for the duration.
  void TakeWorkload(double solo_ms, uint32_t block_tasks);
  void TakeProduct(int m, int n, int k);
  void TimeAlone();
  uint64_t Checksum() const;
  // Sizes are final: the claim batch, and the original grid's output.
  void Settle();
  void RunOriginal();

  OverlapGpu& gpu_;
  const kernels::CatalogueKernel& kernel_;
  kernels::FormTask task_;
  std::unique_ptr<kernels::Workload> workload_;
  std::vector<unsigned char> product_params_;
  std::unique_ptr<kernels::DeviceBuffer> a_, b_, c_;
  Product product_;
  std::array<kernels::FormLauncher, 2> launchers_;
  double original_ms_ = 0;
  uint32_t claim_batch_ = 1;
  uint64_t checksum_ = 0;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_OVERLAP_SIDE_H_
