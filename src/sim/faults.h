// Faults on request: what fails, and at which call or time.
//
// Part of the simulated device's options. A trigger fires at its Nth call, or at each call with a
// probability drawn from the device's seed, so that a failing seed replays.
// Threads: used under the device's mutex.

#ifndef GPUSHARE_SRC_SIM_FAULTS_H_
#define GPUSHARE_SRC_SIM_FAULTS_H_

#include <cstdint>

#include "src/core/base/random.h"
#include "src/core/base/types.h"

namespace gpushare::sim {

// The native code of every fault: CUDA_ERROR_UNKNOWN.
inline constexpr int32_t kFaultNativeCode = 999;

struct FaultTrigger {
  int64_t nth = 0;         // fires at this call, counted from 1; 0 for never
  double probability = 0;  // fires at each call with this probability
};

struct FaultPlan {
  FaultTrigger launch_error;    // Launch returns INTERNAL
  FaultTrigger launch_failure;  // the launch is accepted and completes with kFailed
  FaultTrigger hang;            // the launch holds its SMs and never ends
  FaultTrigger device_lost;     // at a Launch call: everything in flight ends kDeviceLost
  core::TimeNs device_lost_at_ns = core::kNever;
  FaultTrigger place_out_of_memory;  // CreatePlace returns RESOURCE_EXHAUSTED
  FaultTrigger lane_out_of_memory;
  FaultTrigger kernel_out_of_memory;
  FaultTrigger slow_copy;  // a copy runs at 1 / slow_copy_factor of its rate
  double slow_copy_factor = 10;
  FaultTrigger dropped_completion;     // never reported
  FaultTrigger duplicated_completion;  // reported twice
  FaultTrigger blocked_eviction;  // the write takes effect only when its lane's launch has ended
  FaultTrigger misprediction;     // the launch takes misprediction_factor times its duration
  double misprediction_factor = 10;
  core::TimeNs clock_jump_at_ns = core::kNever;  // the clock jumps once when it reaches this time
  int64_t clock_jump_ns = 0;  // below 0: the clock steps back, which no real device's clock does
};

// Counts the calls of each trigger.
class FaultInjector {
 public:
  FaultInjector(const FaultPlan& plan, uint64_t seed) : plan_(plan), random_(seed) {}

  const FaultPlan& plan() const { return plan_; }

  bool LaunchError() { return Fires(plan_.launch_error, calls_.launch_error); }
  bool LaunchFailure() { return Fires(plan_.launch_failure, calls_.launch_failure); }
  bool Hang() { return Fires(plan_.hang, calls_.hang); }
  bool DeviceLost() { return Fires(plan_.device_lost, calls_.device_lost); }
  bool PlaceOutOfMemory() { return Fires(plan_.place_out_of_memory, calls_.place); }
  bool LaneOutOfMemory() { return Fires(plan_.lane_out_of_memory, calls_.lane); }
  bool KernelOutOfMemory() { return Fires(plan_.kernel_out_of_memory, calls_.kernel); }
  bool SlowCopy() { return Fires(plan_.slow_copy, calls_.slow_copy); }
  bool DroppedCompletion() { return Fires(plan_.dropped_completion, calls_.dropped); }
  bool DuplicatedCompletion() { return Fires(plan_.duplicated_completion, calls_.duplicated); }
  bool BlockedEviction() { return Fires(plan_.blocked_eviction, calls_.blocked_eviction); }
  bool Misprediction() { return Fires(plan_.misprediction, calls_.misprediction); }

 private:
  bool Fires(const FaultTrigger& trigger, int64_t& calls);

  struct Calls {
    int64_t launch_error = 0, launch_failure = 0, hang = 0, device_lost = 0, place = 0, lane = 0,
            kernel = 0, slow_copy = 0, dropped = 0, duplicated = 0, blocked_eviction = 0,
            misprediction = 0;
  };

  FaultPlan plan_;
  Calls calls_;
  core::Random random_;
};

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_FAULTS_H_
