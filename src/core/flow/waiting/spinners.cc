// The loop of a spinning caller. See spinners.h.

#include "src/core/flow/waiting/spinners.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "src/core/base/tuning.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gpushare::core {
namespace {

constexpr int kPausesPerClock = 16;  // a pause takes 10 to 50 ns, a look at the clock 25 ns

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

void Spinners::Leave(const Spun& spun) {
  count_.fetch_sub(1, std::memory_order_relaxed);
  const int64_t before_ns = rest_ns_.load(std::memory_order_relaxed);
  if (!spun.crowded) {
    // A spin that ended before its first yield knows nothing of the core.
    if (spun.yielded && before_ns != 0) rest_ns_.store(0, std::memory_order_relaxed);
    return;
  }
  const int64_t rest_ns = std::clamp(2 * before_ns, kCrowdedRestNsMin, kCrowdedRestNsMax);
  rest_ns_.store(rest_ns, std::memory_order_relaxed);
  rest_until_ns_.store(spun.ended_ns + rest_ns, std::memory_order_relaxed);
}

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return std::max(1, CPU_COUNT(&cores));
}

Spun SpinWhile(const Device& device, absl::FunctionRef<bool(TimeNs)> goes_on,
               absl::FunctionRef<bool()> done) {
  TimeNs now_ns = device.NowNs();
  TimeNs yield_ns = now_ns + kCallerYieldNs;
  bool yielded = false;
  while (goes_on(now_ns)) {
    for (int i = 0; i < kPausesPerClock; ++i) {
      if (done()) return {device.NowNs(), false, yielded};
      Pause();
    }
    now_ns = device.NowNs();
    if (now_ns < yield_ns) continue;
    sched_yield();
    const TimeNs yielded_ns = std::exchange(now_ns, device.NowNs());
    // A yield to nobody takes less than a microsecond.
    if (now_ns - yielded_ns > kCallerYieldNs) return {now_ns, true, yielded};
    yielded = true;
    yield_ns = now_ns + kCallerYieldNs;
  }
  return {now_ns, false, yielded};
}

}  // namespace gpushare::core
