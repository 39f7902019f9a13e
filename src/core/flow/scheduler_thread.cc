// The scheduler's own thread: Ticks while there is work, and rests in between.
//
// How it rests depends on the device and on WaitMode:
//   virtual time  time moves to the next event; without one the thread parks
//   spin          it spins while anything is in flight, and kSpinIdleNs after; then it parks
//   balanced      it sleeps until the next look at the device (waiting/next_look.h); with nothing
//   in
//                 flight it spins for kBalancedIdleNs and parks
// It parks without a time limit: whoever makes work for it calls Driver::Wake (waiting/parking.h).

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "absl/cleanup/cleanup.h"
#include "src/core/base/futex.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/driver.h"
#include "src/core/flow/waiting/next_look.h"
#include "src/core/flow/waiting/stall.h"

namespace gpushare::core {
namespace {

// In virtual time, with nothing but a policy's wish for another plan: the pace of the clock.
constexpr int64_t kPlanNapNs = 2 * 1000 * 1000;

constexpr char kThreadName[] = "gpushare-sched";  // what top and debuggers show; at most 15 bytes

}  // namespace

void Driver::ThreadMain() {
  // Also when pthread_exit in a callback unwinds this thread: waits then drive the flow.
  const absl::Cleanup ended = [this] {
    thread_running.store(false);
    waiters.NotifyAll();
    waiters.WakeAll();
  };
  pthread_setname_np(pthread_self(), kThreadName);
  UseFineTimers();
  while (!stop.load(std::memory_order_acquire)) {
    if (Tick()) {
      idle_since_ns = rest_since_ns = kNever;
    } else if (virtual_time()) {
      RestInVirtualTime();
    } else if (flow.options.wait_mode == WaitMode::kSpin) {
      RestSpinning();
    } else {
      RestBalanced();
    }
  }
}

// Everything below is read after the announcement, so that a change of it later wakes the thread.
void Driver::RestInVirtualTime() {
  parking.Announce();
  const TimeNs deadline_ns = waiters.EarliestDeadline();
  // What a caller submitted or changed before it waited may have come after the Tick.
  const bool has_work = [this] {
    MutexLock lock(&tick_mutex);
    return HasWork();
  }();
  if (has_work || stop.load()) return parking.Withdraw();
  const TimeNs next_ns = NextWake();
  const TimeNs now_ns = flow.device->NowNs();
  // Time waits for a caller whose deadline it has reached.
  if (deadline_ns <= now_ns) {
    waiters.NotifyDue(now_ns);
    waiters.WakeAll();
    parking.Sleep(kNever);
    return;
  }
  // A policy that plans without work must not make the clock run away from the caller.
  const bool only_plans = IsIdle() && flow.device->NextEventNs() == kNever;
  if (std::min(next_ns, deadline_ns) == kNever) return Park();
  if (!only_plans || waiters.Any()) {
    parking.Withdraw();
  } else if (parking.Sleep(kPlanNapNs)) {
    return;
  }
  StepVirtualTime(deadline_ns);
}

void Driver::RestSpinning() {
  const TimeNs next_ns = NextWake();
  SpinAtRest(next_ns);
  const bool idle = (next_ns == kNever && flow.gate.InFlight() == 0) || IsIdle();
  if (!idle) {
    idle_since_ns = kNever;
    return;
  }
  const TimeNs now_ns = flow.device->NowNs();
  idle_since_ns = std::min(idle_since_ns, now_ns);
  if (now_ns - idle_since_ns <= kSpinIdleNs) return;
  parking.Announce();
  const TimeNs look_ns = NextLookNs(now_ns);
  if (look_ns <= now_ns || !IsIdle() || stop.load()) return parking.Withdraw();
  parking.Sleep(look_ns == kNever ? kNever : look_ns - now_ns);
}

void Driver::RestBalanced() {
  const TimeNs now_ns = flow.device->NowNs();
  if (IsIdle()) {
    idle_since_ns = std::min(idle_since_ns, now_ns);
    if (now_ns - idle_since_ns <= kBalancedIdleNs) return;
  } else {
    idle_since_ns = kNever;
  }
  // Looked at before the announcement, so that submits need not wake a thread that spins on.
  if (NextLookNs(now_ns) - now_ns < kNapNsMin) return;
  parking.Announce();
  const TimeNs look_ns = NextLookNs(now_ns);
  if (look_ns - now_ns < kNapNsMin || stop.load()) return parking.Withdraw();
  if (look_ns == kNever) return Park();
  if (parking.Sleep(look_ns - now_ns)) return;
  const int64_t late_ns = flow.device->NowNs() - look_ns;
  wake_latency_ns =
      std::clamp(std::max(late_ns, wake_latency_ns - wake_latency_ns / kWakeLatencyMemory),
                 kWakeLatencyNsMin, kWakeLatencyNsMax);
}

// The thread does not park while something is pending, and tells of a wait without an end all the
// same.
void Driver::SpinAtRest(TimeNs next_ns) {
  if (next_ns != kNever || !waiters.AnyEndless()) {
    rest_since_ns = kNever;
    return;
  }
  const TimeNs now_ns = flow.device->NowNs();
  rest_since_ns = std::min(rest_since_ns, now_ns);
  if (now_ns - rest_since_ns >= kRestReportNs) ReportRest();
}

// Sleeps until it is woken, after an Announce: nothing is due. If callers wait without a deadline
// for what is pending, the application's log says why after a while.
void Driver::Park() {
  parked.store(true, std::memory_order_seq_cst);
  const bool tells = waiters.AnyEndless() && flow.counters.pending.load() > 0;
  const auto begin = std::chrono::steady_clock::now();
  const bool woken = parking.Sleep(tells ? kRestReportNs : kNever);
  parked.store(false, std::memory_order_seq_cst);
  const auto slept = std::chrono::steady_clock::now() - begin;
  if (tells && !woken && slept >= std::chrono::nanoseconds(kRestReportNs)) ReportRest();
}

// A FlowChange that finishes a task leaves its end, and its callback, to the next Tick.
bool Driver::HasWork() {
  return flow.dirty || flow.regions_refused.load(std::memory_order_relaxed) > 0 ||
         !flow.refused.empty() || !flow.ring.Empty() || !flow.awaited_ends.tasks.empty() ||
         !flow.notices.empty();
}

// When the next Tick has work without a new call; at most `now_ns`: at once.
TimeNs Driver::NextLookNs(TimeNs now_ns) {
  MutexLock lock(&tick_mutex);
  if (HasWork()) return now_ns;
  TimeNs next_ns = std::min(flow.replan_at_ns, flow.device->NextLookNs());
  if (flow.counters.pending.load(std::memory_order_relaxed) > 0)
    next_ns = std::min(next_ns, flow.idle_check_ns);
  if (flow.running_be.empty() && flow.running_lc.empty()) return next_ns;
  return std::min({next_ns, flow.hang_check_ns, NextLook(flow, now_ns, wake_latency_ns)});
}

}  // namespace gpushare::core
