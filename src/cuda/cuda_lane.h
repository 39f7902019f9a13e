// A lane of the CUDA device: its stream, its words, and the ring of launches that were not
// reported.
//
// Invariants: a launch's sequence number on its lane is its place in the ring, from 1; a worker
// launch is done when its completion record carries that number, any other when a mark behind it is
// reached. One thread at a time launches (under `mutex`, which is the lane's own and keeps ring
// order and stream order the same); one thread polls.

#ifndef GPUSHARE_SRC_CUDA_CUDA_LANE_H_
#define GPUSHARE_SRC_CUDA_CUDA_LANE_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "gpushare/device/launch.h"
#include "src/core/base/limits.h"
#include "src/core/base/mutex.h"
#include "src/core/seams/device.h"
#include "src/cuda/driver_api.h"
#include "src/cuda/lane_marks.h"

namespace gpushare::cuda {

// Launches of one lane that may be in flight: the scheduler's launch table holds no more in all.
inline constexpr uint64_t kLaneRing = core::kMaxInFlightLaunches;
static_assert((kLaneRing & (kLaneRing - 1)) == 0);

struct CudaLane;

struct InFlightLaunch {
  core::LaunchId launch;
  core::TimeNs launched_ns = 0;
  int64_t block_tasks = 0;
  bool workers = false;
  bool fused = false;      // one of two parts
  bool collected = false;  // reported before the launch in front of it
  // The second part of a fused launch: the lane whose stream it is on; null for all others.
  const CudaLane* carrier = nullptr;
};

// Addresses of a lane's words; host memory is mapped, so each has an address on either side.
struct LaneWords {
  // The eviction word: the host writes the one in mapped memory, and the leader of the lane's
  // launch relays it to the one in device memory (gpushare/device/leader.cuh). Null: not evictable.
  std::atomic<uint64_t>* host_eviction_word = nullptr;
  const uint64_t* host_eviction_word_on_device = nullptr;
  uint64_t* eviction_word = nullptr;
  gpushare_worker_completion* records = nullptr;  // kLaneRing of them
  gpushare_worker_completion* records_on_device = nullptr;
  gpushare_worker_scratch* scratch = nullptr;  // kLaneRing of them, device memory
};

struct CudaLane {
  core::LaneSpec spec;
  CUstream stream = nullptr;
  LaneWords words;
  std::atomic<bool> abandoned{false};
  core::Mutex mutex;
  std::array<InFlightLaunch, kLaneRing> ring;
  // Lines of their own: one that launchers write and one that the poller writes.
  alignas(64) std::atomic<uint64_t> launched{0};  // sequence number of the newest launch
  std::atomic<uint64_t> mark_wanted{0};  // the newest that somebody waits for without a mark
  LaneMarks marks;
  // The poller's own.
  alignas(64) std::atomic<uint64_t> reported{0};
  core::TimeNs last_end_ns = 0;
  core::TimeNs checked_ns = 0;  // when the stream was last asked for errors

  InFlightLaunch& At(uint64_t sequence) {
    return ring[static_cast<size_t>((sequence - 1) & (kLaneRing - 1))];
  }
  size_t Slot(uint64_t sequence) const {
    return static_cast<size_t>((sequence - 1) & (kLaneRing - 1));
  }
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CUDA_LANE_H_
