// A BE task of fixed size, of a kernel of the catalogue: timed and checked under quotas.
//
// Invariant: the answer alone on the whole GPU was compared with the reference on the CPU; every
// other one must have the same bits. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_QUOTA_BE_TASK_H_
#define GPUSHARE_BENCHMARKS_GPU_QUOTA_BE_TASK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "benchmarks/gpu/quota_gpu.h"
#include "benchmarks/gpu/quota_limited_kernel.h"
#include "benchmarks/kernels/catalogue.h"

namespace gpushare::quota {

class BeTask {
 public:
  // `solo_ms`: about what it takes alone on the whole GPU. `id`: the kernel's own on the device.
  BeTask(Gpu& gpu, const char* name, double solo_ms, uint32_t seed, uint32_t id);

  const std::string& name() const { return name_; }
  int workers_per_sm() const { return kernel_.workers_per_sm(); }

  // From here on only the first block tasks: as many as `sms` of all SMs execute of the whole task
  // in the same time. Runs them alone for the answer. Of kernels with a grid of one dimension.
  void KeepShareOf(int sms);

  double SoloMs() { return kernel_.SoloMs(); }
  double Ms(Way way, int quota) { return kernel_.Ms(way, quota); }
  void Start(Way way, int quota) { kernel_.Start(way, quota); }
  std::optional<double> PollMs() { return kernel_.PollMs(); }

  // While nothing runs: the output is forgotten, or is the one expected of `way`.
  void ClearOutput();
  void CheckOutput(const char* way, int quota);

 private:
  uint64_t Checksum();

  Gpu& gpu_;
  std::string name_;
  LimitedKernel kernel_;
  std::unique_ptr<kernels::Workload> workload_;
  uint64_t expected_ = 0;
};

}  // namespace gpushare::quota

#endif  // GPUSHARE_BENCHMARKS_GPU_QUOTA_BE_TASK_H_
