// A lane's marks: events behind launches whose end no record of theirs tells.
//
// An event without timing takes no time on the GPU, where a stream write between two launches takes
// 1.5 us (docs/measurements.md). Invariants: marks are reached in the order in which they were
// set; at most kMarks wait at a time, and who finds no room sets a later one. Threads: one at a
// time sets (under the lane's mutex), one reads.

#ifndef GPUSHARE_SRC_CUDA_LANE_MARKS_H_
#define GPUSHARE_SRC_CUDA_LANE_MARKS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "src/cuda/driver_api.h"

namespace gpushare::cuda {

class LaneMarks {
 public:
  // Queries of one lane that wait at a time are few; more share a mark.
  static constexpr uint64_t kMarks = 16;
  static_assert((kMarks & (kMarks - 1)) == 0);

  // What comes before `first` was reached. Makes the events: the lane's context is current.
  absl::Status Open(const DriverApi& api, uint64_t first);
  // The lane has ended: nothing is set or read any more.
  void Close(const DriverApi& api);

  // The newest launch that a mark was set behind.
  uint64_t set() const { return set_.load(std::memory_order_relaxed); }
  // Behind everything on the stream, of which `sequence` is the newest. Without room nothing is set
  // and the status is OK: set() tells.
  absl::Status Set(const DriverApi& api, CUstream stream, uint64_t sequence);
  // The newest launch that is known to have ended. An event that answers an error is not reached;
  // whoever looks after the lane asks the stream for it.
  uint64_t Reached(const DriverApi& api);

 private:
  struct Mark {
    CUevent event = nullptr;
    uint64_t sequence = 0;
  };
  Mark& At(uint64_t number) { return marks_[static_cast<size_t>(number & (kMarks - 1))]; }

  std::array<Mark, kMarks> marks_;
  std::atomic<uint64_t> set_{0};
  // Counts of marks; each is written by one side and read by the other.
  std::atomic<uint64_t> written_{0};
  alignas(64) std::atomic<uint64_t> read_{0};
  uint64_t reached_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANE_MARKS_H_
