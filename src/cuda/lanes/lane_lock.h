// Locks a lane for a launch.
//
// Threads: any.

#ifndef GPUSHARE_SRC_CUDA_LANES_LANE_LOCK_H_
#define GPUSHARE_SRC_CUDA_LANES_LANE_LOCK_H_

#include "absl/base/thread_annotations.h"
#include "src/cuda/lanes/cuda_lane.h"

namespace gpushare::cuda {

// Spins before it sleeps. The holder of a lane is inside one driver call of about 1 us, and a sleep
// and a wake-up cost several.
inline void LockLane(CudaLane& lane) ABSL_EXCLUSIVE_LOCK_FUNCTION(lane.mutex) {
  constexpr int kLooks = 64;  // each with a pause of 20 to 50 ns
  for (int look = 0; look < kLooks; ++look) {
    if (lane.mutex.TryLock()) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  lane.mutex.Lock();
}

// Unlocks on an exception too: the message of a refused launch may find no memory.
class ABSL_SCOPED_LOCKABLE LaneLock {
 public:
  explicit LaneLock(CudaLane& lane) ABSL_EXCLUSIVE_LOCK_FUNCTION(lane.mutex) : lane_(lane) {
    LockLane(lane);
  }
  ~LaneLock() ABSL_UNLOCK_FUNCTION() { lane_.mutex.Unlock(); }
  LaneLock(const LaneLock&) = delete;
  LaneLock& operator=(const LaneLock&) = delete;

 private:
  CudaLane& lane_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_LANE_LOCK_H_
