// Where block tasks run: a kernel that records, for each of its block tasks, the SM and the block
// that executed it, launched under a quota in each way or on a stream of LC.
//
// Every run fails where a block task did not run once or ran outside of its SMs; a quota may be
// missed (fewer SMs), never passed. Blocks. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_QUOTA_PROBE_H_
#define GPUSHARE_BENCHMARKS_GPU_QUOTA_PROBE_H_

#include <cstdint>
#include <vector>

#include "benchmarks/gpu/quota_gpu.h"
#include "benchmarks/gpu/quota_kernels.h"
#include "benchmarks/gpu/quota_limited_kernel.h"
#include "benchmarks/kernels/device_buffer.h"

namespace gpushare::quota {

class Probe {
 public:
  struct Seen {
    std::vector<uint32_t> by_sm;  // block tasks, one count an SM
    uint32_t workers = 0;         // that executed a block task
    uint32_t sms() const;         // that executed one
  };

  // `id`: its own on the device.
  Probe(Gpu& gpu, uint32_t id);

  Seen Run(Way way, int quota);
  // LC's form, an ordinary grid, on the SMs that the packed place of `quota` SMs leaves: none of
  // them may be one where the packed way ran.
  void CheckRest(int quota);

 private:
  void Begin(uint32_t block_tasks);
  Seen End(uint32_t block_tasks) const;

  Gpu& gpu_;
  LimitedKernel kernel_;
  kernels::DeviceBuffer executions_;
  kernels::DeviceBuffer by_sm_;
  kernels::DeviceBuffer by_block_;
  benchmarks::QuotaProbeParams params_ = {};
};

}  // namespace gpushare::quota

#endif  // GPUSHARE_BENCHMARKS_GPU_QUOTA_PROBE_H_
