// Partial eviction of BE workers until a number of CapSMs is free (SMGuard 5.2, R_gap).
//
// The remaining workers execute the block tasks that the evicted ones left, so nothing is
// relaunched.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PARTS_CAPSM_EVICTION_H_
#define GPUSHARE_SRC_CORE_POLICIES_PARTS_CAPSM_EVICTION_H_

#include <array>
#include <bitset>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// M of the kernel: workers that one CapSM holds.
inline int32_t WorkersPerCapSm(const HeadView& task) {
  return task.kernel == nullptr || task.kernel->resources.workers_per_sm_max < 1
             ? 1
             : task.kernel->resources.workers_per_sm_max;
}

class CapSmEvictor {
 public:
  using Tasks = std::bitset<kMaxRunning>;  // by index into Snapshot::running
  struct Shortage {
    double capsms = 0;
    int32_t app = -1;  // BE app that frees them; -1: any
    Reason reason = Reason::kNone;
  };

  explicit CapSmEvictor(const Snapshot& snapshot);

  // Evicts workers until at least `shortage.capsms` are free, shortest eviction latency first: a
  // long block task would free its CapSMs too late to help (SMGuard fig. 15). Tasks that `stay`
  // keep their workers. Returns the CapSMs freed, fewer when no evictable worker is left.
  double Free(const Shortage& shortage, const Tasks& stay, Plan& plan);

 private:
  struct Candidate {
    int32_t running = 0;
    PlaceIndex place = kNoPlace;
    int32_t workers = 0;   // left on the place after what was evicted so far
    int32_t planned = -1;  // its eviction in the plan
  };
  const Snapshot& snapshot_;
  std::array<Candidate, kMaxRunning> candidates_;
  size_t count_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PARTS_CAPSM_EVICTION_H_
