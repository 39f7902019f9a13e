// The worker probe: the smallest kernel that follows the eviction protocol, and its launcher.
//
// It proves that the compiled code runs on this machine: workers claim block tasks from a counter
// and leave when the eviction word says so. Plain types only, so that the .cu file needs no Abseil.
// Threads: any. It uses its own stream and blocks until the kernel has ended.

#ifndef GPUSHARE_SRC_CUDA_DRIVER_PROBE_H_
#define GPUSHARE_SRC_CUDA_DRIVER_PROBE_H_

#include <cstdint>

namespace gpushare::cuda {

struct ProbeRequest {
  int ordinal = 0;
  uint32_t workers = 64;
  uint32_t block_tasks = 4096;
  // The launch's epoch, and the eviction word {epoch, workers to keep} that the workers read. They
  // leave once evicted_epoch - epoch >= 0; the signed difference is safe across a wrap.
  uint32_t epoch = 1;
  uint32_t evicted_epoch = 0;
  uint32_t workers_to_keep = 0;
};

struct ProbeResult {
  int error = 0;          // a cudaError_t; 0 is success
  const char* step = "";  // the call that failed
  uint32_t claimed = 0;   // block tasks claimed from the counter
  uint32_t executed = 0;  // block tasks executed at least once
  uint32_t repeated = 0;  // block tasks executed more than once; must be 0
  uint32_t finished_workers = 0;
};

ProbeResult RunWorkerProbe(const ProbeRequest& request);

// cudaGetDeviceCount. On failure (35: the driver is older than the runtime; 100: no device) the
// runtime leaves its output unset, and this function sets `count` to 0.
int CountDevices(int* count);

// The runtime's text for a code.
const char* ErrorText(int code);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_DRIVER_PROBE_H_
