// How a kernel runs with fewer workers on each SM than an SM holds.
//
// With w of M workers an SM is slower only below the occupancy at which its profile says that it is
// saturated. Above it the workers together do as much, so that each block task takes less time, in
// proportion, and an eviction waits less. An H200's lava_md is saturated at 2 of 5 workers, whose
// block tasks take 0.4 of the time.
//
// Used by the planners, and where what such a launch shows is not learned. Pure; any thread.

#ifndef GPUSHARE_SRC_CORE_SEAMS_WIDTH_H_
#define GPUSHARE_SRC_CORE_SEAMS_WIDTH_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/seams/kernel.h"

namespace gpushare::core {

struct Width {
  int32_t workers_per_sm = 0;  // 0: all that an SM holds
  double speed = 1;            // of the kernel, relative to all workers
  double task_time = 1;        // of a block task, likewise
};

// Whether the kernel's record says how it runs with fewer workers.
inline bool SaysWhatFewerWorkersDo(const KernelDesc& kernel) {
  return kernel.simulation.saturating_occupancy < 1;
}

// The speed with that share of the workers, relative to all of them.
inline double SpeedOfShare(const KernelDesc& kernel, double share) {
  return std::min(1.0, share / kernel.simulation.saturating_occupancy);
}

inline Width WidthOf(const KernelDesc& kernel, int32_t workers_per_sm) {
  const int32_t most = kernel.resources.workers_per_sm_max;
  if (workers_per_sm <= 0 || workers_per_sm >= most) return {};
  const double share = static_cast<double>(workers_per_sm) / most;
  const double saturated = kernel.simulation.saturating_occupancy;
  return {workers_per_sm, SpeedOfShare(kernel, share), std::max(share, saturated)};
}

// An eviction of so many workers, where one of all of them takes `all_ns`. The write takes
// `write_ns` (DeviceProfile::eviction_write_latency_ns) of both.
inline int64_t EvictionOf(int64_t all_ns, const Width& width, int64_t write_ns) {
  if (all_ns == kNever || width.workers_per_sm == 0) return all_ns;
  const int64_t fixed_ns = std::min(all_ns, write_ns);
  return fixed_ns + static_cast<int64_t>(static_cast<double>(all_ns - fixed_ns) * width.task_time);
}

// Whether a launch has fewer workers than its SMs hold and its block tasks would fill.
inline bool HasFewerWorkers(const KernelDesc& kernel, Form form, int32_t workers, int32_t sms,
                            int64_t block_tasks) {
  return form == Form::kWorkers && workers > 0 && workers < block_tasks &&
         workers < sms * kernel.resources.workers_per_sm_max;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_WIDTH_H_
