// The worker probe: the smallest kernel that lives by the eviction protocol, and its launcher.
//
// It proves on a machine that what was compiled runs there: workers claim block tasks from a
// counter and leave when the eviction word says so. Plain types only, so that the .cu file needs no
// Abseil. Threads: any; it uses a stream of its own and blocks until the kernel has ended.

#ifndef GPUSHARE_SRC_CUDA_PROBE_H_
#define GPUSHARE_SRC_CUDA_PROBE_H_

#include <cstdint>

namespace gpushare::cuda {

struct ProbeRequest {
  int ordinal = 0;
  uint32_t workers = 64;
  uint32_t block_tasks = 4096;
  // The launch's epoch, and the eviction word {epoch, workers to keep} that it finds. The workers
  // leave once evicted_epoch - epoch >= 0, signed, so that a wrap is harmless.
  uint32_t epoch = 1;
  uint32_t evicted_epoch = 0;
  uint32_t workers_to_keep = 0;
};

struct ProbeResult {
  int error = 0;          // a cudaError_t; 0 is success
  const char* step = "";  // the call that failed
  uint32_t claimed = 0;   // block tasks claimed from the counter
  uint32_t executed = 0;  // block tasks executed, each counted once
  uint32_t repeated = 0;  // block tasks that ran more than once: always 0
  uint32_t finished_workers = 0;
};

ProbeResult RunWorkerProbe(const ProbeRequest& request);

// cudaGetDeviceCount. It leaves its output unset when it fails (35: the driver is older than the
// runtime; 100: no device), so `count` is 0 then.
int CountDevices(int* count);

// The runtime's own text for a code.
const char* ErrorText(int code);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_PROBE_H_
