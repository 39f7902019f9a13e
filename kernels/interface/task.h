// From device parameters to the task that the caller submits, and how a DRAM-bound problem is cut
// into block tasks.

#ifndef GPUSHARE_KERNELS_INTERFACE_TASK_H_
#define GPUSHARE_KERNELS_INTERFACE_TASK_H_

#include <gpushare/kernels.h>

#include <cstddef>
#include <cstdint>

#include "kernels/grid.h"
#include "kernels/interface/checks.h"

namespace gpushare::kernels {

// An H200: its DRAM reads and writes 4.3e6 bytes/us, shared by four workers on each of 132 SMs
// (docs/kernels.md: so many workers are as fast as all that fit).
constexpr double kWorkerBytesPerUs = 4.3e6 / (132.0 * 4);
// With fewer block tasks some of these workers would have none.
constexpr uint64_t kBlockTasksMin = uint64_t{132} * 4;

// Equal parts of a problem: each block task takes `share` of the units.
struct Cut {
  uint32_t block_tasks = 0;
  uint32_t share = 0;
};

// The largest share that divides the units, takes `block_task_us` at most and leaves kBlockTasksMin
// block tasks; one unit where there is none.
Cut CutIntoBlockTasks(uint64_t units, double unit_bytes, double block_task_us, Checks* checks);

// Fills the task for the kernel of this name.
gpushare_kernels_status WriteTask(const char* kernel, const void* arguments, size_t arguments_bytes,
                                  const Grid& grid, gpushare_kernels_task* out_task);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_INTERFACE_TASK_H_
