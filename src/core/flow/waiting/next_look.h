// When the scheduler's thread looks at the device next, in balanced mode on a real device.
//
// The models say when a launch ends. The thread sleeps until some time before that, and then looks
// without a pause until it finds the end or has waited long enough. For an LC launch that time is
// at least 3/8 of its duration, or 1 ms if that is less. From then on, and for a launch whose
// duration is a guess, it looks again after a fixed share of the time that the launch has taken so
// far. So an end is found late by at most
//   - that share (1 / 64 for LC work, 1 / 16 for BE work) and the latency of a wake-up, where the
//     launch takes longer than predicted or the prediction is a guess;
//   - kLcLookNsMax or kBeLookNsMax where it takes less, and for LC work never after the time that
//     was predicted.
// Threads: LookAt: pure, any. NextLook: under the lock of Tick.

#ifndef GPUSHARE_SRC_CORE_FLOW_WAITING_NEXT_LOOK_H_
#define GPUSHARE_SRC_CORE_FLOW_WAITING_NEXT_LOOK_H_

#include <cstdint>

#include "src/core/state/flow.h"

namespace gpushare::core {

// One launch, or one task with several, whose end the flow waits for.
struct ExpectedEnd {
  TimeNs start_ns = 0;
  TimeNs end_ns = 0;
  int64_t error_ns = 0;  // one standard deviation of the end
  bool known = false;    // false: the end is a guess
  bool urgent = false;   // LC: its callback is waited for; BE: only the next launch is
};

// The next look for this end; at most `now_ns`: look at once. `wake_latency_ns` is how late a timed
// sleep ends.
TimeNs LookAt(const ExpectedEnd& expected, TimeNs now_ns, int64_t wake_latency_ns);

// The next look for whatever is on the device; kNever: nothing is.
TimeNs NextLook(const Flow& flow, TimeNs now_ns, int64_t wake_latency_ns);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_WAITING_NEXT_LOOK_H_
