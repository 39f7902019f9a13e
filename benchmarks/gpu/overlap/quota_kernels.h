// Kernels of the experiment `quota`. Plain types, so that .cc files need no nvcc.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_QUOTA_KERNELS_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_QUOTA_KERNELS_H_

#include <gpushare/device/kernel_variants.h>

#include <cstdint>

struct CUstream_st;

namespace gpushare::benchmarks {

// Parameters of the contract kernel that records where its block tasks ran.
struct QuotaProbeParams {
  uint32_t* executions;  // one a block task
  uint32_t* by_sm;       // block tasks, one count an SM
  uint32_t* by_block;    // block tasks, one count a block of the launch
  uint64_t spin_ns;      // of a block task
};

// How workers get their block tasks.
enum class Taking : uint32_t {
  kDynamic = 0,  // from one counter, as the kernel contract does
  kRange = 1,    // SMGuard 5.2: worker w has [w c, (w + 1) c), c = ceil(block tasks / workers)
  kStride = 2,   // worker w has w, w + workers, w + 2 workers, ...
};

// Parameters of the kernel whose block tasks differ in length.
struct SkewedParams {
  const uint32_t* iterations;  // one a block task
  uint32_t* results;           // kSkewedThreads a block task
  uint32_t* executions;        // one a block task
  uint32_t* counter;           // zero before the launch
  uint64_t* begin_ns;          // one a worker
  uint64_t* end_ns;            // one a worker
  uint32_t block_tasks;
  Taking taking;
};

constexpr uint32_t kSkewedThreads = 256;
constexpr uint32_t kSkewedWorkersPerSm = 8;
constexpr uint32_t kSkewedFactor = 1664525;
constexpr uint32_t kSkewedStep = 1013904223;

// What thread `thread` of block task `block_task` starts from; each iteration makes it
// kSkewedFactor times itself plus kSkewedStep.
constexpr uint32_t SkewedStart(uint32_t block_task, uint32_t thread) {
  return block_task * kSkewedThreads + thread;
}

// Enqueues one launch; a cudaError_t.
int LaunchSkewed(const SkewedParams& params, uint32_t workers, CUstream_st* stream);

}  // namespace gpushare::benchmarks

extern "C" int gpushare_quota_probe_variants(gpushare_kernel_variants* out);

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_QUOTA_KERNELS_H_
