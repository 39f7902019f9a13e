// The verb "publish the spin window": when a caller that waits for an LC task looks at it without
// sleeping.
//
// A sleeping caller is found, woken and scheduled some 50 us after its task was complete. A caller
// that spins sees the same store within a microsecond, and Tick need not wake it. The window lies
// around the predicted end of the task, and its length bounds what the spin costs.
// Invariants: only an LC task that runs and whose duration is predicted has a window; it is no
// longer than `spin_ns`, half of it before the end. Threads: SpinWindowOf: pure, any.
// PublishSpinWindow: the one that runs Tick. LoadSpinWindow: any.

#ifndef GPUSHARE_SRC_CORE_FLOW_VERBS_SPIN_WINDOW_H_
#define GPUSHARE_SRC_CORE_FLOW_VERBS_SPIN_WINDOW_H_

#include <cstdint>

#include "src/core/state/flow.h"

namespace gpushare::core {

struct SpinWindow {
  TimeNs from_ns = 0;
  TimeNs until_ns = 0;  // 0: nobody knows
};

// Most time that one wait spins; 0: it does not.
int64_t CallerSpinNs(const SchedulerOptions& options);

// The window of a task that takes from start_ns to end_ns, give or take error_ns.
SpinWindow SpinWindowOf(TimeNs start_ns, TimeNs end_ns, int64_t error_ns, WaitMode mode,
                        int64_t spin_ns);

// The task's first part was launched.
void PublishSpinWindow(const Flow& flow, Task& task, const Part& part);

SpinWindow LoadSpinWindow(const Task& task);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_VERBS_SPIN_WINDOW_H_
