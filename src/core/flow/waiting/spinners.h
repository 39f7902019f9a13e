// How many callers spin at a time, and the spin itself.
//
// A caller that spins takes a core from whatever could run there, and the scheduler's thread must
// run for it to see an end. So at most half of the processor's cores spin, none on a single core,
// and a spinning caller yields every kCallerYieldNs. Where another thread took that core, it sleeps
// instead: threads that share a core take turns, and the system favours one that wakes up. Nobody
// spins for a while then, for twice as long each time that a core is crowded again: on a crowded
// machine waits cost what sleeps cost.
// Invariant: no system call while no yield is due, and no lock. The count has a cache line of its
// own. Threads: any.

#ifndef GPUSHARE_SRC_CORE_FLOW_WAITING_SPINNERS_H_
#define GPUSHARE_SRC_CORE_FLOW_WAITING_SPINNERS_H_

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "src/core/base/types.h"
#include "src/core/seams/device.h"

namespace gpushare::core {

// How one spin ended.
struct Spun {
  TimeNs ended_ns = 0;
  bool crowded = false;  // another thread wants the core
  bool yielded = false;  // it yielded the core, and got it back at once
};

class alignas(64) Spinners {
 public:
  explicit Spinners(int most) : most_(most) {}
  // For the cores that this process may use.
  static int MostOf(int cores) { return cores / 2; }

  bool TryEnter(TimeNs now_ns) {
    if (now_ns < rest_until_ns_.load(std::memory_order_relaxed)) return false;
    if (count_.fetch_add(1, std::memory_order_relaxed) < most_) return true;
    count_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  void Leave(const Spun& spun);

 private:
  const int most_;
  std::atomic<int> count_{0};
  std::atomic<int64_t> rest_ns_{0};  // the last rest; 0: a spin has since yielded to nobody
  std::atomic<TimeNs> rest_until_ns_{0};
};

// Cores that this process may use, at least 1.
int UsableCores();

// Asks `done` again and again, without sleeping, until it says true, `goes_on` says false of the
// time, or the core is crowded.
Spun SpinWhile(const Device& device, absl::FunctionRef<bool(TimeNs)> goes_on,
               absl::FunctionRef<bool()> done);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_FLOW_WAITING_SPINNERS_H_
