// A caller that waits for an LC task while the scheduler's thread drives the flow: it sleeps until
// the end is near, spins, and sleeps again if the end does not come.
//
// Invariants: one wait spins for at most CallerSpinNs in all. A caller that spins is in no list:
// where it did not sleep first, the end of its task costs Tick nothing. A sleep marks the task as
// awaited, and Tick then looks for its waiters. Nobody spins for BE work, in virtual time, or where
// the caller drives the flow itself. Threads: any caller.

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/flow/driver.h"
#include "src/core/flow/verbs/spin_window.h"

namespace gpushare::core {

// True: `done` was true. False: the caller shall sleep until it is woken.
bool Driver::SpinForEnd(absl::FunctionRef<bool()> done, TimeNs deadline_ns, Task& task) {
  int64_t left_ns = CallerSpinNs(flow.options);
  TimeNs now_ns = flow.device->NowNs();
  const SpinWindow unknown = {now_ns, now_ns + kCallerFirstSpinNs};
  while (left_ns > 0 && threaded()) {
    if (done()) return true;
    const SpinWindow known = LoadSpinWindow(task);
    const bool guesses = known.until_ns == 0;
    const SpinWindow& window = guesses ? unknown : known;
    if (now_ns < window.from_ns) {
      const TimeNs until_ns = std::min(window.from_ns, deadline_ns);
      if (AwaitThread(done, until_ns, Awaited::kTask, &task)) return true;
      now_ns = flow.device->NowNs();
      if (now_ns < window.from_ns) return false;  // the deadline has passed
    }
    const TimeNs end_ns = std::min({window.until_ns, deadline_ns, now_ns + left_ns});
    if (now_ns >= end_ns) return false;
    if (!spinners.TryEnter(now_ns)) {
      // The window may have room for it.
      if (!guesses) return false;
      if (AwaitThread(done, end_ns, Awaited::kTask, &task)) return true;
      now_ns = flow.device->NowNs();
      continue;
    }
    const auto goes_on = [&](TimeNs time_ns) {
      return time_ns < end_ns && threaded() && (!guesses || LoadSpinWindow(task).until_ns == 0);
    };
    const Spun spun = SpinWhile(*flow.device, goes_on, done);
    spinners.Leave(spun);
    if (spun.crowded) return done();
    left_ns -= spun.ended_ns - now_ns;
    now_ns = spun.ended_ns;
  }
  return done();
}

}  // namespace gpushare::core
