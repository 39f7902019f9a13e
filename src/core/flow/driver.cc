// Tick and its drivers. See driver.h.

#include "src/core/flow/driver.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/flow/admit.h"
#include "src/core/flow/complete.h"
#include "src/core/flow/deferred_calls.h"
#include "src/core/flow/launch.h"
#include "src/core/flow/learn/learn.h"
#include "src/core/flow/loss/lane_loss.h"
#include "src/core/flow/plan.h"
#include "src/core/flow/predict.h"
#include "src/core/flow/submit.h"
#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/running.h"
#include "src/core/flow/waiting/stall.h"

namespace gpushare::core {
namespace {

// How often a shutdown looks whether the application's functions have ended.
constexpr std::chrono::microseconds kNap(200);

// What of the tasks can be evicted leaves the device.
void EvictAll(Flow& flow, const auto& running) {
  for (const Task* task : running) {
    for (const Part& part : task->progress.parts) {
      if (part.epoch == 0) continue;
      EvictLane(flow, part.lane, 0, task->record.ticket, Reason::kHoldQuiesced);
    }
  }
}

}  // namespace

bool Driver::RunStages() {
  flow.now_ns = flow.device->NowNs();
  Collect(flow);
  Admit(flow);
  Predict(flow);
  MakePlan(flow);
  Launch(flow);
  const bool completions = Complete(flow);
  Learn(flow);
  flow.counters.ticks.fetch_add(1, std::memory_order_relaxed);
  const Plan& plan = flow.buffers.plan;
  const bool acted = flow.planned && (!plan.launches.empty() || !plan.evictions.empty());
  return !flow.inbox.empty() || completions || acted || flow.dirty;
}

bool Driver::Tick() {
  bool worked = false;
  bool quiet = false;
  uint64_t joined = 0;
  BoundedList<LaneIndex, kMaxLanes> lost_lanes;
  AwaitedEnds ends;
  {
    DeferredCalls calls(flow, tick_mutex);
    {
      MutexLock lock(&tick_mutex);
      worked = RunStages();
      calls.Take();
      if (!flow.awaited_ends.tasks.empty()) {
        ends = flow.awaited_ends;
        flow.awaited_ends = AwaitedEnds();
      }
      if (!flow.lost_lanes.empty()) {
        lost_lanes = flow.lost_lanes;
        flow.lost_lanes.Clear();
      }
      joined = waiters.Joined();
      quiet = waiters.AnyFor(Awaited::kQuiet) && IsQuiet();
    }
    if (!lost_lanes.empty()) ReplaceLanes(flow, lost_lanes.span(), tick_mutex);
    calls.Run();
  }
  if (flow.places_asked.load(std::memory_order_relaxed)) {
    flow.places_asked.store(false);
    place_maker.Wake();
  }
  return Notify(ends, quiet, joined) || worked;
}

// Wakes who waits for a task that has ended, or for a state that the flow has reached. The state is
// looked at after each Tick: a cancellation outside a Tick may have ended the last pending task.
bool Driver::Notify(const AwaitedEnds& ends, bool quiet, uint64_t joined) {
  if (ends.more) {
    waiters.NotifyAllTasks();
  } else {
    waiters.NotifyTasks(ends.tasks.span());
  }
  if (quiet) waiters.NotifyState(Awaited::kQuiet, joined);
  if (flow.counters.pending.load(std::memory_order_seq_cst) == 0 &&
      waiters.AnyFor(Awaited::kDrained)) {
    waiters.NotifyState(Awaited::kDrained, joined);
  }
  return waiters.WakeSome();
}

bool Driver::IsQuiet() const {
  // The rest of a query in pieces is under way, on the device or not (launch.cc).
  const bool in_pieces = std::any_of(flow.backlog.begin(), flow.backlog.end(), [](Queue* queue) {
    return queue->head->piece.graph != nullptr && !queue->head->piece.first;
  });
  return !in_pieces && flow.running_be.empty() && flow.running_lc.empty() &&
         flow.gate.InFlight() == 0 && flow.open_regions.load() == flow.regions_overdue;
}

// The next time at which a Tick has work without a new call: a device event, the plan's replan
// time, or the limit of a launch that may hang.
TimeNs Driver::NextWake() {
  MutexLock lock(&tick_mutex);
  TimeNs next = std::min(flow.device->NextEventNs(), flow.replan_at_ns);
  if (flow.running_be.size() + flow.running_lc.size() > 0)
    next = std::min(next, flow.hang_check_ns);
  // What is idle matters to work that waits.
  if (flow.counters.pending.load(std::memory_order_relaxed) > 0)
    next = std::min(next, flow.idle_check_ns);
  return next;
}

// Moves virtual time to the next event, but not beyond the limit. False: no event is due, and there
// is no limit.
bool Driver::StepVirtualTime(TimeNs limit_ns) {
  const TimeNs next = std::min(NextWake(), limit_ns);
  if (next > kLatestTimeNs) return false;
  flow.device->AdvanceTo(std::max(next, flow.device->NowNs()));
  return true;
}

// No task is accepted and not complete: only a policy may have asked for another plan.
bool Driver::IsIdle() const {
  return flow.counters.pending.load(std::memory_order_acquire) == 0 && flow.gate.InFlight() == 0;
}

absl::Status Driver::DriveUntil(absl::FunctionRef<bool()> done, TimeNs deadline_ns,
                                const char* what, Awaited awaited, Task* task) {
  if (callback_depth > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("A callback must not wait (", what, "): it would wait for itself."));
  }
  if (deadline_ns > kLatestTimeNs) deadline_ns = kNever;
  const auto late = [&] {
    return StatusOf(absl::StatusCode::kDeadlineExceeded, [&] {
      if (deadline_ns == kNever) return RestReport(1);
      return absl::StrCat("The deadline passed (", what, ") with ", flow.counters.pending.load(),
                          " tasks pending.");
    });
  };
  if (threaded()) {
    const bool spins = task != nullptr && !virtual_time() && IsLc(*task);
    if (spins && SpinForEnd(done, deadline_ns, *task)) return absl::OkStatus();
    if (AwaitThread(done, deadline_ns, awaited, task)) return absl::OkStatus();
    if (threaded()) return late();
  }
  Rest rest;
  while (!done()) {
    const bool worked = Tick();
    if (done()) break;
    // Checked while there is work too: callbacks that submit could keep the loop running forever.
    if (deadline_ns != kNever && flow.device->NowNs() >= deadline_ns) return late();
    if (worked) rest.since_ns = kNever;
    if (worked) continue;
    if (!virtual_time()) {
      if (deadline_ns == kNever) LookAtRest(rest);
      std::this_thread::yield();
    } else if (!StepVirtualTime(deadline_ns) && !OthersDrive() && !done()) {
      return late();
    }
  }
  return absl::OkStatus();
}

