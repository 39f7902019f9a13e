// The self-test of an evictable lane: does an eviction reach a launch on it?
//
// Where in the flow: when a lane is made. The check launches one worker and its leader, sees them
// run, and evicts them through the lane's own words: host word, relay, device word, worker. They
// must leave within a bound. One check takes about 30 us.
// Invariants: the launch also ends by itself, so nothing waits for a blocked eviction. A lane that
// passes is as before, except for the first entry of its ring.
// Threads: the thread that makes lanes; the primary context is current.

#ifndef GPUSHARE_SRC_CUDA_LANES_LANE_CHECK_H_
#define GPUSHARE_SRC_CUDA_LANES_LANE_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "src/core/base/clock.h"
#include "src/core/base/limits.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/lanes/cuda_lane.h"

namespace gpushare::cuda {

class LaneCheck {
 public:
  // `words` is the number of sets of words that lanes may have.
  LaneCheck(const Context& context, size_t words) : context_(context), words_(words) {}

  // Loads the probe. The primary context must be current.
  absl::Status Open();

  // OK if the worker saw the eviction, or if the probe found no room to start in time, which says
  // nothing about the lane. `index` names the lane in messages, `set` is the lane's set of words.
  // Errors: DEADLINE_EXCEEDED if the probe ran and did not see its eviction; otherwise the driver's
  // error.
  absl::Status Run(CudaLane& lane, core::LaneIndex index, size_t set);

  // For tests: leaves the host's word alone, so that the probe cannot see its eviction.
  void BlockEvictions(bool block) { blocked_for_test_ = block; }

  void Leak();

 private:
  absl::Status Launch(CudaLane& lane, size_t set, uint64_t sequence, uint64_t mark);
  // Sets every byte of the lane's device word.
  absl::Status ResetDeviceWord(const CudaLane& lane, unsigned char byte) const;

  const Context& context_;
  const size_t words_;
  const core::SteadyClock clock_;
  CUfunction function_ = nullptr;
  DeviceMemory counters_;  // 32 bits a set
  MappedMemory running_;   // one word a set
  uint64_t mark_ = 0;
  int64_t start_allowance_ns_ = 40'000'000;  // left for waits for starts, all lanes together
  bool blocked_for_test_ = false;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_LANE_CHECK_H_
