// Tick, its drivers, and the calls that concern the whole runtime. See scheduler.h.

#include "src/core/flow/scheduler.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/admit.h"
#include "src/core/flow/complete.h"
#include "src/core/flow/launch.h"
#include "src/core/flow/learn.h"
#include "src/core/flow/plan.h"
#include "src/core/flow/predict.h"
#include "src/core/flow/scheduler_impl.h"
#include "src/core/flow/submit.h"
#include "src/core/flow/verbs/evict.h"
#include "src/core/flow/verbs/finish.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/flow/verbs/running.h"

namespace gpushare::core {
namespace {

// How long a thread that waits, or the parked scheduler thread, sleeps at most before it looks
// again; wake-ups normally come from a signal.
constexpr int64_t kNapNs = 2 * 1000 * 1000;

}  // namespace

bool Scheduler::Impl::RunStages() {
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

// Opaque launches call the application's function. Thread: the driver's, no lock held, so that the
// function may submit.
void Scheduler::Impl::LaunchDeferred(std::vector<LaunchRequest>& requests) {
  for (const LaunchRequest& request : requests) {
    const absl::Status status = flow.device->Launch(request);
    if (status.ok()) continue;
    DeviceCompletion refused;
    refused.launch = request.parts[0].launch;
    refused.outcome = IsDeviceLost(status) ? Outcome::kDeviceLost : Outcome::kFailed;
    refused.start_ns = refused.end_ns = flow.device->NowNs();
    refused.error_code = static_cast<int32_t>(status.code());
    MutexLock lock(&tick_mutex);
    flow.refused.push_back(refused);
  }
  requests.clear();
}

bool Scheduler::Impl::Tick() {
  std::vector<Notice> notices;
  std::vector<LaunchRequest> deferred;
  bool worked = false;
  {
    MutexLock lock(&tick_mutex);
    worked = RunStages();
    deferred.swap(flow.deferred);
    if (!flow.notices.empty()) {
      notices.swap(flow.notices);
      flow.notices.swap(spare_notices);
    }
  }
  if (!deferred.empty()) {
    ++callback_depth;
    LaunchDeferred(deferred);
    --callback_depth;
  }
  if (!notices.empty()) {
    ++callback_depth;
    for (const Notice& notice : notices) notice.callback(notice.user, notice.record);
    --callback_depth;
    notices.clear();
    MutexLock lock(&tick_mutex);
    if (spare_notices.capacity() < notices.capacity()) spare_notices.swap(notices);
  }
  if (worked) NotifyWaiters();
  return worked;
}

void Scheduler::Impl::NotifyWaiters() {
  if (waiters.load(std::memory_order_seq_cst) == 0) return;
  MutexLock lock(&wake_mutex);
  completed.SignalAll();
}

// When something will happen without anybody's doing: a device event, a plan's wish, a hang's
// limit.
TimeNs Scheduler::Impl::NextWake() {
  MutexLock lock(&tick_mutex);
  TimeNs next = flow.device->NextEventNs();
  if (!flow.backlog.empty() || !flow.running_be.empty()) next = std::min(next, flow.replan_at_ns);
  if (flow.running_be.size() + flow.running_lc.size() > 0)
    next = std::min(next, flow.hang_check_ns);
  return next;
}

// Moves virtual time to the next event, but not beyond the limit. False: there is nothing to wait
// for.
bool Scheduler::Impl::StepVirtualTime(TimeNs limit_ns) {
  const TimeNs next = std::min(NextWake(), limit_ns);
  if (next == kNever) return false;
  flow.device->AdvanceTo(std::max(next, flow.device->NowNs()));
  return true;
}

void Scheduler::Impl::Wake() {
  if (!parked.load(std::memory_order_seq_cst)) return;
  MutexLock lock(&wake_mutex);
  wake.SignalAll();
}

void Scheduler::Impl::Park() {
  MutexLock lock(&wake_mutex);
  parked.store(true, std::memory_order_seq_cst);
  if (flow.ring.Empty() && !stop.load()) wake.WaitFor(&wake_mutex, kNapNs);
  parked.store(false, std::memory_order_seq_cst);
}

void Scheduler::Impl::ThreadMain() {
  TimeNs idle_since_ns = kNever;
  while (!stop.load(std::memory_order_acquire)) {
    if (Tick()) {
      idle_since_ns = kNever;
      continue;
    }
    if (virtual_time()) {
      if (StepVirtualTime(kNever)) continue;
      // Nothing will ever happen, but somebody waits until a time: let it come.
      const TimeNs deadline = waiter_deadline_ns.exchange(kNever);
      if (deadline != kNever) {
        flow.device->AdvanceTo(std::max(deadline, flow.device->NowNs()));
        NotifyWaiters();
        continue;
      }
      Park();
    } else if (NextWake() == kNever && flow.gate.InFlight() == 0) {
      const TimeNs now_ns = flow.device->NowNs();
      idle_since_ns = std::min(idle_since_ns, now_ns);
      if (now_ns - idle_since_ns > kSpinIdleNs) Park();
    } else {
      idle_since_ns = kNever;  // on a real device with work in flight: spin
    }
  }
}

absl::Status Scheduler::Impl::DriveUntil(absl::FunctionRef<bool()> done, TimeNs deadline_ns,
                                         const char* what) {
  if (callback_depth > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("A callback must not wait (", what, "): it would wait for itself."));
  }
  const auto late = [&] {
    return absl::DeadlineExceededError(absl::StrCat(
        "The deadline passed (", what, ") with ", flow.counters.pending.load(), " tasks pending."));
  };
  if (!threaded()) {
    while (!done()) {
      const bool worked = Tick();
      if (done()) break;
      // Also while there is work: callbacks that submit could go on for ever.
      if (flow.device->NowNs() >= deadline_ns) return late();
      if (worked) continue;
      if (virtual_time()) {
        if (!StepVirtualTime(deadline_ns)) return late();
      } else {
        std::this_thread::yield();
      }
    }
    return absl::OkStatus();
  }
  waiters.fetch_add(1, std::memory_order_seq_cst);
  absl::Status status;
  {
    MutexLock lock(&wake_mutex);
    while (!done()) {
      if (flow.device->NowNs() >= deadline_ns || !threaded()) {
        status = late();
        break;
      }
      TimeNs registered = waiter_deadline_ns.load();
      while (deadline_ns < registered &&
             !waiter_deadline_ns.compare_exchange_weak(registered, deadline_ns)) {
      }
      completed.WaitFor(&wake_mutex, kNapNs);
    }
  }
  waiters.fetch_sub(1);
  return status;
}

void Scheduler::Impl::EvictAllBe() {
  for (const Task* task : flow.running_be) {
    for (const Part& part : task->progress.parts) {
      if (part.epoch != 0) {
        EvictLane(flow, part.lane, 0, task->record.ticket, Reason::kHoldQuiesced);
      }
    }
  }
}

// Regions that nobody ended: their tickets complete all the same.
void Scheduler::Impl::FinishOpenRegions() {
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    App& app = flow.tables.app_slot(slot);
    if (app.id.load() == 0) continue;
    for (int i = 0; i < app.task_capacity; ++i) {
      Task& task = app.tasks[static_cast<size_t>(i)];
      RegionPhase open = RegionPhase::kOpen;
      if (task.holders.load() == 0 || task.complete.load()) continue;
      if (!task.region.compare_exchange_strong(open, RegionPhase::kEnded)) continue;
      task.progress.adopted = true;
      FinishTask(flow, task, Verdict::kShutdown);
    }
  }
}

