// The null device in real time: a launch ends as long after it began as its kernel's simulation
// record says.
//
// For tests and benchmarks of what waits: the scheduler's thread, callers, completions. Nothing is
// computed and nothing contends: launches of one lane run one after another, lanes run side by
// side, and an evicted launch runs to its end, as one does whose workers have claimed every block
// task. Ends never go backwards. Threads: as of the null device.

#ifndef GPUSHARE_SRC_NULL_PACED_DEVICE_H_
#define GPUSHARE_SRC_NULL_PACED_DEVICE_H_

#include <memory>

#include "src/core/seams/device.h"

namespace gpushare::null {

std::unique_ptr<core::Device> MakePacedDevice();

}  // namespace gpushare::null

#endif  // GPUSHARE_SRC_NULL_PACED_DEVICE_H_
