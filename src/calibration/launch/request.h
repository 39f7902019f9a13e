// Every launch request of a calibration is made here.
//
// The requests lack launch identifiers and epochs, which LaunchTimer fills in. Each points into the
// item or fused kernel that it was made from, which outlives it. Threads: any.

#ifndef GPUSHARE_SRC_CALIBRATION_LAUNCH_REQUEST_H_
#define GPUSHARE_SRC_CALIBRATION_LAUNCH_REQUEST_H_

#include <cstdint>
#include <string>

#include "src/calibration/base/item.h"
#include "src/calibration/base/options.h"
#include "src/core/seams/device.h"

namespace gpushare::models {

// One launch of the whole sample task in the form in which CUDA would launch it.
core::LaunchRequest OrdinaryRequest(const CalibrationItem& item, core::LaneIndex lane);

// `workers` 0: as many as the place holds. Concurrent worker launches need different claim
// counters; the launch resets its own.
core::LaunchRequest WorkerRequest(const CalibrationItem& item, core::LaneIndex lane,
                                  int64_t block_tasks, int32_t workers = 0, int32_t counter = 0);
inline core::LaunchRequest WorkerRequest(const CalibrationItem& item, core::LaneIndex lane) {
  return WorkerRequest(item, lane, item.block_tasks);
}

core::LaunchRequest SliceRequest(const CalibrationItem& item, core::LaneIndex lane,
                                 int64_t block_begin, int64_t block_tasks);

core::LaunchRequest CopyLaunchRequest(const core::CopyRequest& copy, core::LaneIndex lane);

// A copy between the buffers of a calibration. Copies to the host use the second halves, so that
// both directions can run together.
struct BufferCopy {
  core::CopyDirection direction = core::CopyDirection::kNone;
  bool pinned = true;
};
core::LaunchRequest BufferCopyRequest(const CalibrationBuffers& buffers, const BufferCopy& copy,
                                      int64_t bytes, core::LaneIndex lane);
// Whether such copies can run: a simulated device needs no buffers.
bool HasBuffers(const core::Device& device, const CalibrationBuffers& buffers, bool pinned);

// One part of a fused launch: its lane holds the eviction word that the part reads.
struct FusedPart {
  const CalibrationItem& item;
  core::LaneIndex lane = core::kNoLane;
  int64_t block_tasks = 0;
};
core::LaunchRequest FusedRequest(const core::FusedKernelDesc& fused, const FusedPart& tensor,
                                 const FusedPart& cuda);

// The launch in messages: "Kernel 'sincos'", "Fused kernel 'a_b'", "A copy".
std::string NameOf(const core::LaunchRequest& request);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_LAUNCH_REQUEST_H_