// Whoever is inside a submit saw the runtime open; its word is in the ring once it has left.
void Scheduler::Impl::AwaitSubmitters() {
  for (int slot = 0; slot < flow.tables.app_slots(); ++slot) {
    while (flow.tables.app_slot(slot).submitters.load() != 0) std::this_thread::yield();
  }
}

// --- construction ---

Scheduler::Scheduler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(const SchedulerOptions& options,
                                                             std::unique_ptr<Device> device,
                                                             std::unique_ptr<CostModel> model,
                                                             std::unique_ptr<Policy> policy) {
  if (device == nullptr || model == nullptr || policy == nullptr) {
    return absl::InvalidArgumentError("A scheduler needs a device, a cost model and a policy.");
  }
  auto impl =
      std::make_unique<Impl>(options, std::move(device), std::move(model), std::move(policy));
  if (absl::Status status = impl->flow.lanes.Create(*impl->flow.device, options.splits_max);
      !status.ok()) {
    return status;
  }
  impl->flow.counters.evictions_blocked.store(impl->flow.lanes.lanes_blocked());
  impl->flow.learns.store(impl->flow.policy->properties().learns);
  impl->flow.now_ns = impl->flow.device->NowNs();
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(impl)));
}

Scheduler::~Scheduler() {
  // Whoever wants a longer goodbye calls Shutdown first.
  constexpr int64_t kGoodbyeNs = int64_t{1000} * 1000 * 1000;
  Shutdown(NowNs() + kGoodbyeNs).IgnoreError();
  StopThread();
}

// --- driving ---

bool Scheduler::Tick() { return impl_->Tick(); }

absl::StatusOr<bool> Scheduler::Poll() {
  if (impl_->threaded()) {
    return absl::FailedPreconditionError("The scheduler's own thread runs; it needs no Poll.");
  }
  if (callback_depth > 0) {
    return absl::FailedPreconditionError("A callback must not poll: Poll is what runs it.");
  }
  if (impl_->Tick()) return true;
  return impl_->virtual_time() && impl_->StepVirtualTime(kNever);
}

