// A lane's marks: events behind launches that write no record of their end.
//
// An event without timing takes no GPU time; a stream write between two launches takes 1.5 us
// (docs/hardware.md).
// Invariants: the device reaches marks in the order in which they were set. At most as many marks
// wait as Open made. If none is free, the caller sets one later, and launches share it.
// Threads: one thread at a time sets marks, under the lane's mutex. One thread reads them, in
// relaxed capture mode (context.h).

#ifndef GPUSHARE_SRC_CUDA_LANES_LANE_MARKS_H_
#define GPUSHARE_SRC_CUDA_LANES_LANE_MARKS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "src/core/base/limits.h"
#include "src/cuda/driver/driver_api.h"

namespace gpushare::cuda {

class LaneMarks {
 public:
  // Enough for each query of one queue that waits on the device to have a mark of its own.
  static constexpr uint64_t kMarksMax = core::kLcWindow;
  // For an evictable lane: its launches are mostly workers, which write records.
  static constexpr uint64_t kMarksOfWorkers = 32;
  static_assert((kMarksMax & (kMarksMax - 1)) == 0);
  static_assert((kMarksOfWorkers & (kMarksOfWorkers - 1)) == 0);

  // Makes `count` events, a power of two of at most kMarksMax, and tries one on the stream.
  // Launches before `first` count as ended. The primary context must be current.
  absl::Status Open(const DriverApi& api, CUstream stream, uint64_t first, uint64_t count);
  // Destroys the events. No other call may follow.
  void Close(const DriverApi& api);

  // The newest launch that has a mark behind it.
  uint64_t set() const { return set_.load(std::memory_order_relaxed); }
  // Sets a mark behind everything on the stream; `sequence` is the newest launch there. If no event
  // is free, sets none and returns OK; set() shows it.
  absl::Status Set(const DriverApi& api, CUstream stream, uint64_t sequence);
  // The newest launch that is known to have ended. After a sticky error the device reaches no more
  // marks; CudaDevice then asks the stream.
  uint64_t Reached(const DriverApi& api);
  // Whether the event of a mark answered an error and a new mark must be set. That happens when a
  // caller captures the lane's stream: the mark becomes part of the capture. Call it from the
  // reading thread.
  bool lost() const { return lost_; }
  // Call once a new mark stands for the lost one.
  void Replaced() { lost_ = false; }

 private:
  struct Mark {
    CUevent event = nullptr;
    uint64_t sequence = 0;
  };
  Mark& At(uint64_t number) { return marks_[static_cast<size_t>(number & (count_ - 1))]; }

  std::array<Mark, kMarksMax> marks_;
  uint64_t count_ = 1;
  std::atomic<uint64_t> set_{0};
  // Counts of marks. The setting thread writes one, the reading thread the other.
  std::atomic<uint64_t> written_{0};
  alignas(64) std::atomic<uint64_t> read_{0};
  uint64_t reached_ = 0;
  bool lost_ = false;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_LANE_MARKS_H_