// Whether another thread drives too: it has moved the time to an event that is not handled yet, or
// it is inside a function of the application, which may submit.
bool Driver::OthersDrive() { return Tick() || flow.calls_running.load() != 0; }

bool Driver::AwaitThread(absl::FunctionRef<bool()> done, TimeNs deadline_ns, Awaited awaited,
                         Task* task) {
  bool was_done = false;
  {
    Waiter waiter(waiters, awaited, task, deadline_ns);
    for (;;) {
      was_done = done() || waiter.WasReached();
      if (was_done || !threaded()) break;
      const TimeNs now_ns = flow.device->NowNs();
      if (now_ns >= deadline_ns) break;
      if (waiter.Rejoin()) continue;
      // Virtual time goes on for this deadline, and the thread says when it is there. A parked
      // thread has to know of a caller that may wait for ever.
      if (virtual_time() || (deadline_ns == kNever && parked.load())) Wake();
      waiter.Sleep(virtual_time() || deadline_ns == kNever ? kNever : deadline_ns - now_ns);
    }
  }
  if (virtual_time()) Wake();  // time no longer waits for this caller
  return was_done;
}

// A call that nothing can end is likely an error of the application, and looks like a hang of the
// library.
std::string Driver::RestReport(int calls) {
  MutexLock lock(&tick_mutex);
  return absl::StrCat(
      calls == 1 ? "A call waits" : absl::StrCat(calls, " calls wait"), " without a deadline with ",
      flow.counters.pending.load(),
      " tasks pending, and nothing is due that could end the wait: ", ReasonOfRest(flow), ".");
}

