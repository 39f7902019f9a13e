// A lane of the CUDA device: its stream, its words, and the ring of launches that were not yet
// reported.
//
// Invariants: a launch's sequence number counts from 1 on its lane and gives its place in the ring.
// A worker launch has ended when its completion record carries that number; any other launch has
// ended when the host sees a mark behind it.
// Threads: `mutex` lets one thread at a time launch, so that ring order and stream order agree. One
// thread polls.

#ifndef GPUSHARE_SRC_CUDA_LANES_CUDA_LANE_H_
#define GPUSHARE_SRC_CUDA_LANES_CUDA_LANE_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "gpushare/device/launch.h"
#include "src/core/base/limits.h"
#include "src/core/base/mutex.h"
#include "src/core/seams/device.h"
#include "src/cuda/driver/driver_api.h"
#include "src/cuda/lanes/lane_marks.h"
#include "src/cuda/lanes/segment_feed.h"

namespace gpushare::cuda {

// The launches of one lane in flight. The scheduler's launch table holds no more for all lanes
// together.
inline constexpr uint64_t kLaneRing = core::kMaxInFlightLaunches;
static_assert((kLaneRing & (kLaneRing - 1)) == 0);

struct CudaLane;

struct InFlightLaunch {
  core::LaunchId launch;
  core::TimeNs launched_ns = 0;
  int64_t block_tasks = 0;
  bool workers = false;
  bool segments = false;   // the lane's feed knows its end
  bool fused = false;      // one of the two parts of a fused launch
  bool collected = false;  // reported before the launch in front of it
  // For the second part of a fused launch, the lane whose stream runs it; null otherwise.
  const CudaLane* stream_lane = nullptr;
  // The lane whose launch of this number it comes after; null: none.
  const CudaLane* after = nullptr;
  uint64_t after_sequence = 0;
  // The driver's answer to the launch's signal event. If it is an error, the launch runs and then
  // completes as failed.
  CUresult signal_error = CUDA_SUCCESS;
};

// Addresses of a lane's words. Mapped host memory has one address on the host and one on the
// device.
struct LaneWords {
  // The host writes the eviction word in mapped memory. The leader block of the lane's launch
  // copies it to device memory (gpushare/device/leader.cuh). The device's two addresses are null if
  // the lane is not evictable; segments leave by the host's word all the same.
  std::atomic<uint64_t>* host_eviction_word = nullptr;
  const uint64_t* host_eviction_word_on_device = nullptr;
  uint64_t* eviction_word = nullptr;
  gpushare_worker_completion* records = nullptr;  // kLaneRing records
  gpushare_worker_completion* records_on_device = nullptr;
  gpushare_worker_scratch* scratch = nullptr;  // kLaneRing entries in device memory
};

struct CudaLane {
  core::LaneSpec spec;
  CUstream stream = nullptr;
  CUevent order = nullptr;  // recorded where another lane goes on after this one
  LaneWords words;
  std::atomic<bool> abandoned{false};
  core::Mutex mutex;
  std::array<InFlightLaunch, kLaneRing> ring;
  // Launchers write these; the poller writes those below, in another cache line.
  alignas(64) std::atomic<uint64_t> launched{0};  // sequence number of the newest launch
  std::atomic<uint64_t> mark_wanted{0};           // the newest launch that still needs a mark
  LaneMarks marks;
  SegmentFeed feed;  // of the lane's newest launch, where that is one in segments
  // Callers' functions that were called and whose work was not launched yet. It rises only under
  // `mutex`.
  std::atomic<int> callbacks{0};
  // Only the poller writes these.
  alignas(64) std::atomic<uint64_t> reported{0};
  core::TimeNs last_end_ns = 0;
  core::TimeNs checked_ns = 0;  // when the poller last asked the stream for errors

  // Counts one such function for as long as it lives; made under `mutex`.
  class Callback {
   public:
    explicit Callback(CudaLane& lane) : callbacks_(lane.callbacks) { callbacks_.fetch_add(1); }
    ~Callback() { callbacks_.fetch_sub(1); }
    Callback(const Callback&) = delete;
    Callback& operator=(const Callback&) = delete;

   private:
    std::atomic<int>& callbacks_;
  };

  InFlightLaunch& At(uint64_t sequence) {
    return ring[static_cast<size_t>((sequence - 1) & (kLaneRing - 1))];
  }
  size_t Slot(uint64_t sequence) const {
    return static_cast<size_t>((sequence - 1) & (kLaneRing - 1));
  }
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_CUDA_LANE_H_
