// The self-test of an evictable lane: does an eviction reach a launch on it?
//
// A worker launch of one worker and its leader goes to the lane, the host sees it run, evicts it by
// the lane's own words, and it must leave within a bound: host word, relay, device word, worker.
// Invariants: the launch ends by itself, so nothing ever waits for an eviction that is blocked; a
// lane that has passed is as it was, the first entry of its ring aside. About 30 us a lane.
// Threads: the one that makes lanes; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_LANE_CHECK_H_
#define GPUSHARE_SRC_CUDA_LANE_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "src/core/base/clock.h"
#include "src/core/base/limits.h"
#include "src/cuda/context.h"
#include "src/cuda/cuda_lane.h"

namespace gpushare::cuda {

class LaneCheck {
 public:
  explicit LaneCheck(const Context& context) : context_(context) {}

  // Loads the probe. The primary context is current.
  absl::Status Open();

  // OK: the eviction was seen, or the probe found no room to start in time, which says nothing of
  // the lane. DEADLINE_EXCEEDED: the probe ran and did not see its eviction. Also what the driver
  // answers. `index` is the lane's number, for its words in the check's own memory and for
  // messages.
  absl::Status Run(CudaLane& lane, core::LaneIndex index);

  // For tests: the host's word is not written, so that the probe cannot see its eviction.
  void BlockEvictions(bool block) { blocked_for_test_ = block; }

  void Leak();

 private:
  absl::Status Launch(CudaLane& lane, core::LaneIndex index, uint64_t sequence, uint64_t mark);
  // The value of a lane's word before anybody evicts.
  absl::Status ResetDeviceWord(const CudaLane& lane, unsigned char byte) const;

  const Context& context_;
  const core::SteadyClock clock_;
  CUfunction function_ = nullptr;
  DeviceMemory counters_;  // one of 32 bits a lane
  MappedMemory running_;   // one word a lane
  uint64_t mark_ = 0;
  int64_t start_allowance_ns_ = 40'000'000;  // of waits for starts, all lanes together
  bool blocked_for_test_ = false;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANE_CHECK_H_