absl::Status Scheduler::PollUntil(TimeNs time_ns) {
  if (callback_depth > 0) {
    return absl::FailedPreconditionError("A callback must not poll: Poll is what runs it.");
  }
  if (impl_->threaded()) {
    // The scheduler's own thread does the work; just let the time come.
    const auto never = [] { return false; };
    const absl::Status status = impl_->DriveUntil(never, time_ns, "poll until");
    return absl::IsDeadlineExceeded(status) ? absl::OkStatus() : status;
  }
  Device& device = *impl_->flow.device;
  for (;;) {
    const bool worked = impl_->Tick();
    // Virtual time ends at time_ns with all that is due then; real time goes on by itself.
    if (worked && impl_->virtual_time()) continue;
    if (device.NowNs() >= time_ns) return absl::OkStatus();
    if (impl_->virtual_time()) impl_->StepVirtualTime(time_ns);
  }
}

absl::Status Scheduler::StartThread() {
  if (impl_->shut_down.load()) {
    return absl::FailedPreconditionError("The runtime is shut down.");
  }
  if (impl_->thread_running.exchange(true)) {
    return absl::FailedPreconditionError("The scheduler's thread runs already.");
  }
  impl_->stop.store(false);
  impl_->thread = std::thread([impl = impl_.get()] { impl->ThreadMain(); });
  return absl::OkStatus();
}

void Scheduler::StopThread() {
  if (!impl_->thread_running.load()) return;
  impl_->stop.store(true);
  {
    MutexLock lock(&impl_->wake_mutex);
    impl_->wake.SignalAll();
  }
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_->thread_running.store(false);
}

// --- whole runtime ---

absl::Status Scheduler::Drain(TimeNs deadline_ns) {
  const auto done = [&] { return impl_->flow.counters.pending.load() == 0; };
  return impl_->DriveUntil(done, deadline_ns, "drain");
}

absl::Status Scheduler::Quiesce(TimeNs deadline_ns) {
  Flow& flow = impl_->flow;
  {
    MutexLock lock(&impl_->tick_mutex);
    flow.quiesced.store(true);
    flow.fast_path.store(false, std::memory_order_seq_cst);
    impl_->EvictAllBe();
  }
  const auto idle = [&] {
    MutexLock lock(&impl_->tick_mutex);
    return flow.running_be.size() + flow.running_lc.size() == 0 && flow.gate.InFlight() == 0 &&
           flow.open_regions.load() == 0;
  };
  return impl_->DriveUntil(idle, deadline_ns, "quiesce");
}

absl::Status Scheduler::Resume() {
  Flow& flow = impl_->flow;
  {
    MutexLock lock(&impl_->tick_mutex);
    if (!flow.quiesced.exchange(false)) {
      return absl::FailedPreconditionError("The runtime is not quiesced.");
    }
    flow.fast_path.store(flow.accepting.load(), std::memory_order_seq_cst);
    flow.dirty = true;
  }
  impl_->Wake();
  return absl::OkStatus();
}

absl::Status Scheduler::Shutdown(TimeNs deadline_ns) {
  Flow& flow = impl_->flow;
  if (callback_depth > 0) {
    return absl::FailedPreconditionError("A callback must not shut the runtime down.");
  }
  MutexLock one_at_a_time(&impl_->shutdown_mutex);
  if (impl_->shut_down.load()) return absl::OkStatus();
  flow.accepting.store(false);
  flow.fast_path.store(false, std::memory_order_seq_cst);
  impl_->AwaitSubmitters();
  {
    MutexLock lock(&impl_->tick_mutex);
    flow.now_ns = flow.device->NowNs();
    FinishBacklog(flow, Verdict::kShutdown);
    impl_->FinishOpenRegions();
    impl_->EvictAllBe();
  }
  const auto done = [&] { return flow.counters.pending.load() == 0; };
  absl::Status status = impl_->DriveUntil(done, deadline_ns, "shutdown");
  if (!status.ok()) {
    MutexLock lock(&impl_->tick_mutex);
    flow.now_ns = flow.device->NowNs();
    // Words still in the ring: tasks launched by their submitter, or not at all.
    do {
      Collect(flow);
      Admit(flow);
    } while (!flow.inbox.empty());
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
  StopThread();   // its callbacks have ended: no two run at once
  impl_->Tick();  // the callbacks of what was given up
  impl_->shut_down.store(true);
  return status;
}

absl::Status Scheduler::SetPolicy(std::unique_ptr<Policy> policy) {
  if (policy == nullptr) return absl::InvalidArgumentError("There is no policy to set.");
  MutexLock lock(&impl_->tick_mutex);
  impl_->flow.policy.swap(policy);
  impl_->flow.learns.store(impl_->flow.policy->properties().learns);
  impl_->flow.dirty = true;
  return absl::OkStatus();
}

}  // namespace gpushare::core
