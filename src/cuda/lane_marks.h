// A lane's marks: events behind launches whose end no record of theirs tells.
//
// An event without timing takes no time on the GPU, where a stream write between two launches takes
// 1.5 us (docs/hardware.md). Invariants: marks are reached in the order in which they were
// set; at most as many as were opened wait at a time, and who finds no room sets a later one, so
// that launches share it. Threads: one at a time sets (under the lane's mutex), one reads, in
// relaxed capture mode (context.h).

#ifndef GPUSHARE_SRC_CUDA_LANE_MARKS_H_
#define GPUSHARE_SRC_CUDA_LANE_MARKS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "src/core/base/limits.h"
#include "src/cuda/driver_api.h"

namespace gpushare::cuda {

class LaneMarks {
 public:
  // As many queries of one queue as wait on the device at a time each have their own.
  static constexpr uint64_t kMarksMax = core::kLcWindow;
  // A lane of workers, which leave records of their ends.
  static constexpr uint64_t kMarksOfWorkers = 32;
  static_assert((kMarksMax & (kMarksMax - 1)) == 0);
  static_assert((kMarksOfWorkers & (kMarksOfWorkers - 1)) == 0);

  // What comes before `first` was reached. Makes `count` events, a power of two up to kMarksMax,
  // and tries one on the stream: the primary context is current.
  absl::Status Open(const DriverApi& api, CUstream stream, uint64_t first, uint64_t count);
  // The lane has ended: nothing is set or read any more.
  void Close(const DriverApi& api);

  // The newest launch that a mark was set behind.
  uint64_t set() const { return set_.load(std::memory_order_relaxed); }
  // Behind everything on the stream, of which `sequence` is the newest. Without room nothing is set
  // and the status is OK: set() tells.
  absl::Status Set(const DriverApi& api, CUstream stream, uint64_t sequence);
  // The newest launch that is known to have ended. With the first sticky error no mark is reached
  // any more; whoever looks after the lane asks the stream for it.
  uint64_t Reached(const DriverApi& api);
  // Reader: whether a mark was lost, because its event answers an error (a caller that captures a
  // lane's stream makes its mark a part of the capture): another one has to be set.
  bool lost() const { return lost_; }
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
  // Counts of marks; each is written by one side and read by the other.
  std::atomic<uint64_t> written_{0};
  alignas(64) std::atomic<uint64_t> read_{0};
  uint64_t reached_ = 0;
  bool lost_ = false;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANE_MARKS_H_