bool Driver::AtRest() {
  if (flow.counters.pending.load() == 0 || NextWake() != kNever) return false;
  MutexLock lock(&tick_mutex);
  return !HasWork();
}

void Driver::ReportRest() {
  if (!AtRest()) return;
  const int calls = waiters.TakeEndless();
  if (calls == 0) return;
  CatchExhaustion([&] {
    flow.Report(RestReport(calls));
    return absl::OkStatus();
  }).IgnoreError();
}

void Driver::LookAtRest(Rest& rest) {
  const TimeNs now_ns = flow.device->NowNs();
  rest.since_ns = std::min(rest.since_ns, now_ns);
  if (rest.told || now_ns - rest.since_ns < kRestReportNs || !AtRest()) return;
  rest.told = true;
  CatchExhaustion([&] {
    flow.Report(RestReport(1));
    return absl::OkStatus();
  }).IgnoreError();
}

void Driver::AwaitCalls() {
  while (flow.calls_running.load() != 0) std::this_thread::sleep_for(kNap);
}

void Driver::EvictAllBe() { EvictAll(flow, flow.running_be); }

void Driver::EvictAllYielding() { EvictAll(flow, flow.running_lc); }

// Ends the regions that their callers left open, so that their tickets complete.
void Driver::FinishOpenRegions() {
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    App& app = flow.tables.app_slot(slot);
    if (app.id.load() == 0) continue;
    for (int i = 0; i < app.task_slots_used; ++i) {
      Task& task = app.TaskAt(static_cast<size_t>(i));
      RegionPhase open = RegionPhase::kOpen;
      if (HoldersOf(task.slot_word.load()) == 0 || task.complete.load()) continue;
      if (!task.region.compare_exchange_strong(open, RegionPhase::kEnded)) continue;
      task.progress.adopted = true;
      task.progress.parts.Clear();  // prepared at its begin, never launched
      FinishTask(flow, task, Verdict::kShutdown);
    }
  }
}

void Driver::BeginShutdown(TimeNs deadline_ns) {
  const FlowChange change(*this);
  flow.now_ns = flow.device->NowNs();
  FinishOpenRegions();
  flow.cut_off = deadline_ns <= flow.now_ns;
  flow.quiesced.store(false);
  flow.dirty = true;
}

void Driver::CutOff() {
  const FlowChange change(*this);
  flow.now_ns = flow.device->NowNs();
  flow.cut_off = true;
  AdmitEverything();
  FinishOpenRegions();
  FinishBacklog(flow, Verdict::kShutdown);
  EvictAllBe();
  EvictAllYielding();
}

// The ring may still hold words of tasks, launched by their submitter or not.
void Driver::AdmitEverything() {
  do {
    Collect(flow);
    Admit(flow);
  } while (!flow.inbox.empty());
}

void Driver::GiveUpRunning() {
  const FlowChange change(*this);
  flow.now_ns = flow.device->NowNs();
  AdmitEverything();
  const auto give_up = [&](const auto& running) {
    while (!running.empty()) {
      Task& task = *running[0];
      for (const Part& part : task.progress.parts) flow.device->AbandonLane(part.lane);
      DropParts(flow, task);
      FinishTask(flow, task, Verdict::kTimedOut);
    }
  };
  give_up(flow.running_be);
  give_up(flow.running_lc);
  FinishBacklog(flow, Verdict::kShutdown);
}

// Waits for submitters that saw the runtime open. Their words are in the ring once they have left.
void Driver::AwaitSubmitters() {
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    while (flow.tables.app_slot(slot).submitters.load() != 0) std::this_thread::yield();
  }
}

}  // namespace gpushare::core
